"""The head of a graph: its weights against the checkpoint's, and whether its logit leaves the graph as it was computed."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.adapter import HEAD
from harness.inspect_model import is_head
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
    """Each tensor of the checkpoint's head against the graph's tensor of its name or its shape; and a note of what was not compared.

    The head is all that stands after the encoder: the last linear layer, a weight of shape (1, width) below ``classifier`` or
    ``score`` with its bias, and what is before it (``classifier.dense``, ``pooler``, ``head``). Only tensors that ``logits`` depends
    on are looked at: another one is no weight of the graph, whatever its name. Where a name is not kept, nodes named for the module
    tell the tensor; else the last weight is compared with the closest of its shape, and any other tensor with the only one of its
    shape. Nothing is compared without the last weight.
    """
    head = dict(_head_tensors(model))
    last = next((name for name, values in head.items() if _is_last(name, values.shape)), None)
    if last is None:
        return (), "the checkpoint holds no classifier weight of shape (1, width)"
    try:
        whole = onnx_file.outline(graph)
        stored = dict(_graph_tensors(whole, graph.parent))
    except Exception as error:  # noqa: BLE001 - an unreadable graph is a finding of the checker, not of this comparison
        return (), f"the graph cannot be read: {type(error).__name__}"
    found = {
        name: _closest(name, values, _alike(whole.graph, name, values.shape, stored)) for name, values in head.items()
    }
    if found[last] is None:
        return (), f"no tensor of the graph has the shape (1, {head[last].size}) of the checkpoint's head"
    missed = [name for name, match in found.items() if match is None]
    note = f"not compared, found by neither name nor shape: {', '.join(missed)}" if missed else ""
    return tuple(match for match in found.values() if match is not None), note


def _alike(graph: Any, name: str, shape: tuple[int, ...], stored: dict[str, _Stored]) -> dict[str, _Stored]:
    """The tensors that a head's tensor may be: those of its name, else those its module's nodes take, else those of its shape."""
    size = math.prod(shape)
    named = {key for key in stored if key == name or key.startswith(f"{name}_") or key.endswith(f".{name}")}
    if same := {key: stored[key] for key in named if math.prod(stored[key].shape) == size}:
        return same
    alike = {key: other for key, other in stored.items() if sorted(other.shape) == sorted(shape)}
    module = f"/{name.rpartition('.')[0].replace('.', '/')}/"
    taken = {key for node in graph.node if node.name.startswith(module) for key in node.input}
    if told := {key: other for key, other in alike.items() if key in taken}:
        return told
    return alike if len(alike) == 1 or _is_last(name, shape) else {}


def _closest(name: str, values: Floats, alike: dict[str, _Stored]) -> HeadMatch | None:
    import numpy as np

    if not alike:
        return None
    scale = float(np.abs(values).max()) or 1.0
    gaps = {key: _gap(other, values) / scale for key, other in alike.items()}
    key = min(gaps, key=lambda item: gaps[item] if np.isfinite(gaps[item]) else np.inf)
    return HeadMatch(tensor=name, matched=key, gap_ratio=gaps[key] if np.isfinite(gaps[key]) else None)


def _gap(stored: _Stored, values: Floats) -> float:
    """The largest absolute difference, transposed where that fits better: a MatMul takes a linear layer's weight so."""
    import numpy as np

    return min(
        (
            float(np.abs(read.ravel() - way.ravel()).max())
            for read in stored.read()
            for way in ((values, values.T) if values.ndim == 2 else (values,))
        ),
        key=lambda gap: gap if np.isfinite(gap) else np.inf,
    )


def _is_last(name: str, shape: tuple[int, ...]) -> bool:
    """Whether a tensor is the weight of the last linear layer."""
    return name.endswith(".weight") and HEAD.search(name) is not None and len(shape) == 2 and shape[0] == 1


def _head_tensors(model: Path) -> Iterator[tuple[str, Floats]]:
    """What the checkpoint's safetensors hold of the head, by name."""
    import onnx  # noqa: F401 - numpy knows bfloat16 once it is imported
    from safetensors import safe_open

    for path in sorted(model.glob("*.safetensors")):
        with safe_open(path, framework="np") as file:
            for name in sorted(file.keys()):
                if is_head(name) or HEAD.search(name):
                    yield name, file.get_tensor(name).astype("float64")


def _graph_tensors(model: Any, folder: Path) -> Iterator[tuple[str, _Stored]]:
    """Floating-point tensors that the logits depend on, quantised ones as the numbers they stand for; values are read on demand."""
    from onnx import TensorProto

    reached = _reached(model.graph)
    tensors = {item.name: item for item in model.graph.initializer if item.name in reached}
    for node in model.graph.node:
        if (
            node.op_type == "Constant"
            and node.attribute
            and node.attribute[0].HasField("t")
            and node.output[0] in reached
        ):
            tensors[node.output[0]] = node.attribute[0].t
    floating = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE}
    for name, tensor in tensors.items():
        base = name.removesuffix("_quantized")
        scale, zero = _first(tensors, base, "_scale"), _first(tensors, base, "_zero_point")
        if base != name and scale is not None:
            yield name, _Stored(tensor, folder, zero, scale)
        elif tensor.data_type in floating and not name.endswith(("_scale", "_zero_point")):
            yield name, _Stored(tensor, folder)


def _reached(graph: Any) -> set[str]:
    """Names of all tensors that ``logits`` depends on, or the first output where there is none of that name."""
    makers = {name: node for node in graph.node for name in node.output if name}
    outputs = [item.name for item in graph.output]
    pending = ["logits"] if "logits" in outputs else outputs[:1]
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            if name in makers:
                pending.extend(onnx_file.taken(makers[name]))
    return seen


class _Stored(NamedTuple):
    """A tensor of the graph, and the tensors by which its numbers become those that they stand for: None where they are those."""

    tensor: Any
    folder: Path
    zero: Any = None
    scale: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.dims)

    def read(self) -> Iterator[Floats]:
        """The numbers in float64; with a scale for every channel once for each axis that has so many."""
        from onnx import numpy_helper

        def floats(tensor: Any) -> Floats:
            values: Floats = numpy_helper.to_array(tensor, str(self.folder)).astype("float64")
            return values

        values = floats(self.tensor)
        if self.scale is None:
            yield values
            return
        scale = floats(self.scale).ravel()
        zero = floats(self.zero).ravel() if self.zero is not None else scale * 0
        axes = [axis for axis, size in enumerate(values.shape) if scale.size in (1, size)]
        for axis in axes:
            dims = [-1 if place == axis else 1 for place in range(values.ndim)]
            yield (values - zero.reshape(dims)) * scale.reshape(dims)


def _first(tensors: dict[str, Any], base: str, suffix: str) -> Any:
    """The tensor that quantisers name so: after the weight, or after its quantised form. None where there is none."""
    return next((tensors[name] for name in (f"{base}{suffix}", f"{base}_quantized{suffix}") if name in tensors), None)
