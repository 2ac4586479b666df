"""Judge a root again: every metric from the raw samples, every finding from the metric, every verdict from the findings.

The bytes come from the verified reader of ``evidence``, so what is judged is what was hashed. Nothing here trusts the
claim: it is recomputed and compared, and a difference is a fault that shows both sides. Rules:

    Q-RECORD    a record is not what the format says
    Q-LADDER    the sealed plan does not follow from the sealed ladder and the sealed facts
    Q-DATA      the groups are not what the plan says of them: source, bounds, counts by kind
    Q-REQUEST   a step was asked something else than the plan says
    Q-METRIC    a measurement is not what the raw samples give
    Q-FINDING   a finding is not what limit and measurement give
    Q-VERDICT   a step's verdict is not what its findings give
    Q-CLAIM     the claim is not what the steps give
    Q-GATE      a gate's verdict or reason is not what the end of its command gives
    Q-LOCK      the sealed lock cannot be compared with the packages
    Q-PRESERVED a step is carried from an earlier root that does not rely on the same things; all else above holds of it as well
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from evidence.manifest import Fault, digest_of
from harness import data, derive, derive_rerank, group_facts, judge, ladder, lineage, plan, quality, records
from harness.derive_raw import Read
from harness.errors import QualifyError
from harness.raw import ArtifactRef
from harness.records import (
    Finding,
    GateClaim,
    GateOutcome,
    LockClaim,
    Measurement,
    Outcome,
    Plan,
    PlannedStep,
    PlannedTarget,
    Qualification,
    Record,
    Request,
    Tier,
    Verdict,
)
from harness.root import RootRecords, StepRecords, load, merged, step_records


class Rejudged(Record, frozen=True):
    """The judge's second opinion: faults (empty when the claim holds), and the claim and verdict that the raw samples give.

    ``measured`` is by target and tier what was derived from raw samples, for each step whose numbers count. Without records
    there is neither claim nor measurement.
    """

    faults: tuple[Fault, ...]
    records: RootRecords | None
    verdict: Verdict
    claim: Qualification | None = None
    measured: dict[tuple[str, Tier], tuple[Measurement, ...]] = msgspec.field(default_factory=dict)


def rejudge(read: Read, paths: Collection[str], progress: Callable[[int, int], None] | None = None) -> Rejudged:
    """Judge the root again under its sealed plan. Never raises for what the root holds."""
    try:
        found = load(read, paths)
    except QualifyError as error:
        return Rejudged(faults=(_fault("Q-RECORD", "", str(error)),), records=None, verdict="BLOCKED")
    read, paths = merged(found.lineage, read, paths)
    faults = list(_plan_faults(found.plan, read))
    plan_digest = digest_of(read(records.PLAN))
    faults += _data_faults(found.plan, read)
    for origin, its in found.origins.items():
        faults += _plan_faults(its.plan, read, records.origin_folder(origin))
    outcomes: dict[tuple[str, Tier], Outcome] = {}
    counted: dict[tuple[str, Tier], tuple[Measurement, ...]] = {}
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
            if (target.name, step.tier) in found.preserved:
                outcome, measured, step_faults = _carried(found, target, step, read, paths)
            else:
                artifact = records.artifact_place(found.lineage, target.name)
                request = plan.request(found.plan, plan_digest, target, step.tier, artifact)
                outcome, measured, step_faults = _step(request, step, left, read)
            faults += step_faults
            if outcome.findings:
                counted[target.name, step.tier] = measured
            outcomes[target.name, step.tier] = outcome
    gates, lock, beside = _beside(found, read)
    faults += beside
    claim = judge.qualification(
        found.plan, plan_digest, outcomes, found.claim.started_at, found.claim.ended_at, gates, lock
    )
    faults += _differences("Q-CLAIM", records.CLAIM, msgspec.to_builtins(found.claim), msgspec.to_builtins(claim))
    return Rejudged(faults=tuple(sorted(faults)), records=found, verdict=claim.verdict, claim=claim, measured=counted)


def _fault(rule: str, path: str, message: str) -> Fault:
    return Fault(rule, path, message)


def _plan_faults(sealed: Plan, read: Read, place: str = "") -> Iterator[Fault]:
    """Q-LADDER: the same ladder, candidate and data give the same plan, so no limit was changed in between."""
    at, ladder_bytes = place + records.LADDER, read(place + records.LADDER)
    try:
        asked = ladder.parse(ladder_bytes, records.LADDER)
        prebuilt = {t.name: t.artifact for t in sealed.targets if t.artifact is not None}
        made = plan.make(asked, ladder_bytes, sealed.candidate, sealed.inputs, prebuilt, sealed.only)
    except QualifyError as error:
        yield _fault("Q-LADDER", at, f"{at}: expected a ladder that gives the sealed plan, got: {error}")
        return
    yield from _differences("Q-LADDER", place + records.PLAN, msgspec.to_builtins(sealed), msgspec.to_builtins(made))


def _beside(found: RootRecords, read: Read) -> tuple[tuple[GateClaim, ...], LockClaim | None, list[Fault]]:
    """Gates and lock, judged again: the verdict of a gate from how its command ended, the differences from lock and packages."""
    faults: list[Fault] = []
    outcomes: dict[str, GateOutcome] = {}
    for gate in found.plan.gates:
        left = found.gates.get(gate.name)
        if left is None:  # that it may be missing is E-GATE, which evidence looked at
            continue
        path = f"{records.gate_folder(gate.name)}/gate.json"
        reason = quality.gate_reason(left.exit, gate.time_limit_s) if left.exit is not None else left.reason
        derived = msgspec.structs.replace(left, name=gate.name, verdict=quality.gate_verdict(left.exit), reason=reason)
        faults += _differences("Q-GATE", path, msgspec.to_builtins(left), msgspec.to_builtins(derived))
        outcomes[gate.name] = derived
    lock = None
    if found.plan.lock is not None:
        try:
            text = read(records.LOCK).decode("utf-8")
            lock = quality.lock_claim(found.plan.lock, text, found.environment.packages)
        except (QualifyError, ValueError, LookupError) as error:
            faults.append(_fault("Q-LOCK", records.LOCK, f"{records.LOCK}: expected a file of pins, got: {error}"))
    return quality.gate_claims(found.plan.gates, outcomes), lock, faults


def _data_faults(sealed: Plan, read: Read) -> Iterator[Fault]:
    """Q-DATA: the groups counted again. That they are the bytes which the plan pins is for the bundle to say."""
    fact, options = sealed.inputs.groups, sealed.options.L3
    if fact is None or options is None:
        return
    try:
        groups = data.read_groups(read(records.GROUPS), records.GROUPS)
        found = group_facts.disagreements(fact, groups, options, sealed.seed)
    except (QualifyError, OSError, LookupError) as error:
        found = [f"expected groups, got: {error}"]
    for text in found:
        yield _fault("Q-DATA", records.PLAN, f"{records.PLAN}: inputs.groups: {text}")


def _carried(
    found: RootRecords, target: PlannedTarget, step: PlannedStep, read: Read, paths: Collection[str]
) -> tuple[Outcome, tuple[Measurement, ...], list[Fault]]:
    """As ``_step``, of one that ran in an earlier root: looked at under its own plan, then judged under the limits of this one."""
    key = target.name, step.tier
    origin = found.origins[found.preserved[key]]
    place = records.origin_folder(found.preserved[key])
    folder = records.step_folder(step.tier, target.name)
    was = next(
        planned for planned in origin.plan.targets if planned.name == target.name
    )  # E-STEP says that there is one
    then = next(planned for planned in was.steps if planned.tier == step.tier)
    artifact = records.artifact_place(origin.lineage, target.name)
    request = plan.request(origin.plan, digest_of(read(place + records.PLAN)), was, step.tier, artifact)
    outcome, measured, faults = _step(request, then, step_records(read, paths, folder), read)
    faults = [_fault(f.rule, place + f.path, place + f.message) for f in faults]
    here = lineage.relied_on(found.plan, found.environment, target, step.tier)
    there = lineage.relied_on(origin.plan, origin.environment, was, step.tier)
    for name, one, other in lineage.disagreements(here, there):
        shown = f"expected {name} {judge.show_value(one)}, as in this root, got {judge.show_value(other)}"
        faults.append(_fault("Q-PRESERVED", place + folder, f"{place}{folder}: {shown}"))
    return judge.again(outcome, step.limits, measured), measured, faults


def _step(
    request: Request, step: PlannedStep, left: StepRecords, read: Read
) -> tuple[Outcome, tuple[Measurement, ...], list[Fault]]:
    """The outcome that the raw samples give, the measurements derived from them, and every difference to what is claimed."""
    folder = request.step
    claimed = left.outcome
    faults: list[Fault] = []
    if left.request is not None:
        asked, expected = msgspec.to_builtins(left.request), msgspec.to_builtins(request)
        faults += _differences("Q-REQUEST", f"{folder}/request.json", asked, expected)
    measured: tuple[Measurement, ...] = ()
    if left.measurements is None:
        findings: tuple[Finding, ...] = ()
        verdict: Verdict = "BLOCKED"
    else:
        measured, found = _measure(request, read, folder)
        faults += found
        faults += _metric_faults(f"{folder}/measurements.json", left.measurements.measurements, measured)
        findings = judge.judge(step.limits, measured)
        verdict = "BLOCKED" if judge.broke(claimed) else judge.step_verdict(findings)
        findings = () if judge.broke(claimed) else findings
        faults += _derived_files(request, claimed, read)
    path = f"{folder}/outcome.json"
    faults += _differences("Q-FINDING", path, msgspec.to_builtins(claimed.findings), msgspec.to_builtins(findings))
    if claimed.verdict != verdict:
        faults.append(
            _fault("Q-VERDICT", path, f"{path}: expected verdict {verdict} from the samples, got {claimed.verdict}")
        )
    same_step = {"tier": step.tier, "target": request.target.name, "candidate_digest": request.candidate.digest}
    stated = {key: getattr(claimed, key) for key in same_step}
    faults += _differences("Q-REQUEST", path, stated, same_step)
    reason = claimed.reason if verdict == "BLOCKED" and not findings else judge.outcome_reason(verdict, findings)
    outcome = msgspec.structs.replace(claimed, verdict=verdict, findings=findings, reason=reason)
    if claimed.reason != reason:
        faults.append(_fault("Q-FINDING", path, f"{path}: expected reason {reason!r}, got {claimed.reason!r}"))
    return outcome, measured, faults


def _derived_files(request: Request, claimed: Outcome, read: Read) -> Iterator[Fault]:
    """Q-METRIC for the rows of L3, Q-REQUEST for the artifact that the worker says it ran: reports show both."""
    if request.tier == "L3":
        path = f"{request.step}/per_query.json"
        try:
            rows = records.to_json(derive_rerank.per_query(request, read))
            if read(path) != rows:
                yield _fault("Q-METRIC", path, f"{path}: expected the rows that the scores give, got others")
        except (QualifyError, OSError, ValueError, ArithmeticError, LookupError, TypeError) as error:
            yield _fault("Q-METRIC", path, f"{path}: expected the rows that the scores give, got: {error}")
    path = f"{request.step}/artifact.json"
    try:
        ran = records.from_json(read(path), ArtifactRef, path).digest
    except (QualifyError, OSError, LookupError) as error:
        yield _fault("Q-REQUEST", path, f"{path}: expected the digest of the artifact that ran, got: {error}")
        return
    if ran != claimed.artifact_digest:
        yield _fault("Q-REQUEST", path, f"{path}: expected {claimed.artifact_digest}, as in outcome.json, got {ran}")


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
