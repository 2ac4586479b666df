"""Raw samples -> measurements. Pure: a worker and the verifier of a root call the very same function.

``read`` gives the bytes of a root-relative path; in the verifier they are bytes whose hash was just compared. Neither torch nor
onnx is needed. Every metric of the tier is given, in the order of the catalogue; what is unknown is null with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from harness.errors import RecordError
from harness.metrics.catalogue import METRICS
from harness.raw import BuildRaw, MemoryRaw, ParityRaw, PerfRaw
from harness.records import Measurement, Measurements, Record, Request, Tier, Value, from_json, measured

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.metrics.onnx_graph import Census, Port

Read = Callable[[str], bytes]
Kind = TypeVar("Kind", bound=Record)

WEIGHTS = ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "INT8", "UINT8", "INT4", "UINT4")
NEARLY_ALL = 0.99
"""Share of weight elements from which a file is fp32 or fp16: converters keep a few constants as they were."""
INT8_SHARE = 0.5
"""Share of weight elements from which a file with integer operators is int8: biases and norms stay in floating point."""


def measure(request: Request, read: Read) -> Measurements:
    """All measurements of the step. Raises ``RecordError`` naming a raw file that is missing or not what it should be."""
    from harness import derive_rerank

    derivations: dict[Tier, Callable[[Request, Read], list[Measurement]]] = {
        "L0": _build,
        "L1": _perf,
        "L2": _parity,
        "L3": derive_rerank.measurements,
    }
    found = derivations[request.tier](request, read)
    order = {name: place for place, name in enumerate(METRICS)}
    found.sort(key=lambda item: order[item.metric.partition(".")[0]])  # stable: parameters stay as they were made
    return Measurements(format=1, tier=request.tier, target=request.target.name, measurements=tuple(found))


def raw_bytes(read: Read, path: str) -> bytes:
    """Bytes of a raw file. Raises ``RecordError`` when it is not there."""
    try:
        return read(path)
    except (OSError, LookupError) as error:
        raise RecordError(
            f"{path}: expected the raw samples of a step, got no such file; the root is not whole"
        ) from error


def raw_record(read: Read, path: str, kind: type[Kind]) -> Kind:
    """A raw JSON record. Raises ``RecordError``."""
    return from_json(raw_bytes(read, path), kind, path)


def raw_floats(read: Read, path: str, count: int) -> NDArray[np.float32]:
    """A flat float32 file of exactly ``count`` numbers. Raises ``RecordError``."""
    import numpy as np

    data = raw_bytes(read, path)
    if len(data) != 4 * count:
        raise RecordError(f"{path}: expected {count} float32 of 4 bytes, got {len(data)} bytes; the root is not whole")
    return np.frombuffer(data, dtype="<f4")


def make(
    metric: str,
    value: Value,
    *,
    interval: tuple[float, float] | None = None,
    samples: int | None = None,
    note: str = "",
) -> Measurement:
    """A measurement with the unit that the catalogue gives the metric."""
    unit = METRICS[metric.partition(".")[0]].unit
    return measured(metric, value, unit, interval=interval, samples=samples, note=note)


# --- L0 ---------------------------------------------------------------------------------------------------------------


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


def _build(request: Request, read: Read) -> list[Measurement]:
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


# --- L1 ---------------------------------------------------------------------------------------------------------------


def _perf(request: Request, read: Read) -> list[Measurement]:
    from harness.metrics import latency, memory

    raw = raw_record(read, f"{request.step}/samples.json", PerfRaw)
    rss = raw_record(read, f"{request.step}/memory.json", MemoryRaw)
    steady = raw.steady_ms
    count = len(steady)
    found = [make("load_ms", raw.load_ms), make("first_call_ms", raw.first_call_ms), make("calls", count)]
    summary = latency.summary(steady)
    if summary is not None:
        p95 = latency.quantile_interval(steady, 0.95)
        needed = summary.samples_needed
        found += [
            make("mean_ms", summary.mean_ms, samples=count),
            make("min_ms", summary.min_ms, samples=count),
            make(
                "p50_ms",
                summary.p50_ms,
                samples=count,
                interval=latency.bootstrap_median_interval(steady, request.seed),
            ),
            make("p90_ms", summary.p90_ms, samples=count, note=_too_few(count, needed["p90"])),
            make("p95_ms", summary.p95_ms, samples=count, interval=p95, note=_too_few(count, needed["p95"])),
            make("p99_ms", summary.p99_ms, samples=count, note=_too_few(count, needed["p99"])),
            make("std_ms", summary.std_ms, samples=count, note="" if count > 1 else "needs at least 2 samples"),
        ]
    drift = latency.drift(steady, request.seed)
    found += [
        make("pairs_per_s", latency.throughput_per_s(raw.pairs_per_call, steady), samples=count),
        make("drift_ratio", drift.ratio, interval=(drift.low, drift.high), samples=2 * drift.calls_each)
        if drift is not None
        else make("drift_ratio", None, samples=count, note="needs at least 18 calls"),
    ]
    events = raw.events_ms
    if not {"start", "loaded"} <= set(events):
        raise RecordError(f"{request.step}/samples.json: expected the events start and loaded, got {', '.join(events)}")
    phases = memory.phases(rss.at_ms, rss.rss_bytes, events["start"], events["loaded"])
    unknown = "no sample of the process tree tells"
    for name, size in (
        ("baseline_rss_bytes", phases.baseline_bytes),
        ("loaded_rss_bytes", phases.loaded_bytes),
        ("peak_rss_bytes", phases.peak_bytes),
    ):
        found.append(make(name, size, samples=len(rss.rss_bytes), note="" if size is not None else unknown))
    return found


def _too_few(count: int, needed: int) -> str:
    return f"needs at least {needed} samples, has {count}" if count < needed else ""


# --- L2 ---------------------------------------------------------------------------------------------------------------


def _parity(request: Request, read: Read) -> list[Measurement]:
    from harness.metrics import logits

    raw = raw_record(read, f"{request.step}/logits.json", ParityRaw)
    planned = request.inputs.pairs.rows if request.inputs.pairs is not None else 0
    if raw.shape[0] != planned:
        raise RecordError(f"{request.step}/logits.json: expected {planned} pairs, as planned, got {raw.shape[0]}")
    reference = raw_floats(read, f"{request.step}/reference.f32", raw.shape[0])
    artifact = raw_floats(read, f"{request.step}/artifact.f32", raw.shape[0])
    noise = request.options.L2.noise if request.options.L2 is not None else 0.0
    bad = logits.non_finite_count(reference, artifact)
    undefined = f"{bad} logits are not finite" if bad else "not defined for these logits"
    values: dict[str, Value] = {
        "max_abs_gap": logits.max_abs_gap(reference, artifact),
        "mean_abs_gap": logits.mean_abs_gap(reference, artifact),
        "gap_over_spread": logits.gap_over_spread(reference, artifact),
        "pearson": logits.pearson(reference, artifact),
        "kendall_tau_b": logits.kendall_tau_b(reference, artifact),
        "discordant_pairs": logits.discordant_pairs(reference, artifact, noise),
        "order_kept": logits.order_kept(reference, artifact, noise),
        "cosine": logits.cosine(reference, artifact),
        "distinct_logits": logits.distinct_scores(artifact),
    }
    listed = ", ".join(map(str, raw.token_mismatches[:10]))
    cut = f"cut at {raw.max_length}; longest tensor {raw.longest_tokens} tokens"
    return [
        make("pairs", raw.shape[0]),
        make("non_finite_count", bad),
        *(
            make(name, value, samples=planned, note="" if value is not None else undefined)
            for name, value in values.items()
        ),
        make("truncated_pairs", raw.truncated, note=cut),
        make("token_mismatches", len(raw.token_mismatches), note=f"pairs {listed}" if listed else ""),
    ]
