"""The main job from the outside: ``qualify`` in processes of its own, on real files."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from harness.cli import cli, guarded
from tests.support.graphs import HEADS, with_head
from tests.support.ladders import REPO, Said, changed, edited, qualify, resealed, writable_copy, write_ladder

NO_ML = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "onnxruntime", "transformers", "mteb", "datasets", "onnx", "tokenizers"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
"""


def test_run_qualifies_every_target_and_says_where_the_root_is(tiny_root: Path) -> None:
    answer = json.loads((tiny_root.parent / "answer.json").read_text(encoding="utf-8"))
    assert answer["exit_code"] == 0
    assert answer["root"] == str(tiny_root)
    assert answer["claim"]["verdict"] == "PASS"
    assert answer["claim"]["coverage"]["reached"] == ["cpu-fp32", "cpu-fp16", "cpu-int8"]
    assert re.fullmatch(r"blake3:[0-9a-f]{64}", answer["digest"])


def test_verify_judges_the_root_again_and_agrees(tiny_root: Path) -> None:
    said = qualify("verify", tiny_root, "--json")
    assert said.code == 0, said.out
    assert said.json["faults"] == []
    assert said.json["verdict"] == "PASS"
    assert said.json["authenticity"] == "none"
    assert all(check["ran"] for check in said.json["checks"])


def test_what_a_reviewer_uses_works_without_any_ml_library(tiny_root: Path, tmp_path: Path, tiny_model: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_ML, encoding="utf-8")
    ladder = write_ladder(tmp_path / "ladder", tiny_model)
    diff = ["diff", tiny_root, tiny_root]
    for command in (["verify", tiny_root], ["show", tiny_root], diff, ["plan", ladder], ["schema"]):
        said = qualify(*command, PYTHONPATH=str(tmp_path))
        assert said.code == 0, f"{command}: {said.err}"


def test_a_pinned_digest_is_compared_with_the_root(tiny_root: Path) -> None:
    digest = qualify("verify", tiny_root, "--json").json["digest"]
    assert qualify("verify", tiny_root, "--expect", digest, "--json").json["authenticity"] == "pinned"
    other = "blake3:" + "0" * 64
    said = qualify("verify", tiny_root, "--expect", other)
    assert said.code == 20
    assert "E-PIN" in said.out


def test_b3sum_agrees_with_the_manifest(tiny_root: Path) -> None:
    assert shutil.which("b3sum"), "b3sum is missing (apt install b3sum): it is how a stranger checks a root without us"
    done = subprocess.run(
        ["b3sum", "--check", "--quiet", "MANIFEST.b3"], cwd=tiny_root, capture_output=True, check=False
    )
    assert done.returncode == 0


@pytest.mark.parametrize("part", ["first", "last"])
def test_one_flipped_byte_of_any_file_ends_20(tiny_root: Path, tmp_path: Path, part: str) -> None:
    from evidence.verify import verify

    root = writable_copy(tiny_root, tmp_path / "root")
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        data = path.read_bytes()
        if not data:
            continue
        place = 0 if part == "first" else len(data) - 1
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert verify(root).exit_code == 20, path
        path.write_bytes(data)
    assert verify(root).exit_code == 0


def test_an_edited_metric_sealed_again_is_found_by_judging_the_raw_samples(tiny_root: Path, tmp_path: Path) -> None:
    honest: list[float] = []

    def less(record: Any) -> None:
        gap = next(m for m in record["measurements"] if m["metric"] == "max_abs_gap")
        honest.append(gap["value"])
        gap["value"] = 1e-9

    edit = edited("steps/L2-parity.cpu-int8/measurements.json", less)
    said = qualify("verify", changed(tiny_root, tmp_path / "forged", edit), "--json")
    assert said.code == 20
    assert [fault["rule"] for fault in said.json["faults"]] == ["Q-METRIC"]
    assert f"max_abs_gap: expected {honest[0]:.6g} from the samples, got 1e-09" in said.json["faults"][0]["message"]


