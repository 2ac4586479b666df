"""The search for the nodes that must stay in fp32, on made-up faults."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.stages import keep

NODES = [(f"mul{n}", "Mul") for n in range(8)] + [(f"add{n}", "Add") for n in range(16)] + [("pow", "Pow")]


def faulty(*needed: str) -> Callable[[tuple[str, ...]], str]:
    """A graph that is mended when all of ``needed`` are kept."""
    return lambda kept: "" if set(needed) <= set(kept) else "row 0: logit nan"


@pytest.mark.parametrize(
    "needed", [("pow",), ("mul5",), ("add3", "add11"), ("add0", "add1", "add15"), ("mul1", "add9")], ids="-".join
)
def test_exactly_the_nodes_that_are_needed_are_kept(needed: tuple[str, ...]) -> None:
    found = keep.search(NODES, "row 0: logit nan", faulty(*needed))
    assert sorted(found.kept) == sorted(needed)
    assert found.repaired
    assert found.minimal
    assert found.trials <= keep.MOST_TRIALS


def test_the_operator_types_of_what_is_kept_are_named() -> None:
    assert keep.search(NODES, "x", faulty("mul1", "add9")).operators == ("Add", "Mul")


def test_a_fault_that_no_node_mends_is_said_to_be_not_mended() -> None:
    found = keep.search(NODES, "row 0: logit nan", lambda _kept: "row 0: logit nan")
    assert (found.kept, found.repaired, found.minimal) == ((), False, False)
    assert found.fault == "row 0: logit nan"


def test_a_search_that_runs_out_of_trials_keeps_the_best_set_and_does_not_call_it_smallest() -> None:
    found = keep.search(NODES, "x", faulty("add3", "add11"), most=5)
    assert found.repaired
    assert not found.minimal
    assert {"add3", "add11"} <= set(found.kept)
    assert found.trials <= 5
