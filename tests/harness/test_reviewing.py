"""``qualify review`` on real roots: approve, request changes, reject; what it writes, where, and what it never writes."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evidence.verify import VerifiedRoot, open_root, verify
from harness import VERSION, answer, reviewing, survey
from tests.support.keys import make_keys
from tests.support.ladders import Said, changed, edited, qualify, writable_copy

POLICY = """format: 1
name: release
gates:
  - {metric: payload_bytes, max_degradation: 1%}
  - {metric: max_abs_gap, max_degradation: 0}
"""


@pytest.fixture
def place(tmp_path: Path, tiny_root: Path) -> Path:
    """A folder with a policy, and the same climb twice: ``base/march`` and ``runs/today``, which ended a year later."""
    (tmp_path / "base").mkdir()
    (tmp_path / "runs").mkdir()
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    shutil.copytree(tiny_root, tmp_path / "base" / "march")
    later = edited("qualification.json", lambda claim: claim.update(ended_at="2036-01-01T00:00:00Z"))
    changed(tiny_root, tmp_path / "runs" / "today", later)
    return tmp_path


def review(place: Path, *more: str | Path) -> Said:
    return qualify("review", "runs/today", "--policy", "policy.yaml", "--baseline", "base/march", *more, folder=place)


def written(place: Path) -> Any:
    return json.loads((place / "runs" / "today.review.json").read_bytes())


def clear(place: Path) -> None:
    for path in (place / "runs").glob("today.review.*"):
        path.rename(place / f"earlier{path.name.removeprefix('today')}")


def test_a_root_that_is_no_worse_is_approved_and_the_answer_stands_beside_it(place: Path) -> None:
    said = review(place)
    assert said.code == 0, said.out + said.err
    assert said.out.startswith("✓ APPROVE: nothing stands in the way, under policy release\n")
    assert sorted(path.name for path in (place / "runs").iterdir()) == [
        "today",
        "today.review.intoto.json",
        "today.review.json",
        "today.review.md",
    ]
    assert verify(place / "runs" / "today").ok
    assert written(place)["verdict"] == "APPROVE"
    markdown = (place / "runs" / "today.review.md").read_text(encoding="utf-8")
    assert markdown.startswith("## ✓ APPROVE: nothing stands in the way, under policy release\n")
    assert "## ✓ OK: 6 OK under policy release" in markdown
    said = review(place)
    assert (said.code, said.out) == (64, "")
    assert said.err.startswith(
        "qualify: runs/today.review.md: expected a file that does not exist, got an existing one"
    )


def test_an_approval_that_is_signed_satisfies_verify_and_an_objection_does_not(place: Path) -> None:
    private, public = make_keys(place, "reviewer")
    assert review(place, "--key", private).code == 0
    statement = place / "runs" / "today.review.intoto.json"
    check = ("verify", place / "runs" / "today", "--attestation", statement, "--trust", public, "--require", "attested")
    assert qualify(*check).code == 0
    clear(place)
    policy = POLICY.replace("max_degradation: 1%", "at_most: 1")
    (place / "policy.yaml").write_text(policy, encoding="utf-8")
    assert review(place, "--key", private).code == 10
    said = qualify(*check, "--json")
    assert (said.code, [fault["rule"] for fault in said.json["faults"]]) == (20, ["A-RESULT"])


def test_a_regression_is_a_numbered_blocker_that_no_later_review_closes_by_not_asking(place: Path) -> None:
    strict = POLICY.replace("1%}", "1%, at_most: 1}")
    (place / "policy.yaml").write_text(strict, encoding="utf-8")
    said = review(place)
    assert said.code == 10
    assert said.out.startswith("✗ REQUEST_CHANGES: 3 blockers, under policy release\n\n1. merit\n")
    names = [blocker["id"] for blocker in written(place)["blockers"]]
    assert names[0] == "gate payload_bytes cpu-fp32 at_most 1"
    clear(place)
    said = review(place, "--earlier", "earlier.review.json", "--json")
    assert said.code == 10
    assert said.json["earlier"]["open"] == names
    clear(place)
    (place / "policy.yaml").write_text(POLICY, encoding="utf-8")
    said = review(place, "--earlier", "earlier.review.json", "--json")
    assert said.code == 30, "the gate was taken out of the policy, which closes nothing"
    assert (said.json["earlier"]["closed"], said.json["earlier"]["unasked"]) == ([], names)


def test_a_changed_byte_is_rejected_and_nothing_is_attested(place: Path) -> None:
    broken = writable_copy(place / "runs" / "today", place / "copy")
    shutil.move(place / "runs" / "today", place / "sound")
    shutil.move(broken, place / "runs" / "today")
    (place / "runs" / "today" / "environment.json").write_bytes(b"{}\n")
    said = review(place)
    assert said.code == 20
    assert said.out.startswith("✗ REJECT: ")
    assert "its seal may be that of a sound one" in said.err
    assert not (place / "runs" / "today.review.intoto.json").exists()
    assert {blocker["kind"] for blocker in written(place)["blockers"]} == {"integrity"}


def test_a_claim_that_the_samples_do_not_give_is_rejected_and_said_to_be_failed(place: Path, tiny_root: Path) -> None:
    def forge(root: Path) -> None:
        path = root / "steps/L1-perf.cpu-fp32/measurements.json"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('"value": 72', '"value": 73', 1), encoding="utf-8")

    shutil.rmtree(place / "base" / "march", ignore_errors=True)
    changed(tiny_root, place / "runs" / "forged", forge)
    said = qualify("review", "runs/forged", "--policy", "policy.yaml", folder=place)
    assert said.code == 20
    statement = json.loads((place / "runs" / "forged.review.intoto.json").read_bytes())
    assert statement["predicate"]["verificationResult"] == "FAILED"
    assert "Q-METRIC" in said.out


def test_without_a_baseline_a_gate_that_compares_is_undetermined(place: Path) -> None:
    said = qualify("review", "runs/today", "--policy", "policy.yaml", "--json", folder=place)
    assert said.code == 30
    assert [blocker["id"] for blocker in said.json["blockers"]] == ["baseline"]


def test_a_root_is_no_baseline_of_itself(place: Path) -> None:
    said = qualify(
        "review", "runs/today", "--policy", "policy.yaml", "--baseline", "runs/today", "--json", folder=place
    )
    assert said.code == 30
    assert said.json["blockers"][0]["text"] == "the baseline is the root itself, which shows nothing"


def test_a_folder_as_baseline_means_its_current_root_and_a_broken_root_is_rejected_beside_it(place: Path) -> None:
    asked = ("review", "runs/today", "--policy", "policy.yaml", "--baseline", "base", "--json")
    said = qualify(*asked, folder=place)
    assert (said.code, said.json["baseline"]) == (0, "base/march")
    clear(place)
    broken = writable_copy(place / "runs" / "today", place / "copy")
    shutil.move(place / "runs" / "today", place / "sound")
    shutil.move(broken, place / "runs" / "today")
    (place / "runs" / "today" / "environment.json").write_bytes(b"{}\n")
    said = qualify(*asked, folder=place)
    assert (said.code, said.json["verdict"], said.json["baseline"]) == (20, "REJECT", "base")


def test_a_folder_in_which_the_baseline_is_broken_is_a_blocker(place: Path) -> None:
    broken = writable_copy(place / "base" / "march", place / "copy")
    shutil.move(place / "base" / "march", place / "gone")
    shutil.move(broken, place / "base" / "march")
    (place / "base" / "march" / "environment.json").write_bytes(b"{}\n")
    said = qualify("review", "runs/today", "--policy", "policy.yaml", "--baseline", "base", "--json", folder=place)
    assert said.code == 30
    (blocker,) = said.json["blockers"]
    assert (blocker["id"], blocker["kind"], blocker["evidence"]) == ("baseline", "undetermined", "base")
    assert blocker["text"].startswith("the folder holds no intact root of ladder tiny and model ")
    assert blocker["text"].endswith(" other than the one reviewed")


def test_a_root_or_a_baseline_of_another_version_is_undetermined(place: Path, tiny_root: Path) -> None:
    def older(root: Path) -> None:
        edited("environment.json", lambda value: value["packages"].update(qualify="0.0.9"))(root)
        (root / "steps/L1-perf.cpu-fp32/later.json").write_bytes(b"{}\n")

    changed(tiny_root, place / "old" / "root", older)
    why = f"made by qualify 0.0.9, this is {VERSION}: verify it with that version, or run again"
    said = qualify("review", "old/root", "--policy", "policy.yaml", "--baseline", "base/march", folder=place)
    assert said.code == 30
    assert said.out.startswith("✗ REQUEST_CHANGES: 1 blocker, under policy release\n")
    assert f"root.intoto.json: not written: {why}" in said.err.replace("review.", "")
    (blocker,) = json.loads((place / "old" / "root.review.json").read_bytes())["blockers"]
    assert (blocker["id"], blocker["kind"]) == ("integrity", "undetermined")
    assert blocker["text"] == f"not every check of the root could run: {why}"
    said = qualify("review", "runs/today", "--policy", "policy.yaml", "--baseline", "old/root", "--json", folder=place)
    assert (said.code, [blocker["text"] for blocker in said.json["blockers"]]) == (
        30,
        [f"the baseline does not verify: {why}"],
    )


def test_each_root_of_a_review_is_verified_once(place: Path, tiny_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(tiny_root, place / "runs" / "march")
    opened: Counter[str] = Counter()

    def counted(root: Path, *more: Any) -> VerifiedRoot:
        opened[root.name] += 1
        return open_root(root, *more)

    for module in (answer, survey):
        monkeypatch.setattr(module, "open_root", counted)
    found = reviewing.review(place / "runs" / "today", place / "policy.yaml", place / "runs" / "march")
    assert found.review.verdict == "APPROVE"
    assert opened == {"today": 1, "march": 1}


def test_a_stale_baseline_and_a_failed_root_beside_it_are_blockers(place: Path, tiny_root: Path) -> None:
    later = edited("qualification.json", lambda claim: claim.update(ended_at="2035-01-01T00:00:00Z"))
    changed(tiny_root, place / "base" / "april", later)
    (place / "runs" / "broken").mkdir()
    (place / "runs" / "broken" / "SEAL").write_text("x", encoding="utf-8")
    said = review(place, "--json")
    assert said.code == 30
    texts = {blocker["id"]: blocker["text"] for blocker in said.json["blockers"]}
    assert texts.keys() == {"fresh baseline", "account broken"}
    assert texts["fresh baseline"].startswith("march is not the current root of its folder: april (blake3:")


def test_what_moved_under_the_two_is_noted_with_the_tiers_it_touches(place: Path, tiny_root: Path) -> None:
    shutil.move(place / "base" / "march", place / "gone")
    old = edited("environment.json", lambda value: value["packages"].update(tokenizers="0.1.0"))
    changed(tiny_root, place / "base" / "march", old)
    said = review(place, "--json")
    assert said.code == 0, said.out
    (note,) = [note for note in said.json["notes"] if "since the baseline" in note]
    assert note.startswith("the base moved since the baseline: tokenizers 0.1.0, now ")
    assert note.endswith("; touches L0, L1, L2, L3")


def test_what_moved_since_the_root_was_measured_is_noted_as_far_as_is_installed_here(
    place: Path, tiny_root: Path
) -> None:
    shutil.move(place / "runs" / "today", place / "gone")
    old = edited("environment.json", lambda value: value["packages"].update(onnxruntime="1.0.0", unheard_of="1"))
    changed(tiny_root, place / "runs" / "today", old)
    notes = review(place, "--json").json["notes"]
    (note,) = [note for note in notes if "as installed here" in note and "onnxruntime" in note]
    assert note.startswith("the base moved since it was measured, as installed here: onnxruntime 1.0.0, now ")
    assert note.endswith("; touches L0, L1, L2, L3")
    assert not any("unheard_of" in note and "here" in note for note in notes)


def test_a_ladder_of_the_policy_is_what_is_judged_under(place: Path, tiny_root: Path) -> None:
    text = (tiny_root / "ladder.yaml").read_text(encoding="utf-8")
    (place / "own.yaml").write_text(text.replace("p50_ms: {at_most: 1e4}", "p50_ms: {at_most: 1e-9}"), encoding="utf-8")
    (place / "policy.yaml").write_text(f"{POLICY}ladder: own.yaml\n", encoding="utf-8")
    said = review(place, "--json")
    assert said.code == 10
    assert said.json["blockers"][0]["id"] == "step L1 cpu-fp32"
    assert any(note.startswith("your ladder differs: p50_ms sealed at most 10,000") for note in said.json["notes"])


def test_a_ladder_of_the_policy_that_names_another_cut_off_is_judged_by_numbers_derived_for_it(
    place: Path, tiny_root: Path
) -> None:
    text = (tiny_root / "ladder.yaml").read_text(encoding="utf-8")
    own = text.replace("ndcg_at_10_drop: {at_most: 0.9}", "recall_at_3: {at_least: 0.01}")
    (place / "own.yaml").write_text(own, encoding="utf-8")
    (place / "policy.yaml").write_text(f"{POLICY}ladder: own.yaml\n", encoding="utf-8")
    assert "recall_at_3" not in (tiny_root / "steps/L3-rerank.cpu-fp32/measurements.json").read_text(encoding="utf-8")
    said = review(place, "--json")
    assert (said.code, said.json["blockers"]) == (0, [])
    clear(place)
    (place / "own.yaml").write_text(own.replace("0.01", "1"), encoding="utf-8")
    said = review(place, "--json")
    assert said.code == 10
    assert [blocker["id"] for blocker in said.json["blockers"]] == [
        f"step L3 cpu-{precision}" for precision in ("fp32", "fp16", "int8")
    ] + ["coverage"]
    assert ": recall_at_3: expected at least 1.0, got 0." in said.json["blockers"][0]["text"]


def test_a_root_that_replaces_another_says_so_when_it_is_reviewed_alone(place: Path, tiny_root: Path) -> None:
    digest = str(verify(tiny_root).digest)
    old = [{"digest": digest, "reason": "the dataset had a wrong label"}]
    changed(tiny_root, place / "alone" / "root", edited("lineage.json", lambda value: value.update(supersedes=old)))
    asked = ("review", "alone/root", "--policy", "policy.yaml", "--baseline", "base/march", "--json")
    said = qualify(*asked, folder=place)
    assert said.code == 0, said.out
    assert f"replaces {digest} (the dataset had a wrong label): it is not beside this root" in said.json["notes"]


def test_a_digest_kept_elsewhere_is_compared(place: Path) -> None:
    said = review(place, "--expect", "blake3:" + "0" * 64, "--json")
    assert said.code == 20
    assert said.json["blockers"][0]["id"] == "integrity E-PIN "
    said = review(place, "--expect", "latest")
    assert (said.code, said.out) == (64, "")
