"""The measurements of L0, from what the stage wrote and from the bytes of the sealed artifact itself. Pure; needs no onnx."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import derive_adapter, derive_notes
from harness.derive_raw import Read, Size, make, raw_bytes, raw_record, raw_size
from harness.raw import BuildRaw
from harness.records import Measurement, Request

if TYPE_CHECKING:
    from harness.metrics.onnx_graph import Census, Port

WEIGHTS = ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "INT8", "UINT8", "INT4", "UINT4")
NEARLY_ALL = 0.99
"""Share of weight elements from which a file is fp32 or fp16: converters keep a few constants as they were."""
INT8_SHARE = 0.5
"""Share of weight elements from which a file with integer operators is int8: biases and norms stay in floating point."""

HALF_CONVERTER = "onnxruntime.transformers.float16.convert_float_to_float16"

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
    "external_files",
    "realised_precision",
)


def measurements(request: Request, read: Read, size: Size) -> list[Measurement]:
    """All metrics of L0. Raises ``RecordError``; a file that is no ONNX graph leaves null where the graph would tell."""
    from harness.metrics.onnx_graph import GraphError, census

    raw = raw_record(read, f"{request.step}/build.json", BuildRaw)
    graph = raw_bytes(read, f"{request.artifact}/model.onnx")
    payload = len(graph)
    try:
        taken = census(graph)
        sizes = {name: raw_size(size, f"{request.artifact}/{name}") for name in _external(taken)}
        payload += sum(sizes.values())
        if sizes:
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
        _over_export(payload, raw),
        make("half_range_constants", raw.half_range_constants, note=_conversion_note(raw)),
        *_kept(raw),
        make("checker_faults", len(raw.checker_faults), note="; ".join(raw.checker_faults)),
        _head_gap(raw),
        *derive_adapter.merged(request, read),
        *derive_adapter.keys(request, read, exported=raw.source == "exported"),
        _raw_logits(raw),
        _probes(raw),
        *_placement(request, raw),
        _repeat(raw),
        make("session_load_ms", None, note=raw.load_error)
        if raw.session is None
        else make("session_load_ms", raw.session.load_ms, note=derive_notes.session(raw.session)),
        make(
            "build_seconds",
            sum(raw.phases_s.get(phase, 0.0) for phase in ("export", "optimise", "convert")),
            note=derive_notes.made(raw),
        ),
    ]
    return found


def _external(taken: Census) -> list[str]:
    return sorted({item.location for item in taken.external})


def _census(taken: Census, raw: BuildRaw) -> list[Measurement]:
    given, wanted = {port.name for port in taken.inputs}, set(raw.tokenizer_inputs)
    unfed = sorted(given - wanted - {"position_ids"})  # positions follow from the lengths
    unused = sorted(wanted - given)
    width, width_note = _logits_width(taken.outputs)
    found = [
        make("opset", taken.opset, note="" if taken.opset is not None else "the default domain is not imported"),
        make("ir_version", taken.ir_version),
        make("inputs", ", ".join(map(_signature, sorted(taken.inputs, key=lambda port: port.name)))),
        make("outputs", ", ".join(map(_signature, taken.outputs))),
        make("logits_width", width, note=width_note),
        make("unfed_inputs", len(unfed), note=", ".join(unfed)),
        make("unused_tokenizer_inputs", len(unused), note=", ".join(unused)),
        make("nodes", taken.nodes, note=derive_notes.optimisation(raw)),
        make("external_files", len(_external(taken))),
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
    return [make(name, 0) for name in sorted(asked - there) if name.startswith(COUNTS)]


COUNTS = ("operator_count.", "initializer_count.", "initializer_bytes.")


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
    if made is None or made.name != HALF_CONVERTER:
        return ""
    return f"{made.clipped_high} of them clipped to 65504 by {made.name}"


def _head_gap(raw: BuildRaw) -> Measurement:
    if not raw.head:
        return make("head_gap_ratio", None, note=raw.head_note or "no head was compared")
    compared = "; ".join(f"{item.tensor} with {item.matched}: {item.gap_ratio}" for item in raw.head)
    compared += f"; {raw.head_note}" if raw.head_note else ""
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


def _over_export(payload: int, raw: BuildRaw) -> Measurement:
    if raw.export is None:
        return make("payload_over_export", None, note="the artifact was given, so there is no export of it")
    return make("payload_over_export", payload / raw.export.bytes, note=f"of {raw.export.bytes} bytes in fp32")


def _kept(raw: BuildRaw) -> list[Measurement]:
    """What the conversion to half precision changed and kept; zero for another precision, unknown for a prebuilt artifact."""
    made = raw.conversion
    if raw.source == "prebuilt":
        return [
            make(name, None, note="the artifact was given")
            for name in ("clipped_constants", "kept_nodes", "searched_nodes")
        ]
    if made is None or made.name != HALF_CONVERTER:
        return [make(name, 0) for name in ("clipped_constants", "kept_nodes", "searched_nodes")]
    found = made.search
    note = ""
    if found is not None:
        state = "the smallest set found" if found.minimal else "not shown to be the smallest set"
        state = state if found.repaired else "no set of nodes mended it"
        note = f"without them: {found.fault}; {state} in {found.trials} trials; {', '.join(found.operators)}: {_some(found.kept)}"
    return [
        make(
            "clipped_constants",
            made.clipped_high + made.clipped_low,
            note=f"{made.clipped_high} beyond 65504, {made.clipped_low} below 5.96e-08",
        ),
        make("kept_nodes", len(made.kept_nodes), note=_some(made.kept_nodes)),
        make("searched_nodes", len(found.kept) if found is not None else 0, note=note),
    ]


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _raw_logits(raw: BuildRaw) -> Measurement:
    if raw.activations is None:
        return make("raw_logits", None, note="the graph cannot be read")
    named = ", ".join(raw.activations)
    note = f"{named} between the last matrix product and the output; PyTorch's logits are raw" if named else ""
    return make("raw_logits", not raw.activations, note=note)


def _placement(request: Request, raw: BuildRaw) -> list[Measurement]:
    """Nodes by provider when the runtime divided the graph, and the graph it executes in the end."""
    unknown = raw.load_error or "the runtime does not tell"
    placed = raw.session.placement if raw.session is not None else None
    found = [
        make(f"provider_nodes.{_word(name)}", sum(operators.values()))
        for name, operators in sorted((placed or {}).items())
    ]
    if raw.session is None or placed is None:
        found.append(make("own_provider_nodes", None, note=unknown))
    else:
        own, total = (
            sum(placed.get(raw.session.providers[0], {}).values()),
            sum(sum(item.values()) for item in placed.values()),
        )
        found.append(make("own_provider_nodes", own, note=f"of {total}"))
    if raw.executed is None:
        return [*found, *(make(name, None, note=unknown) for name in ("optimised_nodes", "optimised_casts"))]
    casts = raw.executed.get("Cast", 0)
    half = request.target.precision == "fp16" and request.target.provider == "cpu" and casts > 0
    note = "storage only: the CPU computes in fp32, between Casts" if half else ""
    return [
        *found,
        make("optimised_nodes", sum(raw.executed.values())),
        make("optimised_casts", casts, note=note),
    ]


def _word(provider: str) -> str:
    """A provider's name as the parameter of a metric: without spaces."""
    return provider.replace(" ", "_")


def _repeat(raw: BuildRaw) -> Measurement:
    repeat = raw.export.repeat if raw.export is not None else None
    if repeat is None:
        return make("export_repeat_equal", None, note="it was not asked for: repeat_export")
    return make("export_repeat_equal", repeat.first == repeat.second, note=derive_notes.repeat(repeat))
