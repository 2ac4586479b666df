"""Calls of mixed shapes with the resident memory after each: whether a session that is used as a service uses it keeps growing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.metrics.sampling import mixed_order
from harness.raw import GrowthRaw
from harness.runtimes.batching import pad
from harness.stages.timing import Resident, shapes

if TYPE_CHECKING:
    from harness.runtimes.batching import Tensors
    from harness.runtimes.session import Session
    from harness.runtimes.tokens import Encoded
    from harness.stages.job import Job

ROWS = (1, 2, 4)
"""Pairs in a call: few, since what leaks leaks by the call and small calls are quick."""
LENGTHS = 4


def grow(job: Job, session: Session, encoded: Encoded) -> GrowthRaw | None:
    """Call every shape once, so that first allocations are over, then ``growth_calls`` times in mixed order; None where RSS is unknown."""
    options = job.request.options.L1
    assert options is not None
    made = _mixed(job, session, encoded, options.batch_size)
    for tensors in made:
        session.logits(tensors)
    order = mixed_order(len(made), options.growth_calls, job.request.seed)
    resident = Resident()
    sizes: list[int] = []
    try:
        for count, place in enumerate(order, start=1):
            session.logits(made[place])
            now = resident.bytes_now()
            if now is None:
                return None
            sizes.append(now)
            job.progress(count, len(order), "calls of mixed shapes")
    finally:
        resident.close()
    return GrowthRaw(shapes=shapes(made), order=order, rss_bytes=tuple(sizes))


def _mixed(job: Job, session: Session, encoded: Encoded, batch_size: int) -> list[Tensors]:
    """Micro-batches of few pairs, from the shortest pairs to the longest; a graph of one shape has only that."""
    layout = job.layout(session.inputs, batch_size, session.fixed)
    by_length = sorted(range(len(encoded.ids)), key=lambda row: len(encoded.ids[row]))
    places = [round(step * (len(by_length) - 1) / (LENGTHS - 1)) for step in range(LENGTHS)]
    sizes = (layout.fixed_batch,) if layout.fixed_batch else tuple(size for size in ROWS if size <= batch_size)
    made = []
    for size in sizes:
        for place in sorted(set(places)):
            rows = [by_length[(place - step) % len(by_length)] for step in range(size)]
            length = layout.fixed_length or max(len(encoded.ids[row]) for row in rows)
            made.append(pad(encoded, rows, length, layout))
    return made
