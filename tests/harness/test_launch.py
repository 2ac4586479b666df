from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NoReturn

import msgspec
import psutil
import pytest

from harness import launch, process
from harness.records import Exit, PerfOptions
from harness.sealed_files import LOG_BYTES
from tests.support.steps import OPTIONS, Bench, Ran

ENDLESS = msgspec.structs.replace(
    OPTIONS,
    L1=PerfOptions(
        candidates=8, batch_size=4, max_length=48, warm_up=2, calls=10_000_000, min_calls=10_000_000, seconds=1e6
    ),
)

MODEL = "tiny-model"


@pytest.fixture
def after_build(climbed: Bench, tmp_path: Path) -> Bench:
    """A folder with the artifacts of the climb and no step but L0."""
    there = climbed.copy(tmp_path / "root")
    for folder in (there.root / "steps").glob("L[123]-*"):
        folder.rename(tmp_path / folder.name)
    return there


def run_endless(there: Bench, on_progress: launch.Progress, time_limit_s: float = 60.0) -> Ran:
    request = there.request("L1", options=ENDLESS, time_limit_s=time_limit_s)
    ended, redactions = launch.run_step(request, launch.Places(there.root, there.model), on_progress)
    return Ran(there.root, request, ended, redactions)


def test_a_child_killed_in_the_middle_of_l1_is_blocked_and_its_logs_and_memory_are_kept(after_build: Bench) -> None:
    def kill(_done: int, _total: int, _what: str) -> None:
        for child in psutil.Process().children():
            if "harness.worker" in child.cmdline():
                child.kill()

    ran = run_endless(after_build, kill)
    assert (ran.exit.code, ran.exit.signal, ran.exit.timed_out) == (None, "SIGKILL", False)
    assert (
        ran.reason
        == f"L1 perf of {MODEL} on cpu-fp32 was killed by SIGKILL after {ran.exit.seconds:.1f} s; see stderr.log"
    )
    names = {path.name for path in (ran.root / ran.request.step).iterdir()}
    assert names == {"request.json", "artifact.json", "memory.json", "machine.json", "stdout.log", "stderr.log"}
    assert ran.raw("memory.json")["rss_bytes"]
    assert launch.artifact_digest_of(ran.root, ran.request) is not None


def test_a_step_beyond_its_time_limit_is_ended_and_blocked(after_build: Bench) -> None:
    ran = run_endless(after_build, lambda *_: None, time_limit_s=0.5)
    assert (ran.exit.timed_out, ran.exit.signal) == (True, "SIGKILL")
    assert ran.reason == f"L1 perf of {MODEL} on cpu-fp32 was ended at its time limit after {ran.exit.seconds:.1f} s"


def test_a_step_beyond_its_memory_limit_is_ended_and_blocked(after_build: Bench) -> None:
    request = after_build.request("L1")
    (step,) = request.target.steps
    limited = msgspec.structs.replace(step, memory_limit_bytes=20_000_000)
    request = msgspec.structs.replace(request, target=msgspec.structs.replace(request.target, steps=(limited,)))
    ran = after_build.run(request)
    assert (ran.exit.code, ran.exit.signal, ran.exit.timed_out) == (None, "SIGKILL", False)
    resident = ran.exit.over_memory_bytes
    assert resident is not None
    assert resident > 20_000_000
    assert ran.reason == (
        f"L1 perf of {MODEL} on cpu-fp32 was ended at its memory limit of 20,000,000 bytes after {ran.exit.seconds:.1f} s,"
        f" with {resident:,} resident; set tiers.L1.memory_limit_bytes higher if the machine has them"
    )


def test_a_load_that_fails_names_the_hub_model_and_its_revision(after_build: Bench) -> None:
    hub = msgspec.structs.replace(after_build.candidate, model="org/reranker", revision="1" * 40)
    request = msgspec.structs.replace(after_build.request("L1"), candidate=hub)
    (after_build.root / request.artifact / "model.onnx").write_bytes(b"no graph")
    ran = after_build.run(request)
    assert ran.reason.startswith(
        f"org/reranker at revision {'1' * 40}: artifact: expected a graph that cpu loads, got "
    )


ALLOCATE = "import time; taken = bytearray(400_000_000); time.sleep(600)"
"""Python writes zeros into all of it, so all of it is resident."""
PASSED_ON = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ALLOCATE!r}])"


@pytest.mark.parametrize("script", [ALLOCATE, PASSED_ON], ids=["the child", "a child of the child"])
def test_what_takes_too_much_memory_is_ended_with_all_its_tree(tmp_path: Path, script: str) -> None:
    ended = _run_script(tmp_path, script, memory_limit_bytes=200_000_000)
    assert (ended.signal, ended.timed_out) == ("SIGKILL", False)
    assert ended.over_memory_bytes is not None
    assert 200_000_000 < ended.over_memory_bytes < 500_000_000
    assert not psutil.Process().children(recursive=True)


def test_a_large_address_space_alone_is_no_use_of_memory(tmp_path: Path) -> None:
    """What torch and ONNX Runtime reserve and never touch does not count; a limit on addresses would end them."""
    ended = _run_script(tmp_path, "import mmap; m = mmap.mmap(-1, 2**34)", memory_limit_bytes=200_000_000)
    assert (ended.code, ended.over_memory_bytes) == (0, None)


def _run_script(folder: Path, script: str, memory_limit_bytes: int | None = None) -> Exit:
    return process.run(
        [sys.executable, "-c", script],
        environment=os.environ,
        folder=folder,
        time_limit_s=60,
        started=lambda _pid: None,
        on_line=lambda _line: b"",
        memory_limit_bytes=memory_limit_bytes,
    )


