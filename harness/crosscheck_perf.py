"""What L1 states besides its numbers: sessions, shapes, and one order of time for all that it did. Pure; for ``crosscheck``.

Parent and child read one monotonic clock, so all of L1 stands on one line: what was timed fits into its span, no span begins before
the last has ended, and the parent's last reading of the machine comes after all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

import msgspec

from harness.derive_paired import BASELINE_FILE, EAGER_FILE
from harness.derive_raw import raw_record
from harness.derive_tokens import read_tensors
from harness.errors import RecordError
from harness.machine import INTERVAL_MS
from harness.perf_events import fits
from harness.raw import (
    BuildRaw,
    LoadRaw,
    MachineRaw,
    MemoryRaw,
    PairedRaw,
    PerfRaw,
    RerankCallsRaw,
    SessionFacts,
    Span,
    SweepRaw,
)
from harness.records import Exit, PerfOptions, Request, Value, step_folder
from harness.where import Difference, Where, fixed, spent

Shapes = tuple[tuple[int, int], ...]


class Left(NamedTuple):
    """The raw records of one L1; those that the plan does not ask for are None."""

    samples: PerfRaw
    memory: MemoryRaw
    machine: MachineRaw
    end_to_end: RerankCallsRaw | None
    sweep: SweepRaw | None
    load: LoadRaw | None
    compared: dict[str, PairedRaw]


class Timed(NamedTuple):
    """Something that took its time: in which file, what, from when to when, and the ms of the calls in it, None where they overlap."""

    file: str
    what: str
    span_ms: Span
    calls_ms: Sequence[float] | None = None


def perf(request: Request, ended: Exit, where: Where) -> Iterator[Difference]:
    """Every statement of L1's files that can be compared."""
    left, found = _read(request, where)
    raw = left.samples
    yield from found
    yield "samples.json", "load_ms, as the session says", raw.session.load_ms, raw.load_ms
    yield from _sessions(request, left, where)
    yield from _shapes(request, left, where)
    timed = [*_timed(left)]
    first = [raw.load_ms, raw.first_call_ms, *raw.warm_up_ms]
    later = [ms for one in timed for ms in one.calls_ms or (one.span_ms[1] - one.span_ms[0],)]
    loads = [
        side.facts.load_ms
        for one in left.compared.values()
        for pair in one.sessions
        for side in (pair.candidate, pair.other)
    ]
    yield spent("samples.json", [ms / 1000 for ms in (*first, *later, *loads)], ended)
    yield from _machine(left.machine, raw, ended)
    yield from _in_order(left, timed)


def same_session(
    file: str, session: SessionFacts, request: Request, where: Where, **changed: Value
) -> Iterator[Difference]:
    """Every tier of a target runs the session that L0 tried: providers, options and placement, all but the time to load.

    ``changed`` are options that this one was to have other values of, as far as L0's session states them.
    """
    path = f"{step_folder('L0', request.target.name)}/build.json"
    tried = raw_record(where.read, path, BuildRaw).session
    if tried is not None:
        options = tried.options | {name: value for name, value in changed.items() if name in tried.options}
        tried = msgspec.structs.replace(tried, options=options)
    for name in ("providers", "options", "placement"):
        yield file, f"session {name}, as in L0", getattr(tried, name, None), getattr(session, name)


def _read(request: Request, where: Where) -> tuple[Left, list[Difference]]:
    """What L1 left, and whether each file that only some plans ask for is there where, and only where, the plan does."""
    options = request.options.L1 or PerfOptions()
    found: list[Difference] = []

    def path(name: str) -> str:
        return f"{request.step}/{name}"

    def there(name: str, asked: object) -> bool:
        sealed = where.sealed(path(name)) is not None
        found.append((name, "a file only where the plan asks for it", bool(asked) and sealed, sealed))
        return bool(asked) and sealed

    compared = {BASELINE_FILE: request.inputs.baseline, EAGER_FILE: options.eager}
    calls, sweep, load = there("end_to_end.json", options.end_to_end_calls), options.sweep, options.load
    left = Left(
        samples=raw_record(where.read, path("samples.json"), PerfRaw),
        memory=raw_record(where.read, path("memory.json"), MemoryRaw),
        machine=raw_record(where.read, path("machine.json"), MachineRaw),
        end_to_end=raw_record(where.read, path("end_to_end.json"), RerankCallsRaw) if calls else None,
        sweep=raw_record(where.read, path("sweep.json"), SweepRaw) if there("sweep.json", sweep) else None,
        load=raw_record(where.read, path("load.json"), LoadRaw) if there("load.json", load) else None,
        compared={
            name: raw_record(where.read, path(name), PairedRaw)
            for name, asked in compared.items()
            if there(name, asked)
        },
    )
    there("load.f32", load)
    return left, found


