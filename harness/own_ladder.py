"""Judge a root under the ladder that a reviewer brings: the sealed measurements, the reviewer's limits. Pure.

The root was measured under its own plan, so the reviewer's ladder is laid beside it and every difference is listed. One that
only changes what is demanded (a limit) decides by itself; one that would have measured something else (another bound, another
dataset, more threads) takes the number away: that step is BLOCKED. A ladder names a folder by a path, which says nothing on
another machine, so the folder's name blocks nothing; a hub model and its revision must be those of the root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import get_args

import msgspec

from evidence.manifest import digest_of
from harness import judge, ladder, plan
from harness.ladder_format import Ladder, is_folder
from harness.own_beside import ELSE, NONE, Difference, beside_of, claims_beside
from harness.own_beside import shown as _shown
from harness.recheck import Rejudged
from harness.records import (
    TIERS,
    DataFact,
    Finding,
    Measurement,
    Measurements,
    Outcome,
    Plan,
    PlannedStep,
    PlannedTarget,
    PrebuiltArtifact,
    Precision,
    Qualification,
    Record,
    Request,
    Tier,
    Verdict,
    to_json,
)

_APART = frozenset({"time_limit_s", "memory_limit_bytes", "deadlock_s", "eager"})
"""Options that change no number: when something is ended, and what is measured beside (without it, its metric is null)."""


class Under(Record, frozen=True):
    """The verdict under the reviewer's ladder: its bytes and digest, every difference, the claim and outcomes it would have given."""

    name: str
    digest: str
    ladder: bytes
    differences: tuple[Difference, ...]
    claim: Qualification
    outcomes: dict[tuple[str, Tier], Outcome]

    @property
    def verdict(self) -> Verdict:
        """The verdict of the whole."""
        return self.claim.verdict


def judge_under(
    judged: Rejudged, ladder_bytes: bytes, where: str, measure: Callable[[Request], Measurements] | None = None
) -> Under | None:
    """Judge again under another ladder; None when the root has no records to judge. Raises ``LadderError`` for a bad ladder.

    ``measure`` derives the measurements of a step from its raw samples. L3 is derived again where its limits differ: they say at
    which cut-offs it is measured, and the chance of a random scorer is that of meeting them.
    """
    asked = ladder.parse(ladder_bytes, where)
    if judged.records is None:
        return None
    sealed = judged.records.plan
    own = _plan(asked, ladder_bytes, sealed)
    beside = tuple(beside_of(own, sealed))
    differences = (*_whole(asked, own, sealed), *_options(asked, own, sealed), *_targets(asked, own, sealed), *beside)
    outcomes: dict[tuple[str, Tier], Outcome] = {}
    for target in own.targets:
        for step in target.steps:
            why = next((d for d in differences if d.blocks and _concerns(d, target.name, step.tier)), None)
            measured = judged.measured.get((target.name, step.tier))
            left = judged.records.steps.get((target.name, step.tier))
            if why is not None:
                outcome = _outcome(own, target.name, step.tier, (), f"{ELSE}: {why.name} {why.sealed}, not {why.own}")
            elif measured is not None:
                if measure is not None and measured and step.tier == "L3":
                    measured = _derived(sealed, target, step, measured, measure)
                outcome = _outcome(own, target.name, step.tier, judge.judge(step.limits, measured), "")
            elif left is not None:
                outcome = _outcome(own, target.name, step.tier, (), left.outcome.reason)
            else:  # it did not come to this step: NOT_RUN
                continue
            outcomes[target.name, step.tier] = outcome
    found = judged.records.claim
    gates, lock = claims_beside(own, judged.claim or found, beside)
    claim = judge.qualification(own, digest_of(to_json(own)), outcomes, found.started_at, found.ended_at, gates, lock)
    return Under(
        name=asked.name,
        digest=digest_of(ladder_bytes),
        ladder=ladder_bytes,
        differences=differences + tuple(_limits(own, sealed)),
        claim=claim,
        outcomes=outcomes,
    )


