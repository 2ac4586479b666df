"""The measurements of L0, from what the stage wrote and from the bytes of the sealed artifact itself. Pure; needs no onnx."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.derive import Read, make, raw_bytes, raw_record
from harness.raw import BuildRaw
from harness.records import Measurement, Request

if TYPE_CHECKING:
    from harness.metrics.onnx_graph import Census, Port

WEIGHTS = ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "INT8", "UINT8", "INT4", "UINT4")
NEARLY_ALL = 0.99
"""Share of weight elements from which a file is fp32 or fp16: converters keep a few constants as they were."""
INT8_SHARE = 0.5
"""Share of weight elements from which a file with integer operators is int8: biases and norms stay in floating point."""

_INTEGER_OPERATORS = {
    "MatMulInteger",
    "ConvInteger",
    "DynamicQuantizeLinear",
    "DequantizeLinear",
    "DynamicQuantizeMatMul",
    "MatMulIntegerToFloat",
    "QAttention",
    "QGemm",
}

_OF_THE_GRAPH = (
    "opset",
    "ir_version",
    "inputs",
    "outputs",
    "logits_width",
    "unfed_inputs",
    "unused_tokenizer_inputs",
    "nodes",
    "operator_types",
    "realised_precision",
)


def measurements(request: Request, read: Read) -> list[Measurement]:
    """All metrics of L0. Raises ``RecordError``; a file that is no ONNX graph leaves null where the graph would tell."""
    from harness.metrics.onnx_graph import GraphError, census

    raw = raw_record(read, f"{request.step}/build.json", BuildRaw)
    graph = raw_bytes(read, f"{request.artifact}/model.onnx")
    payload = len(graph)
    try:
        taken = census(graph)
        sizes = {name: len(raw_bytes(read, f"{request.artifact}/{name}")) for name in _external(taken)}
        payload += sum(sizes.values())
        taken = census(graph, sizes)
    except GraphError as error:
        note = f"not a readable ONNX file: {error}"
        found = [make(name, None, note=note) for name in _OF_THE_GRAPH]
    else:
        found = _census(taken, raw)
        found += _absent(request, {item.metric for item in found})
    found += [
        make("payload_bytes", payload),
        make("payload_ratio", payload / (4 * request.candidate.parameters)),
        make("half_range_constants", raw.half_range_constants, note=_conversion_note(raw)),
        make("checker_faults", len(raw.checker_faults), note="; ".join(raw.checker_faults)),
        _head_gap(raw),
        _probes(raw),
        make("session_load_ms", raw.session.load_ms if raw.session else None, note=raw.load_error),
        make(
            "build_seconds",
            sum(raw.phases_s.get(phase, 0.0) for phase in ("export", "convert")),
            note=f"converted from the export in {raw.export_from}" if raw.export_from else "",
        ),
    ]
    return found


def _external(taken: Census) -> list[str]:
    return sorted({item.location for item in taken.external})


def _census(taken: Census, raw: BuildRaw) -> list[Measurement]:
    given, wanted = {port.name for port in taken.inputs}, set(raw.tokenizer_inputs)
    unfed, unused = sorted(given - wanted), sorted(wanted - given)
    width, width_note = _logits_width(taken.outputs)
    found = [
        make("opset", taken.opset, note="" if taken.opset is not None else "the default domain is not imported"),
        make("ir_version", taken.ir_version),
        make("inputs", ", ".join(map(_signature, sorted(taken.inputs, key=lambda port: port.name)))),
        make("outputs", ", ".join(map(_signature, taken.outputs))),
        make("logits_width", width, note=width_note),
        make("unfed_inputs", len(unfed), note=", ".join(unfed)),
        make("unused_tokenizer_inputs", len(unused), note=", ".join(unused)),
        make("nodes", taken.nodes),
        make("operator_types", len(taken.operators)),
        make("realised_precision", _realised(taken)),
    ]
    found += [make(f"operator_count.{name}", count) for name, count in _plain(taken.operators.items())]
    for dtype, tally in taken.initializers.items():
        found += [make(f"initializer_count.{dtype}", tally.count), make(f"initializer_bytes.{dtype}", tally.bytes)]
    return found


def _absent(request: Request, there: set[str]) -> list[Measurement]:
    """Zero for every dtype and operator that a limit names and that a readable graph does not hold."""
    asked = {name for step in request.target.steps if step.tier == "L0" for name in step.limits}
    return [make(name, 0) for name in sorted(asked - there) if name.startswith(_COUNTS)]


_COUNTS = ("operator_count.", "initializer_count.", "initializer_bytes.")


def _plain(operators: Iterable[tuple[str, int]]) -> Iterable[tuple[str, int]]:
    """Operators by their bare name, as a limit can name them; those of one name in several domains are added."""
    total: dict[str, int] = {}
    for name, count in operators:
        bare = name.rpartition(":")[2]
        total[bare] = total.get(bare, 0) + count
    return sorted(total.items())


def _signature(port: Port) -> str:
    dims = "?" if port.dims is None else ",".join(map(str, port.dims))
    return f"{port.name}:{port.dtype}[{dims}]"


def _logits_width(outputs: tuple[Port, ...]) -> tuple[int | None, str]:
    for port in outputs:
        if port.name == "logits":
            if port.dims is None or len(port.dims) != 2:
                return 0, f"logits is not of shape (batch, width): {_signature(port)}"
            width = port.dims[1]
            return (width, "") if isinstance(width, int) else (None, f"the width is not stated: {_signature(port)}")
    return 0, f"outputs: {', '.join(port.name for port in outputs) or 'none'}"


def _realised(taken: Census) -> str:
    """The precision that the weights are stored in, and for int8 also computed with."""
    elements = dict.fromkeys(WEIGHTS, 0)
    for tallies in (taken.initializers, taken.nested_initializers, taken.constants):
        for dtype, tally in tallies.items():
            if dtype in elements:
                elements[dtype] += tally.elements
    total = sum(elements.values())
    names = {name.rpartition(":")[2] for name in (*taken.operators, *taken.nested_operators)}
    integer = any(name.startswith("QLinear") or name in _INTEGER_OPERATORS for name in names)
    if not total:
        return "mixed"
    if elements["FLOAT"] >= NEARLY_ALL * total:
        return "fp32"
    if elements["FLOAT16"] >= NEARLY_ALL * total:
        return "fp16"
    if integer and elements["INT8"] + elements["UINT8"] >= INT8_SHARE * total:
        return "int8"
    return "mixed"


def _conversion_note(raw: BuildRaw) -> str:
    if raw.half_range_constants is None:
        return "the constants could not be read"
    made = raw.conversion
    if made is None or made.name.endswith("quantize_dynamic"):
        return ""
    return f"{made.clipped_high + made.clipped_low} clipped by {made.name}; {len(made.kept_nodes)} nodes kept in fp32"


def _head_gap(raw: BuildRaw) -> Measurement:
    if raw.head_note or not raw.head:
        return make("head_gap_ratio", None, note=raw.head_note or "no head was compared")
    compared = "; ".join(f"{item.tensor} with {item.matched}" for item in raw.head)
    gaps = [item.gap_ratio for item in raw.head if item.gap_ratio is not None]
    if len(gaps) < len(raw.head):
        return make("head_gap_ratio", None, note=f"the graph's head is not finite; compared {compared}")
    return make("head_gap_ratio", max(gaps), note=compared)


def _probes(raw: BuildRaw) -> Measurement:
    if not raw.probes:
        return make("probe_faults", None, note=f"no probe ran: {raw.load_error or 'the artifact was not loaded'}")
    bad = [f"batch {item.batch} length {item.length}: {item.fault}" for item in raw.probes if item.fault]
    more = f"; and {len(bad) - 3} more" if len(bad) > 3 else ""
    return make("probe_faults", len(bad), samples=len(raw.probes), note="; ".join(bad[:3]) + more)
