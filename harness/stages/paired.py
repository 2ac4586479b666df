"""L1 beside something else: fresh pairs of sessions, called in turn in an order that the seed draws, every sample kept.

Both sides score the same tokenised pairs with the same threads. Threads do not spin, on either side and whatever the target says: two
resident pools that spin take each other's cores, and the ratio would be of that. So these latencies are not those of ``samples.json``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from harness.derive_paired import BASELINE_FILE, EAGER_FILE, artifacts_of
from harness.errors import Blocked, QualifyError
from harness.metrics.paired import turns
from harness.raw import PairedRaw, SessionPair, Stated
from harness.records import BASELINE, PerfOptions
from harness.runtimes import load
from harness.runtimes.batching import batches
from harness.stages import eager
from harness.stages.job import Job, folder_digest
from harness.stages.timing import collector_off, now_ms, shapes, timed_both_ms

if TYPE_CHECKING:
    from harness.runtimes.tokens import Encoded


class Side(NamedTuple):
    """A fresh session: what is recorded about it, and one call timed by the clock and by the processors, in ms."""

    stated: Stated
    call_ms: Callable[[], tuple[float, float]]


Open = Callable[[], Side]


def compare(job: Job, encoded: Encoded, options: PerfOptions) -> None:
    """Write ``paired.json`` where the plan has a baseline with an artifact of this target, and ``eager.json`` where it asks for it."""

    def own() -> Side:
        return _session(job, job.graph, encoded, options.batch_size)

    if job.request.inputs.baseline is not None:
        beside = artifacts_of(job.read(BASELINE)).get(job.request.target.name)
        if beside is not None:
            other = _baseline(job, encoded, options.batch_size, beside.digest)
            job.write_record(BASELINE_FILE, measured(job, options, own, other, beside.digest))
    if options.eager:
        with closing(eager.Child(job)) as child:
            job.write_record(EAGER_FILE, measured(job, options, own, lambda: _eager(child), None))


def _session(job: Job, graph: Path, encoded: Encoded, batch_size: int) -> Side:
    target = job.request.target
    quiet = msgspec.structs.replace(target.session, spinning=False)
    session = load(target.provider, graph, target.threads, quiet)
    layout = job.layout(session.inputs, batch_size, session.fixed)
    call = [batch.tensors for batch in batches(encoded, layout)]
    return Side(Stated(facts=session.facts, shapes=shapes(call)), lambda: timed_both_ms(session, call))


def _eager(child: eager.Child) -> Side:
    return Side(child.load(), child.call_ms)


def _baseline(job: Job, encoded: Encoded, batch_size: int, digest: str) -> Open:
    place = job.baseline
    found = folder_digest(place) if place is not None and place.is_dir() else "none"

    def open_() -> Side:
        if place is None or found != digest:
            raise Blocked(f"baseline: expected the artifact {digest}, as it was sealed, got {found}; verify that root")
        return _session(job, place / "model.onnx", encoded, batch_size)

    return open_


def measured(job: Job, options: PerfOptions, own: Open, other: Open, digest: str | None) -> PairedRaw:
    """The samples; or, when a side does not load or run, why there are none: the figures of ``samples.json`` stand all the same."""
    made: list[SessionPair] = []
    fault = ""
    asked, seed = options.paired, job.request.seed
    try:
        for place, loaded_first in enumerate(turns(seed, 0, asked.sessions)):
            first = turns(seed, 1 + place, asked.calls)
            made.append(_pair(own, other, first, options.warm_up, loaded_first=loaded_first))
            job.progress(len(made), asked.sessions, "pairs of sessions")
    except Exception as error:  # noqa: BLE001 - runtimes have no common base; the reason is sealed and stands in the report
        said = str(error) if isinstance(error, QualifyError) else f"{type(error).__name__}: {error}"
        made, fault = [], job.clean(" ".join(said.split())[:500])
    return PairedRaw(
        format=1,
        fault=fault,
        other_artifact=digest,
        pairs_per_call=options.candidates,
        warm_up=options.warm_up,
        sessions=tuple(made),
    )


def _pair(own: Open, other: Open, first: tuple[bool, ...], warm_up: int, *, loaded_first: bool) -> SessionPair:
    """One pair of sessions, gone when this returns: no more than two are ever resident."""
    mine_ms: list[tuple[float, float]] = []
    its_ms: list[tuple[float, float]] = []
    opened = [open_() for open_ in ((own, other) if loaded_first else (other, own))]
    mine, its = opened if loaded_first else reversed(opened)
    for _ in range(warm_up):
        mine.call_ms()
        its.call_ms()
    with collector_off():
        begin = now_ms()
        for mine_first in first:
            if mine_first:
                mine_ms.append(mine.call_ms())
                its_ms.append(its.call_ms())
            else:
                its_ms.append(its.call_ms())
                mine_ms.append(mine.call_ms())
        span = begin, now_ms()
    (candidate_ms, candidate_cpu_ms), (other_ms, other_cpu_ms) = zip(*mine_ms, strict=True), zip(*its_ms, strict=True)
    return SessionPair(
        candidate=mine.stated,
        other=its.stated,
        span_ms=span,
        candidate_loaded_first=loaded_first,
        candidate_first=first,
        candidate_ms=candidate_ms,
        other_ms=other_ms,
        candidate_cpu_ms=candidate_cpu_ms,
        other_cpu_ms=other_cpu_ms,
    )
