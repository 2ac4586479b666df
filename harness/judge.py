"""Measurements x limits -> findings -> verdicts. Pure; no I/O, no ML import.

Rules, in the order they are tried (DESIGN section 2: nothing is ever PASS by default):

1. A limit whose metric was not measured, or is null, is BLOCKED: there is no number.
2. A value of another kind than the limit (text against a bound, a bool against a number) is BLOCKED.
3. With an interval, a bound is PASS when the whole interval meets it, FAIL when none of it does, else INCONCLUSIVE.
4. Without an interval the value alone decides.
5. A drop of L3 whose interval is wider than the drop allowed is INCONCLUSIVE where rule 3 says PASS: the groups are too few to tell.
6. ``passing_sentinels`` is counted here: a scorer without knowledge that would meet every limit on the ranking in the artifact's
   place makes the finding INCONCLUSIVE. There are numbers, so it is not BLOCKED, and they say nothing against the artifact, so it
   is not FAIL; but they cannot decide. Limits of which none looks at the ranking are passed by every scorer.
7. A condition of the measurement that breaks its limit (a busy machine, an interval that stayed wide) is INCONCLUSIVE, never FAIL.
   Where it is the machine's, so is then every figure that is made of times and breaks its own: it may be the machine's, not the artifact's.
8. A step is FAIL if any finding is, else BLOCKED, else INCONCLUSIVE; PASS needs a finding, and all of them PASS.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from harness.judge_rerank import more_groups, smoke, too_wide
from harness.metrics.catalogue import is_condition, is_time
from harness.metrics.rerank_names import SENTINELS, is_drop, is_ranking
from harness.records import (
    Coverage,
    Finding,
    GateClaim,
    Limit,
    Limits,
    LockClaim,
    Measurement,
    Outcome,
    Plan,
    PlannedTarget,
    Qualification,
    TargetClaim,
    Tier,
    Value,
    Verdict,
)

WORST_FIRST: tuple[Verdict, ...] = ("FAIL", "BLOCKED", "INCONCLUSIVE", "NOT_RUN", "PASS")
"""A number that broke a limit outranks a missing one: the answer is already no."""


def judge(limits: Limits, measurements: Iterable[Measurement]) -> tuple[Finding, ...]:
    """Judge every limit, sorted by metric name. A metric measured twice is BLOCKED: which one would count?"""
    by_name: dict[str, Measurement | None] = {}
    for measurement in measurements:
        by_name[measurement.metric] = None if measurement.metric in by_name else measurement
    found = tuple(
        _sentinels(limits, by_name) if name == "passing_sentinels" else _finding(name, limits[name], by_name.get(name))
        for name in sorted(limits)
    )
    failed = [finding.metric for finding in found if finding.verdict == "FAIL"]
    unfit = [metric for metric in failed if is_condition(metric) and not is_time(metric)]
    return tuple(_undecided(finding, unfit) for finding in found)


def _undecided(finding: Finding, unfit: Sequence[str]) -> Finding:
    """Rule 7."""
    condition, timed = is_condition(finding.metric), is_time(finding.metric)
    if finding.verdict != "FAIL" or not (condition or (timed and unfit)):
        return finding
    why = "the figure is not known well enough" if timed else "the machine was not fit to measure"
    why = f"measured under {unfit[0]}" if timed and unfit else why
    return msgspec.structs.replace(finding, verdict="INCONCLUSIVE", text=f"{finding.text}; {why}")


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of the verdicts; NOT_RUN when there is none, never PASS by default."""
    found = set(verdicts)
    return next((verdict for verdict in WORST_FIRST if verdict in found), "NOT_RUN")


def step_verdict(findings: Sequence[Finding]) -> Verdict:
    """The verdict of a step from its findings; a step without a limit judged is BLOCKED."""
    return worst(finding.verdict for finding in findings) if findings else "BLOCKED"


def _finding(metric: str, limit: Limit, measurement: Measurement | None) -> Finding:
    value = measurement.value if measurement else None
    interval = measurement.interval if measurement else None
    verdict, why = decide(metric, limit, value, interval)
    unit = measurement.unit if measurement else ""
    if measurement is not None and measurement.note and verdict != "PASS" and (value is None or not why):
        why = measurement.note
    if verdict == "INCONCLUSIVE" and measurement is not None:
        why = "; ".join(filter(None, (why, more_groups(limit, measurement))))
    return Finding(
        metric=metric,
        limit=limit,
        value=value,
        interval=interval,
        verdict=verdict,
        text=sentence(metric, limit, value, interval, unit, why),
    )