def _derived(
    sealed: Plan,
    target: PlannedTarget,
    step: PlannedStep,
    measured: tuple[Measurement, ...],
    measure: Callable[[Request], Measurements],
) -> tuple[Measurement, ...]:
    """What the step's samples give under the limits of ``step``; as it was measured where these are the sealed ones."""
    was = next((one for t in sealed.targets if t.name == target.name for one in t.steps if one.tier == step.tier), None)
    if was is None or was.limits == step.limits:
        return measured
    return measure(plan.request(sealed, "", target, step.tier, "")).measurements


def _plan(asked: Ladder, ladder_bytes: bytes, sealed: Plan) -> Plan:
    """The plan that the reviewer's ladder gives for the sealed candidate and data. What the root lacks is filled in, and blocks later."""
    empty = DataFact(path="", digest=NONE, source=NONE, rows=0)
    inputs = msgspec.structs.replace(
        sealed.inputs,
        pairs=sealed.inputs.pairs or empty,
        groups=sealed.inputs.groups or empty,
        groups_blocked=None,
        calibration=sealed.inputs.calibration or empty,
        lock=(sealed.inputs.lock or empty) if asked.lock is not None else None,
        baseline=sealed.inputs.baseline or empty,
    )
    if asked.tiers.L3 is not None:  # the pin is compared in _options, where a difference blocks and is no refusal
        unpinned = msgspec.structs.replace(asked.tiers.L3, digest=None)
        asked = msgspec.structs.replace(asked, tiers=msgspec.structs.replace(asked.tiers, L3=unpinned))
    prebuilt = {
        target.name: PrebuiltArtifact(name=PurePosixPath(target.artifact).name, files=())
        for target in asked.targets
        if target.artifact is not None
    }
    return plan.make(asked, ladder_bytes, sealed.candidate, inputs, prebuilt)


def _whole(asked: Ladder, own: Plan, sealed: Plan) -> Iterator[Difference]:
    """Candidate, goal and seed."""
    folder, revision = is_folder(asked.candidate.model), asked.candidate.revision
    model = PurePosixPath(asked.candidate.model).name if folder else asked.candidate.model  # as a root names a folder
    named = {model, asked.candidate.model}  # a relative folder is named as the ladder writes it
    if sealed.candidate.model not in named or revision != sealed.candidate.revision:
        was, now = (
            f"{name} at {at}" if at else name
            for name, at in ((sealed.candidate.model, sealed.candidate.revision), (model, revision))
        )
        blocks = not (folder and sealed.candidate.revision is None)
        yield Difference(kind="candidate", target="", tier="", name="model", sealed=was, own=now, blocks=blocks)
    yield from _adapter(asked, sealed)
    for tier in TIERS:
        if getattr(own.options, tier) is not None and getattr(sealed.options, tier) is None:
            yield Difference(
                kind="goal", target="", tier=tier, name="goal", sealed=sealed.goal, own=own.goal, blocks=True
            )
    if own.goal < sealed.goal:
        yield Difference(kind="goal", target="", tier="", name="goal", sealed=sealed.goal, own=own.goal)
    if own.seed != sealed.seed:
        yield Difference(kind="seed", target="", tier="", name="seed", sealed=str(sealed.seed), own=str(own.seed))


def _adapter(asked: Ladder, sealed: Plan) -> Iterator[Difference]:
    """An adapter that only one side has, or another; as for a model, the name of a folder says nothing on another machine."""
    mine, theirs = asked.candidate.adapter, sealed.candidate.adapter
    if mine is None and theirs is None:
        return
    was, now = (
        NONE if side is None else f"{side.model} at {side.revision}" if side.revision else side.model
        for side in (theirs, mine)
    )
    folders = mine is not None and theirs is not None and is_folder(mine.model) and theirs.revision is None
    if was != now and not (folders and mine is not None and PurePosixPath(mine.model).name == was):
        yield Difference(kind="candidate", target="", tier="", name="adapter", sealed=was, own=now, blocks=not folders)


