"""What every output says of a root, taken from its records: problems worst first, coverage, bounds. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from evidence.report import AUTHENTICITY
from harness import judge_rerank
from harness.judge import WORST_FIRST
from harness.records import (
    TIER_NAMES,
    TIERS,
    Adapter,
    Finding,
    Limits,
    Measurement,
    Plan,
    PlannedTarget,
    SessionOptions,
    TargetClaim,
    Tier,
    Verdict,
)
from harness.report import wording
from harness.root import RootRecords

SMOKE = judge_rerank.SMOKE
NOT_VOUCHED = f"none: {AUTHENTICITY['none']}"
"""The authenticity of a root that was looked at without a digest or a key from elsewhere."""
NOT_SHOWN = (
    "The figures of the ranking are sealed with the step; they are not shown, since they would be read as such a claim."
    " A limit that was not met is shown with its figure, since that says why."
)


class Problem(NamedTuple):
    """A step that is not PASS: why in one sentence, and each of its findings that is not PASS, worst first."""

    target: str
    tier: Tier
    verdict: Verdict
    reason: str
    findings: tuple[Finding, ...]


class Bounds(NamedTuple):
    """How much was ranked. ``candidates`` is the mean per group; ``smoke`` says why it is too little for a claim, else empty.

    ``rest`` is the other bounds: the length that pairs were cut at, the candidates that were asked for where groups had fewer, the pairs
    in all, and how groups were chosen if not the first.
    """

    groups: int
    candidates: float
    smoke: str
    rest: str = ""

    def __str__(self) -> str:
        """E.g. ``functional smoke: 6 groups x 10 candidates, 512 tokens``."""
        whole = self.candidates == int(self.candidates)
        each = f"{int(self.candidates)} candidates" if whole else f"{self.candidates:.1f} candidates (mean)"
        size = f"{self.groups:,} group{'' if self.groups == 1 else 's'} x {each}"
        return f"{f'{SMOKE}: ' if self.smoke else ''}{size}{', ' if self.rest else ''}{self.rest}"


def adapter_line(adapter: Adapter) -> str:
    """What is loaded onto the model, e.g. ``law at <commit>, LoRA of rank 8 on 24 layers (query, value), with its own head``."""
    at = f" at {adapter.revision}" if adapter.revision else ""
    head = "with its own head" if adapter.head else "under the base's head"
    where = f"{adapter.layers} layers ({', '.join(adapter.target_modules)})"
    return f"{adapter.model}{at}, LoRA of rank {adapter.rank} on {where}, {head}"


def tiers(plan: Plan) -> tuple[Tier, ...]:
    """The tiers up to the goal."""
    return TIERS[: TIERS.index(plan.goal) + 1]


def claims(records: RootRecords) -> dict[str, TargetClaim]:
    """The claims by target."""
    return {claim.name: claim for claim in records.claim.targets}


def measurement(records: RootRecords, target: str, tier: Tier, metric: str) -> Measurement | None:
    """One measurement; None when the step or the metric is not there."""
    return next((m for m in measurements(records, target, tier) if m.metric == metric), None)


def measurements(records: RootRecords, target: str, tier: Tier) -> tuple[Measurement, ...]:
    """All measurements of a step; none when it has none."""
    step = records.steps.get((target, tier))
    return step.measurements.measurements if step and step.measurements else ()


def severity(verdict: Verdict) -> int:
    """0 for the worst verdict."""
    return WORST_FIRST.index(verdict)


def problems(records: RootRecords) -> list[Problem]:
    """Steps that are not PASS, worst first, otherwise in plan order."""
    found = []
    for (target, tier), step in records.steps.items():
        outcome = step.outcome
        if outcome.verdict == "PASS":
            continue
        open_findings = sorted((f for f in outcome.findings if f.verdict != "PASS"), key=lambda f: severity(f.verdict))
        found.append(Problem(target, tier, outcome.verdict, outcome.reason, tuple(open_findings)))
    return sorted(found, key=lambda problem: severity(problem.verdict))


class Beside(NamedTuple):
    """A gate, or the installed packages against the lock: what it is, its verdict, why, and each package that differs."""

    name: str
    verdict: Verdict
    reason: str
    findings: tuple[Finding, ...]


def beside(records: RootRecords) -> list[Beside]:
    """What was judged beside the targets, worst first: a gate that did not pass is why nothing was climbed."""
    found = [Beside(f"gate {gate.name}", gate.verdict, gate.reason, ()) for gate in records.claim.gates]
    lock = records.claim.lock
    if lock is not None:
        count = len(lock.differences)
        words = f"{count} package{'' if count == 1 else 's'} differ{'s' if count == 1 else ''} from {lock.file}"
        found.append(Beside(f"lock {lock.file}", lock.verdict, f"{words} ({lock.parity})", lock.differences))
    return sorted(found, key=lambda item: severity(item.verdict))


def headline(records: RootRecords) -> str:
    """One sentence: how many targets reached the goal, e.g. ``1 of 3 targets reached L3 rerank``, and whether that is a smoke test."""
    coverage = records.claim.coverage
    count = len(records.plan.targets)
    label = f" ({SMOKE})" if smoke_labels(records) else ""
    return f"{len(coverage.reached)} of {count} target{'' if count == 1 else 's'} reached {tier_name(coverage.goal)}{label}"


def smoke(records: RootRecords, target: str) -> str:
    """Why the L3 of a target is a functional smoke test; empty where it is not, or did not run."""
    step = records.steps.get((target, "L3"))
    return judge_rerank.smoke(step.outcome.findings) if step else ""


def smoke_labels(records: RootRecords) -> list[str]:
    """Every reason why an L3 of the root is a functional smoke test, each once."""
    return [label for label in dict.fromkeys(smoke(records, target.name) for target in records.plan.targets) if label]


def coverage_line(records: RootRecords) -> str:
    """Coverage in one sentence, with every target's name. The names are not escaped."""
    coverage = records.claim.coverage
    parts = [
        f"{word} {', '.join(names)}"
        for word, names in (("reached", coverage.reached), ("missed", coverage.missed), ("deferred", coverage.deferred))
        if names
    ]
    state = "complete" if coverage.complete else "partial"
    return f"{state} at {tier_name(coverage.goal)}: {'; '.join(parts) or 'no target'}"


