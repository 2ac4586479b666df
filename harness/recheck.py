"""Judge a root again: every metric from the raw samples, every finding from the metric, every verdict from the findings.

The bytes come from the verified reader of ``evidence``, so what is judged is what was hashed. Nothing here trusts the
claim: it is recomputed and compared, and a difference is a fault that shows both sides. Rules:

    Q-RECORD    a record is not what the format says
    Q-FILE      a file that neither the format nor the stage of its tier names, or a step without one it must have
    Q-RAW       what a step says besides its samples does not fit the plan, its child, or the file it was copied from
    Q-LADDER    the sealed plan does not follow from the sealed ladder and the sealed facts
    Q-DATA      the groups are not what the plan says of them: source, bounds, counts by kind
    Q-REQUEST   a step was asked something else than the plan says
    Q-METRIC    a measurement is not what the raw samples give
    Q-FINDING   a finding is not what limit and measurement give
    Q-VERDICT   a step's verdict is not what its findings give
    Q-CLAIM     the claim is not what the steps give
    Q-VERSION   any of the first four, or a measurement that is missing or described otherwise, in a root that another version of
                qualify made: no fault, but undetermined (docs/decisions/0007)
    Q-GATE      a gate's verdict or reason is not what the end of its command gives
    Q-LOCK      the sealed lock cannot be compared with the packages
    Q-PRESERVED a step is carried from an earlier root that does not rely on the same things; all else above holds of it as well
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import msgspec

from evidence.manifest import MANIFEST_NAME, Fault, digest_of, parse_digests
from harness import (
    crosscheck,
    derive,
    derive_rerank,
    judge,
    lineage,
    made_by,
    plan,
    recheck_gates,
    recheck_plan,
    records,
    sealed_files,
)
from harness.derive_raw import Read, kept
from harness.derive_rerank import Queries
from harness.differences import close, differences
from harness.errors import QualifyError
from harness.raw import ArtifactRef
from harness.records import Finding, Measurement, Outcome, Qualification, Record, Request, Tier, Verdict
from harness.root import RootRecords, StepRecords, load, merged, step_records
from harness.where import Where

Digests = Mapping[str, str] | None
Sizes = Mapping[str, int] | None


class Rejudged(Record, frozen=True):
    """The judge's second opinion: faults (empty when the claim holds), and the claim and verdict that the raw samples give.

    ``undetermined`` is what differs because another version of qualify made the root, ``why`` the sentence on it; then the
    verdict is BLOCKED. ``measured`` is by target and tier what was derived from raw samples, for each step whose numbers count, and
    ``queries`` by target what was derived of each query. Without records there is neither claim nor measurement.
    """

    faults: tuple[Fault, ...]
    records: RootRecords | None
    verdict: Verdict
    claim: Qualification | None = None
    measured: dict[tuple[str, Tier], tuple[Measurement, ...]] = msgspec.field(default_factory=dict)
    queries: dict[str, Queries] = msgspec.field(default_factory=dict)
    undetermined: tuple[Fault, ...] = ()
    why: str = ""

    @property
    def holds(self) -> bool:
        """Whether the claim is what the raw samples give, as far as this version of qualify can tell: wholly."""
        return self.records is not None and not self.faults and not self.undetermined


def rejudge(read: Read, paths: Collection[str], digests: Digests = None, sizes: Sizes = None) -> Rejudged:
    """Judge the root again under its sealed plan. Never raises for what the root holds.

    ``digests`` is the BLAKE3 (64 hex) and ``sizes`` the bytes of each path where they are known, as of a verified root: then no file is
    hashed again, or read for its length, and nothing is read of a root in which one is larger than may be.
    """
    large = sealed_files.too_large(sizes or {})
    if large:
        return Rejudged(faults=tuple(sorted(large)), records=None, verdict="BLOCKED")
    others = made_by.others(read, paths)
    try:
        found = load(read, paths)
    except QualifyError as error:
        named = made_by.rule("Q-RECORD", bool(others))
        return _told(Rejudged(faults=(Fault(named, "", str(error)),), records=None, verdict="BLOCKED"), others)
    faults = list(sealed_files.unknown(found, paths, bool(others)))
    sealed = digests.get if digests is not None else partial(_sealed, read, frozenset(paths))
    size = merged(found.lineage, sizes.__getitem__, paths)[0] if sizes is not None else None
    read, paths = merged(found.lineage, read, paths)
    read = kept(read, records.GROUPS)
    here = Where(found.plan, read, sealed, made_by.another(found.environment), size)
    faults += recheck_plan.plan_faults(here)
    plan_digest = digest_of(read(records.PLAN))
    faults += recheck_plan.data_faults(here)
    for origin, its in found.origins.items():
        place = records.origin_folder(origin)
        faults += recheck_plan.plan_faults(Where(its.plan, read, sealed, made_by.another(its.environment)), place)
    outcomes: dict[tuple[str, Tier], Outcome] = {}
    counted: dict[tuple[str, Tier], tuple[Measurement, ...]] = {}
    queries: dict[str, Queries] = {}
    for (target, tier), derived in _steps(found, here, plan_digest, paths):
        folder = records.step_folder(tier, target)
        faults += (*derived.faults, *sealed_files.missing(folder, found.steps[target, tier].outcome, paths))
        outcomes[target, tier] = derived.outcome
        if derived.outcome.findings:
            counted[target, tier] = derived.measured
            queries |= {target: derived.queries} if derived.queries is not None else {}
    gates, lock, beside = recheck_gates.beside(found, read)
    faults += beside
    claim = judge.qualification(
        found.plan, plan_digest, outcomes, found.claim.started_at, found.claim.ended_at, gates, lock
    )
    faults += differences("Q-CLAIM", records.CLAIM, msgspec.to_builtins(found.claim), msgspec.to_builtins(claim))
    judged = Rejudged(
        faults=tuple(sorted(faults)),
        records=found,
        verdict=claim.verdict,
        claim=claim,
        measured=counted,
        queries=queries,
    )
    return _told(judged, others)


def _sealed(read: Read, paths: Collection[str], path: str) -> str | None:
    """The BLAKE3 (64 hex) of a file of this very root, whatever it carries; None where there is none."""
    return digest_of(read(path)).removeprefix("blake3:") if path in paths else None


def _told(judged: Rejudged, others: Collection[str]) -> Rejudged:
    """What differs because of another version apart from the faults: it makes the verdict undetermined."""
    excused = tuple(fault for fault in judged.faults if fault.rule == made_by.OTHER)
    if not excused:
        return judged
    kept = tuple(fault for fault in judged.faults if fault.rule != made_by.OTHER)
    return msgspec.structs.replace(
        judged, faults=kept, undetermined=excused, why=made_by.why(others), verdict="BLOCKED"
    )


class _Derived(NamedTuple):
    """What the raw samples of a step give: its outcome and measurements, every difference to what is claimed, of L3 its queries."""

    outcome: Outcome
    measured: tuple[Measurement, ...]
    faults: list[Fault]
    queries: Queries | None


def _steps(
    found: RootRecords, where: Where, plan_digest: str, paths: Collection[str]
) -> Iterator[tuple[tuple[str, Tier], _Derived]]:
    """Every step that is there, by target and tier. That one may be missing is E-STEP, which evidence looked at."""
    for target in found.plan.targets:
        for step in target.steps:
            key = target.name, step.tier
            if key in found.preserved:
                yield key, _carried(found, target, step, where, paths)
            elif key in found.steps:
                artifact = records.artifact_place(found.lineage, target.name)
                request = plan.request(found.plan, plan_digest, target, step.tier, artifact)
                yield key, _step(request, step, found.steps[key], where)


def _carried(
    found: RootRecords, target: records.PlannedTarget, step: records.PlannedStep, here: Where, paths: Collection[str]
) -> _Derived:
    """As ``_step``, of one that ran in an earlier root: looked at under its own plan, then judged under the limits of this one."""
    key, read = (target.name, step.tier), here.read
    origin = found.origins[found.preserved[key]]
    place = records.origin_folder(found.preserved[key])
    folder = records.step_folder(step.tier, target.name)
    was = next(
        planned for planned in origin.plan.targets if planned.name == target.name
    )  # E-STEP says that there is one
    then = next(planned for planned in was.steps if planned.tier == step.tier)
    artifact = records.artifact_place(origin.lineage, target.name)
    request = plan.request(origin.plan, digest_of(read(place + records.PLAN)), was, step.tier, artifact)
    sealed = parse_digests(read(place + MANIFEST_NAME))
    where = Where(origin.plan, read, sealed.get, made_by.another(origin.environment), here.size)
    derived = _step(request, then, step_records(read, paths, folder), where)
    faults = [Fault(f.rule, place + f.path, place + f.message) for f in derived.faults]
    ours = lineage.relied_on(found.plan, found.environment, target, step.tier)
    theirs = lineage.relied_on(origin.plan, origin.environment, was, step.tier)
    for name, one, other in lineage.disagreements(ours, theirs):
        shown = f"expected {name} {judge.show_value(one)}, as in this root, got {judge.show_value(other)}"
        faults.append(Fault("Q-PRESERVED", place + folder, f"{place}{folder}: {shown}"))
    return derived._replace(outcome=judge.again(derived.outcome, step.limits, derived.measured), faults=faults)


def _step(request: Request, step: records.PlannedStep, left: StepRecords, where: Where) -> _Derived:
    folder, claimed = request.step, left.outcome
    faults = crosscheck.step(request, left, where)
    if left.request is not None:
        asked, expected = msgspec.to_builtins(left.request), msgspec.to_builtins(request)
        faults += differences("Q-REQUEST", f"{folder}/request.json", asked, expected)
    measured: tuple[Measurement, ...] = ()
    if left.measurements is None:
        findings: tuple[Finding, ...] = ()
        verdict: Verdict = "BLOCKED"
    else:
        measured, found = _measure(request, where)
        found += _metric_faults(f"{folder}/measurements.json", left.measurements.measurements, measured, where.foreign)
        faults += found
        if any(fault.rule == made_by.OTHER for fault in found):  # then there is nothing of ours to judge
            return _Derived(claimed, (), faults, None)
        findings = judge.judge(step.limits, measured)
        verdict = "BLOCKED" if judge.broke(claimed) else judge.step_verdict(findings)
        findings = () if judge.broke(claimed) else findings
        faults += _derived_files(request, claimed, where)
    path = f"{folder}/outcome.json"
    same = [_judged(finding) for finding in claimed.findings] == [_judged(finding) for finding in findings]
    worded = made_by.rule("Q-FINDING", where.foreign and same and claimed.verdict == verdict)
    faults += differences(worded, path, msgspec.to_builtins(claimed.findings), msgspec.to_builtins(findings))
    if claimed.verdict != verdict:
        faults.append(
            Fault("Q-VERDICT", path, f"{path}: expected verdict {verdict} from the samples, got {claimed.verdict}")
        )
    same_step = {"tier": step.tier, "target": request.target.name, "candidate_digest": request.candidate.digest}
    stated = {key: getattr(claimed, key) for key in same_step}
    faults += differences("Q-REQUEST", path, stated, same_step)
    reason = claimed.reason if verdict == "BLOCKED" and not findings else judge.outcome_reason(verdict, findings)
    outcome = msgspec.structs.replace(claimed, verdict=verdict, findings=findings, reason=reason)
    if claimed.reason != reason:
        faults.append(Fault(worded, path, f"{path}: expected reason {reason!r}, got {claimed.reason!r}"))
    queries = derive_rerank.queries(request, where.read) if step.tier == "L3" and measured else None
    return _Derived(claimed if worded == made_by.OTHER else outcome, measured, faults, queries)


def _judged(finding: Finding) -> tuple[object, ...]:
    """A finding without its words."""
    return finding.metric, finding.limit, finding.value, finding.interval, finding.verdict


def _derived_files(request: Request, claimed: Outcome, where: Where) -> Iterator[Fault]:
    """Q-METRIC for the rows of L3, Q-REQUEST for the artifact that the worker says it ran: reports show both."""
    read = where.read
    if request.tier == "L3":
        path, rule = f"{request.step}/per_query.json", made_by.rule("Q-METRIC", where.foreign)
        try:
            rows = records.to_json(derive_rerank.per_query(request, read))
            if read(path) != rows:
                yield Fault(rule, path, f"{path}: expected the rows that the scores give, got others")
        except (QualifyError, OSError, ValueError, ArithmeticError, LookupError, TypeError) as error:
            yield Fault(rule, path, f"{path}: expected the rows that the scores give, got: {error}")
    path = f"{request.step}/artifact.json"
    try:
        ran = records.from_json(read(path), ArtifactRef, path).digest
    except (QualifyError, OSError, LookupError) as error:
        yield Fault("Q-REQUEST", path, f"{path}: expected the digest of the artifact that ran, got: {error}")
        return
    if ran != claimed.artifact_digest:
        yield Fault("Q-REQUEST", path, f"{path}: expected {claimed.artifact_digest}, as in outcome.json, got {ran}")


def _measure(request: Request, where: Where) -> tuple[tuple[Measurement, ...], list[Fault]]:
    try:
        return derive.measure(request, where.read, where.size).measurements, []
    except (QualifyError, ValueError, ArithmeticError, LookupError, TypeError) as error:  # a root may hold anything
        message = f"{request.step}: expected raw samples to derive the metrics from, got: {error}"
        return (), [Fault(made_by.rule("Q-METRIC", where.foreign), request.step, message)]


def _metric_faults(
    path: str, claimed: tuple[Measurement, ...], derived: tuple[Measurement, ...], foreign: bool
) -> Iterator[Fault]:
    """Q-METRIC, metric by metric. Floats agree to 1e-9 relative: another build of numpy may sum in another order."""
    was, now = ({m.metric: m for m in side} for side in (claimed, derived))
    excused = made_by.rule("Q-METRIC", foreign)
    for name in sorted(was.keys() | now.keys()):
        one, other = was.get(name), now.get(name)
        if one is None or other is None:
            yield Fault(excused, path, f"{path}: {name}: expected {_shown(other)}, got {_shown(one)}")
        elif not close(msgspec.to_builtins(one), msgspec.to_builtins(other)):
            number = close((one.value, one.interval), (other.value, other.interval))  # else only the words differ
            message = f"{path}: {name}: expected {_shown(other)} from the samples, got {_shown(one)}"
            yield Fault(excused if number else "Q-METRIC", path, message)
    if was.keys() == now.keys() and [m.metric for m in claimed] != [m.metric for m in derived]:
        yield Fault(excused, path, f"{path}: expected each metric once, in the order of the catalogue, got others")


def _shown(measurement: Measurement | None) -> str:
    return "no such metric" if measurement is None else judge.show_value(measurement.value)
