"""The census of an ONNX file, read from its bytes without the onnx library.

A reviewer needs no onnx to check what an artifact is. Fields that are not needed are skipped by their length, so a
file of hundreds of megabytes takes milliseconds. ``training_info`` and quantisation annotations are not read.
``wire`` reads protobuf, ``onnx_tensor`` one tensor, ``onnx_scan`` the messages around it (field numbers are there).

This is no check that a runtime will take the file: faults inside what is skipped (names of edges, shapes of inner
values, doc strings) go unseen. Any bytes give a ``Census`` or raise ``GraphError`` (a ``ValueError``) with the byte and what was expected.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import numpy as np

from harness.metrics.onnx_scan import Home, Port, Scan
from harness.metrics.onnx_tensor import Tensor
from harness.metrics.wire import GraphError, Span
from harness.records import Record

__all__ = [
    "Census",
    "ExternalData",
    "GraphError",
    "Port",
    "Realised",
    "Tally",
    "census",
    "constants_beyond_half_range",
    "realised_precision",
]

HALF_MAX = 65504.0
"""Largest finite value of IEEE 754 binary16."""

NEARLY_ALL = 0.99
"""Share of the weight bytes that must have one float dtype for a graph to be called by it."""

_FLOATS = {"FLOAT": "fp32", "FLOAT16": "fp16", "BFLOAT16": "bf16", "DOUBLE": "fp64"}
_BYTES = ("INT8", "UINT8")
_NARROW = ("INT4", "UINT4", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1")
_QUANTISED = re.compile(
    r"(.*:)?(QLinear\w+|QOrdered\w+|QAttention|QGemm|QEmbedLayerNormalization|MatMulInteger(ToFloat)?|ConvInteger"
    r"|DynamicQuantize(Linear|MatMul|LSTM)|QuantizeLinear|DequantizeLinear)"
)


class Tally(Record, frozen=True):
    """Tensors of one dtype: how many, their elements and their bytes (dims x size of the dtype)."""

    count: int
    elements: int
    bytes: int


class ExternalData(Record, frozen=True):
    """A tensor whose bytes lie in another file: ``location`` is relative to the model's folder and stays in it."""

    tensor: str
    location: str
    offset: int
    length: int


class Census(Record, frozen=True):
    """What an ONNX file holds.

    ``nodes`` and ``operators`` count the main graph alone; ``nested_nodes`` and ``nested_operators`` those of
    subgraphs (If, Loop, Scan) and of functions. An operator outside the default domain is ``domain:name``.
    ``initializers`` are those of the main graph, ``nested_initializers`` those of subgraphs (sparse ones: values
    and indices); ``constants`` are tensors and scalars that node attributes hold, wherever the node is.
    ``inputs`` are without the initializers that older files list there too. ``opsets`` is by domain, the default
    one as ``ai.onnx``.
    """

    ir_version: int
    opsets: dict[str, int]
    producer: str
    producer_version: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: int
    operators: dict[str, int]
    nested_nodes: int
    nested_operators: dict[str, int]
    functions: int
    initializers: dict[str, Tally]
    nested_initializers: dict[str, Tally]
    constants: dict[str, Tally]
    external: tuple[ExternalData, ...]
    metadata: dict[str, str]

    @property
    def opset(self) -> int | None:
        """Version of the default domain; None when the file imports none."""
        return self.opsets.get("ai.onnx")


def census(model: bytes | memoryview, external_sizes: Mapping[str, int] | None = None) -> Census:
    """Take the census of a serialised ModelProto.

    ``external_sizes`` gives the bytes of each external file of the artifact by its relative path; a tensor that
    lies elsewhere or beyond the end is refused. With ``None`` only the form of the location is checked.

    Raises ``GraphError``: malformed, a tensor whose data disagrees with its dims, an external path that leaves the
    folder, subgraphs nested deeper than ``MAX_DEPTH``, more than ``wire.MAX_FIELDS`` fields.
    """
    scan = Scan(external_sizes)
    scan.model(_whole(model))
    listed = {tensor.name for home, tensor in scan.tensors if home == "initializer"}
    places = [(tensor.name, tensor.place) for _, tensor in scan.tensors if tensor.place]
    return Census(
        ir_version=scan.ir_version,
        opsets=dict(sorted(scan.opsets.items())),
        producer=scan.producer,
        producer_version=scan.producer_version,
        inputs=tuple(port for port in scan.inputs if port.name not in listed),
        outputs=tuple(scan.outputs),
        nodes=scan.operators.total(),
        operators=dict(sorted(scan.operators.items())),
        nested_nodes=scan.nested_operators.total(),
        nested_operators=dict(sorted(scan.nested_operators.items())),
        functions=scan.functions,
        initializers=_tallies(scan.tensors, "initializer"),
        nested_initializers=_tallies(scan.tensors, "nested"),
        constants=_tallies(scan.tensors, "constant"),
        external=tuple(
            ExternalData(tensor=name, location=place.location, offset=place.offset, length=place.length)
            for name, place in places
        ),
        metadata=dict(sorted(scan.metadata.items())),
    )


