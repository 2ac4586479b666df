"""L3 rerank: every pair of the bounded groups scored by the artifact and by PyTorch, both in batches sorted by length."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from harness import data
from harness.derive_raw import raw_floats
from harness.errors import Blocked
from harness.raw import ScoresRaw
from harness.records import GROUPS
from harness.runtimes import tokens
from harness.runtimes.batching import batches, score
from harness.stages.job import Job
from harness.stages.reuse import earlier_reference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.runtimes.tokens import Encoded


def rerank(job: Job) -> None:
    """Score and write ``artifact.f32``, ``reference.f32`` (the groups one after another) and ``scores.json``."""
    request = job.request
    options = request.options.L3
    if options is None:
        raise Blocked("tiers.L3: expected its options in the plan, got none")
    job.state_artifact()
    groups = data.read_groups(job.read(GROUPS), GROUPS)
    pairs = [(group.query, doc.text) for group in groups for doc in group.candidates]
    encoded = tokens.encode(job.model, request.candidate, pairs, options.max_length)
    session = job.session()
    layout = job.layout(session.inputs, options.batch_size, session.fixed)
    begin = time.perf_counter()
    artifact = score(session.logits, batches(encoded, layout), len(pairs), job.counter(0, 2 * len(pairs), "pairs"))
    artifact_seconds = time.perf_counter() - begin
    job.write_floats("artifact.f32", artifact)

    earlier = earlier_reference(job, "scores.json", ScoresRaw)
    if earlier is not None:
        reference = raw_floats(job.read, f"{earlier[0]}/reference.f32", len(pairs))
        reference_seconds = earlier[1].reference_seconds
    else:
        reference, reference_seconds = _reference(job, encoded, options.batch_size)
    job.write_floats("reference.f32", reference)

    job.write_record(
        "scores.json",
        ScoresRaw(
            format=1,
            shape=(len(pairs),),
            dtype="<f4",
            groups=len(groups),
            truncated=encoded.truncated,
            longest_tokens=encoded.longest,
            max_length=options.max_length,
            reference_seconds=reference_seconds,
            artifact_seconds=artifact_seconds,
            reference_from=earlier[0] if earlier is not None else None,
            providers=session.facts.providers,
        ),
    )


def _reference(job: Job, encoded: Encoded, batch_size: int) -> tuple[NDArray[np.float32], float]:
    """PyTorch's logits and the seconds of scoring."""
    side = job.reference()
    layout = job.layout(side.inputs, batch_size, (None, None))
    count = len(encoded.ids)
    begin = time.perf_counter()
    scores = score(side.logits, batches(encoded, layout), count, job.counter(count, 2 * count, "pairs"))
    return scores, time.perf_counter() - begin
