"""L2 parity: the same token ids through PyTorch fp32 and through the artifact; the logits of both are kept.

The reference scores each pair alone and unpadded, so that a padding fault on the artifact's side shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.derive import raw_floats
from harness.errors import Blocked
from harness.raw import ParityRaw
from harness.runtimes import tokens
from harness.runtimes.batching import batches, score
from harness.runtimes.torch_eager import Reference
from harness.stages.job import Job
from harness.stages.reuse import earlier_reference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.runtimes.tokens import Encoded


def parity(job: Job) -> None:
    """Score and write ``reference.f32``, ``artifact.f32`` and ``logits.json``."""
    request = job.request
    options = request.options.L2
    if options is None:
        raise Blocked("tiers.L2: expected its options in the plan, got none")
    job.state_artifact()
    pairs = job.pairs()
    encoded = tokens.encode(job.model, request.candidate, pairs, options.max_length)
    session = job.session()
    layout = job.layout(session.inputs, options.batch_size, session.fixed)
    artifact = score(session.logits, batches(encoded, layout), len(pairs), job.counter(0, 2 * len(pairs), "pairs"))
    job.write_floats("artifact.f32", artifact)

    earlier = earlier_reference(job, "logits.json", ParityRaw)
    if earlier is not None:
        reference = raw_floats(job.read, f"{earlier[0]}/reference.f32", len(pairs))
        differing = earlier[1].token_mismatches
    else:
        reference = _reference(job, encoded)
        differing = tokens.mismatches(job.model, encoded, pairs, options.max_length)
    job.write_floats("reference.f32", reference)

    job.write_record(
        "logits.json",
        ParityRaw(
            format=1,
            shape=(len(pairs),),
            dtype="<f4",
            truncated=encoded.truncated,
            longest_tokens=encoded.longest,
            max_length=options.max_length,
            token_mismatches=differing,
            reference_from=earlier[0] if earlier is not None else None,
            providers=session.facts.providers,
        ),
    )


def _reference(job: Job, encoded: Encoded) -> NDArray[np.float32]:
    """PyTorch's logits, each pair alone and unpadded."""
    side = Reference(job.model, job.request.target.threads, tokens.inputs_of(job.request.candidate, job.model))
    alone = job.layout(side.inputs, 1, (None, None))
    count = len(encoded.ids)
    return score(side.logits, batches(encoded, alone), count, job.counter(count, 2 * count, "pairs"))