def redacted(records: RootRecords) -> dict[str, int]:
    """How many secrets were taken out of the logs of each gate and step; those of which none was are left out."""
    found = {f"gate {name}": gate.redactions for name, gate in records.gates.items()}
    found |= {f"{tier} {target}": step.outcome.redactions for (target, tier), step in records.steps.items()}
    return {name: count for name, count in found.items() if count}


def redacted_line(records: RootRecords) -> str:
    """How many secrets were taken out of which logs, in one sentence; empty where there was none. The names are not escaped."""
    found = redacted(records)
    count = sum(found.values())
    said = f"{count:,} secret{' was' if count == 1 else 's were'} taken out of the logs of {', '.join(found)}"
    return said if count else ""


class Carried(NamedTuple):
    """Steps that did not run here: the digest of the root in which they ran, their names, and limits judged here that differ there."""

    origin: str
    steps: tuple[str, ...]
    limits: tuple[str, ...]


def carried(records: RootRecords) -> list[Carried]:
    """What the root carries of earlier ones, an entry a root, sorted by digest."""
    found = []
    for origin, its in sorted(records.origins.items()):
        keys = [key for key, where in records.preserved.items() if where == origin]
        before, here = (_limits(plan) for plan in (its.plan, records.plan))
        differing = [
            f"{tier} of {target}" for target, tier in keys if before.get((target, tier)) != here.get((target, tier))
        ]
        found.append(Carried(origin, tuple(f"{tier} of {target}" for target, tier in keys), tuple(differing)))
    return found


def carried_line(entry: Carried) -> str:
    """One sentence of what is carried. The names are not escaped."""
    line = f"{', '.join(entry.steps)}: preserved from {entry.origin}"
    return line + (f"; judged by other limits than there: {', '.join(entry.limits)}" if entry.limits else "")


def _limits(plan: Plan) -> dict[tuple[str, Tier], Limits]:
    return {(target.name, step.tier): step.limits for target in plan.targets for step in target.steps}


def tier_name(tier: Tier) -> str:
    """E.g. ``L2 parity``."""
    return f"{tier} {TIER_NAMES[tier]}"


def bounds(records: RootRecords, target: str) -> Bounds | None:
    """The bounds of a target's L3 figures, from what was scored; None when it was not."""

    def count(metric: str) -> int | None:
        found = measurement(records, target, "L3", metric)
        return found.value if found and isinstance(found.value, int) else None

    groups, pairs = count("groups"), count("scored_pairs")
    if not groups or pairs is None:
        return None
    mean = pairs / groups
    return Bounds(groups=groups, candidates=mean, smoke=smoke(records, target), rest=_other_bounds(records.plan, mean))


def _other_bounds(plan: Plan, candidates: float) -> str:
    """``candidates`` is the mean per group; where every group has as many as were asked for, they stand there already."""
    options, fact = plan.options.L3, plan.inputs.groups
    if options is None or fact is None:
        return ""
    said = {"groups", *({"candidates"} if fact.bounds.get("candidates") == candidates else ())}
    chosen = {name: value for name, value in fact.bounds.items() if name not in said}
    return ", ".join([f"{options.max_length} tokens", *([wording.bounds(chosen)] if chosen else [])])


def time_limit(plan: Plan) -> str:
    """How long L3 may take. It ends the step and never shortens the set, so it is no bound of the figures (docs/decisions/0014)."""
    return (
        f"the step may take {wording.quantity(plan.options.L3.time_limit_s, 's')}"
        if plan.options.L3 is not None
        else ""
    )


def seconds(records: RootRecords, target: str, tier: Tier) -> float | None:
    """Wall time of a step's child process; None for one that did not run here."""
    step = records.steps.get((target, tier)) if (target, tier) not in records.preserved else None
    return step.outcome.exit.seconds if step and step.outcome.exit else None


def target_line(target: PlannedTarget) -> str:
    """What a target is: precision, provider, threads, and its artifact when it was brought."""
    own = f", prebuilt {target.artifact.name}" if target.artifact else ""
    session = "".join(
        f", {name.replace('_', ' ')} {_option(value)}"
        for name, value in msgspec.structs.asdict(target.session).items()
        if value != getattr(SessionOptions(), name)
    )
    threads = f"{target.threads} thread{'' if target.threads == 1 else 's'}"
    return f"{target.precision} on {target.provider}, {threads}{session}{own}"


def _option(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
