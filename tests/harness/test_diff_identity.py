"""Two ladders by JSON pointer: what each gave, what it left to its default, what it does not have."""

from __future__ import annotations

from harness.diff_identity import ladder_changes
from harness.diff_values import LadderChange

LADDER = """format: 1
name: tiny
candidate: {model: ./model}
goal: L1
tiers:
  L0: {limits: {opset: {exactly: 17}}}
  L1: {calls: 500, limits: {p50_ms: {at_most: 5}}}
targets:
  - {precision: fp32}
"""


def changes(old: str, new: str) -> list[LadderChange]:
    return list(ladder_changes(LADDER.encode(), LADDER.replace(old, new).encode()))


def test_two_spellings_of_one_ladder_do_not_differ() -> None:
    assert changes("calls: 500, ", "") == []
    assert changes("at_most: 5", "at_most: 5.0") == []


def test_a_value_that_one_side_leaves_to_its_default_is_said_to_be_that() -> None:
    assert changes("calls: 500", "calls: 50") == [
        LadderChange(
            pointer="/tiers/L1/calls", baseline=500, candidate=50, baseline_from="explicit", candidate_from="explicit"
        )
    ]
    (found,) = changes("{limits: {opset: {exactly: 17}}}", "{opset: 18, limits: {opset: {exactly: 17}}}")
    assert (found.pointer, found.baseline, found.baseline_from) == ("/tiers/L0/opset", 17, "default")
    assert (found.candidate, found.candidate_from) == (18, "explicit")


def test_what_one_side_does_not_have_is_absent() -> None:
    found = {
        item.pointer: item
        for item in changes("  - {precision: fp32}\n", "  - {precision: fp32}\n  - {precision: int8}\n")
    }
    assert found["/targets/1/precision"] == LadderChange(
        pointer="/targets/1/precision",
        baseline=None,
        candidate="int8",
        baseline_from="absent",
        candidate_from="explicit",
    )
    assert found["/targets/1/threads"].candidate_from == "default"
    (found_limit,) = changes("p50_ms: {at_most: 5}", "p50_ms: {at_most: 5, at_least: 1}")
    assert (found_limit.pointer, found_limit.baseline_from) == ("/tiers/L1/limits/p50_ms/at_least", "absent")


def test_a_key_with_a_slash_is_escaped_in_the_pointer() -> None:
    from harness.diff_identity import _pointers

    assert dict(_pointers({"a/b": {"c~d": 1}})) == {"/a~1b/c~0d": 1}
