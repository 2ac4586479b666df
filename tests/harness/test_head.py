"""What stands between the last matrix product and the output."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.stages import head
from tests.support import graphs
from tests.support.steps import Bench


@pytest.mark.parametrize("target", ["cpu-fp32", "cpu-fp16", "cpu-int8"])
def test_a_raw_logit_passes_no_activation_whatever_the_precision(climbed: Bench, target: str) -> None:
    assert head.activations(climbed.graph(target)) == ()


@pytest.mark.parametrize(
    ("operators", "named"),
    [
        (("Sigmoid",), ("Sigmoid",)),
        (("Tanh", "Identity"), ("Tanh",)),
        (("Neg", "Exp", "Reciprocal"), ("Exp", "Reciprocal")),
        (("HardSigmoid", "Cos"), ("HardSigmoid",)),
        (("Identity", "Abs"), ()),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else str(value),
)
def test_activations_before_the_output_are_named(
    climbed: Bench, tmp_path: Path, operators: tuple[str, ...], named: tuple[str, ...]
) -> None:
    graph = graphs.edited(climbed.graph(), tmp_path / "given.onnx", graphs.activated(*operators))
    assert head.activations(graph) == named


def test_a_file_that_is_no_graph_has_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "garbage.onnx"
    path.write_bytes(b"no graph")
    assert head.activations(path) is None
