"""What stands between the last matrix product and the output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

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


@pytest.mark.parametrize("product", ["MatMul", "Gemm"])
def test_an_activation_before_a_product_with_one_number_is_named(climbed: Bench, tmp_path: Path, product: str) -> None:
    def change(model: Any) -> None:
        graphs.activated("Sigmoid", "Identity")(model)
        last = model.graph.node[-1]
        model.graph.initializer.append(numpy_helper.from_array(np.ones((1, 1), dtype=np.float32), "one"))
        last.op_type = product
        last.input.append("one")

    assert head.activations(graphs.edited(climbed.graph(), tmp_path / "given.onnx", change)) == ("Sigmoid",)


def test_an_activation_in_a_function_of_the_graph_is_named(climbed: Bench, tmp_path: Path) -> None:
    def change(model: Any) -> None:
        graphs.activated("Squash")(model)
        model.graph.node[-1].domain = "local"
        model.graph.node[-1].op_type = "Squash"
        body = [helper.make_node("Sigmoid", ["x"], ["y"]), helper.make_node("Tanh", ["x"], ["unused"])]
        model.opset_import.append(helper.make_opsetid("local", 1))
        model.functions.append(helper.make_function("local", "Squash", ["x"], ["y"], body, model.opset_import[:1]))

    assert head.activations(graphs.edited(climbed.graph(), tmp_path / "given.onnx", change)) == ("Sigmoid",)


def test_a_file_that_is_no_graph_has_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "garbage.onnx"
    path.write_bytes(b"no graph")
    assert head.activations(path) is None
