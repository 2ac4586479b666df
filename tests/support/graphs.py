"""ONNX files with a planted fault, made from a good one."""

from __future__ import annotations

import re
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


def _input_through(model: Any, name: str, nodes: list[Any], last: str) -> None:
    """What took the graph input ``name`` takes ``last`` instead, which ``nodes`` make of it."""
    for node in model.graph.node:
        node.input[:] = [last if given == name else given for given in node.input]
    for node in reversed(nodes):
        model.graph.node.insert(0, node)


def segments_ignored(model: Any) -> None:
    """Both texts are embedded as segment 0, whatever the input says."""
    import onnx

    node = onnx.helper.make_node("Sub", ["token_type_ids", "token_type_ids"], ["no_segments"])
    _input_through(model, "token_type_ids", [node], "no_segments")


def mask_ignored(model: Any) -> None:
    """Padding is attended to like text, so that a logit depends on the batch."""
    import onnx

    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(1, dtype=np.int64), "one"))
    zero = onnx.helper.make_node("Sub", ["attention_mask", "attention_mask"], ["no_mask"])
    ones = onnx.helper.make_node("Add", ["no_mask", "one"], ["all_ones"])
    _input_through(model, "attention_mask", [zero, ones], "all_ones")


def _logits_through(model: Any, nodes: list[Any]) -> None:
    """The last of ``nodes`` gives ``logits``; they take the old ones as ``old_logits``."""
    for node in model.graph.node:
        node.output[:] = ["old_logits" if name == "logits" else name for name in node.output]
    model.graph.node.extend(nodes)


def logits_shifted(by: float) -> Callable[[Any], None]:
    """Every logit is greater by ``by``: a plain export fault that keeps the order."""

    def change(model: Any) -> None:
        import onnx

        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(by, dtype=np.float32), "shift"))
        _logits_through(model, [onnx.helper.make_node("Add", ["old_logits", "shift"], ["logits"])])

    return change


def logits_noisy(model: Any) -> None:
    """Noise of a tenth of a logit, new at every call."""
    import onnx

    noise = onnx.helper.make_node("RandomNormalLike", ["old_logits"], ["noise"], scale=0.1)
    _logits_through(model, [noise, onnx.helper.make_node("Add", ["old_logits", "noise"], ["logits"])])


def logits_summed(model: Any) -> None:
    """Every logit has those of the rows before it added, a tenth of them: it depends on its place in the batch."""
    from onnx import helper, numpy_helper

    constants(model, {"planted_tenth": 0.1})
    model.graph.initializer.append(numpy_helper.from_array(np.array(0), "planted_rows"))
    total = helper.make_node("CumSum", ["old_logits", "planted_rows"], ["planted_sum"], exclusive=1)
    part = helper.make_node("Mul", ["planted_sum", "planted_tenth"], ["planted_part"])
    _logits_through(model, [total, part, helper.make_node("Add", ["old_logits", "planted_part"], ["logits"])])


def positions_shifted(model: Any) -> None:
    """Every token has the position of the one before it."""
    from onnx import numpy_helper

    table = next(item for item in model.graph.initializer if item.name.endswith("position_embeddings.weight"))
    table.CopyFrom(numpy_helper.from_array(np.roll(numpy_helper.to_array(table), 1, axis=0), table.name))


def weight_scaled(module: str, by: float) -> Callable[[Any], None]:
    """The weight of one matrix product, by its node's name ``/module/MatMul`` or ``/module/node_MatMul_7``, is multiplied by ``by``."""

    def change(model: Any) -> None:
        from onnx import numpy_helper

        product = re.compile(rf"/{re.escape(module)}/(node_)?MatMul\w*")
        node = next(node for node in model.graph.node if product.fullmatch(node.name))
        tensor = next(item for item in model.graph.initializer if item.name == node.input[1])
        values = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array((values * np.float32(by)).astype(values.dtype), tensor.name))

    return change


def output_renamed(model: Any) -> None:
    """The output ``logits`` is called ``scores``."""
    for node in model.graph.node:
        node.output[:] = ["scores" if name == "logits" else name for name in node.output]
    model.graph.output[0].name = "scores"