def test_limits_loosened_in_the_sealed_plan_are_found_through_the_sealed_ladder(
    tiny_root: Path, tmp_path: Path
) -> None:
    from evidence.manifest import digest_of

    root = writable_copy(tiny_root, tmp_path / "root")
    plan = root / "plan.json"
    before = digest_of(plan.read_bytes())
    plan.write_bytes(plan.read_bytes().replace(b'"at_most": 0.0001', b'"at_most": 99.0'))
    after = digest_of(plan.read_bytes())
    assert before != after
    for path in root.rglob("*.json"):
        path.write_bytes(path.read_bytes().replace(before.encode(), after.encode()))
    said = qualify("verify", resealed(root, tmp_path / "forged"), "--json")
    assert said.code == 20
    assert "Q-LADDER" in {fault["rule"] for fault in said.json["faults"]}


def test_show_answers_in_text_and_json(tiny_root: Path) -> None:
    said = qualify("show", tiny_root)
    assert said.code == 0
    assert said.out.splitlines()[-1].startswith("digest")
    assert all(len(line) <= 80 for line in said.out.splitlines())
    assert qualify("show", tiny_root, "--json").json["steps"]["L3.cpu-fp32"]["outcome"]["verdict"] == "PASS"


@pytest.mark.parametrize("kind", sorted(HEADS))
def test_a_prebuilt_artifact_with_a_broken_head_fails_and_never_reaches_l3(
    tiny_root: Path, tiny_model: Path, tmp_path: Path, kind: str
) -> None:
    with_head(tiny_root / "artifacts/cpu-fp32/model.onnx", tmp_path / "broken.onnx", HEADS[kind])
    targets = "\n  - {precision: fp32, threads: 1, artifact: broken.onnx}\n  - {precision: fp16, threads: 1, deferred: later}\n"
    said = qualify("run", write_ladder(tmp_path, tiny_model, targets), "--out", tmp_path / "root", "--json")
    assert said.code == 10, said.err
    (target, deferred) = said.json["claim"]["targets"]
    assert (target["verdict"], deferred["deferred"]) == ("FAIL", "later")
    assert target["tiers"]["L3"] == "NOT_RUN"
    assert (
        "head_gap_ratio" in target["reason"] or "non_finite" in target["reason"] or "probe_faults" in target["reason"]
    )
    assert not (tmp_path / "root/steps/L3-rerank.cpu-fp32").exists()
    assert qualify("verify", tmp_path / "root").code == 10


@pytest.mark.slow
def test_a_sound_prebuilt_artifact_qualifies(tiny_root: Path, tiny_model: Path, tmp_path: Path) -> None:
    shutil.copy(tiny_root / "artifacts/cpu-fp32/model.onnx", tmp_path / "mine.onnx")
    targets = "\n  - {precision: fp32, threads: 1, artifact: mine.onnx}\n"
    said = qualify("run", write_ladder(tmp_path, tiny_model, targets), "--out", tmp_path / "root", "--json")
    assert said.code == 0, said.err
    assert qualify("verify", tmp_path / "root").code == 0


def test_a_child_killed_in_l1_blocks_its_target_and_the_rest_is_sealed(tiny_model: Path, tmp_path: Path) -> None:
    targets = "\n  - {precision: fp32, threads: 1}\n  - {name: second, precision: fp32, threads: 1}\n"
    slow = "{candidates: 8, batch_size: 4, calls: 100000, min_calls: 100000, seconds: 1e6, limits: {p50_ms: {at_most: 1e4}}}"
    ladder = write_ladder(tmp_path, tiny_model, targets, goal="L1", L1=slow)
    command = [sys.executable, "-m", "harness.cli", "run", str(ladder), "--out", str(tmp_path / "root"), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPO) as parent:
        assert parent.stderr is not None
        for line in parent.stderr:
            if "L1 perf: started" in line:
                kill_worker(parent.pid)
        out = parent.stdout.read() if parent.stdout is not None else ""
    assert parent.returncode == 30
    claim = json.loads(out)["claim"]
    assert [target["tiers"] for target in claim["targets"]] == [{"L0": "PASS", "L1": "BLOCKED"}] * 2
    assert all("killed by SIGKILL" in target["reason"] for target in claim["targets"])
    said = qualify("verify", tmp_path / "root", "--json")
    assert (said.code, said.json["intact"], said.json["faults"]) == (30, True, [])


