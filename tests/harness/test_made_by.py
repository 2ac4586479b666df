"""A root that another version of qualify made: undetermined where that may be why it differs, never PASS, and never excused a number."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evidence.manifest import digest_of
from evidence.verify import open_root
from harness import VERSION, made_by, records
from harness.answer import check
from harness.errors import NotIntact
from harness.recheck import Rejudged, rejudge
from harness.review import ask, review, summarise
from tests.support.ladders import resealed, writable_copy

L1 = "steps/L1-perf.cpu-fp32"
WHY = f"made by qualify 0.0.9, this is {VERSION}: verify it with that version, or run again"


@pytest.fixture(scope="module")
def files(tiny_root: Path) -> dict[str, bytes]:
    opened = open_root(tiny_root)
    return {path: opened.read(path) for path in opened.paths}


def changed(files: dict[str, bytes], path: str, change: Callable[[Any], object]) -> dict[str, bytes]:
    record = json.loads(files[path])
    change(record)
    return files | {path: records.to_json(record)}


def by_another(files: dict[str, bytes]) -> dict[str, bytes]:
    return changed(files, records.ENVIRONMENT, lambda record: record["packages"].update(qualify="0.0.9"))


def judged(files: dict[str, bytes]) -> Rejudged:
    return rejudge(files.__getitem__, files)


def with_plan(files: dict[str, bytes], change: Callable[[Any], object]) -> dict[str, bytes]:
    """Another plan, whose digest every record names, as a climb under other defaults would have sealed it."""
    old = digest_of(files[records.PLAN]).encode()
    made = changed(files, records.PLAN, change)
    new = digest_of(made[records.PLAN]).encode()
    return {path: data.replace(old, new) if path.endswith(".json") else data for path, data in made.items()}


def more_warm_up(plan: Any) -> None:
    plan["options"]["L2"]["deadlock_s"] = 61.0


def same_in_requests(files: dict[str, bytes]) -> dict[str, bytes]:
    plan = json.loads(files[records.PLAN])
    for path in [path for path in files if path.endswith("/request.json")]:
        files = changed(files, path, lambda record: record.update(options=plan["options"]))
    return files


def rules(found: Rejudged) -> set[str]:
    return {fault.rule for fault in found.faults}


def test_a_root_of_another_version_that_differs_in_nothing_is_judged(files: dict[str, bytes]) -> None:
    found = judged(by_another(files))
    assert (found.holds, found.verdict, found.undetermined) == (True, "PASS", ())


def test_a_plan_with_other_defaults_is_a_fault_of_ours_and_undetermined_of_another_version(
    files: dict[str, bytes],
) -> None:
    other = same_in_requests(with_plan(files, more_warm_up))
    assert rules(judged(other)) == {"Q-LADDER"}
    found = judged(by_another(other))
    assert (found.faults, found.verdict, found.holds, found.why) == ((), "BLOCKED", False, WHY)
    assert [fault.rule for fault in found.undetermined] == [made_by.OTHER]
    assert found.undetermined[0].message == "plan.json#/options/L2/deadlock_s: expected 60.0, got 61.0"


@pytest.mark.parametrize("path", [records.PLAN, f"{L1}/outcome.json", f"{L1}/measurements.json", f"{L1}/samples.json"])
def test_a_record_with_fields_of_another_version_is_undetermined(files: dict[str, bytes], path: str) -> None:
    other = changed(files, path, lambda record: record.update(of_the_future=1))
    assert rules(judged(other)) != set()
    found = judged(by_another(other))
    assert (found.faults, found.verdict, found.why) == ((), "BLOCKED", WHY)


def test_a_metric_or_a_file_that_this_version_does_not_know_is_undetermined(files: dict[str, bytes]) -> None:
    def less(record: Any) -> None:
        del record["measurements"][-1]

    for other in (changed(files, f"{L1}/measurements.json", less), files | {f"{L1}/later.json": b"{}\n"}):
        assert rules(judged(other)) in ({"Q-METRIC"}, {"Q-FILE"})
        found = judged(by_another(other))
        assert (found.faults, found.verdict, found.why) == ((), "BLOCKED", WHY)


def test_a_number_that_the_samples_do_not_give_is_a_fault_whoever_made_the_root(files: dict[str, bytes]) -> None:
    def faster(record: Any) -> None:
        next(item for item in record["measurements"] if item["metric"] == "min_ms")["value"] /= 2

    found = judged(by_another(changed(files, f"{L1}/measurements.json", faster)))
    assert rules(found) == {"Q-METRIC"}


def test_a_note_in_other_words_is_undetermined(files: dict[str, bytes]) -> None:
    def said(record: Any) -> None:
        next(item for item in record["measurements"] if item["metric"] == "calls")["note"] = "in other words"

    other = changed(files, f"{L1}/measurements.json", said)
    assert rules(judged(other)) == {"Q-METRIC"}
    assert (judged(by_another(other)).faults, judged(by_another(other)).why) == ((), WHY)


def test_a_root_that_states_no_version_is_excused_nothing(files: dict[str, bytes]) -> None:
    other = changed(
        files | {f"{L1}/later.json": b"{}\n"}, records.ENVIRONMENT, lambda record: record["packages"].pop("qualify")
    )
    assert rules(judged(other)) == {"Q-FILE"}
    broken = files | {f"{L1}/later.json": b"{}\n", records.ENVIRONMENT: b"{"}
    assert rules(judged(broken)) == {"Q-RECORD"}


def test_verify_says_which_version_and_ends_30_and_nobody_speaks_for_such_a_root(
    tiny_root: Path, files: dict[str, bytes], tmp_path: Path
) -> None:
    staging = writable_copy(tiny_root, tmp_path / "staging")
    for path, data in same_in_requests(with_plan(by_another(files), more_warm_up)).items():
        (staging / path).write_bytes(data)
    resealed(staging, tmp_path / "root")
    from harness.cli import cli, guarded

    assert guarded(lambda: cli.main(["verify", str(tmp_path / "root")], standalone_mode=False)) == 30
    reviewed = review(ask(tmp_path / "root", None, tiny_root / "ladder.yaml", (), (), ()))
    assert (reviewed.verdict, reviewed.exit_code) == (None, 30)
    assert summarise(reviewed, "me") == WHY
    with pytest.raises(NotIntact, match=r"made by qualify 0\.0\.9") as refused:
        check(tmp_path / "root").records  # noqa: B018 - raises
    assert refused.value.exit_code == 30
    from harness.preserve import reuse

    with pytest.raises(NotIntact, match=r"made by qualify 0\.0\.9") as refused:
        reuse(tmp_path / "root", ["L1"], check(tiny_root).records.plan, check(tiny_root).records.environment)
    assert refused.value.exit_code == 30
