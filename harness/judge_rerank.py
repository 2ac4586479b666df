"""What a number of groups can show: when an interval of L3 is too wide, how many groups would do, and what is called a smoke test. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

from harness.metrics.rerank_names import is_drop, is_ranking
from harness.records import Finding, Limit, Measurement, Qualification

SMOKE = "functional smoke"

SMOKE_BELOW = 30
"""Judged groups that a bootstrap interval needs. Percentile intervals of few values are too narrow: a nominal 95% covers about 90% at
10 values and 94% at 30 (Hesterberg 2015, "What Teachers Should Know About the Bootstrap", 4.1)."""


def too_wide(limit: Limit, interval: tuple[float, float]) -> bool:
    """Whether the interval of a drop is wider than the drop allowed, so that the groups are too few to tell."""
    return limit.at_most is not None and limit.at_most > 0 and interval[1] - interval[0] > limit.at_most


def groups_needed(limit: Limit, value: float, interval: tuple[float, float], groups: int, *, drop: bool) -> int | None:
    """How many groups would decide, if queries differ as these do: the width of an interval falls with the square root of their number.

    For a drop the interval must be as narrow as the drop allowed; for others half of it as narrow as the mean's distance from the
    bound (Sakai 2018, "Laboratory Experiments in Information Retrieval", ch. 6). None where no number of groups would.
    """
    width = interval[1] - interval[0]
    if drop and limit.at_most is not None and too_wide(limit, interval):
        return math.ceil(groups * (width / limit.at_most) ** 2)
    room = min((abs(value - bound) for bound in (limit.at_most, limit.at_least) if bound is not None), default=0.0)
    needed = groups * (width / 2 / room) ** 2 if room > 0 else math.inf
    return math.ceil(needed) if needed < 1e9 else None


def more_groups(limit: Limit, measurement: Measurement) -> str:
    """How many groups would decide an inconclusive metric of the ranking, in words."""
    value, interval, groups = measurement.value, measurement.interval, measurement.samples
    if not is_ranking(measurement.metric) or not isinstance(value, int | float) or interval is None or not groups:
        return ""
    drop = is_drop(measurement.metric)
    needed = groups_needed(limit, value, interval, groups, drop=drop)
    if needed is None:
        return "no number of groups would decide it while the mean stays at the limit"
    wide = f"the interval is {interval[1] - interval[0]:.3g} wide; " if drop and too_wide(limit, interval) else ""
    return f"{wide}about {needed:,} groups would decide it, not {groups:,}, if queries differ as these do"


def smoke(findings: Iterable[Finding]) -> str:
    """The label of an L3 whose groups are too few for an interval, or for one as narrow as a drop allowed; else empty.

    Such a step shows that ranking works. Its figures are no claim of accuracy, and reports print none.
    """
    by_name = {finding.metric: finding for finding in findings}
    judged = by_name["judged_groups"].value if "judged_groups" in by_name else None
    if not isinstance(judged, int):
        return ""
    groups = f"{SMOKE}: {judged:,} judged group{'' if judged == 1 else 's'}"
    if judged < SMOKE_BELOW:
        return f"{groups}, and an interval needs {SMOKE_BELOW}; no claim of accuracy"
    for name, finding in by_name.items():
        limit, interval = finding.limit, finding.interval
        if is_drop(name) and interval is not None and isinstance(finding.value, float) and too_wide(limit, interval):
            needed = groups_needed(limit, finding.value, interval, judged, drop=True)
            return f"{groups}, and the limit of {name} needs about {needed:,}; no claim of accuracy"
    return ""


def claimed(claim: Qualification) -> dict[str, str]:
    """The label of every target whose L3 is a smoke test, by target, where only the claim is at hand.

    The reason of such an L3 ends with it, and ``verify`` derives that reason again, so one that was edited does not hold.
    """
    labels = {}
    for target in claim.targets:
        _, label, why = target.reason.rpartition(f"{SMOKE}: ")
        if label and target.reason.startswith("L3: "):
            labels[target.name] = label + why
    return labels
