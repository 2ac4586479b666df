"""The figures that stand for a tier, and the rows of scorers beside the artifact, from the records of a root. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.metrics.rerank_names import is_drop, is_ranking, spoken
from harness.records import Measurement, PlannedTarget, Tier
from harness.report import view, wording
from harness.root import RootRecords

KEY_FIGURES: dict[Tier, tuple[tuple[str, str], ...]] = {
    "L0": (
        ("payload", "payload_bytes"),
        ("precision", "realised_precision"),
        ("opset", "opset"),
        ("payload over fp32", "payload_ratio"),
        ("operators", "nodes"),
        ("load", "session_load_ms"),
    ),
    "L1": (
        ("p50", "p50_ms"),
        ("throughput", "pairs_per_s"),
        ("peak RSS", "peak_rss_bytes"),
        ("p95", "p95_ms"),
        ("first call", "first_call_ms"),
        ("drift", "drift_ratio"),
    ),
    "L2": (
        ("max gap", "max_abs_gap"),
        ("Kendall tau-b", "kendall_tau_b"),
        ("order kept", "order_kept"),
        ("gap over spread", "gap_over_spread"),
        ("non-finite", "non_finite_count"),
        ("pairs", "pairs"),
        ("most of the gap from", "gap_step"),
    ),
    "L3": (
        ("nDCG@10", "ndcg_at_10"),
        ("drop", "ndcg_at_10_drop"),
        ("MRR@10", "mrr_at_10"),
        ("MAP", "map"),
    ),
}
"""Label and metric of the figures that stand for a tier, the most telling first. Before those of L3 stand the metrics that limits gate."""


class Figures(NamedTuple):
    """Label and metric of each figure; ``first`` of them are so telling that no output leaves them out."""

    shown: tuple[tuple[str, str], ...]
    first: int


def figures(tier: Tier, targets: Iterable[PlannedTarget]) -> Figures:
    """The key figures of a tier on these targets; of L3 first what a limit is on, a drop behind the metric that it is a drop of.

    Margins over random order and sentinels say nothing of the ranking that nDCG@10 beside its drop does not.
    """
    if tier != "L3":
        return Figures(KEY_FIGURES[tier], 0)
    named = (name for target in targets for step in target.steps if step.tier == "L3" for name in step.limits)
    own = [name for name in dict.fromkeys(named) if is_ranking(name) and "_over_" not in name]
    own.sort(key=lambda name: name.startswith(("kendall_", "overlap_")))  # agreement behind what it is about
    gated = [*dict.fromkeys(part for name in own for part in (name.removesuffix("_drop"), name))]
    names = [*dict.fromkeys([*gated, *(metric for _, metric in KEY_FIGURES["L3"])])]
    drop = next(filter(is_drop, names))  # the first is called just that; the others say of what
    return Figures(tuple(("drop" if name == drop else spoken(name), name) for name in names), len(gated))


def comparisons(records: RootRecords, target: str) -> list[tuple[str, str]]:
    """What L1 was timed in turn with, and what came of it in words; nothing where it was not asked for, or L1 has no numbers."""
    options, baseline = records.plan.options.L1, records.plan.inputs.baseline
    asked = (
        (baseline is not None, "against baseline", "ratio_p50", "of its time", ("faster", "slower")),
        (
            options is not None and options.eager,
            "against PyTorch eager",
            "ratio_eager",
            "times as fast",
            ("slower", "faster"),
        ),
    )
    found = []
    for given, label, metric, words, ends in asked:
        ratio = view.measurement(records, target, "L1", metric)
        if given and ratio is not None:
            found.append((label, wording.compared(ratio, words, ends)))
    return found


OWN = "this artifact"
ROW_NAMES = {
    "reference": "PyTorch fp32",
    "source_order": "source order",
    "random": "random order",
    "oracle": "perfect order",
    "constant": "constant scorer",
    "length": "document length",
    "reversed": "PyTorch reversed",
    "nan": "NaN scorer",
    "word_overlap": "word overlap",
    "bm25": "BM25",
}
"""The scorers beside the model, as people call them."""


def key_figures(records: RootRecords, target: str, tier: Tier, most: int | None = None) -> list[tuple[str, str]]:
    """Label and text of a tier's key figures, those that were measured; none of a smoke test, which claims nothing."""
    if tier == "L3" and view.smoke(records, target):
        return []
    chosen = figures(tier, (planned for planned in records.plan.targets if planned.name == target))
    shown = chosen.shown if most is None else chosen.shown[: max(most, chosen.first)]
    found = ((label, view.measurement(records, target, tier, metric)) for label, metric in shown)
    return [(label, wording.measured(m)) for label, m in found if m is not None]


def scorer_rows(records: RootRecords, target: str, metric: str = "ndcg_at_10") -> list[tuple[str, Measurement]]:
    """A headline metric of the artifact and of every scorer beside it that has a value, best first; none of a smoke test."""
    own = view.measurement(records, target, "L3", metric)
    if own is None or not isinstance(own.value, float) or view.smoke(records, target):
        return []
    rows = [(OWN, own, own.value)]
    for m in view.measurements(records, target, "L3"):
        base, _, scorer = m.metric.partition(".")
        if base == f"row_{metric}" and isinstance(m.value, float):
            rows.append((ROW_NAMES.get(scorer, scorer), m, m.value))
    return [(name, m) for name, m, _ in sorted(rows, key=lambda row: -row[2])]
