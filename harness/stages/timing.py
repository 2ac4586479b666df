"""What a timed call is: all its micro-batches, one after another; tokenising and padding were done before."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.runtimes.batching import batches
from harness.stages.job import Job

if TYPE_CHECKING:
    from harness.runtimes.batching import Tensors
    from harness.runtimes.session import Session
    from harness.runtimes.tokens import Encoded


def pairs_of(job: Job, candidates: int) -> list[tuple[str, str]]:
    """The pairs that one call scores: those of the plan, again from the first where there are fewer."""
    given = job.pairs()
    return [given[index % len(given)] for index in range(candidates)]


def calls_of(job: Job, encoded: Encoded, session: Session, batch_size: int) -> list[Tensors]:
    """The micro-batches of one call, padded as the session takes them."""
    layout = job.layout(session.inputs, batch_size, session.fixed)
    return [batch.tensors for batch in batches(encoded, layout)]


def shapes_of(call: list[Tensors]) -> tuple[tuple[int, int], ...]:
    """Rows and length of each micro-batch."""
    return tuple((len(first), len(first[0])) for first in (next(iter(tensors.values())) for tensors in call))


def timed_both_ms(logits: Callable[[Tensors], object], call: list[Tensors]) -> tuple[float, float]:
    """Milliseconds of one call: of the clock, and of the processors, all threads of this process together."""
    cpu = time.process_time_ns()
    wall_ms = timed_ms(logits, call)
    return wall_ms, (time.process_time_ns() - cpu) / 1e6


def timed_ms(logits: Callable[[Tensors], object], call: list[Tensors]) -> float:
    """Milliseconds of one call."""
    begin = time.perf_counter_ns()
    for tensors in call:
        logits(tensors)
    return (time.perf_counter_ns() - begin) / 1e6
