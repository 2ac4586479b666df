"""The rules for the limits of a ladder: what a tier can be judged by, and with what. Pure."""

from __future__ import annotations

from typing import NoReturn

from harness.fields import join, refuse, show, suggest
from harness.metrics import catalogue
from harness.metrics.metric import Metric
from harness.metrics.rerank_names import SCORERS
from harness.records import Limit, Limits, Tier

PARITY = (
    "max_abs_gap",
    "p99_abs_gap",
    "mean_abs_gap",
    "gap_over_spread",
    "order_kept",
    "discordant_pairs",
    "kendall_tau_b",
    "spearman",
    "pearson",
)
"""One of these must be limited in L2. A cosine near 1 is no parity: two unrelated lists of logits around -10 have 0.998."""


def check(limits: Limits, tier: Tier, where: str) -> None:
    """Refuse a limit on a metric of another tier, on one whose limit is fixed, or with bounds that no value of its kind can meet."""
    for name, limit in limits.items():
        here, metric = join(where, name), catalogue.find(name)
        if metric is None:
            _refuse_metric(name, tier, where)
        if metric.tier != tier:
            refuse(
                where,
                f"a metric of {tier}",
                f"{show(name)}, a metric of {metric.tier}",
                f"move it to the limits of {metric.tier}",
            )
        if name in catalogue.fixed_limits(tier, "fp32", adapter=True) or name in catalogue.LOAD_LIMITS:
            refuse(
                where,
                "a metric that a ladder decides",
                f"{show(name)}, whose limit is fixed",
                "remove it; it is always judged",
            )
        _check_bounds(limit, here)
        _check_kind(limit, metric, here)


def check_enough(limits: Limits, tier: Tier, target: str) -> None:
    """Refuse limits of a target that would decide nothing: none at all, or in L2 none on the gap or the order."""
    where = f"tiers.{tier}.limits"
    if not limits:
        do = "a tier without limits would decide nothing; add a limit"
        refuse(where, f"at least one limit for the target {target}", "none", do)
    if tier == "L2" and not limits.keys() & set(PARITY):
        do = "such limits would pass other logits; add max_abs_gap or order_kept"
        refuse(where, f"a limit on the gap or the order for the target {target}", f"only {', '.join(limits)}", do)


def _refuse_metric(name: str, tier: Tier, where: str) -> NoReturn:
    base, dot, parameter = name.partition(".")
    known = catalogue.METRICS.get(catalogue.base(name))
    if known is not None and known.parameter:
        got = f"{show(name)}" if dot else f"{show(name)} alone"
        refuse(
            where,
            f"{base}.<{known.parameter}>",
            got,
            suggest(parameter, SCORERS) if known.parameter == "scorer" else "",
        )
    if known is not None:
        refuse(where, f"the metric {base!r} without a parameter", show(name), f"write {base}")
    own = [metric for metric, found in catalogue.METRICS.items() if found.tier == tier]
    do = suggest(base, own) or suggest(base, catalogue.METRICS) or f"they are {', '.join(own)}"
    refuse(where, f"a metric of {tier}", show(name), do)


def _check_bounds(limit: Limit, where: str) -> None:
    if limit.at_most is None and limit.at_least is None and limit.exactly is None:
        refuse(where, "at_most, at_least or exactly", "none of them", "add a bound")
    if limit.exactly is not None and (limit.at_most is not None or limit.at_least is not None):
        refuse(where, "exactly alone", "another bound beside it", "remove one")
    if limit.at_most is not None and limit.at_least is not None and limit.at_least > limit.at_most:
        got = f"at_least {limit.at_least:g} above at_most {limit.at_most:g}"
        refuse(where, "bounds that a value can meet", got, "swap them")


def _check_kind(limit: Limit, metric: Metric, where: str) -> None:
    """A bound must be of the metric's kind: ``at_most`` on a signature, or ``exactly: true`` on a count, could never be met."""
    word = {str: "text", bool: "true or false"}.get(metric.kind)
    if word is not None:
        if limit.exactly is None:
            refuse(where, f"exactly, since the metric is {word}", "a bound for numbers", "write exactly")
        if not isinstance(limit.exactly, metric.kind):
            refuse(f"{where}.exactly", word, show(limit.exactly))
        return
    for bound in ("at_most", "at_least", "exactly"):
        value = getattr(limit, bound)
        if value is None:
            continue
        if isinstance(value, (bool, str)):
            refuse(f"{where}.{bound}", f"a number of {metric.unit}", show(value))
        if bound == "exactly" and metric.kind is int and value != int(value):
            refuse(f"{where}.{bound}", f"a whole number of {metric.unit}", show(value))
