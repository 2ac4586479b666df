"""L1: the samples of the timed calls and of the memory -> measurements."""

from __future__ import annotations

from harness import derive_paired
from harness.derive_raw import Read, make, raw_record
from harness.errors import RecordError
from harness.raw import MemoryRaw, PerfRaw
from harness.records import Measurement, Request
from harness.runtimes import RUNTIMES
from harness.runtimes.onnxruntime import Provider


def measurements(request: Request, read: Read) -> list[Measurement]:
    """All of L1. Raises ``RecordError`` for calls that are not the planned ones."""
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
    found += derive_paired.measurements(request, read)
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
    options, shown = raw.session.options, ", ".join(raw.session.providers)
    threads = options.get("intra_op_threads", request.target.threads)
    runtime = RUNTIMES.get(request.target.provider)
    named = runtime.name if isinstance(runtime, Provider) else raw.session.providers[0]
    if threads != request.target.threads or raw.session.providers[:1] != (named,):
        raise RecordError(
            f"{request.step}/samples.json: expected a session of {request.target.threads} threads on {named}, as planned, got"
            f" {threads} threads on {shown}"
        )
    rows = sum(batch for batch, _ in raw.shapes)
    if rows < raw.pairs_per_call:
        raise RecordError(
            f"{request.step}/samples.json: expected shapes of {raw.pairs_per_call} pairs a call, got {rows}"
        )


def _too_few(count: int, needed: int) -> str:
    return f"needs at least {needed} samples, has {count}" if count < needed else ""
