"""L1: the samples of the timed calls and of the memory -> measurements. See ``derive_machine`` and ``derive_load`` for the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypedDict

from harness import derive_notes
from harness.derive_raw import NOT_ASKED, Read, make, raw_record, supported
from harness.derive_session import check_session, fallback
from harness.errors import RecordError
from harness.perf_events import check_events
from harness.raw import MachineRaw, MemoryRaw, PerfRaw, SessionFacts
from harness.records import Measurement, PerfOptions, Request

if TYPE_CHECKING:
    from harness.metrics.latency import Drift


class _More(TypedDict):
    interval: tuple[float, float] | None
    note: str


def measurements(request: Request, read: Read) -> list[Measurement]:
    """All of L1. Raises ``RecordError`` for calls that are not the planned ones."""
    from harness import derive_load, derive_machine, derive_paired

    raw = raw_record(read, f"{request.step}/samples.json", PerfRaw)
    rss = raw_record(read, f"{request.step}/memory.json", MemoryRaw)
    machine = raw_record(read, f"{request.step}/machine.json", MachineRaw)
    options = request.options.L1
    if options is None:
        raise RecordError(f"{request.step}: expected the options of L1 in the plan, got none; the root is not whole")
    _check_calls(request, options, raw)
    check_session(f"{request.step}/samples.json", request.target, raw.session)
    check_events(raw, f"{request.step}/samples.json")
    told = derive_machine.found(raw, rss, machine)
    return [
        *_latency(request, raw, told.busy[derive_machine.STEADY]),
        *derive_machine.beside(derive_paired.measurements(request, read), told.busy.get(derive_machine.COMPARED)),
        *_memory(raw, rss),
        *_growth(request, options, raw),
        *told.measurements,
        *derive_machine.beside(
            derive_load.measurements(request, options, rss, read), told.busy.get(derive_machine.AFTER)
        ),
    ]


# --- latency ----------------------------------------------------------------------------------------------------------


def _latency(request: Request, raw: PerfRaw, busy: str) -> Iterator[Measurement]:
    from harness.metrics import latency, sampling

    steady, count = raw.steady_ms, len(raw.steady_ms)
    yield make("load_ms", raw.load_ms)
    yield _placed(raw.session)
    yield make("first_call_ms", raw.first_call_ms)
    yield make("calls", count, note="; ".join([derive_notes.calls(raw), derive_notes.batches(raw)]))
    yield make("sampling_ended_by", raw.ended_by)
    summary = latency.summary(steady)
    if summary is None:
        return
    drift = latency.drift(steady, request.seed)
    held = _Held(steady, drift, busy)
    p50, p95 = latency.bootstrap_median_interval(steady, request.seed), latency.quantile_interval(steady, 0.95)
    yield make("first_call_ratio", raw.first_call_ms / summary.p50_ms if summary.p50_ms else None)
    yield make("min_ms", summary.min_ms, samples=count)
    yield make("max_ms", summary.max_ms, samples=count)
    yield make("mean_ms", summary.mean_ms, samples=count, **held.over("mean", summary.mean_ms, None))
    yield make("p50_ms", summary.p50_ms, samples=count, **held.over("p50", summary.p50_ms, p50))
    yield make("p50_interval_ratio", sampling.relative_width(steady), samples=count)
    for name, value, interval in (
        ("p90", summary.p90_ms, None),
        ("p95", summary.p95_ms, p95),
        ("p99", summary.p99_ms, None),
    ):
        yield supported(f"{name}_ms", steady, value, summary.samples_needed[name], **held.over(name, value, interval))
    alone = "" if count > 1 else "needs at least 2 samples"
    yield make("std_ms", summary.std_ms, samples=count, note=alone)
    yield make("cv", summary.cv, samples=count, note=alone)
    beyond = latency.outliers(steady)
    note = "half of the samples are equal, so the score is not defined" if beyond is None else ""
    yield make("outliers", None if beyond is None else len(beyond), samples=count, note=note)
    rate = latency.throughput_per_s(raw.pairs_per_call, steady)
    yield make("pairs_per_s", rate, samples=count, **held.rate(raw.pairs_per_call, rate))
    if drift is None:
        yield make("drift_ratio", None, samples=count, note="needs at least 18 calls")
    else:
        yield make("drift_ratio", drift.ratio, interval=(drift.low, drift.high), samples=2 * drift.calls_each)
    lost = raw.switches[1] - raw.switches[0] if raw.switches is not None else None
    yield make("involuntary_switches", lost, note="" if lost is not None else "this system does not count them")


def _placed(session: SessionFacts) -> Measurement:
    """How much of the graph the provider ran whose name the figures carry."""
    if session.placement is None:
        return make("own_node_share", None, note="this version of the runtime does not tell which provider took a node")
    own = sum(session.placement.get(session.providers[0] if session.providers else "", {}).values())
    elsewhere, told = fallback(session)
    return make("own_node_share", own / (own + elsewhere) if own else 0.0, note="; ".join(told))


class _Held:
    """Intervals that hold what the figure was in the first third of the calls and in the last, where the two differ.

    A limit that lies between the two is then not decided: the figure drifted over it while it was judged. The note says so, and
    that the machine was busy where it was.
    """

    def __init__(self, steady: Sequence[float], drift: Drift | None, busy: str) -> None:
        drifts = drift is not None and not drift.low <= 1 <= drift.high
        third = len(steady) // 3
        self._thirds = (steady[:third], steady[-third:]) if drifts else ()
        drifted = f"drifts: the last third took {drift.ratio:.3g} times the first" if drifts and drift else ""
        self._note = "; ".join(filter(None, (drifted, busy)))

    def over(self, name: str, value: float | None, interval: tuple[float, float] | None) -> _More:
        """The interval and note of a figure in ms: ``mean``, or a percentile."""
        import numpy as np

        if not self._thirds or value is None:
            return {"interval": interval, "note": self._note}
        quantile = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
        ends = [float(np.mean(t) if name == "mean" else np.quantile(t, quantile[name])) for t in self._thirds]
        whole = [value, *ends, *(interval or ())]
        return {"interval": (min(whole), max(whole)), "note": self._note}

    def rate(self, pairs: int, value: float | None) -> _More:
        """The same of pairs per second."""
        from harness.metrics import latency

        ends = [found for t in self._thirds if (found := latency.throughput_per_s(pairs, t)) is not None]
        if not ends or value is None:
            return {"interval": None, "note": self._note}
        return {"interval": (min(value, *ends), max(value, *ends)), "note": self._note}


# --- memory -----------------------------------------------------------------------------------------------------------


def _memory(raw: PerfRaw, rss: MemoryRaw) -> Iterator[Measurement]:
    from harness.metrics import memory

    events = raw.events_ms
    until = events.get("grown", float("inf"))  # a sweep's large cells are no part of the calls that the ladder states
    kept = [(at, size) for at, size in zip(rss.at_ms, rss.rss_bytes, strict=True) if at <= until]
    phases = memory.phases([at for at, _ in kept], [size for _, size in kept], events["start"], events["loaded"])
    unknown = "no sample of the process tree tells"
    for name, size in (
        ("baseline_rss_bytes", phases.baseline_bytes),
        ("loaded_rss_bytes", phases.loaded_bytes),
        ("peak_rss_bytes", phases.peak_bytes),
    ):
        told = derive_notes.sampling(rss) if name == "peak_rss_bytes" else ""
        yield make(name, size, samples=len(rss.rss_bytes), note=told if size is not None else unknown)
    untold = "this system does not tell" if rss.high_water_bytes is None else ""
    yield make("high_water_bytes", rss.high_water_bytes, note=untold)


def _growth(request: Request, options: PerfOptions, raw: PerfRaw) -> Iterator[Measurement]:
    from harness.metrics import memory
    from harness.metrics.sampling import mixed_order

    found, name = raw.growth, "growth_bytes_per_1000_calls"
    if found is None:
        yield make(name, None, note="this system does not tell" if options.growth_calls else NOT_ASKED)
        return
    if found.order != mixed_order(len(found.shapes), options.growth_calls, request.seed):
        raise RecordError(
            f"{request.step}/samples.json: expected {options.growth_calls} calls of {len(found.shapes)} shapes in the order of"
            f" the plan's seed, got {len(found.order)} in another; the root is not whole"
        )
    slope = memory.growth_slope(range(1, len(found.rss_bytes) + 1), found.rss_bytes)
    if slope is None:
        yield make(name, None, samples=len(found.rss_bytes), note="needs at least 6 calls whose memory is known")
    else:
        value, interval = slope.bytes_per_1000_calls, (slope.low, slope.high)
        yield make(name, value, interval=interval, samples=slope.points, note=derive_notes.growth(found))


# --- what was planned -------------------------------------------------------------------------------------------------


def _check_calls(request: Request, options: PerfOptions, raw: PerfRaw) -> None:
    """Raise ``RecordError`` unless every planned call has its sample: a slow one left out would make the rest look fast."""
    from harness.metrics.sampling import Rule, stopped

    where = f"{request.step}/samples.json"
    planned = (options.warm_up, options.candidates)
    got = (len(raw.warm_up_ms), raw.pairs_per_call)
    if got != planned or not all(sample > 0 for sample in (*raw.warm_up_ms, *raw.steady_ms)):
        raise RecordError(
            f"{where}: expected warm-up calls and pairs a call {planned}, each call above 0 ms, got {got}; the root is not whole"
        )
    asked = Rule.of(options)
    count, ended = stopped(raw.steady_ms, asked)
    if (count, ended) != (len(raw.steady_ms), raw.ended_by):
        raise RecordError(
            f"{where}: expected steady calls that end where the plan's rule ends them, after {count} by"
            f" {ended or 'nothing yet'}, got {len(raw.steady_ms)} ended by {raw.ended_by}; the root is not whole"
        )
    rows = sum(batch for batch, _ in raw.shapes)
    if rows < raw.pairs_per_call:
        raise RecordError(f"{where}: expected shapes of {raw.pairs_per_call} pairs a call, got {rows}")
