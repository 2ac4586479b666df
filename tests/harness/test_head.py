"""What stands between the last matrix product and the output, and the head's weights against the checkpoint's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from harness import candidate
from harness.records import BuildOptions
from harness.stages import export, head
from tests.support import architectures, graphs
from tests.support.once import once
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


def gaps(graph: Path, model: Path) -> dict[str, float | None]:
    return {item.tensor: item.gap_ratio for item in head.compare_head(graph, model)[0]}


@pytest.mark.parametrize(("target", "most"), [("cpu-fp32", 0.0), ("cpu-fp16", 2.0**-11), ("cpu-int8", 2.0**-6)])
def test_every_tensor_behind_the_encoder_is_compared_in_every_precision(
    climbed: Bench, target: str, most: float
) -> None:
    found, note = head.compare_head(climbed.graph(target), climbed.model)
    parts = ("bert.pooler.dense", "classifier")
    assert {item.tensor for item in found} == {f"{part}.{kind}" for part in parts for kind in ("weight", "bias")}
    assert note == ""
    assert max(item.gap_ratio or 0.0 for item in found) <= most


def put(name: str, change: Callable[[Any], Any], *, called: str = "", left: bool = False) -> Callable[[Any], None]:
    """A change of one initializer, which is ``called`` otherwise from then on; with ``left`` the old one stays, taken by no node."""

    def edit(model: Any) -> None:
        from onnx import numpy_helper

        tensor = next(item for item in model.graph.initializer if item.name == name)
        other = numpy_helper.from_array(change(numpy_helper.to_array(tensor)), called or name)
        for node in model.graph.node:
            node.input[:] = [other.name if taken == name else taken for taken in node.input]
        if not left:
            model.graph.initializer.remove(tensor)
        model.graph.initializer.append(other)

    return edit


def test_the_right_weight_that_no_node_takes_hides_no_negated_one(climbed: Bench, tmp_path: Path) -> None:
    decoy = put("classifier.weight", np.negative, called="planted", left=True)
    graph = graphs.edited(climbed.graph(), tmp_path / "given.onnx", decoy)
    (found,) = [item for item in head.compare_head(graph, climbed.model)[0] if item.tensor == "classifier.weight"]
    assert (found.matched, found.gap_ratio) == ("planted", 2.0)


@pytest.mark.parametrize("called", ["", "planted"])
def test_another_bias_is_found_by_its_name_or_as_the_only_one_of_its_shape(
    climbed: Bench, tmp_path: Path, called: str
) -> None:
    change = put("classifier.bias", lambda bias: bias + np.abs(bias), called=called)
    graph = graphs.edited(climbed.graph(), tmp_path / "given.onnx", change)
    assert gaps(graph, climbed.model)["classifier.bias"] == 1.0


def test_what_was_found_by_neither_name_nor_shape_is_told(climbed: Bench, tmp_path: Path) -> None:
    def change(model: Any) -> None:
        put("bert.pooler.dense.weight", np.negative, called="planted")(model)  # the encoder has others of its shape
        for node in model.graph.node:
            node.name = node.name.replace("pooler", "planted")

    graph = graphs.edited(climbed.graph(), tmp_path / "given.onnx", change)
    found, note = head.compare_head(graph, climbed.model)
    assert note == "not compared, found by neither name nor shape: bert.pooler.dense.weight"
    assert "bert.pooler.dense.weight" not in {item.tensor for item in found}


INNER = {
    "electra": "classifier.dense.weight",
    "distilbert": "pre_classifier.weight",
    "roberta": "classifier.dense.weight",
    "deberta-v3": "pooler.dense.weight",
    "modernbert": "head.dense.weight",  # without a bias it becomes a MatMul, whose weight has no name of the checkpoint's
}


@pytest.mark.parametrize("name", list(INNER))
def test_the_linear_layer_before_the_last_is_compared_too(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, name: str
) -> None:
    def make(folder: Path) -> None:
        (folder / "model").mkdir()
        architectures.make(name, folder / "model")
        found = candidate.resolve("./model", None, folder)
        names = ("input_ids", "attention_mask")
        graph = export.export(found.folder, found.candidate, BuildOptions(), names, 1, folder).graph
        graph.rename(folder / "model.onnx")

    folder = once(tmp_path_factory, f"inner-{name}", make)
    exported, model = folder / "model.onnx", folder / "model"
    assert set(gaps(exported, model).values()) == {0.0}
    assert head.compare_head(exported, model)[1] == ""
    stored = {item.tensor: item.matched for item in head.compare_head(exported, model)[0]}[INNER[name]]
    graph = graphs.edited(exported, tmp_path / "given.onnx", put(stored, np.negative))
    moved = {tensor: gap for tensor, gap in gaps(graph, model).items() if gap}
    assert list(moved) == [INNER[name]]
    assert (moved[INNER[name]] or 0) > 0.5
