"""Judge a root again: every metric from the raw samples, every finding from the metric, every verdict from the findings.

The bytes come from the verified reader of ``evidence``, so what is judged is what was hashed. Nothing here trusts the
claim: it is recomputed and compared, and a difference is a fault that shows both sides. Rules:

    Q-RECORD    a record is not what the format says
    Q-LADDER    the sealed plan does not follow from the sealed ladder and the sealed facts
    Q-REQUEST   a step was asked something else than the plan says
    Q-METRIC    a measurement is not what the raw samples give
    Q-FINDING   a finding is not what limit and measurement give
    Q-VERDICT   a step's verdict is not what its findings give
    Q-CLAIM     the claim is not what the steps give
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from evidence.manifest import Fault, digest_of
from harness import derive, judge, ladder, plan, records
from harness.errors import QualifyError
from harness.records import (
    Finding,
    Measurement,
    Outcome,
    Plan,
    PlannedStep,
    PlannedTarget,
    Record,
    Request,
    Tier,
    Verdict,
)
from harness.root import Read, RootRecords, StepRecords, load


class Rejudged(Record, frozen=True):
    """The judge's second opinion: faults (empty when the claim holds), and the verdict that the raw samples give."""

    faults: tuple[Fault, ...]
    records: RootRecords | None
    verdict: Verdict


def rejudge(read: Read, paths: Collection[str], progress: Callable[[int, int], None] | None = None) -> Rejudged:
    """Judge the root again under its sealed plan. Never raises for what the root holds."""
    try:
        found = load(read, paths)
    except QualifyError as error:
        return Rejudged(faults=(_fault("Q-RECORD", "", str(error)),), records=None, verdict="BLOCKED")
    faults = list(_plan_faults(found.plan, read(records.LADDER)))
    plan_digest = digest_of(read(records.PLAN))
    outcomes: dict[tuple[str, Tier], Outcome] = {}
    total = sum(len(target.steps) for target in found.plan.targets)
    done = 0
    for target in found.plan.targets:
        for step in target.steps:
            done += 1
            if progress is not None:
                progress(done, total)
            left = found.steps.get((target.name, step.tier))
            if left is None:  # that it may be missing is E-STEP, which evidence looked at
                continue
            outcome, step_faults = _step(found.plan, plan_digest, target, step, left, read)
            faults += step_faults
            outcomes[target.name, step.tier] = outcome
    claim = judge.qualification(found.plan, plan_digest, outcomes, found.claim.started_at, found.claim.ended_at)
    faults += _differences("Q-CLAIM", records.CLAIM, msgspec.to_builtins(found.claim), msgspec.to_builtins(claim))
    return Rejudged(faults=tuple(sorted(faults)), records=found, verdict=claim.verdict)


def _fault(rule: str, path: str, message: str) -> Fault:
    return Fault(rule, path, message)


def _plan_faults(sealed: Plan, ladder_bytes: bytes) -> Iterator[Fault]:
    """Q-LADDER: the same ladder, candidate and data give the same plan, so no limit was changed in between."""
    try:
        asked = ladder.parse(ladder_bytes, records.LADDER)
        prebuilt = {t.name: t.artifact for t in sealed.targets if t.artifact is not None}
        made = plan.make(asked, ladder_bytes, sealed.candidate, sealed.inputs, prebuilt)
    except QualifyError as error:
        yield _fault(
            "Q-LADDER", records.LADDER, f"{records.LADDER}: expected a ladder that gives the sealed plan, got: {error}"
        )
        return
    yield from _differences("Q-LADDER", records.PLAN, msgspec.to_builtins(sealed), msgspec.to_builtins(made))


