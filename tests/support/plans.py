"""Candidates, inputs and outcomes that are only facts, for what reads no file."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.records import Candidate, DataFact, FileFact, Inputs, Outcome, Tier, Verdict

CANDIDATE = Candidate(
    model="./model",
    revision=None,
    digest="blake3:" + "a" * 64,
    files=(FileFact(path="config.json", bytes=10, blake3="b" * 64),),
    architecture="BertForSequenceClassification",
    model_type="bert",
    num_labels=1,
    parameters=1000,
    weight_dtypes={"F32": 1000},
    max_length=512,
    type_vocab_size=2,
    pad_token_id=0,
    padding_side="right",
)
INPUTS = Inputs(
    pairs=DataFact(path="inputs/pairs.jsonl", digest="blake3:" + "c" * 64, source="built-in", rows=76),
    groups=DataFact(path="inputs/groups.jsonl", digest="blake3:" + "d" * 64, source="groups.jsonl", rows=60),
)


def candidate(**changes: Any) -> Candidate:
    """``CANDIDATE`` with some facts changed."""
    return msgspec.structs.replace(CANDIDATE, **changes)


def outcome(target: str, tier: Tier, verdict: Verdict, reason: str) -> Outcome:
    """How a step ended of which nothing else is known."""
    return Outcome(
        format=1,
        tier=tier,
        target=target,
        verdict=verdict,
        reason=reason,
        plan_digest="",
        candidate_digest="",
        artifact_digest=None,
        started_at=None,
        ended_at=None,
        exit=None,
        redactions=0,
        findings=(),
    )
