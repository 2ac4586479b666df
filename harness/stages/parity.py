"""L2 parity: the same token ids through PyTorch fp32 and through the artifact; the logits of both are kept.

The reference scores each pair alone and unpadded, so that a padding fault on either side shows. Some pairs are scored again in other
batches, paddings and orders, and from several threads (``invariance``); the tensors are sealed and checked by ``second_path``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from harness.derive_raw import raw_record
from harness.errors import Blocked
from harness.raw import ParityRaw, TokensRaw
from harness.runtimes import tokens
from harness.runtimes.batching import score_or_refuse
from harness.stages import invariance, second_path
from harness.stages.adapter import score_ways
from harness.stages.job import Job
from harness.stages.reuse import earlier_reference
from harness.variants import subset

if TYPE_CHECKING:
    from harness.records import ParityOptions
    from harness.runtimes.batching import Layout, Logits
    from harness.runtimes.tokens import Encoded

REFERENCE_FILES = ("reference.f32", "invariance_reference.f32", "invariance_reference.json")
ADAPTER_FILES = ("adapter.f32", "adapter.json")


def parity(job: Job) -> None:
    """Score and write ``logits.json`` with two ``.f32``, ``tokens.json`` and ``.i32``, and for each side ``invariance_*``."""
    request = job.request
    options = request.options.L2
    if options is None:
        raise Blocked("tiers.L2: expected its options in the plan, got none")
    job.state_artifact()
    pairs = job.pairs()
    encoded = tokens.encode(job.model, request.candidate, pairs, options.max_length)
    job.write("tokens.i32", second_path.columns(job.model, encoded, pairs))
    session = job.session()
    layout = job.layout(session.inputs, options.batch_size, session.fixed)
    total = 2 * len(pairs)
    artifact, refused = score_or_refuse(session.logits, encoded, layout, job.counter(0, total, "pairs"))
    job.write_floats("artifact.f32", artifact)

    earlier = earlier_reference(job, "logits.json", ParityRaw)
    if earlier is not None:
        folder, before = earlier
        for name in (*REFERENCE_FILES, *(ADAPTER_FILES if job.adapter is not None else ())):
            job.write(name, job.read(f"{folder}/{name}"))
        refused_reference = before.refused_reference
        said = raw_record(job.read, f"{folder}/tokens.json", TokensRaw)
    else:
        refused_reference = _reference(job, encoded, options)
        said = second_path.says(job.model, encoded, pairs, options.max_length)
    job.write_record("tokens.json", said)
    _again(job, "artifact", session.logits, layout, encoded, refused, threads=True)
    job.write_record(
        "logits.json",
        ParityRaw(
            format=1,
            shape=(len(pairs),),
            dtype="<f4",
            reference_from=earlier[0] if earlier is not None else None,
            session=session.facts,
            refused_reference=refused_reference,
            refused_artifact=_clean(job, refused),
        ),
    )


def _reference(job: Job, encoded: Encoded, options: ParityOptions) -> dict[str, str]:
    """PyTorch's logits, each pair alone and unpadded, and its invariance; returns what it refused."""
    side = job.reference()
    count = len(encoded.ids)
    alone = job.layout(side.inputs, 1, (None, None))
    scores, refused = score_or_refuse(side.logits, encoded, alone, job.counter(count, 2 * count, "pairs"))
    job.write_floats("reference.f32", scores)
    layout = alone._replace(batch_size=options.batch_size)
    _again(job, "reference", side.logits, layout, encoded, refused, threads=False)
    if job.adapter is not None:
        score_ways(
            job, job.adapter, alone, encoded, subset(list(map(len, encoded.ids)), options, job.request.seed, refused)
        )
    return _clean(job, refused)


def _again(
    job: Job,
    side: str,
    logits: Logits,
    layout: Layout,
    encoded: Encoded,
    refused: Collection[int],
    *,
    threads: bool,
) -> None:
    """Score the subset in every variant and write ``invariance_<side>``."""
    options = job.request.options.L2
    assert options is not None
    asked = invariance.Asked(
        logits=logits,
        layout=layout,
        encoded=encoded,
        pairs=subset([len(ids) for ids in encoded.ids], options, job.request.seed, refused),
        seed=job.request.seed,
        threads=threads,
        deadlock_s=options.deadlock_s,
    )
    raw, found = invariance.measure(asked, lambda done: job.progress(done, 11, f"ways to batch the {side}"))
    job.write_floats(f"invariance_{side}.f32", found)
    job.write_record(f"invariance_{side}.json", raw)


def _clean(job: Job, refused: dict[int, str]) -> dict[str, str]:
    return {str(index): job.clean(text) for index, text in refused.items()}
