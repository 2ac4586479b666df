"""Every metric a limit can name: its tier, unit, meaning, and the limits no ladder can loosen.

A name may take a parameter after a dot where the catalogue says so (``initializer_count.FLOAT16``), and a name of L3 that is cut at
10 may be cut elsewhere (``ndcg_at_5``). Pure; no import of numpy.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from harness.metrics import rerank_names
from harness.records import Limit, Limits, Precision, Tier


class Metric(NamedTuple):
    """One metric: the tier that measures it, its unit, what kind of value it has and one sentence on what it is.

    A ``condition`` is no property of the artifact but of the moment it was measured in: breaking its limit decides nothing.
    """

    tier: Tier
    unit: str
    kind: type
    meaning: str
    parameter: str = ""
    condition: bool = False


METRICS: dict[str, Metric] = {
    # L0 build
    "opset": Metric("L0", "version", int, "opset version of the default ONNX domain"),
    "ir_version": Metric("L0", "version", int, "ONNX IR version of the file"),
    "inputs": Metric("L0", "signature", str, "graph inputs as name:dtype[dims], sorted by name"),
    "outputs": Metric("L0", "signature", str, "graph outputs as name:dtype[dims], in order"),
    "logits_width": Metric("L0", "columns", int, "last dimension of the output named logits; 0 without such an output"),
    "unfed_inputs": Metric("L0", "inputs", int, "graph inputs that the tokenizer does not give"),
    "unused_tokenizer_inputs": Metric(
        "L0", "inputs", int, "tensors the model takes of the tokenizer that the graph does not"
    ),
    "nodes": Metric("L0", "nodes", int, "operators in the top-level graph"),
    "operator_types": Metric("L0", "types", int, "distinct operator types in the top-level graph"),
    "operator_count": Metric("L0", "nodes", int, "top-level nodes of one operator type", "operator type"),
    "initializer_count": Metric("L0", "tensors", int, "initializers of one dtype", "ONNX dtype"),
    "initializer_bytes": Metric("L0", "bytes", int, "bytes of the initializers of one dtype", "ONNX dtype"),
    "external_files": Metric("L0", "files", int, "files beside the graph that hold weights"),
    "payload_bytes": Metric("L0", "bytes", int, "bytes of all files of the artifact"),
    "payload_ratio": Metric("L0", "ratio", float, "payload bytes over 4 bytes a checkpoint parameter"),
    "payload_over_export": Metric(
        "L0", "ratio", float, "payload bytes over those of the fp32 export; null for a prebuilt artifact"
    ),
    "realised_precision": Metric(
        "L0", "precision", str, "fp32, fp16, int8 or mixed, from initializer bytes and operators"
    ),
    "half_range_constants": Metric(
        "L0", "values", int, "constants beyond the range of half precision before conversion"
    ),
    "clipped_constants": Metric("L0", "values", int, "constants that the conversion to half precision changed"),
    "kept_nodes": Metric("L0", "nodes", int, "nodes that the conversion to half precision left in fp32"),
    "searched_nodes": Metric(
        "L0", "nodes", int, "of the kept nodes, those without which the fp16 graph did not load or was not finite"
    ),
    "checker_faults": Metric("L0", "faults", int, "faults found by the full ONNX check with shape inference"),
    "head_gap_ratio": Metric(
        "L0",
        "ratio",
        float,
        "largest gap between the graph's head weights and the checkpoint's, over the largest weight",
    ),
    "adapter_head_equal": Metric(
        "L0", "boolean", bool, "whether the merged classifier is bit for bit the trained one; only with an adapter"
    ),
    "missing_keys": Metric("L0", "tensors", int, "tensors of the model class that the checkpoint does not hold"),
    "unexpected_keys": Metric("L0", "tensors", int, "tensors of the checkpoint that the model class does not take"),
    "raw_logits": Metric(
        "L0", "boolean", bool, "whether no activation stands between the last matrix product and the output"
    ),
    "probe_faults": Metric(
        "L0", "probes", int, "batch and length probes that crashed, or gave a wrong shape or a non-finite logit"
    ),
    "provider_nodes": Metric("L0", "nodes", int, "nodes that one provider of the runtime took", "provider"),
    "own_provider_nodes": Metric("L0", "nodes", int, "nodes that the target's provider took"),
    "optimised_nodes": Metric("L0", "nodes", int, "nodes of the graph that the runtime executes"),
    "optimised_casts": Metric("L0", "nodes", int, "Cast nodes of the graph that the runtime executes"),
    "export_repeat_equal": Metric(
        "L0", "boolean", bool, "whether a second export gave the same bytes; null where it was not asked for"
    ),
    "session_load_ms": Metric("L0", "ms", float, "time to load the artifact on the named provider"),
    "build_seconds": Metric("L0", "s", float, "wall time to export and convert; zero for a prebuilt artifact"),
    # L1 perf
    "load_ms": Metric("L1", "ms", float, "session load"),
    "first_call_ms": Metric("L1", "ms", float, "first call after load"),
    "first_call_ratio": Metric("L1", "ratio", float, "first call over the median of the steady calls"),
    "mean_ms": Metric("L1", "ms", float, "mean of the steady calls"),
    "min_ms": Metric("L1", "ms", float, "fastest steady call"),
    "max_ms": Metric("L1", "ms", float, "slowest steady call"),
    "p50_ms": Metric("L1", "ms", float, "median of the steady calls, 95% bootstrap interval"),
    "p50_interval_ratio": Metric(
        "L1", "ratio", float, "width of the order-statistics interval of the median over the median"
    ),
    "p90_ms": Metric("L1", "ms", float, "90th percentile of the steady calls; null with fewer samples than it needs"),
    "p95_ms": Metric(
        "L1", "ms", float, "95th percentile, order-statistics interval; null with fewer samples than it needs"
    ),
    "p99_ms": Metric("L1", "ms", float, "99th percentile; null with fewer samples than it needs"),
    "std_ms": Metric("L1", "ms", float, "standard deviation of the steady calls"),
    "cv": Metric("L1", "ratio", float, "standard deviation of the steady calls over their mean"),
    "outliers": Metric("L1", "calls", int, "steady calls whose modified z-score is above 3.5"),
    "calls": Metric("L1", "calls", int, "steady calls measured"),
    "sampling_ended_by": Metric(
        "L1", "reason", str, "what ended the steady calls: interval (narrow enough), calls or seconds (a cap)"
    ),
    "pairs_per_s": Metric("L1", "pairs/s", float, "pairs scored per second over the steady calls"),
    "drift_ratio": Metric(
        "L1", "ratio", float, "median of the last third of the steady calls over that of the first third"
    ),
    "involuntary_switches": Metric("L1", "switches", int, "times the process lost a processor during the steady calls"),
    "ratio_p50": Metric(
        "L1", "ratio", float, "time of a call over that of the baseline's artifact; below 1 is faster than the baseline"
    ),
    "ratio_p95": Metric("L1", "ratio", float, "95th percentile of the calls over that of the baseline's artifact"),
    "ratio_pairs_per_s": Metric(
        "L1", "ratio", float, "pairs per second over those of the baseline's artifact; above 1 is faster"
    ),
    "ratio_cpu": Metric(
        "L1",
        "ratio",
        float,
        "processor time of a call over that of the baseline's artifact; a busy machine moves it least",
    ),
    "ratio_eager": Metric(
        "L1", "ratio", float, "time of a call of PyTorch fp32 eager over the artifact's: how many times faster it is"
    ),
    "baseline_rss_bytes": Metric(
        "L1", "bytes", int, "resident memory of the process tree before the session is loaded"
    ),
    "loaded_rss_bytes": Metric("L1", "bytes", int, "resident memory of the process tree after load"),
    "peak_rss_bytes": Metric(
        "L1", "bytes", int, "sampled peak of the process tree's resident memory up to the calls of mixed shapes"
    ),
    "high_water_bytes": Metric(
        "L1", "bytes", int, "most resident memory of the process in all of L1, by the kernel's own count"
    ),
    "growth_bytes_per_1000_calls": Metric(
        "L1", "bytes", float, "growth of resident memory over calls of mixed shapes, Theil-Sen, 95% interval"
    ),
    "load_average_before": Metric("L1", "tasks", float, "load average of a minute before the load", condition=True),
    "load_average": Metric("L1", "tasks", float, "largest load average of a minute during the calls", condition=True),
    "busy_share": Metric(
        "L1", "share", float, "share of the usable processors' time that other processes took", condition=True
    ),
    "busy_processes": Metric(
        "L1", "processes", int, "other processes that used more than 5% of a processor", condition=True
    ),
    "stolen_share": Metric(
        "L1", "share", float, "share of the processors' time that the hypervisor gave to others", condition=True
    ),
    "cpu_pressure_share": Metric(
        "L1", "share", float, "share of the time in which some task waited for a processor", condition=True
    ),
    "cpu_mhz": Metric("L1", "MHz", float, "mean frequency of the processors; null where not readable", condition=True),
    "end_to_end_p50_ms": Metric("L1", "ms", float, "median of whole requests, from text to ranking"),
    "end_to_end_p95_ms": Metric("L1", "ms", float, "95th percentile of whole requests"),
    "end_to_end_pairs_per_s": Metric("L1", "pairs/s", float, "documents ranked per second, tokenisation included"),
    "tokenise_share": Metric("L1", "share", float, "share of whole requests that is spent in the tokenizer"),
    "load_p50_ms": Metric("L1", "ms", float, "median of the calls of so many callers at once", "callers"),
    "load_p95_ms": Metric("L1", "ms", float, "95th percentile of the calls of so many callers at once", "callers"),
    "load_slowest_p95_ms": Metric("L1", "ms", float, "95th percentile of the caller that has the largest", "callers"),
    "load_pairs_per_s": Metric("L1", "pairs/s", float, "pairs scored per second with so many callers", "callers"),
    "load_differing_logits": Metric("L1", "logits", int, "logits of several callers that differ from those of one"),
    "load_unfinished_calls": Metric("L1", "calls", int, "calls of several callers that failed or never came back"),
    "arrival_p50_ms": Metric("L1", "ms", float, "median from when a call was due to when it was done, open loop"),
    "arrival_p95_ms": Metric("L1", "ms", float, "95th percentile of that"),
    "arrival_wait_p50_ms": Metric("L1", "ms", float, "median from when a call was due to when it began"),
    "sweep_p50_ms": Metric("L1", "ms", float, "median of the calls of one cell of the sweep", "cell"),
    "sweep_p95_ms": Metric("L1", "ms", float, "95th percentile of the calls of one cell of the sweep", "cell"),
    "sweep_pairs_per_s": Metric("L1", "pairs/s", float, "pairs scored per second in one cell of the sweep", "cell"),
    "sweep_peak_rss_bytes": Metric(
        "L1", "bytes", int, "sampled peak of memory that one cell of the sweep needs", "cell"
    ),
    # L2 parity
    "pairs": Metric("L2", "pairs", int, "pairs given to both sides"),
    "refused_pairs": Metric("L2", "pairs", int, "pairs that either side could not score, alone either"),
    "non_finite_count": Metric("L2", "logits", int, "NaN or infinite logits on either side, in any batch or padding"),
    "max_abs_gap": Metric("L2", "logit", float, "largest absolute difference of logits to PyTorch fp32"),
    "mean_abs_gap": Metric("L2", "logit", float, "mean absolute difference of logits to PyTorch fp32"),
    "p99_abs_gap": Metric("L2", "logit", float, "99th percentile of the absolute differences to PyTorch fp32"),
    "gap_over_spread": Metric("L2", "ratio", float, "largest gap over the standard deviation of the reference"),
    "gap_after": Metric(
        "L2", "logit", float, "largest gap of some of the pairs after one step of the build, on the CPU", "build step"
    ),
    "gap_step": Metric("L2", "step", str, "the step that adds most to the gap: export, optimise, convert or runtime"),
    "pearson": Metric("L2", "correlation", float, "Pearson correlation of logits"),
    "spearman": Metric("L2", "correlation", float, "Spearman rank correlation"),
    "kendall_tau_b": Metric("L2", "correlation", float, "Kendall rank correlation, tau-b"),
    "top_1_agreement": Metric("L2", "share", float, "whether PyTorch's first pair is the artifact's, ties shared"),
    "top_10_agreement": Metric("L2", "share", float, "share of the artifact's first 10 pairs among PyTorch's first 10"),
    "discordant_pairs": Metric(
        "L2", "pairs", int, "pairs of pairs in reversed order whose reference gap exceeds the noise"
    ),
    "order_kept": Metric(
        "L2", "boolean", bool, "whether no pair of pairs beyond the noise is tied or in reversed order"
    ),
    "cosine": Metric("L2", "cosine", float, "cosine of the logit vectors; for continuity, never alone"),
    "sqnr_db": Metric(
        "L2", "dB", float, "signal to noise of the logits; null where the sides are equal; for continuity"
    ),
    "distinct_logits": Metric(
        "L2", "logits", int, "distinct values among the artifact's logits; 1 is a constant output"
    ),
    "effective_length": Metric("L2", "tokens", int, "tokens of the longest pair, as seen in the tensors"),
    "truncated_pairs": Metric("L2", "pairs", int, "pairs cut at the maximum length"),
    "truncation_faults": Metric(
        "L2", "pairs", int, "pairs cut at another end than the tokenizer says, or at another length than planned"
    ),
    "token_mismatches": Metric(
        "L2", "pairs", int, "pairs whose tensors differ between two paths through the tokenizer"
    ),
    "separator_faults": Metric(
        "L2", "pairs", int, "pairs that are not joined and framed by the special tokens of the tokenizer's family"
    ),
    "padding_id_agrees": Metric(
        "L2", "boolean", bool, "whether batches are padded with the tokenizer's own padding token"
    ),
    "batch_gap_reference": Metric(
        "L2", "logit", float, "largest change of a PyTorch logit from alone to a mixed batch"
    ),
    "batch_gap_runtime": Metric("L2", "logit", float, "largest change of a logit from alone to a mixed batch"),
    "order_gap_reference": Metric("L2", "logit", float, "largest change of a PyTorch logit when its batch is reversed"),
    "order_gap_runtime": Metric("L2", "logit", float, "largest change of a logit when its batch is reversed"),
    "padding_gap_reference": Metric(
        "L2", "logit", float, "largest change of a PyTorch logit when its pair is padded on the tokenizer's side"
    ),
    "padding_gap_runtime": Metric(
        "L2", "logit", float, "largest change of a logit when its pair is padded on the tokenizer's side"
    ),
    "unused_padding_gap_reference": Metric("L2", "logit", float, "as padding_gap_reference, on the side not in use"),
    "unused_padding_gap_runtime": Metric("L2", "logit", float, "as padding_gap_runtime, on the side not in use"),
    "repeat_gap_reference": Metric("L2", "logit", float, "largest change of a PyTorch logit over three equal calls"),
    "repeat_gap_runtime": Metric("L2", "logit", float, "largest change of a logit over three equal calls"),
    "segment_gap_reference": Metric(
        "L2", "logit", float, "largest change of a PyTorch logit when segment ids are zeroed; null with one segment"
    ),
    "segment_gap_runtime": Metric(
        "L2", "logit", float, "largest change of a logit when segment ids are zeroed; null with one segment"
    ),
    "segment_faults": Metric(
        "L2", "sides", int, "sides whose logits stay when segment ids are zeroed though the model has two segments"
    ),
    "threads_gap": Metric(
        "L2", "logit", float, "largest change of a logit when 8 threads call the session 10 times each"
    ),
    "threads_deadlocked": Metric("L2", "calls", int, "of those 80 calls, those that had not come back in time"),
    "adapter_effect": Metric(
        "L2", "logit", float, "largest change of a PyTorch logit that the adapter makes; only with an adapter"
    ),
    "adapter_off_gap": Metric(
        "L2", "logit", float, "largest gap of PyTorch with the adapter switched off to the base; only with an adapter"
    ),
    "adapter_merged_gap": Metric(
        "L2", "logit", float, "largest gap of the merged model to the unmerged in PyTorch; only with an adapter"
    ),
    "base_likeness": Metric(
        "L2", "share", float, "0 where the artifact computes the adapter's logits, 1 the base's; only with an adapter"
    ),
    "fallback_nodes": Metric(
        "L2", "nodes", int, "nodes other than shape arithmetic that another provider than the target's took"
    ),
    # L3 rerank
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
    """Whether a metric is a duration or a rate, which a busy machine makes worse."""
    metric = find(name)
    return metric is not None and metric.tier == "L1" and metric.unit in {"ms", "pairs/s"}


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
