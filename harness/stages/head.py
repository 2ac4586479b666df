"""The head of a graph: its weights against the checkpoint's, and whether its logit leaves the graph as it was computed."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.adapter import HEAD
from harness.raw import HeadMatch
from harness.stages import onnx_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_PRODUCTS = re.compile(r"(Q?Linear|Fused|Q)?(MatMul|Gemm)\w*|QLinearMatMul|MatMulInteger\w*|DynamicQuantize\w+")
"""Where the way back from the output ends: at a product of matrices, or at the quantisation of what goes into one."""

_ACTIVATIONS = {
    *("Sigmoid", "HardSigmoid", "QLinearSigmoid", "Softmax", "LogSoftmax", "QLinearSoftmax", "Tanh", "Exp", "Reciprocal"),
    *("Softplus", "Softsign", "Log", "Erf", "Clip", "Relu", "LeakyRelu", "Celu", "Elu", "Selu", "Gelu", "HardSwish", "QuickGelu"),
}  # fmt: skip


def activations(graph: Path) -> tuple[str, ...] | None:
    """Operators between the last matrix product and the first output that make a raw logit something else, sorted.

    A sigmoid that was put together from Exp and a division is seen by its Exp. None where the graph cannot be read.
    """
    try:
        model = onnx_file.outline(graph)
    except Exception:  # noqa: BLE001 - an unreadable graph is a finding of the checker, not of this look
        return None
    outputs = [item.name for item in model.graph.output]
    start = ["logits"] if "logits" in outputs else outputs[:1]
    single = {item.name for item in model.graph.initializer if math.prod(item.dims) == 1}
    functions = {(function.domain, function.name): function for function in model.functions}
    found: set[str] = set()
    _back(model.graph.node, start, single, functions, found)
    return tuple(sorted(found))


def _back(
    nodes: Iterable[Any],
    start: Iterable[str],
    single: Collection[str],
    functions: Mapping[tuple[str, str], Any],
    found: set[str],
) -> set[str]:
    """Walk back from tensors to the first products, add the activations on the way to ``found``, and return all tensors that were met.

    A product with a number (``single`` names the tensors of one element) is no end, and neither is a function, into which the walk goes.
    """
    makers = {name: node for node in nodes for name in node.output}
    numbers = {*single, *(node.output[0] for node in makers.values() if _one_number(node))}
    pending, seen = list(start), set[str]()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        node = makers.get(name)
        if node is None or (_PRODUCTS.fullmatch(node.op_type) and not _with_a_number(node, numbers)):
            continue
        if node.op_type in _ACTIVATIONS:
            found.add(node.op_type)
        body = functions.get((node.domain, node.op_type))
        if body is None:
            pending += node.input
        else:
            given = dict(zip(body.input, node.input, strict=False))  # an input at the end may be left out
            asked = [inner for inner, outer in zip(body.output, node.output, strict=False) if outer == name]
            met = _back(body.node, asked, (), functions, found)
            pending += [outer for inner, outer in given.items() if inner in met]
    return seen


def _with_a_number(product: Any, numbers: Collection[str]) -> bool:
    """Whether one of the two factors is a single number; the bias of a product with one row is one too, and is no factor."""
    return product.op_type in {"MatMul", "Gemm", "FusedMatMul"} and not {*product.input[:2]}.isdisjoint(numbers)


def _one_number(node: Any) -> bool:
    if node.op_type != "Constant" or not node.attribute:
        return False
    value = node.attribute[0]
    return bool(value.HasField("f") or (value.HasField("t") and math.prod(value.t.dims) == 1))


def compare_head(graph: Path, model: Path) -> tuple[tuple[HeadMatch, ...], str]:
    """Each head tensor of the checkpoint against the graph's tensor of its name, or the closest of its shape; and a note if there is none.

    The head is the last linear layer: a weight of shape (1, width) below ``classifier`` or ``score``, with its bias. The graph may
    hold it transposed, and in int8 with scale and zero point; its bias is compared only where its name was kept.
    """
    head = dict(_head_tensors(model))
    if not head:
        return (), "the checkpoint holds no classifier weight of shape (1, width)"
    try:
        stored = dict(_graph_tensors(onnx_file.outline(graph), graph.parent))
    except Exception as error:  # noqa: BLE001 - an unreadable graph is a finding of the checker, not of this comparison
        return (), f"the graph cannot be read: {type(error).__name__}"
    found = [match for name, values in head.items() if (match := _closest(name, values, stored)) is not None]
    if not any(match.tensor.endswith("weight") for match in found):
        width = next(iter(head.values())).size
        return tuple(found), f"no tensor of the graph has the shape (1, {width}) of the checkpoint's head"
    return tuple(found), ""


def _closest(name: str, values: Floats, stored: dict[str, _Stored]) -> HeadMatch | None:
    import numpy as np

    named = [key for key in stored if key == name or key.startswith(f"{name}_") or key.endswith(f".{name}")]
    same = [key for key in named if math.prod(stored[key].shape) == values.size]
    if not same and values.size > 1:
        same = [key for key, other in stored.items() if sorted(other.shape) == sorted(values.shape)]
    if not same:
        return None
    scale = float(np.abs(values).max()) or 1.0
    gaps = {key: float(np.abs(stored[key].read().ravel() - values.ravel()).max()) / scale for key in same}
    key = min(gaps, key=lambda item: gaps[item] if np.isfinite(gaps[item]) else np.inf)
    return HeadMatch(tensor=name, matched=key, gap_ratio=gaps[key] if np.isfinite(gaps[key]) else None)


def _head_tensors(model: Path) -> Iterator[tuple[str, Floats]]:
    """The last linear layer in the checkpoint's safetensors: weight first, then bias."""
    import onnx  # noqa: F401 - numpy knows bfloat16 once it is imported
    from safetensors import safe_open

    for path in sorted(model.glob("*.safetensors")):
        with safe_open(path, framework="np") as file:
            names = set(file.keys())
            for name in sorted(names):
                if not name.endswith(".weight") or not HEAD.search(name):
                    continue
                weight = file.get_tensor(name).astype("float64")
                if weight.ndim != 2 or weight.shape[0] != 1:
                    continue
                yield name, weight
                bias = name.removesuffix("weight") + "bias"
                if bias in names:
                    yield bias, file.get_tensor(bias).astype("float64")


