"""A history of roots: what replaces what, which is current, what is missing. The reading of real roots is in test_preserve."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harness.history import LISTED, History, Seen, history
from harness.records import Coverage, Lineage, Preserved, Qualification, Superseded, TargetClaim, Verdict
from harness.report.history import history_text
from tests.harness.test_lineage import plan
from tests.support.plans import candidate


def digest(letter: str) -> str:
    return "blake3:" + letter * 64


def root(
    letter: str,
    minute: int,
    *,
    replaces: str = "",
    carries: Mapping[str, tuple[str, ...]] | None = None,
    verdict: Verdict = "PASS",
    model: str = "./model",
) -> Seen:
    """A root named by a letter (hex), which ended in that minute."""
    claim = Qualification(
        format=1,
        ladder="tiny",
        plan_digest=digest("1"),
        candidate_digest=digest("2"),
        verdict=verdict,
        targets=(
            TargetClaim(name="cpu-fp32", verdict=verdict, reached=None, deferred=None, tiers={}, reason=""),
            TargetClaim(name="cpu-fp16", verdict="PASS", reached="L3", deferred=None, tiers={}, reason=""),
        ),
        coverage=Coverage(goal="L3", reached=(), missed=(), deferred=(), complete=False),
        started_at="2026-01-01T00:00:00Z",
        ended_at=f"2026-01-01T00:{minute:02}:00Z",
    )
    return Seen(
        name=letter,
        digest=digest(letter),
        plan=msgspec.structs.replace(plan(), candidate=candidate(model=model)),
        claim=claim,
        lineage=Lineage(
            format=1,
            supersedes=tuple(Superseded(digest=digest(old), reason="a reason") for old in replaces),
            preserved=tuple(Preserved(origin=digest(o), steps=steps) for o, steps in (carries or {}).items()),
        ),
    )


def states(found: History) -> dict[str, str]:
    return {line.name: line.state for line in found.lines}


def notes(found: History) -> dict[str, tuple[str, ...]]:
    return {line.name: line.notes for line in found.lines if line.notes}


def test_an_empty_folder_has_an_empty_history() -> None:
    assert history([]) == History(lines=(), notes=(), leftovers=())
    assert history_text(history([])) == (
        "checked  every file of every root, by all rules of the bundle; the verdicts are\n"
        "         the roots' claims\n"
        "trust    none: the root agrees with itself; nothing here shows who made it or\n"
        "         that it is the one you were told of\n0 roots\n"
    )


def test_a_listing_says_that_it_is_no_verification() -> None:
    found = history([root("a", 1)], checked=LISTED)
    assert found.checked == LISTED
    assert (
        "checked  seal, manifest, the records shown; artifacts, raw samples and the other\n"
        "         records are not rehashed: --verify; the verdicts are the roots' claims\n"
    ) in history_text(found)


def test_a_root_of_another_version_is_never_called_broken_and_can_be_superseded() -> None:
    foreign = [
        Seen(name=letter, digest=digest(letter), why="made by qualify 0.0.9", version="0.0.9") for letter in "bc"
    ]
    found = history([root("a", 1, replaces="b"), *foreign])
    assert states(found) == {"a": "current", "b": "superseded", "c": "another version"}
    assert notes(found) == {"b": ("made by qualify 0.0.9",), "c": ("made by qualify 0.0.9",)}
    text = history_text(found)
    assert "? ANOTHER VERSION  b  superseded\n" in text
    assert "? ANOTHER VERSION  c\n" in text
    assert text.endswith("3 roots: 1 current, 1 superseded, 1 another version\n")


def test_the_newest_that_nobody_replaces_is_current() -> None:
    found = history([root("c", 3), root("a", 1), root("b", 2, replaces="a")])
    assert states(found) == {"a": "superseded", "b": "older", "c": "current"}
    assert list(states(found)) == ["a", "b", "c"]
    assert found.notes == ()


def test_a_root_that_is_replaced_is_not_current_though_it_ended_last() -> None:
    found = history([root("a", 5), root("b", 2, replaces="a")])
    assert states(found) == {"b": "current", "a": "superseded"}


def test_each_ladder_and_model_has_its_own_current_root() -> None:
    found = history([root("a", 1), root("b", 2, model="./other")])
    assert states(found) == {"a": "current", "b": "current"}


def test_a_failed_root_is_listed_truthfully_and_can_be_current() -> None:
    (line,) = history([root("a", 1, verdict="FAIL")]).lines
    assert (line.state, line.verdict, line.targets) == ("current", "FAIL", {"cpu-fp32": "FAIL", "cpu-fp16": "PASS"})


def test_a_fork_is_said() -> None:
    found = history([root("a", 1), root("b", 2, replaces="a"), root("c", 3, replaces="a")])
    assert states(found) == {"a": "superseded", "b": "older", "c": "current"}
    assert found.notes == ("fork: b and c both replace a",)


def test_a_fork_of_a_root_that_is_not_here_is_said_by_its_digest() -> None:
    found = history([root("b", 2, replaces="a"), root("c", 3, replaces="a")])
    assert found.notes == (f"fork: b and c both replace {digest('a')}",)


def test_a_root_that_is_replaced_and_not_here_is_missed() -> None:
    found = history([root("b", 2, replaces="a")])
    assert notes(found) == {"b": (f"what it replaces is not here: {digest('a')}",)}


def test_an_origin_that_is_not_here_is_missed() -> None:
    found = history([root("b", 2, carries={"a": ("steps/L0-build.cpu-fp32",)})])
    assert found.lines[0].preserved == ((digest("a"), 1),)
    assert notes(found) == {"b": (f"its origin is not here, what it carries of it is: {digest('a')}",)}


def test_evidence_that_another_root_replaced_is_said() -> None:
    step = {"a": ("steps/L0-build.cpu-fp32",)}
    found = history([root("a", 1), root("b", 2, carries=step), root("c", 3, replaces="a")])
    assert notes(found) == {"b": (f"it carries steps that c replaced: {digest('a')}",)}


def test_a_root_may_carry_from_what_it_replaces_and_others_may_carry_the_same() -> None:
    step = {"a": ("steps/L0-build.cpu-fp32",)}
    found = history([root("a", 1), root("b", 2, replaces="a", carries=step), root("c", 3, carries=step)])
    assert notes(found) == {}


def test_what_is_not_intact_is_listed_last_and_replaces_nothing() -> None:
    broken = Seen(name="b", digest=digest("b"), why="E-HASH plan.json: expected blake3 1, got 2")
    found = history([broken, root("a", 1)])
    assert states(found) == {"a": "current", "b": "not intact"}
    assert notes(found) == {"b": ("E-HASH plan.json: expected blake3 1, got 2",)}


def test_two_copies_of_one_root_are_said_and_make_no_fork() -> None:
    one = root("b", 2, replaces="a")
    found = history([root("a", 1), one, msgspec.structs.replace(one, name="copy")])
    assert states(found) == {"a": "superseded", "b": "current", "copy": "current"}
    assert found.notes == ("one root 2 times: b, copy",)


def test_the_text_says_all_of_it_and_obeys_nothing() -> None:
    hostile = root("b", 2, replaces="a", verdict="FAIL", model="x\x1b[31m\n::error::")
    step = {"a": ("steps/L0-build.cpu-fp32",)}
    broken = Seen(name="c", digest=None, why="E-SEAL SEAL: expected this file, got none")
    text = history_text(history([root("a", 1), hostile, root("d", 3, carries=step), broken], ["x.staging-1-0"]))
    assert "\x1b" not in text
    assert "\n::" not in text
    assert text.splitlines()[0] == "✓ PASS  a  superseded"
    assert "✗ FAIL  b  current" in text
    assert f"replaces {digest('a')}" in text
    assert "carries  1 step of" in text
    assert "✗ NOT INTACT  c\nnote     E-SEAL SEAL: expected this file, got none\ndigest   none\n" in text
    assert "left     x.staging-1-0: half-written, no roots; look, then qualify rm each" in text
    assert text.splitlines()[-1] == "4 roots: 2 current, 1 superseded, 1 not intact"
    assert all(len(line) <= 80 for line in text.splitlines())
