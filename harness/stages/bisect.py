"""The search of ``qualify bisect``: two graphs run on one pair, some nodes at a time, and each tensor compared with its namesake.

Both graphs run without the runtime's optimisations, so that every node of the file has its output. ``CHUNK`` nodes are run at a time, on
what the nodes before them left for them; their outputs are compared, and those that no later node takes are dropped. So every node
runs once, and a graph of thousands of nodes needs no more memory than a chunk and what crosses its border. Gaps need not grow from
node to node, so the nodes are scanned in order and not halved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.bisect import GRAPH, BisectAsked, BisectFound, Suspect
from harness.errors import Blocked
from harness.records import from_json, to_json
from harness.runtimes import tokens
from harness.runtimes.batching import Layout, pad
from harness.runtimes.tokens import Encoded
from harness.stages import export, onnx_file
from harness.stages.adapter import merge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

CHUNK = 48
MINUS_INFINITY = 1e30
"""Larger values stand for minus infinity (masks): half precision cannot hold them, so only their sign is compared."""


class _Side:
    """A graph that is run from its first node on, a few nodes at a time.

    ``model`` has no weights, they lie in a file in ``folder``. ``live`` holds the tensors that later nodes take, and those of
    ``kept`` that were made.
    """

    def __init__(self, model: Any, folder: Path, feed: dict[str, Array], threads: int) -> None:
        self.model = model
        self.live = dict(feed)
        self.kept: set[str] = set()
        self._folder = folder
        self._threads = threads
        self._done = 0
        self._nodes = list(model.graph.node)
        self._weights = {item.name: item for item in model.graph.initializer}
        self._last_use = {name: place for place, node in enumerate(self._nodes) for name in onnx_file.taken(node)}

    def run(self, end: int, names: list[str]) -> dict[str, Array]:
        """The tensors ``names``, which the nodes before ``end`` give; what was run before is not run again."""
        if end > self._done:
            part = self._nodes[self._done : end]
            made = [name for node in part for name in node.output if name]
            wanted = set(names) | self.kept
            self.live |= self._run(part, [n for n in made if n in wanted or self._last_use.get(n, -1) >= end])
            self._done = end
        found = {name: self.live[name] for name in names}
        for name in [n for n in self.live if self._last_use.get(n, -1) < self._done and n not in self.kept]:
            del self.live[name]
        return found

    def _run(self, nodes: list[Any], names: list[str]) -> dict[str, Array]:
        import onnx
        import onnxruntime as ort

        if not names:
            return {}
        taken = {name for node in nodes for name in onnx_file.taken(node)}
        feed = {name: tensor for name, tensor in self.live.items() if name in taken}
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        model.graph.Clear()
        model.graph.name = "part"
        model.graph.node.extend(nodes)
        model.graph.initializer.extend(self._weights[name] for name in taken if name in self._weights)
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        for name, tensor in feed.items():
            kind = onnx.helper.np_dtype_to_tensor_dtype(tensor.dtype)
            model.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, tensor.shape))
        path = self._folder / "part.onnx"
        onnx.save(model, str(path))
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 4
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return dict(zip(names, session.run(names, feed), strict=True))


class _Verdict(NamedTuple):
    """A tensor compared with its namesake: the gap over the largest value, null and why when that is no number."""

    gap: float | None
    why: str


def search(folder: Path, progress: Callable[[int, int, str], None]) -> None:
    """Read ``asked.json`` and both graphs in ``folder``, and write ``found.json``. Raises ``Blocked``."""
    asked = from_json((folder / "asked.json").read_bytes(), BisectAsked, "asked.json")
    reference, candidate = (_side(folder / name, asked) for name in ("reference", "candidate"))
    nodes = len(candidate.model.graph.node)
    compared, largest, first = 0, 0.0, None
    for place, node, verdicts in _compared(reference, candidate, lambda done: progress(done, nodes, "nodes")):
        compared += any(verdict.gap is not None or verdict.why for _, verdict in verdicts)
        bad = next(
            ((name, v) for name, v in verdicts if v.why or (v.gap is not None and v.gap > asked.tolerance)), None
        )
        if bad is not None:
            first = _suspect(candidate.model, place, node, *bad, asked.tolerance)
            break
        largest = max([largest, *(verdict.gap for _, verdict in verdicts if verdict.gap is not None)])
    if not compared:
        raise Blocked("bisect: expected tensors of one name in both graphs, got none; they are not from one export")
    found = BisectFound(format=1, nodes=nodes, compared=compared, largest_gap=largest, first=first)
    (folder / "found.json").write_bytes(to_json(found))


def export_reference(folder: Path, model: Path, adapter: Path | None) -> None:
    """Export the fp32 graph of ``asked.json`` into ``reference/`` again, the adapter merged. Raises as ``export`` does."""
    asked = from_json((folder / "asked.json").read_bytes(), BisectAsked, "asked.json")
    assert asked.again is not None
    if adapter is not None:
        merge(model, adapter, asked.threads, folder / "merged")
        model = folder / "merged"
    known = asked.again.candidate
    names = tokens.inputs_of(known, model)
    made = export.export(model, known, asked.again.options, names, asked.threads, folder / "again")
    onnx_file.copy(made.graph, folder / "reference" / GRAPH)


def _side(folder: Path, asked: BisectAsked) -> _Side:
    spilled = folder / "spilled"
    # weights beside it, the graph is small enough to be written for every chunk
    onnx_file.save(onnx_file.load(folder / GRAPH), spilled, external=True)
    model = onnx_file.outline(spilled / GRAPH)
    feed = _feed(model, asked)
    return _Side(model, spilled, feed, asked.threads)


def _feed(model: Any, asked: BisectAsked) -> dict[str, Array]:
    """The pair as the graph takes it: in every row of a fixed batch, padded as the candidate's tokenizer pads to a fixed length.

    Raises ``Blocked`` for an input that no tokenizer gives.
    """
    import numpy as np
    import onnx

    dtypes, rows, length = {}, 1, len(asked.ids)
    for item in model.graph.input:
        dims = [dim.dim_value for dim in item.type.tensor_type.shape.dim]
        if len(dims) == 2:
            rows, length = dims[0] or rows, dims[1] or length
        dtypes[item.name] = "int32" if item.type.tensor_type.elem_type == onnx.TensorProto.INT32 else "int64"
    row = Encoded((np.array(asked.ids[:length]),), (np.array(asked.segments[:length]),), 0)
    layout = Layout(dtypes, asked.pad_token_id, asked.padding_side, rows, first_position=asked.first_position)
    return pad(row, [0] * rows, length, layout)


def _compared(
    reference: _Side, candidate: _Side, seen: Callable[[int], None]
) -> Iterator[tuple[int, Any, list[tuple[str, _Verdict]]]]:
    """Every node of the candidate in order, with the verdict on each of its outputs."""
    nodes = list(candidate.model.graph.node)
    counterpart = _counterparts(reference.model, candidate.model)
    made_at = {name: place for place, node in enumerate(reference.model.graph.node) for name in node.output}
    left = Counter(counterpart.values())  # how often each is still to be compared
    reference.kept |= set(left)
    for begin in range(0, len(nodes), CHUNK):
        chunk = nodes[begin : begin + CHUNK]
        names = [name for node in chunk for name in node.output if name]
        outputs = candidate.run(begin + len(chunk), names)
        wanted = [counterpart[name] for name in names if name in counterpart]
        known = reference.run(1 + max((made_at[name] for name in wanted), default=-1), wanted)
        left -= Counter(wanted)
        reference.kept &= set(left)
        for place, node in enumerate(chunk, begin):
            verdicts = [
                (name, _verdict(known.get(counterpart.get(name, "")), outputs[name])) for name in node.output if name
            ]
            yield place, node, verdicts
        seen(begin + len(chunk))


def _counterparts(reference: Any, candidate: Any) -> dict[str, str]:
    """The reference's tensor for each of the candidate's: that of the same name; for a Cast, that of what it casts."""
    known = {name for node in reference.graph.node for name in node.output if name}
    found: dict[str, str] = {}
    for node in candidate.graph.node:
        for name in node.output:
            if name in known:
                found[name] = name
            elif node.op_type == "Cast" and node.input[0] in found:
                found[name] = found[node.input[0]]
    return found


def _verdict(reference: Array | None, found: Any) -> _Verdict:
    """How far a tensor is from its namesake. Without one, only NaN is a fault: it has no other reading."""
    import numpy as np

    values = np.asarray(found)
    if values.dtype.kind not in "fiub":
        return _Verdict(None, "")
    values = values.astype(np.float64)
    if reference is None:
        bad = int(np.isnan(values).sum())
        return _Verdict(None, f"{bad} of {values.size} values are NaN" if bad else "")
    wanted = np.asarray(reference).astype(np.float64)
    if wanted.shape != values.shape:
        return _Verdict(None, f"its shape is {values.shape}, that of the fp32 graph {wanted.shape}")
    plain = np.abs(np.nan_to_num(wanted, nan=0.0)) < MINUS_INFINITY
    bad = int((~np.isfinite(values) & plain & np.isfinite(wanted)).sum()) + int(
        (np.isnan(values) & ~np.isnan(wanted) & ~plain).sum()
    )
    if bad:
        return _Verdict(None, f"{bad} of {values.size} values are not finite, and are in the fp32 graph")
    if (np.sign(values[~plain]) != np.sign(wanted[~plain])).any():
        return _Verdict(None, "a value that stands for minus infinity has another sign")
    both = plain & np.isfinite(wanted) & np.isfinite(values)
    scale = float(np.abs(wanted[both]).max(initial=1.0 if wanted.size == 1 else 0.0))  # a logit near 0 is no measure
    gap = float(np.abs(values[both] - wanted[both]).max(initial=0.0))
    return _Verdict(gap / scale if scale > 0 else gap, "")


def _suspect(model: Any, place: int, node: Any, output: str, verdict: _Verdict, tolerance: float) -> Suspect:
    why = verdict.why or f"{verdict.gap:.3g} of its largest value from the fp32 graph, tolerance {tolerance:g}"
    return Suspect(
        node=node.name or output,
        operator=node.op_type,
        output=output,
        module=_module(model, place),
        place=place,
        why=why,
        gap=verdict.gap,
    )


def _module(model: Any, place: int) -> str:
    """The module a node is of, from its name (``/bert/encoder/...``) or from a weight it takes; else that of the nodes before it."""
    weights = {item.name for item in model.graph.initializer}
    for back in range(place, -1, -1):
        node = model.graph.node[back]
        found = ""
        if node.name.startswith("/"):
            found = node.name.strip("/").rpartition("/")[0].replace("/", ".")
        else:
            named = [name for name in node.input if name in weights and name.endswith((".weight", ".bias"))]
            found = named[0].rpartition(".")[0] if named else ""
        if found:
            return found if back == place else f"after {found}"
    return ""
