"""A step of L3 from scores that are given: groups, both sides' logits and limits, measured and judged as the verifier does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from harness import data, derive, derive_rerank, judge, records
from harness.metrics.catalogue import fixed_limits
from harness.raw import PerQuery, ScoresRaw
from harness.records import (
    BuildOptions,
    Finding,
    Inputs,
    Limit,
    Limits,
    Measurement,
    PlannedStep,
    PlannedTarget,
    Request,
    RerankOptions,
    TierOptions,
    Verdict,
    step_folder,
    to_json,
)
from tests.support.plans import CANDIDATE

STEP = step_folder("L3", "cpu-fp32")
Rows = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Ranked:
    """What came of the step."""

    request: Request
    files: dict[str, bytes]
    limits: Limits

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        return derive.measure(self.request, self.files.__getitem__).measurements

    @property
    def measured(self) -> dict[str, Measurement]:
        return {item.metric: item for item in self.measurements}

    @cached_property
    def per_query(self) -> PerQuery:
        return derive_rerank.per_query(self.request, self.files.__getitem__)

    @property
    def findings(self) -> dict[str, Finding]:
        return {finding.metric: finding for finding in judge.judge(self.limits, self.measurements)}

    @property
    def verdict(self) -> Verdict:
        return judge.step_verdict(tuple(self.findings.values()))

    @property
    def reason(self) -> str:
        return judge.outcome_reason(self.verdict, tuple(self.findings.values()))


def ranked(
    gains: Rows,
    artifact: Rows,
    reference: Rows | None = None,
    *,
    texts: Sequence[Sequence[str]] | None = None,
    limits: Limits | None = None,
    **more: Limit,
) -> Ranked:
    """A step whose candidates have these gains and logits; without a reference it is the artifact's. Limits are the ladder's."""
    words = texts or [[f"text {place}" for place in range(len(row))] for row in gains]
    groups = [
        data.Group(
            query_id=f"q{number}",
            query=f"text {number}",
            candidates=tuple(
                data.Doc(id=f"d{place}", text=text, gain=float(gain))
                for place, (text, gain) in enumerate(zip(document, row, strict=True))
            ),
        )
        for number, (document, row) in enumerate(zip(words, gains, strict=True))
    ]
    pairs = sum(map(len, gains))
    raw = ScoresRaw(
        format=1,
        shape=(pairs,),
        dtype="<f4",
        groups=len(groups),
        truncated=0,
        longest_tokens=8,
        max_length=16,
        reference_seconds=1.0,
        artifact_seconds=1.0,
        reference_from=None,
        providers=("cpu",),
    )
    files = {
        records.GROUPS: data.render_groups(groups),
        f"{STEP}/artifact.f32": _floats(artifact),
        f"{STEP}/reference.f32": _floats(artifact if reference is None else reference),
        f"{STEP}/scores.json": to_json(raw),
    }
    planned: Limits = {**(limits or {}), **more, **fixed_limits("L3", "fp32")}
    return Ranked(request(planned, RerankOptions(data="groups.jsonl", resamples=500)), files, planned)


def request(limits: Limits, options: RerankOptions) -> Request:
    """What a step of L3 on cpu-fp32 was asked."""
    target = PlannedTarget(
        name="cpu-fp32",
        precision="fp32",
        provider="cpu",
        threads=1,
        artifact=None,
        deferred=None,
        steps=(PlannedStep(tier="L3", limits=limits, time_limit_s=9.0),),
    )
    return Request(
        format=1,
        tier="L3",
        target=target,
        candidate=CANDIDATE,
        options=TierOptions(L0=BuildOptions(), L3=options),
        inputs=Inputs(pairs=None, groups=None),
        seed=7,
        plan_digest="blake3:" + "0" * 64,
        step=STEP,
        artifact="artifacts/cpu-fp32",
    )


def good(groups: int, candidates: int = 12, positives: int = 3, seed: int = 3) -> tuple[Any, Any]:
    """Gains, and logits of a reranker that mostly finds them, each of shape (groups, candidates)."""
    generator = np.random.default_rng(seed)
    gains = np.zeros((groups, candidates))
    gains[:, :positives] = 1
    generator.permuted(gains, axis=1, out=gains)
    return gains, (3 * gains + generator.normal(0, 1, gains.shape)).astype(np.float32)


def _floats(rows: Rows) -> bytes:
    return np.concatenate([np.asarray(row, dtype="<f4") for row in rows]).tobytes()