def decide(metric: str, limit: Limit, value: Value, interval: tuple[float, float] | None) -> tuple[Verdict, str]:
    """The verdict of one value against its limit, and why where that is not plain from the numbers."""
    if value is None:
        return "BLOCKED", "not measured"
    bounds = [bound for bound in (limit.at_most, limit.at_least, limit.exactly) if bound is not None]
    if not bounds or any(_kind(bound) is not _kind(value) for bound in bounds):
        return "BLOCKED", "the limit has no bound of the value's kind"
    if limit.exactly is not None:
        return ("PASS" if value == limit.exactly else "FAIL"), ""
    if isinstance(value, bool | str):
        return "BLOCKED", "only a number can be compared with a bound"
    low, high = interval if interval is not None else (value, value)
    if not all(map(math.isfinite, (value, low, high))) or not low <= value <= high:
        return "BLOCKED", "the value is not finite, or lies outside its own interval"
    verdict = worst(_bounds(limit, low, high))
    if verdict == "PASS" and is_drop(metric) and too_wide(limit, (low, high)):
        return "INCONCLUSIVE", ""
    return verdict, ""


def _bounds(limit: Limit, low: float, high: float) -> Iterable[Verdict]:
    if limit.at_most is not None:
        yield "PASS" if high <= limit.at_most else "FAIL" if low > limit.at_most else "INCONCLUSIVE"
    if limit.at_least is not None:
        yield "PASS" if low >= limit.at_least else "FAIL" if high < limit.at_least else "INCONCLUSIVE"


def _sentinels(limits: Limits, by_name: Mapping[str, Measurement | None]) -> Finding:
    """Rule 6."""
    limit = limits["passing_sentinels"]
    asked = [name for name in limits if is_ranking(name)]
    absent = [name for name in asked if name in by_name and f"sentinel.{SENTINELS[0]}.{name}" not in by_name]
    passing = [scorer for scorer in SENTINELS if scorer != "nan" or asked]
    for name in asked:
        found = {scorer: by_name.get(f"sentinel.{scorer}.{name}") for scorer in passing}
        passing = [
            scorer for scorer, m in found.items() if m and decide(name, limits[name], m.value, m.interval)[0] == "PASS"
        ]
    verdict: Verdict
    if absent:
        verdict, value, why = "BLOCKED", None, f"sentinel.{SENTINELS[0]}.{absent[0]} was not measured"
    elif not asked:
        verdict, value, why = (
            "INCONCLUSIVE",
            len(passing),
            "no limit looks at the ranking, so any scorer meets them all",
        )
    elif passing:
        scorers = " and ".join([", ".join(passing[:-1]), passing[-1]] if len(passing) > 1 else passing)
        verdict, value = "INCONCLUSIVE", len(passing)
        why = f"{scorers} would meet every limit on the ranking, so these groups cannot tell a reranker from that; add groups or limits"
    else:
        verdict, value, why = "PASS", 0, ""
    return Finding(
        metric="passing_sentinels",
        limit=limit,
        value=value,
        interval=None,
        verdict=verdict,
        text=sentence("passing_sentinels", limit, value, None, "of 5", why),
    )