def kill_worker(parent: int) -> None:
    """SIGKILL the worker below ``parent`` as soon as it shows."""
    from harness.sampler import descendants

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for pid in descendants(parent):
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"harness.worker" in command and b"L1-perf" in command:
                os.kill(pid, signal.SIGKILL)
                return
        time.sleep(0.01)
    pytest.fail("no worker showed")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_seals_what_was_measured_and_ends_130(
    tiny_model: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """Ctrl-C, and what CI sends. A second climb to the same name is refused meanwhile, before it reads a ladder's model."""
    slow = "{candidates: 8, batch_size: 4, calls: 100000, min_calls: 100000, seconds: 1e6, limits: {p50_ms: {at_most: 1e4}}}"
    ladder = write_ladder(tmp_path, tiny_model, "\n  - {precision: fp32, threads: 1}\n", goal="L1", L1=slow)
    command = [sys.executable, "-m", "harness.cli", "run", str(ladder), "--out", str(tmp_path / "root")]
    noisy = os.environ | {"PYTHONWARNINGS": "hf_" + "aB3" * 8}  # Python itself prints what it cannot take there
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=REPO, env=noisy
    ) as parent:
        assert parent.stderr is not None
        for line in parent.stderr:
            if "L1 perf: started" in line:
                said = qualify("run", ladder, "--out", tmp_path / "root", "--json")
                parent.send_signal(number)
    assert parent.returncode == 130
    assert (said.code, said.json["error"]["exit_code"]) == (64, 64)
    assert said.json["error"]["message"].startswith(f"{tmp_path}/root: expected a name that no other climb is making")
    said = qualify("verify", tmp_path / "root", "--json")
    assert (said.code, said.json["intact"], said.json["verdict"]) == (30, True, "BLOCKED")
    assert list(tmp_path.glob("*.lock")) == []

    step = "steps/L1-perf.cpu-fp32"  # it was interrupted, and what was taken out of its logs is counted all the same
    assert (tmp_path / "root" / step / "stderr.log").read_text(encoding="utf-8").count("[REDACTED]") == 1
    assert json.loads((tmp_path / "root" / step / "outcome.json").read_bytes())["redactions"] == 1
    uncounted = edited(f"{step}/outcome.json", lambda record: record.update(redactions=0))
    said = qualify("verify", changed(tmp_path / "root", tmp_path / "other", uncounted), "--json")
    assert [fault["message"] for fault in said.json["faults"]] == [
        f"{step}/outcome.json: redactions, as the logs show: expected 1, got 0"
    ]
    shown = " ".join(qualify("show", tmp_path / "root").out.split())
    assert "logs 2 secrets were taken out of the logs of L0 cpu-fp32, L1 cpu-fp32" in shown