def _step(
    sealed: Plan, plan_digest: str, target: PlannedTarget, step: PlannedStep, left: StepRecords, read: Read
) -> tuple[Outcome, list[Fault]]:
    """The outcome that the raw samples give, and every difference to the claimed one."""
    folder = records.step_folder(step.tier, target.name)
    claimed = left.outcome
    faults: list[Fault] = []
    request = _request(sealed, plan_digest, target, step.tier)
    if left.request is not None:
        asked, expected = msgspec.to_builtins(left.request), msgspec.to_builtins(request)
        faults += _differences("Q-REQUEST", f"{folder}/request.json", asked, expected)
    if left.measurements is None:
        findings: tuple[Finding, ...] = ()
        verdict: Verdict = "BLOCKED"
    else:
        measured, found = _measure(request, read, folder)
        faults += found
        faults += _metric_faults(f"{folder}/measurements.json", left.measurements.measurements, measured)
        findings = judge.judge(step.limits, measured)
        verdict = "BLOCKED" if _broke(claimed) else judge.step_verdict(findings)
        findings = () if _broke(claimed) else findings
    path = f"{folder}/outcome.json"
    faults += _differences("Q-FINDING", path, msgspec.to_builtins(claimed.findings), msgspec.to_builtins(findings))
    if claimed.verdict != verdict:
        faults.append(
            _fault("Q-VERDICT", path, f"{path}: expected verdict {verdict} from the samples, got {claimed.verdict}")
        )
    same_step = {"tier": step.tier, "target": target.name, "candidate_digest": sealed.candidate.digest}
    stated = {key: getattr(claimed, key) for key in same_step}
    faults += _differences("Q-REQUEST", path, stated, same_step)
    reason = claimed.reason if verdict == "BLOCKED" and not findings else judge.outcome_reason(verdict, findings)
    outcome = msgspec.structs.replace(claimed, verdict=verdict, findings=findings, reason=reason)
    if claimed.reason != reason:
        faults.append(_fault("Q-FINDING", path, f"{path}: expected reason {reason!r}, got {claimed.reason!r}"))
    return outcome, faults


def _broke(outcome: Outcome) -> bool:
    """Whether the child ended badly, so that its numbers, if any, do not count."""
    return outcome.exit is None or outcome.exit.timed_out or outcome.exit.code != 0


def _request(sealed: Plan, plan_digest: str, target: PlannedTarget, tier: Tier) -> Request:
    return Request(
        format=1,
        tier=tier,
        target=target,
        candidate=sealed.candidate,
        options=sealed.options,
        inputs=sealed.inputs,
        seed=sealed.seed,
        plan_digest=plan_digest,
        step=records.step_folder(tier, target.name),
        artifact=records.artifact_folder(target.name),
    )


def _measure(request: Request, read: Read, folder: str) -> tuple[tuple[Measurement, ...], list[Fault]]:
    try:
        return derive.measure(request, read).measurements, []
    except (QualifyError, ValueError, ArithmeticError, LookupError, TypeError) as error:  # a root may hold anything
        return (), [
            _fault("Q-METRIC", folder, f"{folder}: expected raw samples to derive the metrics from, got: {error}")
        ]


def _metric_faults(path: str, claimed: tuple[Measurement, ...], derived: tuple[Measurement, ...]) -> Iterator[Fault]:
    """Q-METRIC, metric by metric. Floats agree to 1e-9 relative: another build of numpy may sum in another order."""
    was, now = ({m.metric: m for m in side} for side in (claimed, derived))
    for name in sorted(was.keys() | now.keys()):
        one, other = was.get(name), now.get(name)
        if one is None or other is None:
            yield _fault("Q-METRIC", path, f"{path}: {name}: expected {_shown(other)}, got {_shown(one)}")
        elif not _close(msgspec.to_builtins(one), msgspec.to_builtins(other)):
            yield _fault(
                "Q-METRIC", path, f"{path}: {name}: expected {_shown(other)} from the samples, got {_shown(one)}"
            )


def _shown(measurement: Measurement | None) -> str:
    return "no such metric" if measurement is None else judge.show_value(measurement.value)


def _differences(rule: str, path: str, got: object, expected: object, at: str = "") -> Iterator[Fault]:
    """One fault for each leaf that differs, by JSON pointer."""
    if isinstance(got, Mapping) and isinstance(expected, Mapping):
        for key in sorted(got.keys() | expected.keys(), key=str):
            yield from _differences(rule, path, got.get(key), expected.get(key), f"{at}/{key}")
    elif isinstance(got, list | tuple) and isinstance(expected, list | tuple) and len(got) == len(expected):
        for index, (one, other) in enumerate(zip(got, expected, strict=True)):
            yield from _differences(rule, path, one, other, f"{at}/{index}")
    elif not _close(got, expected):
        yield _fault(rule, path, f"{path}{at and '#'}{at}: expected {expected!r}, got {got!r}")


def _close(one: object, other: object) -> bool:
    """Equal; or two finite floats that agree to 1e-9 relative; or containers of such."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or abs(one - other) <= 1e-9 * max(abs(one), abs(other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_close(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_close, one, other))
    return type(one) is type(other) and one == other
