"""Gates and a lock in a real climb: run, sealed, shown, judged again."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path

import pytest

from harness import gates
from harness.records import GateOutcome, QualityGate, from_json
from tests.support.ladders import Said, changed, qualify, write_ladder

ONE = "\n  - {precision: fp32, threads: 1}\n"
LINT = f"{{name: lint, command: [{sys.executable}, -c, \"print('token=hunter2secret')\"]}}"


def ladder(folder: Path, model: Path, *entries: str) -> Path:
    path = write_ladder(folder, model, ONE, goal="L0")
    path.write_text(path.read_text(encoding="utf-8") + "".join(f"{entry}\n" for entry in entries), encoding="utf-8")
    return path


def sealed_again(root: Path, to: Path, path: str, old: str, new: str) -> Said:
    """The root with a text of one record replaced and sealed by somebody who can; what verify says of it."""

    def swap(copy: Path) -> None:
        text = (copy / path).read_text(encoding="utf-8")
        assert old in text
        (copy / path).write_text(text.replace(old, new), encoding="utf-8")

    return qualify("verify", changed(root, to, swap), "--json")


def test_gates_run_before_the_first_step_and_are_evidence_like_the_rest(tmp_path: Path, tiny_model: Path) -> None:
    version = importlib.metadata.version("numpy")
    (tmp_path / "l").mkdir()
    (tmp_path / "l/lock.txt").write_text(f"numpy=={version}\n", encoding="utf-8")
    path = ladder(tmp_path / "l", tiny_model, f"gates: [{LINT}]", "lock: {file: lock.txt}")
    said = qualify("run", path, "--out", tmp_path / "root", "--json", MY_TOKEN="hunter3secret")  # noqa: S106 - not a real one
    assert said.code == 0, said.err
    assert said.err.startswith("gate lint: started\ngate lint: PASS after ")
    assert said.json["claim"]["gates"] == [{"name": "lint", "reason": "", "verdict": "PASS"}]
    assert said.json["claim"]["lock"]["verdict"] == "PASS"
    assert (tmp_path / "root/gates/lint/stdout.log").read_text(encoding="utf-8") == "token=[REDACTED]\n"
    record = (tmp_path / "root/gates/lint/gate.json").read_bytes()
    assert from_json(record, GateOutcome, "gate.json").redactions == 1
    assert qualify("verify", tmp_path / "root").code == 0
    shown = qualify("show", tmp_path / "root").out
    assert "✓ PASS  gate lint\n" in shown
    assert "✓ PASS  lock lock.txt\n" in shown

    forged = sealed_again(tmp_path / "root", tmp_path / "forged", "gates/lint/gate.json", '"code": 0', '"code": 1')
    assert {fault["rule"] for fault in forged.json["faults"]} == {"Q-GATE", "Q-CLAIM"}
    uncounted = sealed_again(
        tmp_path / "root", tmp_path / "uncounted", "gates/lint/gate.json", '"redactions": 1', '"redactions": 0'
    )
    assert [fault["rule"] for fault in uncounted.json["faults"]] == ["Q-GATE"]
    assert qualify("show", tmp_path / "root", "--json").json["redactions"] == {"gate lint": 1}
    said_once = "1 secret was taken out of the logs of gate lint"
    assert said_once in shown
    assert f"- {said_once}" in qualify("report", tmp_path / "root", "--markdown").out
    other = sealed_again(
        tmp_path / "root", tmp_path / "other", "environment.json", f'"numpy": "{version}"', '"numpy": "0"'
    )
    assert (other.code, {fault["rule"] for fault in other.json["faults"]}) == (20, {"Q-CLAIM"})

    asks_more = ladder(tmp_path / "own", tiny_model, f"gates: [{LINT}, {{name: tests, command: [make, test]}}]")
    own = qualify("verify", tmp_path / "root", "--ladder", asks_more, "--json")
    assert own.code == 30
    assert [(d["kind"], d["name"], d["blocks"]) for d in own.json["ladder"]["differences"]] == [
        ("gate", "tests", True),
        ("lock", "lock", False),
    ]


def test_a_gate_that_fails_ends_the_climb_before_it_begins(tmp_path: Path, tiny_model: Path) -> None:
    fails = f"{{name: tests, command: [{sys.executable}, -c, 'raise SystemExit(3)']}}"
    path = ladder(tmp_path / "l", tiny_model, f"gates: [{fails}, {LINT}]")
    said = qualify("run", path, "--out", tmp_path / "root", "--json", "--junit", tmp_path / "junit.xml")
    assert said.code == 10, said.err
    assert [(gate["name"], gate["verdict"]) for gate in said.json["claim"]["gates"]] == [
        ("tests", "FAIL"),
        ("lint", "PASS"),
    ]
    assert said.json["claim"]["targets"][0]["tiers"] == {"L0": "NOT_RUN"}
    assert not (tmp_path / "root/steps").exists()
    verified = qualify("verify", tmp_path / "root", "--json")
    assert (verified.code, verified.json["intact"], verified.json["faults"]) == (10, True, [])
    assert "exit code 3; see stdout.log and stderr.log" in qualify("show", tmp_path / "root").out
    markdown = qualify("report", tmp_path / "root", "--markdown").out
    assert "### Gates and lock" in markdown
    assert '<failure message="exit code 3; see' in (tmp_path / "junit.xml").read_text(encoding="utf-8")


def test_a_package_that_differs_from_the_lock_fails_the_root_and_names_it(tmp_path: Path, tiny_model: Path) -> None:
    (tmp_path / "l").mkdir()
    (tmp_path / "l/lock.txt").write_text("numpy==0.0.1\n", encoding="utf-8")
    stops = f"{{name: stop, command: [{sys.executable}, -c, 'raise SystemExit(1)']}}"
    path = ladder(tmp_path / "l", tiny_model, f"gates: [{stops}]", "lock: {file: lock.txt}")
    said = qualify("run", path, "--out", tmp_path / "root", "--json")
    assert said.code == 10
    (found,) = said.json["claim"]["lock"]["differences"]
    assert (
        found["text"] == f"package numpy: expected 0.0.1, as lock.txt says, got {importlib.metadata.version('numpy')}"
    )
    assert qualify("verify", tmp_path / "root").code == 10


POLICY = "format: 1\nname: release\ngates:\n  - {metric: opset, at_most: 99}\n"


def review(root: Path, policy: str = POLICY) -> Said:
    """What a review under a policy says, written into a folder of its own."""
    folder = root.with_name(f"{root.name}-review-{len(list(root.parent.iterdir()))}")
    folder.mkdir()
    (folder / "policy.yaml").write_text(policy, encoding="utf-8")
    return qualify("review", root, "--policy", folder / "policy.yaml", "--out", folder, "--json")


def test_a_root_that_its_lock_fails_is_not_approved(tmp_path: Path, tiny_model: Path) -> None:
    (tmp_path / "l").mkdir()
    (tmp_path / "l/lock.txt").write_text("numpy==0.0.1\n", encoding="utf-8")
    path = ladder(tmp_path / "l", tiny_model, "lock: {file: lock.txt, parity: versions}")
    assert qualify("run", path, "--out", tmp_path / "root").code == 10
    said = review(tmp_path / "root")
    assert (said.code, said.json["verdict"]) == (10, "REQUEST_CHANGES")
    version = importlib.metadata.version("numpy")
    assert said.json["blockers"] == [
        {
            "id": "lock",
            "kind": "merit",
            "text": f"the lock lock.txt is FAIL (versions): package numpy: expected 0.0.1, as lock.txt says, got {version}",
            "evidence": "inputs/lock.txt",
            "closes": "a root made where the installed packages are those of the lock",
        }
    ]
    (statement,) = [name for name in said.json["written"] if name.endswith(".intoto.json")]
    predicate = json.loads(Path(statement).read_bytes())["predicate"]
    assert predicate["verificationResult"] == "FAILED"
    without = path.read_text(encoding="utf-8").partition("lock:")[0]
    (tmp_path / "own.yaml").write_text(without, encoding="utf-8")
    said = review(tmp_path / "root", f"{POLICY}ladder: ../own.yaml\n")
    assert (said.code, said.json["verdict"]) == (0, "APPROVE"), "the ladder of the policy asks for no lock, and decides"
    assert "under its sealed limits the root is FAIL; the policy's ladder decides: PASS" in said.json["notes"]


def test_a_quality_gate_that_failed_is_a_blocker_by_name_and_what_did_not_run_points_at_what_is_there(
    tmp_path: Path, tiny_model: Path
) -> None:
    fails = f"{{name: tests, command: [{sys.executable}, -c, 'raise SystemExit(3)']}}"
    path = ladder(tmp_path / "l", tiny_model, f"gates: [{fails}, {LINT}]")
    assert qualify("run", path, "--out", tmp_path / "root").code == 10
    said = review(tmp_path / "root")
    assert (said.code, said.json["verdict"]) == (10, "REQUEST_CHANGES")
    first, *others = said.json["blockers"]
    assert (first["id"], first["kind"], first["evidence"]) == ("quality gate tests", "merit", "gates/tests/gate.json")
    assert first["text"].startswith("the quality gate tests is FAIL: exit code 3; ")
    assert [blocker["id"] for blocker in others] == [
        "step L0 cpu-fp32",
        "coverage",
        "gate opset cpu-fp32 at_most 99",
    ]
    assert others[2]["text"] == (
        "INCOMPARABLE: opset on cpu-fp32, at_most 99: the candidate has no such figure: its L0 is NOT_RUN"
    )
    for blocker in said.json["blockers"]:
        assert (tmp_path / "root" / blocker["evidence"]).is_file(), blocker
    assert "quality gate lint" in said.json["met"]


def test_a_lock_that_is_not_there_is_refused_before_anything_runs(tmp_path: Path, tiny_model: Path) -> None:
    said = qualify("run", ladder(tmp_path / "l", tiny_model, "lock: {file: lock.txt}"), "--out", tmp_path / "root")
    assert said.code == 64
    assert said.err == (
        "qualify: lock.txt: expected a file of pins beside the ladder, got No such file or directory; correct the path in the ladder\n"
    )


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        (
            QualityGate(name="g", command=("no-such-program",)),
            "could not be started: no-such-program: No such file or directory; correct the gate, or install what it calls",
        ),
        (
            QualityGate(name="g", command=(sys.executable,), folder="gone"),
            "could not be started: folder gone: No such file or directory; correct the gate, or install what it calls",
        ),
        (
            QualityGate(name="g", command=(sys.executable, "-c", "import time; time.sleep(60)"), time_limit_s=0.3),
            "ended at its time limit of 0.3 s; see stdout.log and stderr.log",
        ),
    ],
    ids=["no program", "no folder", "too slow"],
)
def test_a_gate_that_says_nothing_is_blocked(tmp_path: Path, gate: QualityGate, reason: str) -> None:
    left = gates.run(gate, tmp_path, tmp_path, "blake3:")
    assert (left.verdict, left.reason) == ("BLOCKED", reason)
    assert json.loads((tmp_path / "gates/g/gate.json").read_bytes())["verdict"] == "BLOCKED"


def test_a_gate_runs_in_its_folder_with_its_own_arguments_and_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "abcdefgh")
    (tmp_path / "l/sub").mkdir(parents=True)
    code = "import os, sys; print(sys.argv[1:], os.path.basename(os.getcwd()), 'DEPLOY_TOKEN' in os.environ)"
    gate = QualityGate(name="g", command=(sys.executable, "-c", code, "a b", "$HOME"), folder="sub")
    assert gates.run(gate, tmp_path, tmp_path / "l", "blake3:").verdict == "PASS"
    assert (tmp_path / "gates/g/stdout.log").read_text(encoding="utf-8") == "['a b', '$HOME'] sub False\n"