def test_an_interrupt_that_finds_no_step_to_end_says_what_is_left(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ladder = write_ladder(tmp_path, tiny_model, "\n  - {precision: fp32, threads: 1}\n", goal="L0")

    def interrupted(_folder: Path, **_options: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.run.observe", interrupted)
    words = ["run", str(ladder), "--out", str(tmp_path / "root")]
    assert guarded(lambda: cli.main(words, standalone_mode=False)) == 130
    (left,) = tmp_path.glob("root.staging-*")
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"qualify: {tmp_path}/root: interrupted before it was sealed and shown; no root was made: what was measured is in"
        f" {left}: look at it if you need to, remove it with qualify rm"
    )


@pytest.mark.parametrize("words", [["plan", "none.yaml"], ["verify", "nothing"], ["plan"], ["bogus"]])
def test_every_refusal_is_json_too(tmp_path: Path, words: list[str]) -> None:
    said = qualify(*words, "--json", folder=tmp_path)
    assert said.code == 64
    assert said.json["error"]["exit_code"] == 64
    assert said.json["error"]["message"] in said.err


def test_a_hub_that_cannot_be_reached_is_said_with_model_and_revision(tmp_path: Path) -> None:
    ladder = REPO / "ladders" / "ms-marco-minilm-l4-cpu.yaml"
    endpoint = "http://127.0.0.1:9"
    for command in ("run", "plan"):
        said = qualify(command, ladder, folder=tmp_path, HF_ENDPOINT=endpoint, HF_HOME=str(tmp_path / "hub"))
        assert said.code in {30, 64}
        assert "Traceback" not in said.err
        assert "cross-encoder/ms-marco-MiniLM-L4-v2" in said.err
        assert "777b2f369bc1c2f850df8bd367ed1654bda4497b" in said.err
        assert said.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def one_line(said: Said, code: int = 64) -> str:
    assert said.code == code, said.err
    assert said.out == ""
    assert said.err.count("\n") == 1, said.err
    return said.err.strip()


def test_bad_input_is_one_line_and_leaves_nothing(tiny_model: Path, tmp_path: Path) -> None:
    ladder = write_ladder(tmp_path, tiny_model)
    good = ladder.read_text(encoding="utf-8")
    cases = {
        "unknown key": (good.replace("goal:", "gaol:"), "gaol"),
        "wrong type": (good.replace("threads: 1", "threads: yes"), "threads"),
        "duplicate key": (good + "name: again\n", "name"),
        "empty limits": (good.replace("{limits: {opset: {exactly: 17}}}", "{limits: {}}"), "limits"),
        "unknown metric": (good.replace("max_abs_gap", "max_abs_gab"), "max_abs_gab"),
        "unknown provider": (good.replace("precision: fp32,", "precision: fp32, provider: tpu,"), "tpu"),
        "no model": (good.replace(str(tiny_model), "./nowhere"), "nowhere"),
        "no data": (good.replace("groups.jsonl", "nothing.jsonl"), "nothing.jsonl"),
    }
    for name, (text, named) in cases.items():
        ladder.write_text(text, encoding="utf-8")
        line = one_line(qualify("run", ladder, "--out", tmp_path / "root"))
        assert named in line, f"{name}: {line}"
        assert "expected" in line, f"{name}: {line}"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["groups.jsonl", "tiny.yaml"]


def test_a_broken_data_line_is_named(tiny_model: Path, tmp_path: Path) -> None:
    ladder = write_ladder(tmp_path, tiny_model)
    with (tmp_path / "groups.jsonl").open("a", encoding="utf-8") as file:
        file.write("{broken\n")
    assert "groups.jsonl: line 9: expected one JSON object" in one_line(
        qualify("run", ladder, "--out", tmp_path / "root")
    )


def test_an_output_folder_that_exists_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    line = one_line(qualify("run", tmp_path / "no-such-ladder.yaml", "--out", tmp_path / "root"))
    assert line == (
        f"qualify: {tmp_path}/root: expected a path that does not exist, got an existing one; name another or remove it"
    )


def test_unknown_options_and_commands_end_64() -> None:
    for arguments in (["run"], ["verify", "x", "--fast"], ["climb"], ["run", "x", "--jsno"]):
        assert qualify(*arguments).code == 64


def test_a_folder_that_is_no_root_is_not_intact_and_a_path_that_is_no_folder_was_asked_wrongly(tmp_path: Path) -> None:
    assert qualify("verify", tmp_path).code == 20
    for command in ("verify", "show"):
        line = one_line(qualify(command, tmp_path / "nowhere"))
        assert line == f"qualify: {tmp_path}/nowhere: expected the folder of a root, got nothing; check the path"


def test_rm_removes_a_read_only_root_and_refuses_other_folders(tiny_root: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_root, tmp_path / "root")
    assert qualify("rm", tmp_path / "root").code == 0
    assert not (tmp_path / "root").exists()
    (tmp_path / "mine").mkdir()
    assert one_line(qualify("rm", tmp_path / "mine")).startswith(f"qualify: {tmp_path}/mine: expected a root")
    assert (tmp_path / "mine").is_dir()


def test_doctor_says_what_can_run_here() -> None:
    said = qualify("doctor", "--json")
    assert said.code == 0
    assert said.json["can_run"]
    assert qualify("doctor").out.splitlines()[-1] == "run a ladder: yes"


@pytest.mark.slow
def test_host_and_user_are_recorded_only_where_the_ladder_asks(tiny_model: Path, tmp_path: Path) -> None:
    user, host = "qx-somebody-77", platform.node()
    facts = {}
    for asks in ("", "record: [host, user]\n"):
        ladder = write_ladder(tmp_path / "l", tiny_model, "\n  - {precision: fp32, threads: 1}\n", goal="L0")
        ladder.write_text(ladder.read_text(encoding="utf-8") + asks, encoding="utf-8")
        root = tmp_path / ("asks" if asks else "silent")
        assert qualify("run", ladder, "--out", root, "--json", LOGNAME=user).code == 0
        found = json.loads((root / "environment.json").read_bytes())["facts"]
        facts[root.name] = (found["host"], found["user"])
        held = {leaf for path in root.rglob("*.json") for leaf in leaves(json.loads(path.read_bytes()))}
        assert {user, host} & held == ({user, host} if asks else set())
        assert qualify("verify", root).code == 0
        assert qualify("report", root, "--html", tmp_path / f"{root.name}.html").code == 0
    assert facts == {"silent": (None, None), "asks": (host, user)}
    assert user not in b"".join(
        path.read_bytes() for path in (tmp_path / "silent").rglob("*.*") if path.is_file()
    ).decode("latin-1")
    assert user not in (tmp_path / "silent.html").read_text(encoding="utf-8")
    assert user in (tmp_path / "asks.html").read_text(encoding="utf-8")


def leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (text for item in value.values() for text in leaves(item))
    elif isinstance(value, list):
        yield from (text for item in value for text in leaves(item))
    elif isinstance(value, str):
        yield value


def test_doctor_moves_what_a_killed_climb_left_where_no_reader_of_roots_looks(tiny_model: Path, tmp_path: Path) -> None:
    """A real kill -9, and nobody has reaped the process yet."""
    slow = "{candidates: 8, batch_size: 4, calls: 100000, min_calls: 100000, seconds: 1e6, limits: {p50_ms: {at_most: 1e4}}}"
    ladder = write_ladder(tmp_path / "l", tiny_model, "\n  - {precision: fp32, threads: 1}\n", goal="L1", L1=slow)
    runs = tmp_path / "runs"
    command = [sys.executable, "-m", "harness.cli", "run", str(ladder), "--out", str(runs / "root")]
    climb = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=REPO)
    try:
        assert climb.stderr is not None
        for line in climb.stderr:
            if "L1 perf: started" in line:
                climb.kill()
        os.waitid(os.P_PID, climb.pid, os.WEXITED | os.WNOWAIT)
        (left,) = [path for path in runs.iterdir() if path.is_dir()]
        named = qualify("doctor", "--json", folder=tmp_path).json  # no folder given: nothing is moved
        assert (named["moved"], left.is_dir()) == ([], True)
        said = qualify("doctor", runs)
    finally:
        climb.kill()
        climb.communicate()
    place = runs / "quarantine" / left.name
    assert f"moved   {left} to {place}: look at it, then qualify rm {place}\n" in said.out
    assert (place / "plan.json").is_file()
    assert sorted(path.name for path in runs.iterdir()) == ["quarantine"]
    listed = qualify("history", runs, "--json")
    assert (listed.code, listed.json["lines"], listed.json["leftovers"]) == (0, [], [f"quarantine/{left.name}"])
    assert qualify("rm", place).code == 0


