"""The figures of one step on both sides: whether they mean the same, by how much they differ, and how sure that is. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from harness import lineage
from harness.derive_build import COUNTS
from harness.derive_raw import raw_bytes
from harness.diff_values import Compared, Rows, Side
from harness.metrics.catalogue import METRICS, base
from harness.metrics.direction import better
from harness.metrics.rerank_names import HEADLINE, is_ranking
from harness.raw import PerfRaw
from harness.records import Measurement, Tier, Value, step_folder

if TYPE_CHECKING:
    from harness.metrics.comparison import Estimate

QUANTILES = {"p50_ms": 0.5, "p90_ms": 0.9, "p95_ms": 0.95, "p99_ms": 0.99}
PER_QUERY = HEADLINE
"""Metrics of L3 that are means over all judged queries, and are compared query by query."""
SESSIONS = "calls of both sessions resampled; another pair of sessions may differ more"
PAIRED = "queries resampled, both sides by the same query"
BOTH = "from the intervals of both sides, each end at its worst"
IN_TURNS = "measured in turns with the baseline's artifact, in one job"
PAIRED_AS = {"p50_ms": "ratio_p50", "p95_ms": "ratio_p95", "pairs_per_s": "ratio_pairs_per_s"}
"""Metrics of L1, and those of a paired measurement that say how they compare with a baseline on one machine."""
PAIRED_ONLY = frozenset({*PAIRED_AS.values(), "ratio_cpu"})


def why_not(baseline: Side, candidate: Side, before: str, after: str, tier: Tier) -> str:
    """Why no figure of a tier means the same on both sides; empty where they do."""
    one, other = baseline.records, candidate.records
    if tier == "L3":
        return _data("the ranked set", one.plan.inputs.groups, other.plan.inputs.groups)
    if tier in {"L1", "L2"}:
        data = _data("the pairs", one.plan.inputs.pairs, other.plan.inputs.pairs)
        if data or tier == "L2":
            return data
        was, now = one.plan.options.L1, other.plan.options.L1
        for name in ("candidates", "max_length"):
            if getattr(was, name, None) != getattr(now, name, None):
                return f"one call does other work: {name} {getattr(was, name, None)} and {getattr(now, name, None)}"
        sides = [side.ran_under((name, tier))[1] for side, name in ((one, before), (other, after))]
        classes = [lineage.machine_class(environment) for environment in sides]
        for name in classes[0]:
            if classes[0][name] is None or classes[0][name] != classes[1][name]:
                shown = " and ".join("unknown" if side[name] is None else f"{side[name]}" for side in classes)
                return f"another machine class: {name} {shown}; only a paired measurement compares these"
    return ""


def _data(what: str, one: object, other: object) -> str:
    for name in ("bounds", "digest"):  # other bounds make another digest, and say more
        was, now = getattr(one, name, None), getattr(other, name, None)
        if was is None or now is None:
            return f"{what} is not there on both sides"
        if was != now:
            shown = " and ".join(_bounds(side) if isinstance(side, Mapping) else f"{side}" for side in (was, now))
            return f"{what} differs: {name} {shown}"
    return ""


def _bounds(bounds: Mapping[str, Value]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(bounds.items())) or "none"


def compared(
    baseline: Side,
    candidate: Side,
    before: str,
    after: str,
    tier: Tier,
    reason: str,
    rows: Rows | None = None,
) -> tuple[Compared, ...]:
    """Every metric of either side in the order of the catalogue. ``reason`` is that of ``why_not``, ``rows`` those of L3."""
    one, other = baseline.measured(before, tier), candidate.measured(after, tier)
    one, other = _zeros(one, other), _zeros(other, one)
    other = _paired_with(baseline, candidate, other)
    order = {name: place for place, name in enumerate(METRICS)}
    names = sorted(one.keys() | other.keys(), key=lambda name: (order.get(base(name), len(order)), name))
    estimates = {} if reason else _estimates(baseline, candidate, before, after, tier, rows)
    found = [_compare(name, one.get(name), other.get(name), reason, estimates.get(name)) for name in names]
    return tuple(_in_turns(item, other.get(PAIRED_AS.get(item.metric, ""))) for item in found)


def withheld(item: Compared, baseline: str, candidate: str) -> Compared:
    """A figure of the ranking without the values that are no claim; ``baseline`` and ``candidate`` say why a side makes none."""
    of_scorers = item.metric.startswith(("row_", "sentinel."))
    if not (baseline or candidate) or not (of_scorers or is_ranking(item.metric)):
        return item
    return msgspec.structs.replace(
        item,
        baseline=None if baseline else item.baseline,
        candidate=None if candidate else item.candidate,
        candidate_interval=None if candidate else item.candidate_interval,
        difference=None,
        interval=None,
        ratio=None,
        how="",
        smoke=candidate or baseline,
    )


def _paired_with(baseline: Side, candidate: Side, found: dict[str, Measurement]) -> dict[str, Measurement]:
    """Without the ratios of a paired measurement that was not made with this baseline."""
    pinned = candidate.records.plan.inputs.baseline
    if pinned is not None and pinned.digest == baseline.digest:
        return found
    note = "it was measured beside another root than this baseline"
    return {
        name: msgspec.structs.replace(item, value=None, interval=None, note=item.note or note)
        if name in PAIRED_ONLY
        else item
        for name, item in found.items()
    }


def _in_turns(item: Compared, paired: Measurement | None) -> Compared:
    """A figure of L1 with the ratio that was measured in turns, on whichever machine, in place of that of two sessions apart."""
    base = _number(item.baseline)
    if paired is None or paired.interval is None or base is None or (ratio := _number(paired.value)) is None:
        return item
    low, high = paired.interval
    return msgspec.structs.replace(
        item,
        ratio=ratio,
        ratio_interval=(low, high),
        difference=(ratio - 1) * base,
        interval=((low - 1) * base, (high - 1) * base),
        how=IN_TURNS,
        why_not="",
    )


def _zeros(own: dict[str, Measurement], there: dict[str, Measurement]) -> dict[str, Measurement]:
    """With a 0 for each operator and dtype that only the other graph holds: a graph that was read has none of them."""
    nodes = own.get("nodes")
    if nodes is None or nodes.value is None:
        return own
    return own | {
        name: msgspec.structs.replace(found, value=0)
        for name, found in there.items()
        if name.startswith(COUNTS) and name not in own
    }


def _compare(
    name: str, was: Measurement | None, now: Measurement | None, reason: str, found: Estimate | None
) -> Compared:
    stated = now or was
    assert stated is not None
    whole = Compared(
        metric=name,
        unit=stated.unit,
        better=better(name),
        baseline=was.value if was is not None else None,
        candidate=now.value if now is not None else None,
        candidate_interval=now.interval if now is not None else None,
        why_not=_why_not(was, now, reason),
    )
    one, other = (_number(side) for side in (whole.baseline, whole.candidate))
    if whole.why_not or one is None or other is None or was is None or now is None:
        return whole
    ratio = other / one if one > 0 else None
    whole = msgspec.structs.replace(whole, difference=other - one, ratio=ratio)
    if found is not None and METRICS[name].tier == "L3":
        return msgspec.structs.replace(whole, interval=(found.low, found.high), how=PAIRED)
    if found is not None and ratio is not None:
        ends = (found.low, found.high)
        between = ((ends[0] - 1) * one, (ends[1] - 1) * one)
        return msgspec.structs.replace(whole, ratio=found.value, ratio_interval=ends, interval=between, how=SESSIONS)
    if was.interval is not None and now.interval is not None:
        between = (now.interval[0] - was.interval[1], now.interval[1] - was.interval[0])
        return msgspec.structs.replace(whole, interval=between, how=BOTH)
    return whole


def _why_not(was: Measurement | None, now: Measurement | None, reason: str) -> str:
    for side, found in (("candidate", now), ("baseline", was)):
        if found is None:
            return f"the {side} has no such figure"
        if found.value is None:
            return f"the {side}'s is unknown{': ' if found.note else ''}{found.note}"
    assert was is not None
    assert now is not None
    if was.unit != now.unit:
        return f"another unit: {was.unit} and {now.unit}"
    return reason


def _number(value: Value) -> float | None:
    if isinstance(value, bool | str) or value is None or not math.isfinite(value):
        return None
    return value


def _estimates(
    baseline: Side, candidate: Side, before: str, after: str, tier: Tier, rows: Rows | None
) -> dict[str, Estimate]:
    """Intervals from the raw samples: of latencies as ratios, of ranking metrics as differences."""
    if tier == "L1":
        return _of_calls(baseline, candidate, before, after)
    if rows is not None:
        return _of_queries(rows, candidate.records.plan.seed)
    return {}


def _of_calls(baseline: Side, candidate: Side, before: str, after: str) -> dict[str, Estimate]:
    from harness.metrics import comparison

    if not all(side.measured(name, "L1") for side, name in ((baseline, before), (candidate, after))):
        return {}
    one, other = (
        msgspec.json.decode(raw_bytes(side.read, f"{step_folder('L1', name)}/samples.json"), type=PerfRaw).steady_ms
        for side, name in ((baseline, before), (candidate, after))
    )
    seed = candidate.records.plan.seed
    means = comparison.ratio_of_means(one, other, seed)
    found = {name: comparison.ratio_of_quantiles(one, other, q, seed) for name, q in QUANTILES.items()}
    found["mean_ms"] = means
    if means is not None:  # pairs a call are the same, else the tier does not compare
        found["pairs_per_s"] = comparison.Estimate(1 / means.value, 1 / means.high, 1 / means.low)
    return {name: estimate for name, estimate in found.items() if estimate is not None}


PER_QUERY_METRICS = tuple(name + suffix for name in PER_QUERY for suffix in ("", "_drop"))


def _of_queries(rows: Rows, seed: int) -> dict[str, Estimate]:
    """Differences of means over the judged queries, of the artifact and of what it lacks of the reference."""
    import numpy as np

    from harness.metrics import comparison

    columns = []
    for name in PER_QUERY:
        was, now = (side.artifact[name][side.judged] for side in rows)
        lost, loses = (side.reference[name][side.judged] - side.artifact[name][side.judged] for side in rows)
        columns += [now - was, loses - lost]
    found = comparison.paired_means(np.stack(columns, axis=1), seed)
    return dict(zip(PER_QUERY_METRICS, found, strict=True)) if found is not None else {}
