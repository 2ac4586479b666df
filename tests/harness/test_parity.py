from __future__ import annotations

import struct
from pathlib import Path

import pytest

from harness import judge
from harness.metrics.catalogue import fixed_limits
from harness.records import Limit
from tests.support import graphs
from tests.support.steps import PAIRS, Bench, Ran

LIMITS = {"max_abs_gap": Limit(at_most=1e-3), "order_kept": Limit(exactly=True), **fixed_limits("L2", "fp32")}


def floats(ran: Ran, name: str) -> tuple[float, ...]:
    data = ran.file(name)
    return struct.unpack(f"<{len(data) // 4}f", data)


def failed(ran: Ran) -> set[str]:
    findings = judge.judge(LIMITS, ran.measured().values())
    return {found.metric for found in findings if found.verdict == "FAIL"}


def test_fp32_computes_the_logits_of_pytorch(climbed: Bench) -> None:
    ran = climbed.earlier("L2")
    gap = ran.value("max_abs_gap")
    assert isinstance(gap, float)
    assert gap <= 1e-5
    assert failed(ran) == set()


@pytest.mark.parametrize(("target", "most"), [("cpu-fp16", 0.05), ("cpu-int8", 1.0)])
def test_conversion_leaves_a_gap_that_is_measured(climbed: Bench, target: str, most: float) -> None:
    gap = climbed.earlier("L2", target).value("max_abs_gap")
    assert isinstance(gap, float)
    assert 1e-5 < gap < most


def test_both_sides_of_every_pair_are_sealed_in_order(climbed: Bench) -> None:
    ran = climbed.earlier("L2")
    reference, artifact = floats(ran, "reference.f32"), floats(ran, "artifact.f32")
    assert len(reference) == len(artifact) == len(PAIRS)
    gaps = [abs(first - second) for first, second in zip(reference, artifact, strict=True)]
    assert max(gaps) == ran.value("max_abs_gap")


def test_pairs_that_were_cut_are_counted_with_the_length_seen_in_the_tensors(climbed: Bench) -> None:
    cut = climbed.earlier("L2").measured()["truncated_pairs"]
    assert isinstance(cut.value, int)
    assert 0 < cut.value < len(PAIRS)
    assert cut.note == "cut at 48; longest tensor 48 tokens"


def test_the_reference_runs_once_and_later_targets_say_where_theirs_is_from(climbed: Bench) -> None:
    first, later = climbed.earlier("L2"), climbed.earlier("L2", "cpu-int8")
    assert first.raw("logits.json")["reference_from"] is None
    assert later.raw("logits.json")["reference_from"] == "steps/L2-parity.cpu-fp32"
    assert later.file("reference.f32") == first.file("reference.f32")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("perturbed", {"max_abs_gap", "order_kept"}),
        ("inverted", {"max_abs_gap", "order_kept"}),
        ("constant", {"max_abs_gap", "order_kept", "distinct_logits"}),
        ("nan", {"non_finite_count"}),
    ],
)
def test_another_head_fails_parity_too(climbed: Bench, tmp_path: Path, head: str, expected: set[str]) -> None:
    there = climbed.copy(tmp_path / "root")
    graph = there.root / "artifacts/cpu-fp32/model.onnx"
    graphs.with_head(graph, there.root / "artifacts/other-fp32/model.onnx", graphs.HEADS[head])
    assert failed(there.run(there.request("L2", "other-fp32"))) == expected