def positions_fed(model: Any) -> None:
    """The graph takes ``position_ids`` instead of numbering the tokens itself."""
    import onnx

    model.graph.input.append(onnx.helper.make_tensor_value_info("position_ids", onnx.TensorProto.INT64, ["b", "s"]))
    for node in model.graph.node:
        if node.op_type == "Gather" and node.input[0].endswith("position_embeddings.weight"):
            node.input[1] = "position_ids"


def input_added(model: Any) -> None:
    """An input that no tokenizer gives, and that nothing needs."""
    import onnx

    model.graph.input.append(onnx.helper.make_tensor_value_info("past_length", onnx.TensorProto.INT64, ["b", "s"]))


def batch_frozen(model: Any) -> None:
    """A graph that says it takes any batch and whose last step gives two rows."""
    import onnx

    for node in model.graph.node:
        node.output[:] = ["rows" if name == "logits" else name for name in node.output]
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2, 1]), "two_rows"))
    model.graph.node.append(onnx.helper.make_node("Reshape", ["rows", "two_rows"], ["logits"]))
    model.graph.output[0].type.tensor_type.shape.dim[0].ClearField("dim_param")


def beyond_half(model: Any) -> None:
    """Pooled values that are multiplied twice by 50,000, reshaped, and divided again: fine in fp32, infinite in fp16.

    The Reshapes stand between, since the runtime drops a Cast to fp16 that is followed at once by one to fp32.
    """
    from onnx import helper, numpy_helper

    tanh = next(node for node in model.graph.node if node.op_type == "Tanh")
    constants(model, {"planted_up": 50_000.0, "planted_down": 1 / 50_000.0})
    for name, dims in (("planted_wide", [0, -1, 1]), ("planted_flat", [0, -1])):
        model.graph.initializer.append(numpy_helper.from_array(np.array(dims), name))
    (pooled,) = tanh.output
    tanh.output[:] = ["planted_0"]
    place = list(model.graph.node).index(tanh) + 1
    steps = [("Mul", "up"), ("Mul", "up"), ("Reshape", "wide"), ("Mul", "down"), ("Mul", "down"), ("Reshape", "flat")]
    for step, (operator, by) in enumerate(steps):
        output = pooled if step + 1 == len(steps) else f"planted_{step + 1}"
        inputs = [f"planted_{step}", f"planted_{by}"]
        node = helper.make_node(operator, inputs, [output], name=f"planted_{operator}_{step}")
        model.graph.node.insert(place + step, node)


def float_range(model: Any) -> None:
    """A Range of floats, which ONNX does not have in half precision, whose one value, zero, is added to the logits."""
    from onnx import helper

    constants(model, {"planted_start": 0.0, "planted_limit": 1.0, "planted_delta": 1.0})
    for node in model.graph.node:
        node.output[:] = ["planted_raw" if name == "logits" else name for name in node.output]
    names = ["planted_start", "planted_limit", "planted_delta"]
    model.graph.node.append(helper.make_node("Range", names, ["planted_zero"], name="planted_range"))
    model.graph.node.append(helper.make_node("Add", ["planted_raw", "planted_zero"], ["logits"], name="planted_add"))


def nan_head(model: Any) -> None:
    """A head that gives NaN in any precision."""
    from onnx import numpy_helper

    for tensor in model.graph.initializer:
        if tensor.name == "classifier.weight":
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32("nan"), tensor.name))


def constants(model: Any, values: dict[str, float]) -> None:
    """The scalars ``values`` in fp32, which no node takes yet."""
    from onnx import numpy_helper

    for name, value in values.items():
        model.graph.initializer.append(numpy_helper.from_array(np.array(value, dtype=np.float32), name))


def activated(*operators: str) -> Callable[[Any], None]:
    """A change that puts operators of one input between the logit and the output, in order."""

    def change(model: Any) -> None:
        from onnx import helper

        for node in model.graph.node:
            node.output[:] = ["planted_0" if name == "logits" else name for name in node.output]
        for step, operator in enumerate(operators):
            output = "logits" if step + 1 == len(operators) else f"planted_{step + 1}"
            node = helper.make_node(operator, [f"planted_{step}"], [output], name=f"planted_{operator}")
            model.graph.node.append(node)

    return change


