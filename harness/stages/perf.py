"""L1 perf: load, first call, warm-up and steady calls of one session, each timed by itself, every sample kept.

A call scores ``candidates`` pairs in micro-batches. Tokenising and padding are done before; what is timed is the runtime's own work
and the few microseconds of the loop over micro-batches. Neither torch nor transformers is imported in this process.
"""

from __future__ import annotations

import gc
import time

from harness.errors import Blocked
from harness.raw import PerfRaw
from harness.runtimes import RUNTIMES, tokens
from harness.runtimes.batching import batches
from harness.stages.job import Job
from harness.stages.paired import compare
from harness.stages.timing import pairs_of, timed_ms


def perf(job: Job) -> None:
    """Measure and write ``samples.json``; the parent writes ``memory.json`` meanwhile."""
    options = job.request.options.L1
    if options is None:
        raise Blocked("tiers.L1: expected its options in the plan, got none")
    job.state_artifact()
    pairs = pairs_of(job, options.candidates)
    encoded = tokens.encode(job.model, job.request.candidate, pairs, options.max_length)
    RUNTIMES[
        job.request.target.provider
    ].require()  # before the baseline: importing the library is not loading the model

    events = {"start": _now_ms()}
    session = job.session()
    events["loaded"] = _now_ms()
    made = list(batches(encoded, job.layout(session.inputs, options.batch_size, session.fixed)))
    call = [batch.tensors for batch in made]
    total = 1 + options.warm_up + options.calls
    samples: list[float] = []
    gc.collect()
    gc.disable()
    try:
        for name, count in (("first_call", 1), ("warm_up", options.warm_up), ("steady", options.calls)):
            events[name] = _now_ms()
            for _ in range(count):
                samples.append(timed_ms(session.logits, call))
                job.progress(len(samples), total, "calls")
        events["end"] = _now_ms()
    finally:
        gc.enable()
    job.write_record(
        "samples.json",
        PerfRaw(
            format=1,
            session=session.facts,
            load_ms=session.facts.load_ms,
            first_call_ms=samples[0],
            warm_up_ms=tuple(samples[1 : 1 + options.warm_up]),
            steady_ms=tuple(samples[1 + options.warm_up :]),
            pairs_per_call=len(pairs),
            truncated=encoded.truncated,
            shapes=tuple((len(first), len(first[0])) for first in (next(iter(b.values())) for b in call)),
            events_ms=events,
        ),
    )
    job.memory_written()
    del session, call, made  # so that what is compared with something else has no third beside it
    compare(job, encoded, options)


def _now_ms() -> float:
    return time.monotonic_ns() / 1e6