# --- sessions and shapes ----------------------------------------------------------------------------------------------


def _sessions(request: Request, left: Left, where: Where) -> Iterator[Difference]:
    yield from same_session("samples.json", left.samples.session, request, where)
    if left.load is not None:
        yield from same_session("load.json", left.load.session, request, where)
    for facts, threads in zip(left.sweep.sessions, _threads(left.sweep), strict=True) if left.sweep is not None else ():
        yield from same_session("sweep.json", facts, request, where, intra_op_threads=threads, threads=threads)
    for name, raw in left.compared.items():
        for pair in raw.sessions[:1]:  # the others are like it, or derivation refuses them
            yield from same_session(name, pair.candidate.facts, request, where, allow_spinning=False)


def _threads(raw: SweepRaw) -> list[int]:
    """The threads of each session, in order."""
    return [*dict.fromkeys(cell.threads for cell in raw.cells)]


def _shapes(request: Request, left: Left, where: Where) -> Iterator[Difference]:
    """The micro-batches of a call: those that L2's tokens of the same pairs make, or, without L2, ones that the plan allows."""
    options = request.options.L1 or PerfOptions()
    whole, demanded = _whole_lengths(request, where), fixed(request, where)
    asked = (options.candidates, options.max_length, options.batch_size)
    made = [("samples.json", asked, left.samples.shapes, demanded)]
    made += [
        ("sweep.json", (cell.candidates, cell.max_length, cell.batch_size), cell.shapes, demanded)
        for cell in (left.sweep.cells if left.sweep is not None else ())
    ]
    first = [(name, pair) for name, raw in left.compared.items() for pair in raw.sessions[:1]]
    made += [(name, asked, pair.candidate.shapes, demanded) for name, pair in first]
    made += [(name, asked, pair.other.shapes, (None, None)) for name, pair in first if name == EAGER_FILE]
    for file, (candidates, length, size), shapes, shape in made:
        what = f"micro-batches of {candidates} pairs, at most {length} tokens and {size} a batch"
        if whole is None:
            yield file, what, True, _allowed(shapes, candidates, length, size, shape)
        else:
            yield file, what, _cut(whole, candidates, length, size, shape), shapes
    if whole is not None:
        cut = sum(whole[place % len(whole)] > options.max_length for place in range(options.candidates))
        yield "samples.json", "truncated", cut, left.samples.truncated


def _whole_lengths(request: Request, where: Where) -> list[int] | None:
    """Tokens of every pair, uncut, as L2 of some target sealed them; None where there is none to be read, or none that is whole."""
    for target in where.plan.targets:
        step = step_folder("L2", target.name)
        with suppress(RecordError):  # also of one that is not there; one that is broken is a fault of its own
            return [
                int(length) for length in read_tensors(msgspec.structs.replace(request, step=step), where.read)[1].whole
            ]
    return None


def _cut(
    whole: Sequence[int], candidates: int, max_length: int, batch_size: int, shape: tuple[int | None, int | None]
) -> Shapes:
    """The shapes of a call: longest pairs first, each batch as long as its longest, or as the graph demands."""
    lengths = sorted((min(whole[place % len(whole)], max_length) for place in range(candidates)), reverse=True)
    size = shape[0] or batch_size
    parts = [lengths[begin : begin + size] for begin in range(0, candidates, size)]
    return tuple((shape[0] or len(part), shape[1] or part[0]) for part in parts)


