"""L1 perf: load, first call, warm-up and steady calls of one session, each timed by itself, every sample kept.

A call scores ``candidates`` pairs in micro-batches. Tokenising and padding are done before; what is timed is the runtime's own work
and the few microseconds of the loop over micro-batches. After the steady calls come, where the ladder asks for them: calls of mixed
shapes that show whether memory grows, whole requests from text to ranking, a sweep, and calls from several threads. Neither torch
nor transformers is imported in this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import Blocked
from harness.metrics.sampling import Rule, Stopping
from harness.raw import PerfRaw, SessionFacts
from harness.runtimes import RUNTIMES, tokens
from harness.runtimes.batching import batches
from harness.stages import end_to_end, load, sweep
from harness.stages.growth import grow
from harness.stages.job import Job
from harness.stages.paired import compare
from harness.stages.timing import Clock, collector_off, shapes, timed_ms

if TYPE_CHECKING:
    from harness.metrics.sampling import Ended
    from harness.raw import GrowthRaw
    from harness.records import LoadOptions, PerfOptions
    from harness.runtimes.batching import Tensors
    from harness.runtimes.session import Session
    from harness.runtimes.tokens import Encoded


def perf(job: Job) -> None:
    """Measure and write ``samples.json`` and what else is asked for; the parent writes ``memory.json`` and ``machine.json`` meanwhile."""
    options = job.request.options.L1
    if options is None:
        raise Blocked("tiers.L1: expected its options in the plan, got none")
    job.state_artifact()
    encoded = tokens.encode(job.model, job.request.candidate, job.pairs_of_call(options.candidates), options.max_length)
    RUNTIMES[
        job.request.target.provider
    ].require()  # before the baseline: importing the library is not loading the model
    clock = Clock()
    _on_one_session(job, options, encoded, clock)
    if options.sweep is not None:
        sweep.sweep(job, options.sweep)
    if options.load is not None:
        _load(job, options, options.load, encoded)
    job.written("memory")
    compare(job, encoded, options)  # after that, so that memory is this artifact's alone
    job.written("machine")


def _on_one_session(job: Job, options: PerfOptions, encoded: Encoded, clock: Clock) -> None:
    """All that one session is asked; it is gone when this returns, so that a sweep starts from the memory of none."""
    session = job.session()
    clock.mark("loaded")
    layout = job.layout(session.inputs, options.batch_size, session.fixed)
    call = [batch.tensors for batch in batches(encoded, layout)]
    with collector_off():
        samples, ended_by = _calls(job, session, call, options, clock)
        growth = grow(job, session, encoded) if options.growth_calls else None
    clock.mark("grown")
    _write(job, session.facts, encoded, call, (samples, ended_by, growth), clock)
    if options.end_to_end_calls:
        end_to_end.measure(job, session)


def _load(job: Job, options: PerfOptions, asked: LoadOptions, encoded: Encoded) -> None:
    """Callers at once, on a session of their own and last of all: what they leave in memory is in nobody's way."""
    session = job.session()
    made = list(batches(encoded, job.layout(session.inputs, options.batch_size, session.fixed)))
    load.load(job, session, made, asked)


def _calls(
    job: Job, session: Session, call: list[Tensors], options: PerfOptions, clock: Clock
) -> tuple[list[float], Ended]:
    """The first call, the warm-up and the steady calls in ms, and what ended them."""
    samples: list[float] = []
    total = 1 + options.warm_up + options.calls
    for name, count in (("first_call", 1), ("warm_up", options.warm_up)):
        clock.mark(name)
        for _ in range(count):
            samples.append(timed_ms(session, call))
            job.progress(len(samples), total, "calls")
    clock.mark("steady")
    stopping, ended = Stopping(Rule.of(options)), None
    while ended is None:
        samples.append(timed_ms(session, call))
        ended = stopping.after(samples[-1])
        job.progress(len(samples) if ended is None else total, total, "calls")
    clock.mark("end")
    return samples, ended


def _write(
    job: Job,
    facts: SessionFacts,
    encoded: Encoded,
    call: list[Tensors],
    found: tuple[list[float], Ended, GrowthRaw | None],
    clock: Clock,
) -> None:
    samples, ended_by, growth = found
    options = job.request.options.L1
    assert options is not None
    lost = clock.switches
    job.write_record(
        "samples.json",
        PerfRaw(
            format=1,
            session=facts,
            load_ms=facts.load_ms,
            first_call_ms=samples[0],
            warm_up_ms=tuple(samples[1 : 1 + options.warm_up]),
            steady_ms=tuple(samples[1 + options.warm_up :]),
            pairs_per_call=len(encoded.ids),
            truncated=encoded.truncated,
            shapes=shapes(call),
            events_ms=clock.at_ms,
            ended_by=ended_by,
            switches=(lost["steady"], lost["end"]) if lost else None,
            growth=growth,
        ),
    )
