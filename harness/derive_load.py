"""L1: sweep, callers at once, calls that arrive, whole requests -> measurements. Each is checked against what was planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from harness import derive_notes
from harness.derive_raw import NOT_ASKED, Read, make, raw_floats, raw_record, supported
from harness.derive_session import check_session
from harness.errors import RecordError
from harness.metrics.catalogue import cell_name
from harness.perf_events import ROUNDING_MS
from harness.raw import Arrivals, Level, LoadRaw, MemoryRaw, RerankCall, RerankCallsRaw, SweepCell, SweepRaw
from harness.records import LoadOptions, Measurement, PerfOptions, Request, SweepOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LATENCIES = ("end_to_end_p50_ms", "end_to_end_p95_ms", "end_to_end_pairs_per_s", "tokenise_share")
_ARRIVAL = ("arrival_p50_ms", "arrival_p95_ms", "arrival_wait_p50_ms")


def measurements(request: Request, options: PerfOptions, rss: MemoryRaw, read: Read) -> Iterator[Measurement]:
    """What the ladder asks for beside the steady calls. Raises ``RecordError`` for raw samples that are not of the plan."""
    if options.end_to_end_calls:
        raw = raw_record(read, f"{request.step}/end_to_end.json", RerankCallsRaw)
        yield from _end_to_end(request, options, raw)
    else:
        yield from (make(name, None, note=NOT_ASKED) for name in _LATENCIES)
    if options.load is not None:
        yield from _load(request, options.load, raw_record(read, f"{request.step}/load.json", LoadRaw), read)
    if options.load is None or options.load.arrival_per_s is None:
        yield from (make(name, None, note=NOT_ASKED) for name in _ARRIVAL)
    if options.sweep is not None:
        yield from _sweep(request, options.sweep, raw_record(read, f"{request.step}/sweep.json", SweepRaw), rss)


def _percentile(metric: str, samples_ms: Sequence[float], q: float, note: str = "") -> Measurement:
    """A percentile of calls with its interval; null with fewer samples than it needs."""
    from harness.metrics import latency

    needed = 1 if q == 0.5 else latency.minimum_samples(q, 0.95)
    value, interval = latency.percentile(samples_ms, q), latency.quantile_interval(samples_ms, q)
    return supported(metric, samples_ms, value, needed, interval, note)


# --- whole requests ---------------------------------------------------------------------------------------------------


def _end_to_end(request: Request, options: PerfOptions, raw: RerankCallsRaw) -> Iterator[Measurement]:
    where, calls = f"{request.step}/end_to_end.json", raw.calls
    if (raw.warm_up, len(calls)) != (options.warm_up, options.end_to_end_calls):
        raise RecordError(
            f"{where}: expected {options.end_to_end_calls} requests after {options.warm_up}, got {len(calls)} after"
            f" {raw.warm_up}; the root is not whole"
        )
    for number, call in enumerate(calls):
        _check_ranking(f"{where}: request {number}", call, options.candidates)
    total = [call.total_ms for call in calls]
    yield _percentile("end_to_end_p50_ms", total, 0.5)
    yield _percentile("end_to_end_p95_ms", total, 0.95)
    yield make("end_to_end_pairs_per_s", 1000 * options.candidates * len(calls) / sum(total), samples=len(calls))
    scored = f"{sum(call.score_ms for call in calls):.6g} ms of {sum(total):.6g} ms were spent scoring"
    share = sum(call.tokenise_ms for call in calls) / sum(total)
    yield make("tokenise_share", share, samples=len(calls), note=scored)


def _check_ranking(where: str, call: RerankCall, documents: int) -> None:
    """Raise ``RecordError`` unless the ranking is the one that the logits give: largest first, ties by place, NaN last."""
    import numpy as np

    logits = np.array([np.nan if logit is None else logit for logit in call.logits])
    order = tuple(int(place) for place in np.argsort(-logits, kind="stable"))
    if len(logits) != documents or call.documents != documents or call.ranked != order:
        raise RecordError(
            f"{where}: expected {documents} documents ranked by their logits, got {len(call.ranked)} in another order"
        )
    if not 0 < call.tokenise_ms + call.score_ms <= call.total_ms:
        raise RecordError(
            f"{where}: expected parts that take no longer than the request, got {call.total_ms} ms in all"
        )


# --- callers at once --------------------------------------------------------------------------------------------------


def _load(request: Request, options: LoadOptions, raw: LoadRaw, read: Read) -> Iterator[Measurement]:
    where = f"{request.step}/load.json"
    asked = options.concurrency[: len(raw.levels)]
    if not raw.levels or tuple(level.callers for level in raw.levels) != asked:
        raise RecordError(f"{where}: expected levels of {asked} callers, as planned, got others; the root is not whole")
    check_session(where, request.target, raw.session)
    for level in raw.levels:
        _check_level(where, level, options.calls)
    arrived = len(raw.arrivals.end_ms) if raw.arrivals is not None else 0
    rows = 1 + sum(level.callers * options.calls for level in raw.levels) + arrived
    logits = raw_floats(read, f"{request.step}/load.f32", rows * raw.pairs).reshape(rows, raw.pairs)
    missing = _unfinished(raw, options)
    if missing == 0 and len(raw.levels) != len(options.concurrency):
        raise RecordError(
            f"{where}: expected {len(options.concurrency)} levels, got {len(raw.levels)}; the root is not whole"
        )
    yield make("load_differing_logits", _differing(raw, options.calls, logits), samples=rows - 1)
    errors = [level.error for level in raw.levels if level.error] + ([raw.arrivals.error] if raw.arrivals else [])
    note = f"a call that never came back, or one that failed: {errors[0]}" if errors and errors[0] else ""
    yield make("load_unfinished_calls", missing, note=note or (_deadlock(options) if missing else ""))
    for level in raw.levels:
        yield from _level(level, raw.pairs)
    for callers in options.concurrency[len(raw.levels) :]:
        for name in ("load_p50_ms", "load_p95_ms", "load_slowest_p95_ms", "load_pairs_per_s"):
            yield make(f"{name}.{callers}", None, note="not called: a call of fewer callers had not come back")
    if options.arrival_per_s is not None:
        yield from _arrivals(where, request.seed, options, raw.arrivals)


def _deadlock(options: LoadOptions) -> str:
    return f"not back after {options.deadlock_s:g} s: a deadlock, or calls that slow"


def _check_level(where: str, level: Level, calls: int) -> None:
    times = list(zip(level.begin_ms, level.end_ms, strict=True))
    if len(times) != level.callers or any(len(begin) > calls or len(begin) != len(end) for begin, end in times):
        raise RecordError(f"{where}: expected up to {calls} calls of {level.callers} callers, got others")
    for begin, end in times:
        if any(done is not None and done <= start for start, done in zip(begin, end, strict=True)):
            raise RecordError(f"{where}: expected calls that end after they begin, got one that does not")


def _unfinished(raw: LoadRaw, options: LoadOptions) -> int:
    closed = sum(
        level.callers * options.calls - sum(done is not None for ends in level.end_ms for done in ends)
        for level in raw.levels
    )
    return closed + (sum(done is None for done in raw.arrivals.end_ms) if raw.arrivals else 0)


def _differing(raw: LoadRaw, calls: int, logits: NDArray[np.float32]) -> int:
    """Logits of finished calls that are not bit for bit those of one caller; row 0 is one caller's."""
    import numpy as np

    done = [
        number < len(ends) and ends[number] is not None
        for level in raw.levels
        for ends in level.end_ms
        for number in range(calls)
    ] + [end is not None for end in (raw.arrivals.end_ms if raw.arrivals is not None else ())]
    bits = np.ascontiguousarray(logits).view(np.uint32)
    return int((bits[1:][np.array(done, dtype=bool)] != bits[0]).sum())