def _allowed(
    shapes: Shapes, candidates: int, max_length: int, batch_size: int, shape: tuple[int | None, int | None]
) -> bool:
    size = shape[0] or batch_size
    full, rest = divmod(candidates, size)
    rows = [size] * full + ([shape[0] or rest] if rest else [])
    lengths = [length for _, length in shapes]
    longest = shape[1] or max_length
    return (
        [batch for batch, _ in shapes] == rows
        and all(a >= b for a, b in pairwise(lengths))
        and 1 <= lengths[-1] <= lengths[0] <= longest
    )


# --- time -------------------------------------------------------------------------------------------------------------


def _timed(left: Left) -> Iterator[Timed]:
    """All that came after the warm-up, in the order in which the stage does it."""
    raw, events = left.samples, left.samples.events_ms
    yield Timed("samples.json", "steady calls", (events["steady"], events["end"]), raw.steady_ms)
    grown = events.get("grown", events["end"])
    yield Timed("samples.json", "grown", (grown, grown))
    if left.end_to_end is not None:
        took = [call.total_ms for call in left.end_to_end.calls]
        yield Timed("end_to_end.json", "requests", left.end_to_end.span_ms, took)
    if left.sweep is not None:
        for threads, span in zip(_threads(left.sweep), left.sweep.spans_ms, strict=True):
            cells = [cell for cell in left.sweep.cells if cell.threads == threads]
            for cell in cells:
                yield Timed("sweep.json", "memory_ms", cell.memory_ms)
            yield Timed("sweep.json", "rounds", span, [ms for cell in cells for ms in cell.samples_ms])
    if left.load is not None:
        yield from _loaded(left.load)
    for name, compared in left.compared.items():
        for pair in compared.sessions:
            yield Timed(name, "a pair of sessions", pair.span_ms, [*pair.candidate_ms, *pair.other_ms])


def _loaded(raw: LoadRaw) -> Iterator[Timed]:
    for level in raw.levels:
        times = [time for calls in (*level.begin_ms, *level.end_ms) for time in calls if time is not None]
        if times:
            yield Timed("load.json", f"{level.callers} callers", (min(times), max(times)))
    if raw.arrivals is not None:
        ends = [time for time in (*raw.arrivals.begin_ms, *raw.arrivals.end_ms) if time is not None]
        yield Timed(
            "load.json", "arrivals", (raw.arrivals.scheduled_ms[0], max(ends, default=raw.arrivals.scheduled_ms[0]))
        )


def _in_order(left: Left, timed: Sequence[Timed]) -> Iterator[Difference]:
    """Each span after the last, the calls in it within it, and the machine read until after all of them."""
    before, sampled = left.samples.events_ms["steady"], left.memory.at_ms[-1:]
    for one in timed:
        begin, end = one.span_ms
        if one.file in left.compared:
            before = max([before, *sampled])  # the samples of memory end before anything is compared
        yield one.file, f"{one.what} after what was before", True, before <= begin <= end
        if one.calls_ms is not None:
            yield one.file, f"{one.what}: calls that fit and fill their time", True, fits(one.span_ms, one.calls_ms)
        before = max(before, end)
    read = left.machine.at_ms
    yield "machine.json", "a reading after all that was timed", True, bool(read) and read[-1] >= before


def _machine(machine: MachineRaw, raw: PerfRaw, ended: Exit) -> Iterator[Difference]:
    """Which processors were read and when: the parent reads from the child's start on."""
    at, cpus = machine.at_ms, raw.session.options.get("cpus")
    yield "machine.json", "interval_ms", INTERVAL_MS, machine.interval_ms
    if cpus is not None:
        yield "machine.json", "cpus, as the session says", cpus, ",".join(map(str, sorted(set(machine.cpus))))
    ordered = bool(at) and all(a <= b for a, b in pairwise(at)) and at[-1] - at[0] <= 1000 * ended.seconds
    yield "machine.json", "times in order, within the child's life", True, ordered