def _options(asked: Ladder, own: Plan, sealed: Plan) -> Iterator[Difference]:
    """Options of each tier that both have. The data of L3 is what its digest says where the reviewer pins it, else its name."""
    pin = asked.tiers.L3.digest if asked.tiers.L3 is not None else None
    groups = sealed.inputs.groups.digest if sealed.inputs.groups is not None else NONE
    for tier in TIERS:
        was, now = (msgspec.to_builtins(getattr(side.options, tier)) for side in (sealed, own))
        if was is None or now is None:
            continue
        for name in was:
            pinned = tier == "L3" and name == "data" and pin == groups
            if was[name] != now[name] and name != "digest" and not pinned:
                precise = [
                    target.name for target in own.targets if target.precision == name
                ]  # L0 has options by precision
                for target in precise if name in get_args(Precision) else [""]:
                    blocks = name not in _APART
                    yield _option(tier, name, _shown(was[name]), _shown(now[name]), target=target, blocks=blocks)
        if tier == "L3" and pin not in {None, groups}:
            yield _option(tier, "digest", groups, str(pin), blocks=True)


def _option(tier: Tier, name: str, sealed: str, own: str, *, target: str = "", blocks: bool) -> Difference:
    return Difference(kind="option", target=target, tier=tier, name=name, sealed=sealed, own=own, blocks=blocks)


def _targets(asked: Ladder, own: Plan, sealed: Plan) -> Iterator[Difference]:
    """Targets that only one side has, and what makes two of one name another thing."""
    theirs = {target.name: target for target in sealed.targets}
    artifacts = {target.name: target.artifact for target in asked.targets}
    for target in own.targets:
        was = theirs.pop(target.name, None)
        before, now = _identity(was), _identity(target)
        for name, value in now.items():
            if before.get(name, NONE) != value and name != "artifact":
                yield _target(target, name, before.get(name, NONE), value)
        mine = artifacts[target.name]
        if was is not None and was.deferred is None and target.deferred is None:
            built, asks = before["artifact"], PurePosixPath(mine).name if mine is not None else "built"
            if built != asks:
                yield _target(target, "artifact", built, asks)
    for name in theirs:
        yield Difference(kind="target", target=name, tier="", name="target", sealed="climbed", own=NONE)


def _target(target: PlannedTarget, name: str, sealed: str, own: str) -> Difference:
    blocks = target.deferred is None  # a deferred target asks for no number
    return Difference(kind="target", target=target.name, tier="", name=name, sealed=sealed, own=own, blocks=blocks)


def _identity(target: PlannedTarget | None) -> dict[str, str]:
    """What makes a target what it is, as shown: every field but its name, and its steps, which are compared as limits."""
    if target is None:
        return {"target": NONE}
    return {
        "target": "climbed" if target.deferred is None else "deferred",
        "precision": target.precision,
        "provider": target.provider,
        "threads": str(target.threads),
        "artifact": target.artifact.name if target.artifact is not None else "built",
    } | {f"session.{name}": _shown(value) for name, value in msgspec.to_builtins(target.session).items()}


def _limits(own: Plan, sealed: Plan) -> Iterator[Difference]:
    """Every limit that differs, explicit or absent, on the targets and tiers that both have."""
    theirs = {(target.name, step.tier): step.limits for target in sealed.targets for step in target.steps}
    for target in own.targets:
        for step in target.steps:
            was = theirs.get((target.name, step.tier))
            if was is None:
                continue
            for metric in sorted(was.keys() | step.limits.keys()):
                before, now = (
                    judge.show_limit(side[metric]) if metric in side else NONE for side in (was, step.limits)
                )
                if was.get(metric) != step.limits.get(metric):
                    yield Difference(
                        kind="limit", target=target.name, tier=step.tier, name=metric, sealed=before, own=now
                    )


def _concerns(difference: Difference, target: str, tier: Tier) -> bool:
    """Whether it is about this step. A gate or a lock is about none: it has a claim of its own."""
    return (
        difference.kind not in {"gate", "lock"} and difference.target in {"", target} and difference.tier in {"", tier}
    )


def _outcome(own: Plan, target: str, tier: Tier, findings: tuple[Finding, ...], reason: str) -> Outcome:
    verdict = judge.step_verdict(findings)
    return Outcome(
        format=1,
        tier=tier,
        target=target,
        verdict=verdict,
        reason=reason or judge.outcome_reason(verdict, findings),
        plan_digest="",
        candidate_digest=own.candidate.digest,
        artifact_digest=None,
        started_at=None,
        ended_at=None,
        exit=None,
        redactions=0,
        findings=findings,
    )
