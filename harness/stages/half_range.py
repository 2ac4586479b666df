"""Where a graph in half precision leaves the range of half precision, as a device that computes in it would see.

ONNX Runtime's CPU provider computes most fp16 operators in fp32 and drops the Casts between, so an overflow that every GPU would show
stays unseen in its logits. Here every fp16 value of the graph is made an output, which has to be stored as fp16.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.stages import onnx_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Feed = dict[str, NDArray[np.generic]]


class Overflow(NamedTuple):
    """Nodes whose fp16 output is infinite or NaN, those that take such an output, and the first of them in words."""

    nodes: tuple[str, ...]
    takers: tuple[str, ...]
    words: str


def overflow(graph: Path, feed: Feed) -> Overflow:
    """Run ``graph`` on ``feed`` and look at each of its fp16 values.

    Minus infinity alone is not counted: a masked attention score becomes that in half precision, and softmax makes 0 of it.
    """
    import numpy as np
    import onnx
    import onnxruntime as ort

    model = onnx_file.outline(graph)
    listed = {item.name for item in model.graph.output}
    inner = [name for node in model.graph.node for name in node.output if name and name not in listed]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner)
    watched = graph.with_name("watched.onnx")  # beside the graph, since it takes the same file of weights
    onnx.save(model, str(watched))
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(str(watched), options, providers=["CPUExecutionProvider"])
    watched.unlink()
    names = [item.name for item in session.get_outputs() if item.type == "tensor(float16)"]
    values = dict(zip(names, session.run(names, feed), strict=True)) if names else {}
    bad = {name for name, found in values.items() if np.isnan(found).any() or np.isposinf(found).any()}
    return _named(model, bad)


def _named(model: Any, bad: set[str]) -> Overflow:
    nodes = [node for node in model.graph.node if bad & set(node.output)]
    takers = [node for node in model.graph.node if bad & set(node.input)]
    words = f"{nodes[0].op_type} {nodes[0].name} leaves the range of half precision" if nodes else ""
    return Overflow(tuple(node.name for node in nodes), tuple(node.name for node in takers), words)
