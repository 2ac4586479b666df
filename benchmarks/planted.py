"""A slowdown of known size: a graph with a chain of small nodes before its head that change no logit."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

WIDTH = 64


def links(count: int, at: str) -> tuple[list[Any], list[Any], str]:
    """Nodes and weights of ``count`` small MatMul and Erf nodes in a row, from a tensor of WIDTH columns; the name of their output."""
    weight = np.eye(WIDTH, dtype=np.float32) * 0.5
    nodes = []
    for place in range(count):
        nodes.append(helper.make_node("MatMul", [at, "extra_weight"], [f"extra_product_{place}"]))
        nodes.append(helper.make_node("Erf", [f"extra_product_{place}"], [f"extra_{place}"]))
        at = f"extra_{place}"
    return nodes, [numpy_helper.from_array(weight, "extra_weight")], at


def slowed(source: Path, out: Path, count: int) -> None:
    """Write the graph with ``count`` links before its head: their output, times 0, is added to what the head takes."""
    model = onnx.load(str(source))
    graph = model.graph
    head = next(node for node in graph.node if "logits" in node.output)
    taken = head.input[0]
    hidden = 128
    inner, weights, end = links(count, "extra_in")
    down, up = (np.zeros(shape, np.float32) for shape in ((hidden, WIDTH), (WIDTH, hidden)))
    weights += [numpy_helper.from_array(down, "extra_down"), numpy_helper.from_array(up, "extra_up")]
    nodes = [helper.make_node("MatMul", [taken, "extra_down"], ["extra_in"]), *inner]
    nodes += [helper.make_node("MatMul", [end, "extra_up"], ["extra_out"])]
    nodes += [helper.make_node("Add", [taken, "extra_out"], ["extra_sum"])]
    head.input[0] = "extra_sum"
    place = list(graph.node).index(head)
    before, after = list(graph.node)[:place], list(graph.node)[place:]
    del graph.node[:]
    graph.node.extend([*before, *nodes, *after])
    graph.initializer.extend(weights)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, str(out))


def link_ms(threads: int) -> float:
    """Milliseconds of one link, by a graph of nothing but 400 of them."""
    count = 400
    nodes, weights, end = links(count, "x")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "links", [value("x", TensorProto.FLOAT, [8, WIDTH])], [value(end, TensorProto.FLOAT, None)], weights
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = {"x": np.random.default_rng(0).standard_normal((8, WIDTH)).astype(np.float32)}
    samples = []
    for _ in range(200):
        begin = time.perf_counter()
        session.run(None, feed)
        samples.append((time.perf_counter() - begin) * 1000)
    return statistics.median(samples[20:]) / count