def _kind(value: Value) -> type:
    """Numbers are one kind; a bool is not a number."""
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def show_value(value: Value) -> str:
    """A value as a sentence shows it: six significant digits, integers whole, text quoted."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value)
    return (
        f"{value:,}" if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15) else f"{value:.6g}"
    )


def show_limit(limit: Limit) -> str:
    """A limit in words, e.g. ``at most 0.001``."""
    words = (("at most", limit.at_most), ("at least", limit.at_least), ("exactly", limit.exactly))
    return " and ".join(f"{word} {show_value(bound)}" for word, bound in words if bound is not None)


def sentence(metric: str, limit: Limit, value: Value, interval: tuple[float, float] | None, unit: str, why: str) -> str:
    """A finding in words; ``why`` stands behind a colon."""
    shown = show_value(value)
    if interval is not None:
        shown += f" (95% {show_value(interval[0])} to {show_value(interval[1])})"
    unit = f" {unit}" if unit and value is not None else ""
    reason = f": {why}" if why else ""
    return f"{metric}: expected {show_limit(limit)}, got {shown}{unit}{reason}"


# --- from steps to the claim ------------------------------------------------------------------------------------------


def target_claim(target: PlannedTarget, outcomes: Mapping[Tier, Outcome]) -> TargetClaim:
    """What became of one target. Steps after the first that is not PASS are NOT_RUN."""
    tiers: dict[str, Verdict] = {}
    reached: Tier | None = None
    reason = target.deferred or ""
    stopped = False
    for step in target.steps:
        outcome = None if stopped else outcomes.get(step.tier)
        tiers[step.tier] = outcome.verdict if outcome else "NOT_RUN"
        if outcome is not None and outcome.verdict == "PASS":
            reached = step.tier
            reason = f"{step.tier}: {outcome.reason}" if outcome.reason else ""
        elif not stopped:
            stopped = True
            reason = f"{step.tier}: {outcome.reason}" if outcome else f"{step.tier}: not run"
    verdict = worst(found for found in tiers.values() if found != "NOT_RUN") if tiers else "NOT_RUN"
    if verdict == "PASS" and stopped:
        verdict = "NOT_RUN"
    return TargetClaim(
        name=target.name, verdict=verdict, reached=reached, deferred=target.deferred, tiers=tiers, reason=reason
    )


def qualification(
    plan: Plan,
    plan_digest: str,
    outcomes: Mapping[tuple[str, Tier], Outcome],
    started_at: str,
    ended_at: str,
    gates: tuple[GateClaim, ...] = (),
    lock: LockClaim | None = None,
) -> Qualification:
    """The claim of a whole climb: the worst target, gate or lock decides; deferred targets only narrow the coverage."""
    claims = tuple(
        target_claim(target, {tier: o for (name, tier), o in outcomes.items() if name == target.name})
        for target in plan.targets
    )
    reached = tuple(c.name for c in claims if c.verdict == "PASS" and c.reached == plan.goal)
    deferred = tuple(c.name for c in claims if c.deferred is not None)
    missed = tuple(c.name for c in claims if c.name not in reached and c.name not in deferred)
    beside = [
        found for found in (*(gate.verdict for gate in gates), *((lock.verdict,) if lock else ())) if found != "PASS"
    ]
    return Qualification(
        format=1,
        ladder=plan.ladder,
        plan_digest=plan_digest,
        candidate_digest=plan.candidate.digest,
        verdict=worst([c.verdict for c in claims if c.deferred is None] + beside),
        targets=claims,
        coverage=Coverage(
            goal=plan.goal, reached=reached, missed=missed, deferred=deferred, complete=len(reached) == len(claims) > 0
        ),
        started_at=started_at,
        ended_at=ended_at,
        gates=gates,
        lock=lock,
    )


def outcome_reason(verdict: Verdict, findings: Sequence[Finding]) -> str:
    """Why a judged step has its verdict: the worst finding's sentence, how many others share that verdict, and ``smoke``."""
    label = smoke(findings)
    if verdict == "PASS":
        return label
    same = [finding for finding in findings if finding.verdict == verdict]
    if not same:
        return "no limit was judged"
    more = f" (and {len(same) - 1} more)" if len(same) > 1 else ""
    return same[0].text + more + (f"; {label}" if label else "")


# --- a step that is carried from an earlier root ----------------------------------------------------------------------


def broke(outcome: Outcome) -> bool:
    """Whether the child ended badly, so that its numbers, if any, do not count."""
    return outcome.exit is None or outcome.exit.timed_out or outcome.exit.code != 0


def again(outcome: Outcome, limits: Limits, measurements: Iterable[Measurement] | None) -> Outcome:
    """The outcome of a step under other limits than it was judged by. One without numbers that count stays as it is."""
    if measurements is None or broke(outcome):
        return outcome
    findings = judge(limits, measurements)
    verdict = step_verdict(findings)
    return msgspec.structs.replace(
        outcome, verdict=verdict, findings=findings, reason=outcome_reason(verdict, findings)
    )


def exit_code(verdict: Verdict) -> int:
    """DESIGN section 6: 0 qualified, 10 no on merit, 30 undetermined."""
    return {"PASS": 0, "FAIL": 10}.get(verdict, 30)