def test_doctor_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    said = qualify("doctor", tmp_path / "none")
    assert said.code == 64
    assert said.err == f"qualify: {tmp_path}/none: expected a folder to look in, got none; check the path\n"


def test_an_answer_that_stdout_does_not_take_is_an_error_in_one_line() -> None:
    command = [sys.executable, "-m", "harness.cli"]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [*command, "schema"], cwd=REPO, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
        asked = subprocess.run(
            [*command, "plan", "none.yaml", "--json"],
            cwd=REPO,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (30, "qualify: No space left on device; mend the cause and try again\n")
    assert (asked.returncode, asked.stderr) == (
        64,
        "qualify: none.yaml: expected a ladder file, got No such file or directory; give the path of a YAML ladder\n",
    )


@pytest.mark.slow
def test_the_default_root_is_a_new_folder_under_runs(tiny_model: Path, tmp_path: Path) -> None:
    ladder = write_ladder(tmp_path, tiny_model, "\n  - {precision: fp32, threads: 1}\n", goal="L0")
    roots = [qualify("run", ladder, "--json", folder=tmp_path).json["root"] for _ in range(2)]
    assert len(set(roots)) == 2
    assert all(root.startswith("runs/tiny-") for root in roots)


def test_no_path_of_the_machine_and_no_name_of_the_user_is_sealed(tiny_root: Path, tiny_model: Path) -> None:
    words = [str(tiny_model), str(tiny_root.parent), sys.prefix, str(Path.home()), os.uname().nodename]
    found = [
        (path.relative_to(tiny_root).as_posix(), word)
        for path in tiny_root.rglob("*")
        if path.is_file()
        for word in words
        if len(word) > 4 and word.encode() in path.read_bytes()
    ]
    assert [item for item in found if item[0] not in {"ladder.yaml", "plan.json"}] == []


def test_rows_of_the_report_that_the_scores_do_not_give_are_found(tiny_root: Path, tmp_path: Path) -> None:
    root = writable_copy(tiny_root, tmp_path / "root")
    path = root / "steps/L3-rerank.cpu-fp16/per_query.json"
    path.write_bytes(re.sub(rb'"ndcg_at_10": [0-9.]+', b'"ndcg_at_10": 0.999', path.read_bytes()))
    said = qualify("verify", resealed(root, tmp_path / "forged"), "--json")
    assert said.code == 20
    assert said.json["faults"][0]["message"] == (
        "steps/L3-rerank.cpu-fp16/per_query.json: expected the rows that the scores give, got others"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"intra_op_threads": 1', b'"intra_op_threads": 64'), (b'"CPUExecutionProvider"', b'"CUDAExecutionProvider"')],
    ids=["threads", "provider"],
)
def test_a_latency_of_another_session_than_planned_is_found(
    tiny_root: Path, tmp_path: Path, old: bytes, new: bytes
) -> None:
    root = writable_copy(tiny_root, tmp_path / "root")
    path = root / "steps/L1-perf.cpu-fp32/samples.json"
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new))
    said = qualify("verify", resealed(root, tmp_path / "forged"), "--json")
    assert said.code == 20
    assert any("expected a session of 1 threads on CPUExecutionProvider" in f["message"] for f in said.json["faults"])


