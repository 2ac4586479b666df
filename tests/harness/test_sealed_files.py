from __future__ import annotations

import os
from pathlib import Path

import pytest

from evidence import seal
from evidence.manifest import Fault
from harness import launch
from harness.answer import check
from harness.recheck import rejudge
from harness.sealed_files import LIMITS_BYTES, LOG_BYTES, too_large
from tests.support.ladders import writable_copy

LOG, RAW, GRAPH, DATA = LIMITS_BYTES.values()


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("steps/L0-build.cpu-fp32/stdout.log", LOG),
        ("gates/lint/stderr.log", LOG),
        ("steps/L1-perf.cpu-fp32/samples.json", RAW),
        ("steps/L2-parity.cpu-fp32/tokens.i32", RAW),
        ("steps/L3-rerank.cpu-fp32/artifact.f32", RAW),
        ("artifacts/cpu-fp32/model.onnx", GRAPH),
        ("inputs/groups.jsonl", DATA),
        ("preserved/0123456789abcdef/steps/L1-perf.cpu-fp32/stdout.log", LOG),
        ("preserved/0123456789abcdef/artifacts/cpu-fp32/model.onnx", GRAPH),
    ],
)
def test_a_file_that_is_read_whole_has_a_limit(path: str, limit: int) -> None:
    assert too_large({path: limit}) == ()
    said = f"{path}: expected at most {limit} bytes, got {limit + 1}; it is not read"
    assert too_large({path: limit + 1, "steps/L0-build.a/build.json": 9}) == (Fault("Q-FILE", path, said),)


def test_weights_beside_a_graph_may_have_any_size_since_nobody_reads_them_whole() -> None:
    assert too_large({"artifacts/cpu-fp32/model.onnx.data": 1 << 40}) == ()


def test_no_log_that_is_sealed_is_larger_than_may_be(tmp_path: Path) -> None:
    """Each byte that is no UTF-8 is written out as four characters."""
    (tmp_path / "raw").write_bytes(b"\xff" * 3 * LOG_BYTES)
    launch.seal_log(tmp_path / "raw", tmp_path, "stdout.log", {})
    assert LOG_BYTES < (tmp_path / "stdout.log").stat().st_size <= LOG


def test_nothing_is_read_of_a_root_in_which_a_file_is_too_large() -> None:
    def read(path: str) -> bytes:
        raise AssertionError(path)

    paths = ["plan.json", "steps/L2-parity.b/artifact.f32", "steps/L2-parity.a/artifact.f32"]
    found = rejudge(read, paths, dict.fromkeys(paths, "0" * 64), dict.fromkeys(paths, RAW + 1))
    assert [(fault.rule, fault.path) for fault in found.faults] == [("Q-FILE", path) for path in sorted(paths[1:])]
    assert (found.records, found.verdict, found.holds) == (None, "BLOCKED", False)


def test_a_sealed_log_that_no_harness_writes_is_a_fault_of_its_size(tiny_root: Path, tmp_path: Path) -> None:
    copy = writable_copy(tiny_root, tmp_path / "staging")
    for name in ("SEAL", "MANIFEST.b3"):
        (copy / name).unlink()
    path = "steps/L1-perf.cpu-fp32/stdout.log"
    os.truncate(copy / path, LOG + 1)
    seal.seal(copy, tmp_path / "root")
    checked = check(tmp_path / "root")
    said = f"{path}: expected at most {LOG} bytes, got {LOG + 1}; it is not read"
    assert (checked.exit_code, checked.faults) == (20, (Fault("Q-FILE", path, said),))