def test_an_interrupt_ends_the_child_keeps_its_logs_and_goes_on_up(after_build: Bench) -> None:
    def interrupt(_done: int, _total: int, _what: str) -> NoReturn:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_endless(after_build, interrupt)
    assert not [child for child in psutil.Process().children() if "harness.worker" in child.cmdline()]
    assert (after_build.root / "steps/L1-perf.cpu-fp32/stderr.log").is_file()


def test_a_step_never_runs_twice_in_one_root(climbed: Bench) -> None:
    with pytest.raises(FileExistsError):
        climbed.run(climbed.request("L0"))


def test_logs_and_records_name_no_place_of_this_machine(climbed: Bench) -> None:
    for path in (climbed.root / "steps").rglob("*"):
        if path.suffix in {".json", ".log"}:
            text = path.read_text()
            for place in (climbed.root, climbed.model, Path(sys.prefix), Path.home()):
                assert f"{place}/" not in text, path


def test_progress_counts_up_to_the_whole(after_build: Bench) -> None:
    told: list[tuple[int, int, str]] = []
    request = after_build.request("L1")
    launch.run_step(
        request,
        launch.Places(after_build.root, after_build.model),
        lambda done, total, what: told.append((done, total, what)),
    )
    calls = [step for step in told if step[2] == "calls"]
    assert calls[-1] == (63, 63, "calls")  # one first call, two of warm-up, sixty
    assert calls == sorted(calls)


def test_a_stage_is_given_no_secret_and_no_network() -> None:
    outer = {"PATH": "/bin", "HF_TOKEN": "hf_x", "AWS_SECRET_ACCESS_KEY": "y", "HF_HUB_OFFLINE": "0"}
    given = launch.stage_environment(outer, threads=3, scratch=Path("/scratch"))
    assert "HF_TOKEN" not in given
    assert "AWS_SECRET_ACCESS_KEY" not in given
    wanted = {
        "PATH": "/bin",
        "OMP_NUM_THREADS": "3",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONHASHSEED": "0",
        "TMPDIR": "/scratch",
    }
    assert wanted.items() <= given.items()
    assert "PYTHONDONTWRITEBYTECODE" not in given  # an install without byte code would be compiled again in every step


def test_a_sealed_log_has_no_secret_and_says_how_many_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_PASSWORD", "correct horse")
    raw = tmp_path / "raw"
    raw.write_bytes(b"hf_" + b"a1" * 10 + b" correct horse \xff " + str(tmp_path).encode())
    assert launch.seal_log(raw, tmp_path, "x/stdout.log", {str(tmp_path): "ROOT"}) == 2
    assert (tmp_path / "x/stdout.log").read_text() == "[REDACTED] [REDACTED] \\xff ROOT"


def test_a_long_log_keeps_its_head_and_its_tail_and_says_what_was_left_out(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.write_bytes(b"head" + b"." * 3 * LOG_BYTES + b"tail")
    launch.seal_log(raw, tmp_path, "stdout.log", {})
    text = (tmp_path / "stdout.log").read_text()
    assert text.startswith("head.")
    assert text.endswith(".tail")
    assert f"\n[qualify: {2 * LOG_BYTES + 8} bytes left out here]\n" in text


@pytest.mark.parametrize("secret", ["hf_" + "aB3" * 8, "correct horsé battery"])
@pytest.mark.parametrize("cut", ["head", "tail"])
def test_a_cut_through_a_secret_leaves_no_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str, cut: str
) -> None:
    monkeypatch.setenv("SOME_PASSWORD", "correct horsé battery")
    most = 2000
    monkeypatch.setattr(launch, "LOG_BYTES", most)
    monkeypatch.setattr(launch, "BORDER_BYTES", 200)
    data, half, raw = secret.encode(), most // 2, tmp_path / "raw"
    for inside in range(1, len(data)):
        if cut == "head":
            raw.write_bytes(b"." * (half - inside - 1) + b" " + data + b" " + b"." * most)
        else:
            raw.write_bytes(b"." * most + b" " + data + b" " + b"." * (half - inside - 1))
        assert launch.seal_log(raw, tmp_path, f"{inside}.log", {}) == 1
        text = (tmp_path / f"{inside}.log").read_text(encoding="utf-8")
        middle = text.strip(".").replace("[REDACTED]", "")
        assert re.fullmatch(r"\s*\[qualify: \d+ bytes left out here\]\s*", middle), (inside, middle)


def test_a_child_that_ends_without_measurements_is_blocked(climbed: Bench) -> None:
    request = climbed.request("L1", "cpu-other")
    ended = Exit(code=3, signal=None, timed_out=False, seconds=1.0)
    assert launch.why_blocked(climbed.root, request, ended) == (
        f"L1 perf of {MODEL} on cpu-other ended with exit code 3 and no measurements; see stderr.log"
    )
    assert launch.artifact_digest_of(climbed.root, request) is None


def test_nothing_that_a_child_started_outlives_it(tmp_path: Path) -> None:
    """One grandchild stays in the group; one leaves it for a session of its own and is found by its mark."""
    script = (
        "import subprocess, sys;"
        "sleep = [sys.executable, '-c', 'import time; time.sleep(600)'];"
        "pids = [subprocess.Popen(sleep, start_new_session=own).pid for own in (False, True)];"
        "print(*pids)"
    )
    ended = _run_script(tmp_path, script)
    assert ended.code == 0
    pids = [int(pid) for pid in (tmp_path / "stdout").read_text().split()]
    assert len(pids) == 2
    assert not [pid for pid in pids if psutil.pid_exists(pid)]
