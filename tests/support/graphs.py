"""ONNX files with a planted fault, made from a good one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Change = Callable[[NDArray[np.float32]], NDArray[np.float32]]

HEADS: dict[str, Change] = {
    "perturbed": lambda weight: weight + np.sign(weight).astype(np.float32),
    "inverted": lambda weight: -weight,
    "constant": lambda weight: weight * np.float32(0),
    "nan": lambda weight: weight * np.float32("nan"),
}


def edited(graph: Path, to: Path, change: Callable[[Any], None]) -> Path:
    """``graph`` as ``change`` leaves its ModelProto, written to ``to``."""
    import onnx

    model = onnx.load(str(graph))
    change(model)
    to.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(to))
    return to


def with_head(graph: Path, to: Path, change: Change) -> Path:
    """``graph`` with another classifier weight."""
    from onnx import numpy_helper

    def put(model: Any) -> None:
        for tensor in model.graph.initializer:
            if tensor.name == "classifier.weight":
                tensor.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(tensor)), tensor.name))

    return edited(graph, to, put)


def output_renamed(model: Any) -> None:
    """The output ``logits`` is called ``scores``."""
    for node in model.graph.node:
        node.output[:] = ["scores" if name == "logits" else name for name in node.output]
    model.graph.output[0].name = "scores"


def input_added(model: Any) -> None:
    """An input that no tokenizer gives, and that nothing needs."""
    import onnx

    model.graph.input.append(onnx.helper.make_tensor_value_info("position_ids", onnx.TensorProto.INT64, ["b", "s"]))


def batch_frozen(model: Any) -> None:
    """A graph that says it takes any batch and whose last step gives two rows."""
    import onnx

    for node in model.graph.node:
        node.output[:] = ["rows" if name == "logits" else name for name in node.output]
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2, 1]), "two_rows"))
    model.graph.node.append(onnx.helper.make_node("Reshape", ["rows", "two_rows"], ["logits"]))
    model.graph.output[0].type.tensor_type.shape.dim[0].ClearField("dim_param")