def test_a_worker_that_names_another_artifact_than_the_outcome_is_found(tiny_root: Path, tmp_path: Path) -> None:
    root = writable_copy(tiny_root, tmp_path / "root")
    path = root / "steps/L1-perf.cpu-fp32/artifact.json"
    path.write_bytes(re.sub(rb"blake3:[0-9a-f]{64}", b"blake3:" + b"0" * 64, path.read_bytes()))
    said = qualify("verify", resealed(root, tmp_path / "forged"), "--json")
    assert (said.code, said.json["faults"][0]["rule"]) == (20, "Q-REQUEST")


def test_nothing_is_written_into_a_root_or_over_a_file(tiny_root: Path, tiny_model: Path, tmp_path: Path) -> None:
    root = writable_copy(tiny_root, tmp_path / "root")
    ladder = write_ladder(tmp_path / "ladder", tiny_model, goal="L0")
    assert "outside any root" in one_line(qualify("run", ladder, "--out", root / "inner"))
    assert "outside any root" in one_line(qualify("report", root, "--html", root / "x.html"))
    assert "does not exist" in one_line(qualify("report", root, "--html", root / "SEAL"))
    assert qualify("verify", root).code == 0


def test_the_staging_folder_of_a_running_climb_is_not_removed(tmp_path: Path) -> None:
    live = tmp_path / f"root.staging-{os.getpid()}-0123abcd"
    live.mkdir()
    assert "whose process ended" in one_line(qualify("rm", live))
    assert live.is_dir()


def test_a_path_that_the_system_refuses_is_one_line(tmp_path: Path, tiny_model: Path) -> None:
    ladder = write_ladder(tmp_path, tiny_model)
    line = one_line(qualify("run", ladder, "--out", tmp_path / ("a" * 300)))
    assert line.endswith("File name too long; mend the cause and try again")