def _level(level: Level, pairs: int) -> Iterator[Measurement]:
    from harness.metrics import latency

    took = [
        [done - start for start, done in zip(begin, end, strict=True) if done is not None]
        for begin, end in zip(level.begin_ms, level.end_ms, strict=True)
    ]
    every = [ms for calls in took for ms in calls]
    name = f"{level.callers}"
    if not every:
        return
    yield _percentile(f"load_p50_ms.{name}", every, 0.5)
    yield _percentile(f"load_p95_ms.{name}", every, 0.95)
    each = [latency.percentile(calls, 0.95) for calls in took]
    slowest = took[max(range(len(took)), key=lambda caller: each[caller] or 0.0)]
    needed = latency.minimum_samples(0.95, 0.95)
    told = [p95 if len(calls) >= needed else None for p95, calls in zip(each, took, strict=True)]
    yield _percentile(f"load_slowest_p95_ms.{name}", slowest, 0.95, derive_notes.callers(told))
    span = max(d for ends in level.end_ms for d in ends if d is not None) - min(b[0] for b in level.begin_ms if b)
    yield make(f"load_pairs_per_s.{name}", 1000 * pairs * len(every) / span, samples=len(every))


def _arrivals(where: str, seed: int, options: LoadOptions, raw: Arrivals | None) -> Iterator[Measurement]:
    from harness.metrics.sampling import arrivals_ms

    if raw is None:
        yield from (make(name, None, note="not called: an earlier call had not come back") for name in _ARRIVAL)
        return
    assert options.arrival_per_s is not None
    due = arrivals_ms(options.arrival_per_s, options.arrivals, seed)
    same = len(due) == len(raw.scheduled_ms) == len(raw.begin_ms) == len(raw.end_ms) and all(
        abs(at - raw.scheduled_ms[0] - wanted) < 1e-3 for at, wanted in zip(raw.scheduled_ms, due, strict=True)
    )
    if not same or raw.servers != max(options.concurrency):
        raise RecordError(
            f"{where}: expected {len(due)} arrivals at the times of the plan's seed, got others; the root is not whole"
        )
    times = list(zip(raw.scheduled_ms, raw.begin_ms, raw.end_ms, strict=True))
    for at, begin, end in times:
        early = begin is not None and begin < at - ROUNDING_MS
        if early or (end is not None and (begin is None or end <= begin)):
            raise RecordError(
                f"{where}: expected arrivals that begin when they are due or later, and end after that, got one due at"
                f" {at:.3f} ms that began at {begin} and ended at {end}"
            )
    latencies = [end - at for at, _, end in times if end is not None]
    if not latencies:
        yield from (make(name, None, note="no call came back") for name in _ARRIVAL)
        return
    yield _percentile("arrival_p50_ms", latencies, 0.5)
    yield _percentile("arrival_p95_ms", latencies, 0.95)
    yield _percentile("arrival_wait_p50_ms", [begin - at for at, begin, _ in times if begin is not None], 0.5)