def headless(model: Any) -> None:
    """What an export with the wrong task gives: the encoder's states, and no head."""
    from onnx import TensorProto, helper

    last = [node.output[0] for node in model.graph.node if node.op_type == "LayerNormalization"][-1]
    del model.graph.output[:]
    model.graph.output.append(
        helper.make_tensor_value_info(last, TensorProto.FLOAT, ["batch", "sequence", 32])
    )  # fmt: skip
    while model.graph.node[-1].output[0] != last:
        del model.graph.node[-1]
    used = {name for node in model.graph.node for name in node.input}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in used]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)


def segments_dropped(model: Any) -> None:
    """A graph that takes no segments, though the model has two: they are all 0 inside it."""
    from onnx import helper

    taken = [item for item in model.graph.input if item.name != "token_type_ids"]
    del model.graph.input[:]
    model.graph.input.extend(taken)
    node = helper.make_node("Sub", ["input_ids", "input_ids"], ["token_type_ids"], name="planted_zeros")
    model.graph.node.insert(0, node)


def length_frozen(model: Any) -> None:
    """A graph that says it takes any length and whose ids are reshaped to rows of 8."""
    from onnx import helper, numpy_helper

    for node in model.graph.node:
        node.input[:] = ["planted_ids" if name == "input_ids" else name for name in node.input]
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1, 8]), "planted_shape"))
    node = helper.make_node("Reshape", ["input_ids", "planted_shape"], ["planted_ids"], name="planted")
    model.graph.node.insert(0, node)


def mask_overflows(model: Any) -> None:
    """The mask as older code builds it, kept or not times fp32's least value, with the minus infinity that this is in half precision."""
    from onnx import TensorProto, helper

    where = next(node for node in model.graph.node if node.op_type == "Where" and _least(model, node.input[2]))
    constants(model, {"planted_one": 1.0, "planted_least": -np.inf})
    place = list(model.graph.node).index(where)
    kept = helper.make_node("Cast", [where.input[0]], ["planted_kept"], name="planted_cast", to=TensorProto.FLOAT)
    dropped = helper.make_node("Sub", ["planted_one", "planted_kept"], ["planted_dropped"], name="planted_sub")
    product = helper.make_node("Mul", ["planted_dropped", "planted_least"], list(where.output), name="planted_mul")
    model.graph.node.remove(where)
    for step, node in enumerate((kept, dropped, product)):
        model.graph.node.insert(place + step, node)


def nan_of_one_token(model: Any) -> None:
    """Logits that are NaN in a row of which all but one token are masked: 0 / (sum of the mask - 1) is added to each."""
    from onnx import TensorProto, helper, numpy_helper

    constants(model, {"planted_one": 1.0, "planted_zero": 0.0})
    model.graph.initializer.append(numpy_helper.from_array(np.array([1]), "planted_axis"))
    mask = helper.make_node("Cast", ["attention_mask"], ["planted_mask"], to=TensorProto.FLOAT)
    count = helper.make_node("ReduceSum", ["planted_mask", "planted_axis"], ["planted_count"], keepdims=1)
    fewer = helper.make_node("Sub", ["planted_count", "planted_one"], ["planted_fewer"])
    share = helper.make_node("Div", ["planted_zero", "planted_fewer"], ["planted_share"])
    _logits_through(
        model, [mask, count, fewer, share, helper.make_node("Add", ["old_logits", "planted_share"], ["logits"])]
    )


def _least(model: Any, name: str) -> bool:
    """Whether ``name`` is a constant near the least value of fp32."""
    from onnx import numpy_helper

    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    tensors |= {node.output[0]: node.attribute[0].t for node in model.graph.node if node.op_type == "Constant"}
    return name in tensors and bool(np.all(numpy_helper.to_array(tensors[name]) < -1e30))