def _graph_tensors(model: Any, folder: Path) -> Iterator[tuple[str, _Stored]]:
    """Floating-point tensors of the graph by name, quantised ones as the numbers they stand for; values are read on demand."""
    from onnx import TensorProto

    tensors = {item.name: item for item in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            tensors[node.output[0]] = node.attribute[0].t
    floating = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE}
    for name, tensor in tensors.items():
        base = name.removesuffix("_quantized")
        scale, zero = _first(tensors, base, "_scale"), _first(tensors, base, "_zero_point")
        if base != name and scale is not None and math.prod(scale.dims) == 1:  # the head has one row, so one scale
            yield name, _Stored(tensor, folder, 0.0 if zero is None else _number(zero), _number(scale))
        elif tensor.data_type in floating:
            yield name, _Stored(tensor, folder)


class _Stored(NamedTuple):
    """A tensor of the graph, and how its numbers become those that they stand for."""

    tensor: Any
    folder: Path
    offset: float = 0.0
    scale: float = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.dims)

    def read(self) -> Floats:
        from onnx import numpy_helper

        values: Floats = numpy_helper.to_array(self.tensor, str(self.folder)).astype("float64")
        return (values - self.offset) * self.scale


def _first(tensors: dict[str, Any], base: str, suffix: str) -> Any:
    """The tensor that quantisers name so: after the weight, or after its quantised form. None where there is none."""
    return next((tensors[name] for name in (f"{base}{suffix}", f"{base}_quantized{suffix}") if name in tensors), None)


def _number(tensor: Any) -> float:
    from onnx import numpy_helper

    return float(numpy_helper.to_array(tensor).ravel()[0])
