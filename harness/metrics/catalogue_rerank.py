"""The metrics of L3, for ``catalogue``: whether it still ranks. Pure; no import of numpy."""

from __future__ import annotations

from harness.metrics import rerank_names
from harness.metrics.metric import Metric

METRICS: dict[str, Metric] = {
    "groups": Metric("L3", "groups", int, "groups scored"),
    "judged_groups": Metric("L3", "groups", int, "groups with at least one positive and one negative"),
    "scored_pairs": Metric("L3", "pairs", int, "pairs scored"),
    "non_finite_scores": Metric("L3", "logits", int, "NaN or infinite logits on either side"),
    **{name: Metric("L3", unit, float, meaning) for name, (unit, meaning) in rerank_names.RANKING.items()},
    **{
        f"row_{name}": Metric(
            "L3", rerank_names.RANKING[name][0], float, f"{name} of one other scorer on the same groups", "scorer"
        )
        for name in rerank_names.HEADLINE
    },
    "sentinel": Metric(
        "L3",
        "score",
        float,
        "a ranking metric with a scorer without knowledge in the artifact's place",
        "sentinel and metric",
    ),
    "passing_sentinels": Metric(
        "L3",
        "of 5",
        int,
        "scorers without knowledge that would meet every limit on the ranking; counted when it is judged",
    ),
    "random_pass_chance": Metric(
        "L3", "probability", float, "chance that ranking at random meets every limit on the ranking, on these groups"
    ),
    "rerank_pairs_per_s": Metric("L3", "pairs/s", float, "pairs scored per second by the artifact, tokenisation apart"),
}
