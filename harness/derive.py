"""Raw samples -> measurements. Pure: a worker and the verifier of a root call the very same function.

``read`` gives the bytes of a root-relative path; in the verifier they are bytes whose hash was just compared. Neither torch nor
onnx is needed. Every metric of the tier is given, in the order of the catalogue; what is unknown is null with a note.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from harness.errors import RecordError
from harness.metrics.catalogue import METRICS
from harness.raw import MemoryRaw, PerfRaw
from harness.records import Measurement, Measurements, Record, Request, Tier, Value, from_json, measured

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Read = Callable[[str], bytes]
Kind = TypeVar("Kind", bound=Record)


def measure(request: Request, read: Read) -> Measurements:
    """All measurements of the step. Raises ``RecordError`` naming a raw file that is missing or not what it should be."""
    from harness import derive_build, derive_parity, derive_rerank

    derivations: dict[Tier, Callable[[Request, Read], list[Measurement]]] = {
        "L0": derive_build.measurements,
        "L1": _perf,
        "L2": derive_parity.measurements,
        "L3": derive_rerank.measurements,
    }
    try:
        found = derivations[request.tier](request, read)
    except (ValueError, ArithmeticError) as error:  # what the arithmetic says to samples that no stage writes
        raise RecordError(f"{request.step}: expected raw samples that agree with each other, got: {error}") from error
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


# --- L1 ---------------------------------------------------------------------------------------------------------------


def _perf(request: Request, read: Read) -> list[Measurement]:
    from harness.metrics import latency, memory

    raw = raw_record(read, f"{request.step}/samples.json", PerfRaw)
    rss = raw_record(read, f"{request.step}/memory.json", MemoryRaw)
    steady = raw.steady_ms
    _check_calls(request, raw)
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


def _check_calls(request: Request, raw: PerfRaw) -> None:
    """Raise ``RecordError`` unless every planned call has its sample: a slow one left out would make the rest look fast."""
    asked = request.options.L1
    planned = (asked.warm_up, asked.calls, asked.candidates) if asked is not None else None
    got = (len(raw.warm_up_ms), len(raw.steady_ms), raw.pairs_per_call)
    if got != planned or not all(sample > 0 for sample in (*raw.warm_up_ms, *raw.steady_ms)):
        raise RecordError(
            f"{request.step}/samples.json: expected warm-up calls, steady calls and pairs a call {planned}, each call above"
            f" 0 ms, got {got}; the root is not whole"
        )


def _too_few(count: int, needed: int) -> str:
    return f"needs at least {needed} samples, has {count}" if count < needed else ""