# --- sweep ------------------------------------------------------------------------------------------------------------


def _sweep(request: Request, options: SweepOptions, raw: SweepRaw, rss: MemoryRaw) -> Iterator[Measurement]:
    from harness.metrics import latency
    from harness.metrics.cells import cells_of
    from harness.metrics.sampling import sweep_orders

    groups = cells_of(options, request.target.threads)
    orders = [
        order
        for number, group in enumerate(groups)
        for order in sweep_orders(len(group), options.calls, request.seed, number)
    ]
    got = [(cell.candidates, cell.max_length, cell.batch_size, cell.threads) for cell in raw.cells]
    planned = [cell for group in groups for cell in group]
    where = f"{request.step}/sweep.json"
    if got != planned or list(raw.rounds) != orders or len(raw.sessions) != len(groups):
        raise RecordError(f"{where}: expected the cells and the order of the plan, got others; the root is not whole")
    for facts, group in zip(raw.sessions, groups, strict=True):
        check_session(where, msgspec.structs.replace(request.target, threads=group[0].threads), facts)
    for cell in raw.cells:
        _check_cell(where, cell, options.calls)
        name = cell_name(cell.candidates, cell.max_length, cell.batch_size, cell.threads)
        told = derive_notes.cell(cell.shapes)
        yield make(f"sweep_longest_tokens.{name}", derive_notes.longest(cell.shapes))
        yield _percentile(f"sweep_p50_ms.{name}", cell.samples_ms, 0.5, told)
        yield _percentile(f"sweep_p95_ms.{name}", cell.samples_ms, 0.95)
        rate = latency.throughput_per_s(cell.candidates, cell.samples_ms)
        yield make(f"sweep_pairs_per_s.{name}", rate, samples=len(cell.samples_ms), note=told)
        begin, end = cell.memory_ms
        sizes = [size for at, size in zip(rss.at_ms, rss.rss_bytes, strict=True) if begin <= at <= end]
        note = told if sizes else "no sample of memory fell into the calls"
        yield make(f"sweep_peak_rss_bytes.{name}", max(sizes, default=None), samples=len(sizes), note=note)


def _check_cell(where: str, cell: SweepCell, calls: int) -> None:
    rows = sum(batch for batch, _ in cell.shapes)
    if len(cell.samples_ms) != calls or min(cell.samples_ms) <= 0 or rows < cell.candidates:
        raise RecordError(
            f"{where}: expected {calls} calls above 0 ms of {cell.candidates} pairs, got {len(cell.samples_ms)} of {rows}"
        )
