"""Several callers on one session: closed loop, each calling again when its call is done, and open loop, calls arriving by themselves.

In the open loop a call's latency counts from when it was due, not from when a thread was free to begin it: else a slow call would
hide the waiting of all that came meanwhile (coordinated omission; Tene, "How NOT to measure latency", 2013).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from time import sleep
from typing import TYPE_CHECKING

from harness.metrics.sampling import arrivals_ms
from harness.raw import Arrivals, Level, LoadRaw
from harness.stages.timing import now_ms
from harness.stages.together import all_back

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.records import LoadOptions
    from harness.runtimes.batching import Batch
    from harness.runtimes.session import Session
    from harness.stages.job import Job

    Score = Callable[[], NDArray[np.float32]]


def load(job: Job, session: Session, made: list[Batch], options: LoadOptions) -> None:
    """Measure every level and write ``load.json`` and ``load.f32``. Nothing more is asked of a session whose calls do not come back."""
    import numpy as np

    def score() -> NDArray[np.float32]:
        return np.concatenate([session.logits(batch.tensors)[: len(batch.rows)] for batch in made])

    alone = score()
    found = [alone]
    levels: list[Level] = []
    stuck = False
    for place, callers in enumerate(options.concurrency):
        level, logits, stuck = _closed(score, callers, options, len(alone))
        levels.append(level)
        found += logits
        job.progress(place + 1, len(options.concurrency), "levels of concurrency")
        if stuck:
            break
    arrivals = None
    if options.arrival_per_s is not None and not stuck:
        arrivals, logits = _open(score, options, job.request.seed, len(alone))
        found += logits
    job.write_floats("load.f32", np.concatenate(found))
    job.write_record(
        "load.json",
        LoadRaw(format=1, session=session.facts, pairs=len(alone), levels=tuple(levels), arrivals=arrivals),
    )


def _closed(
    score: Score, callers: int, options: LoadOptions, pairs: int
) -> tuple[Level, list[NDArray[np.float32]], bool]:
    begin: list[list[float]] = [[] for _ in range(callers)]
    end: list[list[float]] = [[] for _ in range(callers)]
    results: dict[tuple[int, int], NDArray[np.float32]] = {}
    together = threading.Barrier(callers)

    def work(caller: int) -> None:
        together.wait(options.deadlock_s)
        for number in range(options.calls):
            begin[caller].append(now_ms())
            results[caller, number] = score()
            end[caller].append(now_ms())

    error, stuck = all_back(work, callers, options.deadlock_s, score)
    ended, begun, done = [tuple(times) for times in end], [tuple(times) for times in begin], dict(results)
    nothing = _nothing(pairs)
    logits = [done.get((caller, number), nothing) for caller in range(callers) for number in range(options.calls)]
    level = Level(
        callers=callers,
        begin_ms=tuple(begun),
        end_ms=tuple((*ends, *[None] * (len(begins) - len(ends))) for begins, ends in zip(begun, ended, strict=True)),
        error=error,
    )
    return level, logits, stuck


def _open(score: Score, options: LoadOptions, seed: int, pairs: int) -> tuple[Arrivals, list[NDArray[np.float32]]]:
    rate = options.arrival_per_s
    assert rate is not None
    servers = max(options.concurrency)
    due = arrivals_ms(rate, options.arrivals, seed)
    begin: dict[int, float] = {}
    end: dict[int, float] = {}
    results: dict[int, NDArray[np.float32]] = {}
    numbers, lock = itertools.count(), threading.Lock()
    start = now_ms()

    def serve(_server: int) -> None:
        while True:
            with lock:
                number = next(numbers)
            if number >= len(due):
                return
            sleep(max(0.0, (start + due[number] - now_ms()) / 1000))
            begin[number] = now_ms()
            results[number] = score()
            end[number] = now_ms()

    error, _ = all_back(serve, servers, due[-1] / 1000 + options.deadlock_s, score)
    ended, begun, done = dict(end), dict(begin), dict(results)
    arrivals = Arrivals(
        servers=servers,
        scheduled_ms=tuple(start + at for at in due),
        begin_ms=tuple(begun.get(number) for number in range(len(due))),
        end_ms=tuple(ended.get(number) for number in range(len(due))),
        error=error,
    )
    nothing = _nothing(pairs)
    return arrivals, [done.get(number, nothing) for number in range(len(due))]


def _nothing(pairs: int) -> NDArray[np.float32]:
    """What stands for the logits of a call that did not come back."""
    import numpy as np

    return np.full(pairs, np.nan, dtype=np.float32)
