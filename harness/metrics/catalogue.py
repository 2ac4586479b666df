"""Every metric a limit can name: its tier, unit, meaning, and the limits no ladder can loosen.

A name may take a parameter after a dot where the catalogue says so (``initializer_count.FLOAT16``), and a name of L3 that is cut at
10 may be cut elsewhere (``ndcg_at_5``). Pure; no import of numpy.
"""

from __future__ import annotations

import re

from harness.metrics import catalogue_build, catalogue_parity, catalogue_perf, catalogue_rerank, rerank_names
from harness.metrics.metric import Metric
from harness.records import Limit, Limits, Precision, Tier

METRICS: dict[str, Metric] = {
    **catalogue_build.METRICS,
    **catalogue_perf.METRICS,
    **catalogue_parity.METRICS,
    **catalogue_rerank.METRICS,
}

BUILD_STEPS = ("export", "optimise", "convert")
"""The steps of a build after which logits are kept, the parameter of ``gap_after``."""

PARAMETERS = {
    "operator type": re.compile(r"[A-Za-z0-9_]+"),
    "ONNX dtype": re.compile(r"[A-Z0-9]+"),
    "scorer": re.compile("|".join(rerank_names.SCORERS)),
    "sentinel and metric": re.compile(rerank_names.SENTINEL.pattern.removeprefix(r"sentinel\.")),
    "provider": re.compile(r"[A-Za-z0-9_]+"),
    "build step": re.compile("|".join(BUILD_STEPS)),
    "callers": re.compile(r"[1-9][0-9]*"),
    "cell": re.compile(r"c[1-9][0-9]*-l[1-9][0-9]*-b[1-9][0-9]*-t[1-9][0-9]*"),
}

FIXED_LIMITS: dict[Tier, Limits] = {
    "L0": {
        "logits_width": Limit(exactly=1),
        "unfed_inputs": Limit(exactly=0),
        "unused_tokenizer_inputs": Limit(exactly=0),
        "checker_faults": Limit(exactly=0),
        "raw_logits": Limit(exactly=True),
        "probe_faults": Limit(exactly=0),
        "own_provider_nodes": Limit(at_least=1.0),
    },
    "L1": {},
    "L2": {
        "refused_pairs": Limit(exactly=0),
        "non_finite_count": Limit(exactly=0),
        "distinct_logits": Limit(at_least=2.0),
        "truncation_faults": Limit(exactly=0),
        "token_mismatches": Limit(exactly=0),
        "separator_faults": Limit(exactly=0),
        "padding_id_agrees": Limit(exactly=True),
        "batch_gap_reference": Limit(at_most=1e-3),
        "order_gap_reference": Limit(at_most=1e-3),
        "padding_gap_reference": Limit(at_most=1e-3),
        "repeat_gap_reference": Limit(at_most=1e-3),
        "repeat_gap_runtime": Limit(at_most=1e-3),
        "segment_faults": Limit(exactly=0),
        "threads_gap": Limit(at_most=0.0),
        "threads_deadlocked": Limit(exactly=0),
        "fallback_nodes": Limit(exactly=0),
    },
    "L3": {
        "non_finite_scores": Limit(exactly=0),
        "judged_groups": Limit(at_least=1.0),
        "passing_sentinels": Limit(exactly=0),
    },
}
"""Limits that stand in every plan beside the ladder's own. A ladder cannot set these metrics itself."""

LOAD_LIMITS: Limits = {"load_differing_logits": Limit(exactly=0), "load_unfinished_calls": Limit(exactly=0)}
"""Limits that stand in L1 of every plan that asks for callers at once; a ladder cannot set these either."""

HEAD_GAP: dict[Precision, float] = {"fp32": 0.0, "fp16": 2.0**-11, "int8": 2.0**-6}
"""``head_gap_ratio`` allowed by precision: none; half an ulp of fp16's 11-bit significand; two steps of a signed 8-bit grid."""

INVARIANCE_GAP: dict[Precision, float] = {"fp32": 1e-3, "fp16": 0.1}
"""Logits that batch, order and padding may move: what published recipes allow the whole artifact to differ by.

Not for int8: where activations are scaled by the largest of the whole batch, other rows and padding do move a logit.
"""


ADAPTER_LIMITS: dict[Tier, Limits] = {
    "L0": {"adapter_head_equal": Limit(exactly=True)},
    "L2": {
        "adapter_effect": Limit(at_least=1e-5),
        "adapter_off_gap": Limit(at_most=0.0),
        "adapter_merged_gap": Limit(at_most=1e-3),
        "base_likeness": Limit(at_most=0.5),
    },
}
"""Fixed limits of a candidate with an adapter. 1e-5 logit is more than fp32 rounding moves and far less than training does; 1e-3 is
what an fp32 graph may be off by elsewhere; an artifact that is nearer to the base than to the adapter has lost the adapter."""


def fixed_limits(tier: Tier, precision: Precision, *, adapter: bool = False) -> Limits:
    """The limits that every step of ``tier`` on a target of ``precision`` carries, whatever the ladder says.

    ``adapter`` says whether the candidate has one.
    """
    limits = dict(FIXED_LIMITS[tier]) | (ADAPTER_LIMITS.get(tier, {}) if adapter else {})
    if tier == "L0":
        limits["realised_precision"] = Limit(exactly=precision)
        limits["head_gap_ratio"] = Limit(at_most=HEAD_GAP[precision])
    if tier == "L2" and precision in INVARIANCE_GAP:
        names = ("batch_gap_runtime", "order_gap_runtime", "padding_gap_runtime")
        limits |= {name: Limit(at_most=INVARIANCE_GAP[precision]) for name in names}
    return limits


def base(name: str) -> str:
    """The name under which the catalogue lists a metric: without parameter, and with the cut-off 10 for any other."""
    return rerank_names.cut(name).base


def is_condition(name: str) -> bool:
    """Whether a metric tells of the moment of the measurement, not of the artifact."""
    metric = find(name)
    return metric is not None and metric.condition


def is_time(name: str) -> bool:
    """Whether a metric comes of how long calls took, so that a busy machine makes it worse; a ratio to the baseline does not."""
    metric = find(name)
    return metric is not None and metric.timed


def cell_name(candidates: int, max_length: int, batch_size: int, threads: int) -> str:
    """The parameter that names a cell of a sweep: ``c100-l512-b32-t2``."""
    return f"c{candidates}-l{max_length}-b{batch_size}-t{threads}"


def find(name: str) -> Metric | None:
    """The metric that ``name`` means, or None: unknown, or with a parameter that is missing, unwanted or malformed."""
    _, dot, parameter = name.partition(".")
    metric = METRICS.get(base(name))
    if metric is None or bool(dot) != bool(metric.parameter):
        return None
    if metric.parameter and not PARAMETERS[metric.parameter].fullmatch(parameter):
        return None
    return metric
