"""What moved under two roots: when only the base did, what is not told, and a refreshing command that climbs the same candidate."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from harness import VERSION, diff, environment, gate, sides
from harness.answer import check
from harness.diff_values import Diff, Side
from harness.judge import worst
from harness.policy import parse
from harness.preserve import Asked, look_back
from harness.quality import canonical
from harness.records import DataFact, Limit, Lock, LockClaim
from harness.report import diff_view, parts
from harness.run import prepare
from tests.support.compared import _perturb
from tests.support.ladders import changed as resealed
from tests.support.ladders import edited, qualify, write_ladder


@pytest.fixture(scope="module")
def side(tiny_root: Path) -> Side:
    return sides.side(check(tiny_root))


def with_records(side: Side, **changes: Any) -> Side:
    """The side with other records, as if it had been sealed so."""
    return side._replace(judged=replace(side.judged, records=replace(side.records, **changes)))


def locked(side: Side) -> Side:
    """The side as it is when its ladder names a lock: every installed package is recorded, by canonical name."""
    lock = DataFact(path="inputs/lock.txt", digest="blake3:" + "1" * 64, source="lock.txt", rows=3)
    plan = side.records.plan
    made = replace(plan, lock=Lock(file="lock.txt"), inputs=replace(plan.inputs, lock=lock))
    told = side.records.environment
    every = {canonical(name): version for name, version in told.packages.items()} | {"pip": "1", "pytest": "2"}
    return with_records(side, plan=made, environment=replace(told, packages=every))


def shown(found: Diff) -> str:
    return " ".join(parts.text(diff_view.headline(found, None), diff_view.parts(found, None)).split())


# --- packages ---------------------------------------------------------------------------------------------------------


def test_a_lock_on_one_side_alone_changes_no_package(side: Side) -> None:
    assert "huggingface_hub" in side.records.environment.packages
    for one, other, where in ((side, locked(side), "candidate"), (locked(side), side, "baseline")):
        found = diff.compare(one, other)
        assert {(change.part, change.name) for change in found.identity} == {
            ("limits", "lock.digest"),
            ("limits", "lock.file"),
            ("limits", "lock.parity"),
        }
        assert {"packages", "pairs"} <= set(found.same)
        said = f"packages: 2 that only the {where} recorded, since its ladder alone names a lock, are not compared"
        assert found.notes == (said,)
        assert shown(found).count("recorded") == 1
        asked = parse(b"format: 1\nname: release\ngates:\n  - {identity: packages, must_not_change: true}\n")
        assert gate.judge(asked, "", found).verdict == "OK"


def test_a_package_that_did_change_is_found_under_either_name(side: Side) -> None:
    told = side.records.environment
    old = with_records(side, environment=replace(told, packages=told.packages | {"huggingface_hub": "0.0.1"}))
    (change,) = [item for item in diff.compare(old, locked(side)).identity if item.part == "packages"]
    assert (change.name, change.baseline) == ("huggingface-hub", "0.0.1")
    gone = {name: version for name, version in told.packages.items() if name != "openvino"}
    without = with_records(side, environment=replace(told, packages=gone))
    there = with_records(locked(side), environment=replace(told, packages=gone | {"openvino": "1"}))
    (change,) = [item for item in diff.compare(without, there).identity if item.part == "packages"]
    assert (change.name, change.baseline, change.candidate) == ("openvino", None, "1")


def test_the_version_of_this_code_is_recorded_with_every_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert environment.observe(tmp_path, every_package=True).packages["qualify"] == VERSION
    monkeypatch.setattr(environment, "VERSION", "9.9.9")
    assert environment.observe(tmp_path, every_package=True).packages["qualify"] == "9.9.9"


# --- only the base ----------------------------------------------------------------------------------------------------


def test_a_base_that_moved_with_a_limit_or_a_lock_is_not_all_that_moved(side: Side) -> None:
    told = side.records.environment
    moved = replace(told, packages=told.packages | {"onnxruntime": "1.0.0"})
    assert diff.compare(side, with_records(side, environment=moved)).refresh is not None
    plan = side.records.plan
    target = plan.targets[0]
    first = replace(target.steps[0], limits=target.steps[0].limits | {"nodes": Limit(at_most=1)})
    limits = replace(plan, targets=(replace(target, steps=(first, *target.steps[1:])), *plan.targets[1:]))
    assert diff.compare(side, with_records(side, environment=moved, plan=limits)).refresh is None
    lock = locked(side).records.plan
    assert diff.compare(side, with_records(side, environment=moved, plan=lock)).refresh is None


def test_another_commit_of_the_harness_is_said_not_to_be_looked_into(side: Side) -> None:
    told = side.records.environment
    other = with_records(side, environment=replace(told, facts=told.facts | {"harness_commit": "f" * 40}))
    text = shown(diff.compare(side, other))
    assert "which stages' code it changed is not looked at, so it counts for no stage here" in text
    assert "nothing has to run again" not in text


# --- verdicts ---------------------------------------------------------------------------------------------------------


def test_a_verdict_lost_by_the_lock_is_a_row_and_is_counted(side: Side) -> None:
    lock = LockClaim(file="lock.txt", parity="versions", verdict="FAIL", differences=())
    failed = replace(side.claim, lock=lock, verdict=worst(["PASS", "FAIL"]))
    found = diff.compare(side, side._replace(judged=replace(side.judged, claim=failed)))
    assert [(row.name, row.baseline, row.candidate, row.state) for row in found.beside] == [
        ("root", "PASS", "FAIL", "lost"),
        ("lock", "absent", "FAIL", "changed"),
    ]
    assert shown(found).startswith("compared: 1 verdict lost, 0 gained; ")
    assert "lost all root PASS FAIL" in shown(found)
    assert "changed all lock absent FAIL" in shown(found)


# --- the command that refreshes ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_that_refreshes_climbs_the_candidate_and_the_targets_of_the_root(
    tmp_path: Path, tiny_model: Path
) -> None:
    targets = "\n  - {precision: fp32, threads: 1}\n  - {precision: int8, threads: 1}\n"
    ladder = write_ladder(tmp_path / "l", tiny_model, targets, goal="L0")
    shutil.copytree(tiny_model, tmp_path / "other")
    _perturb(tmp_path / "other" / "model.safetensors")
    options = ("--model", tmp_path / "other", "--target", "cpu-fp32")
    assert qualify("run", ladder, *options, "--out", tmp_path / "root").code == 0
    older = edited("environment.json", lambda value: value["packages"].update(onnxruntime="1.0.0"))
    one, other = (
        sides.side(check(root)) for root in (resealed(tmp_path / "root", tmp_path / "old", older), tmp_path / "root")
    )
    found = diff.compare(one, other, (), str(ladder)).refresh
    assert found is not None
    assert found.command == (
        *("qualify", "run", str(ladder), "--model", "DIR", "--target", "cpu-fp32"),
        *("--supersede", str(tmp_path / "old"), "--reason", "the base moved"),
    )
    words = [str(tmp_path / "other") if word == "DIR" else word for word in found.command[1:]]
    said = qualify(*words, "--out", tmp_path / "fresh")
    assert said.code == 0, said.err
    assert "another candidate" not in said.err
    fresh = sides.side(check(tmp_path / "fresh")).records.plan
    assert (fresh.candidate, fresh.only) == (one.records.plan.candidate, ("cpu-fp32",))
    slip = prepare(ladder, None, ["cpu-fp32"]).plan
    (note,) = look_back(Asked(tmp_path / "old", "the base moved"), slip, ladder.parent).notes
    assert note == (
        f"--supersede {tmp_path / 'old'}: it is of another candidate, other {fresh.candidate.digest}; "
        f"this climb is of {slip.candidate.model} {slip.candidate.digest}, and replaces it all the same"
    )