def constants_beyond_half_range(
    model: bytes | memoryview, external: Mapping[str, bytes | memoryview] | None = None
) -> int:
    """Count the FLOAT values that half precision can not hold: beyond +-65504, infinite or NaN.

    Looks into every initializer and node attribute, nested ones too. ``external`` gives the bytes of external files
    by relative path; a tensor in a file that is not given raises ``GraphError``, as do malformed bytes.
    """
    files = external or {}
    scan = Scan({name: memoryview(data).nbytes for name, data in files.items()})
    scan.model(_whole(model))
    found = 0
    for _, tensor in scan.tensors:
        if tensor.dtype != "FLOAT":
            continue
        data = tensor.data
        if tensor.place:
            begin = tensor.place.offset
            data = memoryview(files[tensor.place.location])[begin : begin + tensor.place.length]
        values = np.frombuffer(data if data is not None else b"", "<f4")
        for begin in range(0, len(values), 1 << 20):  # a million at a time: the copies stay small
            part = values[begin : begin + (1 << 20)]
            with np.errstate(invalid="ignore"):  # a signalling NaN is counted, not warned about
                found += int(np.count_nonzero(~(np.abs(part) <= HALF_MAX)))
    return found


class Realised(Record, frozen=True):
    """The precision that a graph's weights and operators show, and why: one sentence with the figures."""

    precision: str
    reason: str


def realised_precision(found: Census) -> Realised:
    """Name the precision of a graph: ``fp32``, ``fp16``, ``bf16``, ``fp64``, ``int8``, ``mixed`` or ``unknown``.

    Weight bytes are those of initializers (nested ones too) and constants with a float or narrow dtype; shapes and
    indices (INT64, INT32, BOOL, ...) do not count. A float precision holds at least 99% of them and no operator
    is quantised. ``int8``: INT8 and UINT8 hold more than half, and a quantised operator (QuantizeLinear,
    DequantizeLinear, MatMulInteger, QLinearMatMul, ...) is there to use them. Without weight bytes: ``unknown``.
    """
    sizes: Counter[str] = Counter()
    for tallies in (found.initializers, found.nested_initializers, found.constants):
        for dtype, tally in tallies.items():
            if dtype in (*_FLOATS, *_BYTES, *_NARROW):
                sizes[dtype] += tally.bytes
    total = sizes.total()
    if not total:
        return Realised(precision="unknown", reason="no initializer or constant holds a weight")
    shares = ", ".join(f"{dtype} {size} bytes ({size / total:.2%})" for dtype, size in sizes.most_common() if size)
    operators = {**found.operators, **found.nested_operators}
    quantised = sorted(name for name in operators if _QUANTISED.fullmatch(name))
    told = f"{shares}; " + (f"quantised operators {', '.join(quantised)}" if quantised else "no quantised operator")
    if quantised and sum(sizes[dtype] for dtype in _BYTES) > total / 2:
        return Realised(precision="int8", reason=told)
    largest, size = sizes.most_common(1)[0]
    if not quantised and largest in _FLOATS and size >= NEARLY_ALL * total:
        return Realised(precision=_FLOATS[largest], reason=told)
    return Realised(precision="mixed", reason=told)


def _whole(model: bytes | memoryview) -> Span:
    return Span(memoryview(model).cast("B"), 0)


def _tallies(tensors: list[tuple[Home, Tensor]], home: Home) -> dict[str, Tally]:
    count: Counter[str] = Counter()
    elements: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for _, tensor in filter(lambda pair: pair[0] == home, tensors):
        count[tensor.dtype] += 1
        elements[tensor.dtype] += tensor.elements
        sizes[tensor.dtype] += tensor.bytes
    return {name: Tally(count=count[name], elements=elements[name], bytes=sizes[name]) for name in sorted(count)}
