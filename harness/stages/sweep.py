"""A sweep: cells of candidates a call, tokens and micro-batch, on a session for each number of threads, in shuffled order.

Every round calls every cell once, in an order of its own, so that a slow minute of the machine falls on all cells alike. Before the
rounds each cell is called on a session of its own, for the parent's memory samples: a runtime keeps what a call took for the next
one, so on a shared session every cell would seem to need what the largest before it did.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from harness.metrics.cells import Cell, cells_of
from harness.metrics.sampling import sweep_orders
from harness.raw import SweepCell, SweepRaw
from harness.runtimes import tokens
from harness.runtimes.batching import batches
from harness.runtimes.tokens import Encoded
from harness.stages.timing import collector_off, give_back_memory, now_ms, shapes, timed_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.raw import SessionFacts, Span
    from harness.records import SweepOptions
    from harness.runtimes.batching import Tensors
    from harness.runtimes.session import Session
    from harness.stages.job import Job

_SETTLE_S = 0.03
"""Long enough for two samples of memory while what a call took is still held."""


def sweep(job: Job, options: SweepOptions) -> None:
    """Measure every cell and write ``sweep.json``."""
    pairs = job.pairs_of_call(max(options.candidates))
    encoded = {
        length: tokens.encode(job.model, job.request.candidate, pairs, length) for length in set(options.max_length)
    }
    facts: list[SessionFacts] = []
    found: list[SweepCell] = []
    rounds: list[tuple[int, ...]] = []
    around: list[Span] = []
    groups = cells_of(options, job.request.target.threads)
    total = sum(len(group) * options.calls for group in groups)
    for number, group in enumerate(groups):
        alones = [_memory(job, encoded[cell.max_length], cell) for cell in group]
        orders = sweep_orders(len(group), options.calls, job.request.seed, number)
        session = job.session(group[0].threads)
        facts.append(session.facts)
        calls = [_call(job, session, encoded[cell.max_length], cell) for cell in group]
        seen = job.counter(number * len(group) * options.calls, total, "calls of the sweep")
        with collector_off():
            samples, span = _rounds(session, calls, orders, seen)
        found += [
            SweepCell(**cell._asdict(), shapes=shapes(call), samples_ms=tuple(taken), memory_ms=alone)
            for cell, call, taken, alone in zip(group, calls, samples, alones, strict=True)
        ]
        rounds += orders
        around.append(span)
        del session, calls
    job.write_record(
        "sweep.json",
        SweepRaw(format=1, sessions=tuple(facts), cells=tuple(found), rounds=tuple(rounds), spans_ms=tuple(around)),
    )


def _call(job: Job, session: Session, encoded: Encoded, cell: Cell) -> list[Tensors]:
    first = Encoded(
        encoded.ids[: cell.candidates], encoded.segments[: cell.candidates], encoded.truncated, encoded.texts
    )
    layout = job.layout(session.inputs, cell.batch_size, session.fixed)
    return [batch.tensors for batch in batches(first, layout)]


def _memory(job: Job, encoded: Encoded, cell: Cell) -> Span:
    """Call a cell once on a session of its own; the time span in which the parent's samples show what that takes."""
    give_back_memory()
    session = job.session(cell.threads)
    call = _call(job, session, encoded, cell)
    begin = now_ms()
    timed_ms(session, call)
    time.sleep(_SETTLE_S)
    return begin, now_ms()


def _rounds(
    session: Session, calls: list[list[Tensors]], orders: tuple[tuple[int, ...], ...], seen: Callable[[int], None]
) -> tuple[list[list[float]], Span]:
    """The ms of every call, cell by cell, after one call of each that does not count; and the times around them."""
    for call in calls:
        timed_ms(session, call)
    samples: list[list[float]] = [[] for _ in calls]
    begin = now_ms()
    for done, place in enumerate(itertools.chain.from_iterable(orders), start=1):
        samples[place].append(timed_ms(session, calls[place]))
        seen(done)
    return samples, (begin, now_ms())
