from __future__ import annotations

import msgspec
import pytest

from harness import judge, ladder, plan
from harness.cover import Covered, Seen, cover
from harness.records import GateClaim, Inputs, Outcome, Qualification, Tier, Verdict
from tests.harness.test_matrix import LADDER as FOUR
from tests.support.plans import CANDIDATE, INPUTS, candidate, outcome

LADDER = FOUR.replace(b"  - {precision: int8, provider: qnn, deferred: no device}\n", b"")


def seen(name: str, *only: str, verdict: Verdict = "PASS", gate: Verdict | None = None, **changes: object) -> Seen:
    """A root of ``LADDER`` in which every climbed target has one verdict."""
    data = changes.get("data", LADDER)
    assert isinstance(data, bytes)
    found = changes.get("candidate", CANDIDATE)
    inputs = changes.get("inputs", INPUTS)
    made = plan.make(ladder.parse(data), data, found, inputs, {}, only)  # type: ignore[arg-type]
    outcomes: dict[tuple[str, Tier], Outcome] = {
        (target.name, step.tier): outcome(target.name, step.tier, verdict, "" if verdict == "PASS" else "a reason")
        for target in made.targets
        for step in target.steps
    }
    gates = (GateClaim(name="lint", verdict=gate, reason="exit code 1"),) if gate is not None else ()
    claim: Qualification = judge.qualification(made, "", outcomes, "", "", gates)
    code = {"PASS": 0, "FAIL": 10}.get(claim.verdict, 30)
    return Seen(name, f"blake3:{name}", code, made, claim)


def covered(*roots: Seen, data: bytes = LADDER, allow_deferred: bool = False) -> Covered:
    return cover([(ladder.parse(data), data)], roots, allow_deferred=allow_deferred)


def states(found: Covered) -> dict[str, str]:
    return {target.name: target.state for target in found.ladders[0].targets}


def test_roots_that_share_the_targets_cover_them() -> None:
    found = covered(seen("a", "cpu-fp32"), seen("b", "cpu-int8", "cuda-fp16"))
    assert (found.exit_code, found.refused, found.ladders[0].complete) == (0, (), True)
    assert [target.roots for target in found.ladders[0].targets] == [("blake3:a",), ("blake3:b",), ("blake3:b",)]


def test_a_target_that_nobody_climbed_is_missing() -> None:
    found = covered(seen("a", "cpu-fp32"), seen("b", "cpu-int8"))
    assert found.exit_code == 30
    assert states(found) == {"cpu-fp32": "PASS", "cpu-int8": "PASS", "cuda-fp16": "MISSING"}


def test_no_root_at_all_covers_nothing() -> None:
    found = covered()
    assert (found.exit_code, set(states(found).values())) == (30, {"MISSING"})


def test_the_worst_root_of_a_target_counts_so_that_repeating_does_not_help() -> None:
    found = covered(seen("a", verdict="FAIL"), seen("b"))
    assert (found.exit_code, set(states(found).values())) == (10, {"FAIL"})
    assert found.ladders[0].targets[0].roots == ("blake3:a", "blake3:b")


def test_one_root_given_twice_counts_once() -> None:
    found = covered(seen("a"), seen("a"))
    assert (found.exit_code, found.ladders[0].targets[0].roots) == (0, ("blake3:a",))


def test_a_gate_that_failed_fails_every_target_of_its_root() -> None:
    found = covered(seen("a", "cpu-fp32", gate="FAIL"), seen("b", "cpu-int8", "cuda-fp16"))
    assert found.exit_code == 10
    assert found.ladders[0].targets[0].reason == "gate lint: exit code 1"


@pytest.mark.parametrize("changed", ["candidate", "inputs"])
def test_roots_of_another_candidate_or_other_data_do_not_count_together(changed: str) -> None:
    data: Inputs = msgspec.structs.replace(INPUTS, groups=None)
    other = {"candidate": candidate(digest="blake3:" + "9" * 64)} if changed == "candidate" else {"inputs": data}
    found = covered(seen("a", "cpu-fp32"), seen("b", "cpu-int8", "cuda-fp16", **other))
    assert (found.exit_code, states(found)["cpu-int8"], len(found.refused)) == (30, "MISSING", 1)
    assert found.refused[0].reason.startswith(f"expected the {'candidate' if changed == 'candidate' else 'data'} of a")


def test_a_root_of_another_ladder_is_refused_and_named() -> None:
    other = LADDER.replace(b"8e6", b"9e6")
    found = covered(seen("a"), seen("b", data=other))
    assert (found.exit_code, set(states(found).values())) == (30, {"PASS"})
    assert found.refused[0].reason.startswith("expected a root of a ladder given here, got one of example blake3:")


def test_a_root_that_is_not_intact_outranks_everything() -> None:
    found = covered(seen("a", verdict="FAIL"), Seen("b", None, 20, why="E-HASH"))
    assert (found.exit_code, found.refused[0].reason) == (20, "E-HASH")


def test_what_the_ladder_defers_is_settled_only_when_that_is_said() -> None:
    given = seen("a", data=FOUR)
    assert covered(given, data=FOUR).exit_code == 30
    found = covered(given, data=FOUR, allow_deferred=True)
    assert (found.exit_code, found.ladders[0].complete, states(found)["qnn-int8"]) == (0, False, "DEFERRED")


def test_a_ladder_of_deferred_targets_alone_is_never_covered() -> None:
    data = LADDER[: LADDER.index(b"targets:")] + b"targets:\n  - {precision: fp32, deferred: later}\n"
    assert covered(data=data, allow_deferred=True).exit_code == 30
