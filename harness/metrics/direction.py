"""Whether more or less of a metric is better: stated once, for every metric of the catalogue. Pure.

A metric under NEITHER has a value to be held (an opset, a signature, a count of pairs), not one to be improved: a policy can say that
it must not change, and cannot say that it must not get worse. A test holds that each metric stands in exactly one of the three.
"""

from __future__ import annotations

from typing import Literal

from harness.metrics.rerank_names import cut

Better = Literal["less", "more", "neither"]

LESS = frozenset(
    """
    unfed_inputs unused_tokenizer_inputs payload_bytes payload_ratio payload_over_export clipped_constants kept_nodes searched_nodes
    checker_faults head_gap_ratio missing_keys unexpected_keys probe_faults optimised_casts session_load_ms
    build_seconds
    ratio_p50 ratio_p95 ratio_cpu
    load_ms first_call_ms first_call_ratio mean_ms min_ms max_ms p50_ms p90_ms p95_ms p99_ms std_ms cv loaded_rss_bytes
    peak_rss_bytes high_water_bytes growth_bytes_per_1000_calls end_to_end_p50_ms end_to_end_p95_ms
    load_p50_ms load_p95_ms load_slowest_p95_ms load_differing_logits load_unfinished_calls
    arrival_p50_ms arrival_p95_ms arrival_wait_p50_ms sweep_p50_ms sweep_p95_ms sweep_peak_rss_bytes
    refused_pairs non_finite_count max_abs_gap mean_abs_gap p99_abs_gap gap_over_spread gap_after discordant_pairs truncation_faults
    token_mismatches separator_faults batch_gap_reference batch_gap_runtime order_gap_reference order_gap_runtime
    padding_gap_reference padding_gap_runtime unused_padding_gap_reference unused_padding_gap_runtime repeat_gap_reference
    repeat_gap_runtime segment_faults threads_gap threads_deadlocked fallback_nodes
    adapter_off_gap adapter_merged_gap base_likeness
    non_finite_scores passing_sentinels random_pass_chance
    ndcg_at_10_drop mrr_at_10_drop map_drop recall_at_10_drop precision_at_10_drop hit_at_10_drop
    """.split()  # noqa: SIM905 - a list of quoted names would be three times as long
)

MORE = frozenset(
    """
    raw_logits export_repeat_equal adapter_head_equal
    ratio_pairs_per_s ratio_eager own_node_share
    pairs_per_s end_to_end_pairs_per_s load_pairs_per_s sweep_pairs_per_s
    pearson spearman kendall_tau_b top_1_agreement top_10_agreement order_kept cosine sqnr_db padding_id_agrees
    ndcg_at_10 mrr_at_10 map recall_at_10 precision_at_10 hit_at_10
    ndcg_at_10_best mrr_at_10_best map_best recall_at_10_best precision_at_10_best hit_at_10_best
    ndcg_at_10_worst mrr_at_10_worst map_worst recall_at_10_worst precision_at_10_worst hit_at_10_worst
    ndcg_at_10_over_random ndcg_at_10_over_sentinels kendall_tau_b_by_query overlap_at_10 rerank_pairs_per_s
    """.split()  # noqa: SIM905 - a list of quoted names would be three times as long
)

NEITHER = frozenset(
    """
    opset ir_version inputs outputs logits_width nodes operator_types operator_count initializer_count initializer_bytes
    external_files realised_precision half_range_constants provider_nodes own_provider_nodes
    optimised_nodes
    calls sampling_ended_by p50_interval_ratio outliers drift_ratio involuntary_switches baseline_rss_bytes tokenise_share
    load_average_before busy_share_before stolen_share_before load_average busy_share busy_processes stolen_share cpu_pressure_share cpu_mhz
    pairs gap_step distinct_logits effective_length truncated_pairs segment_gap_reference segment_gap_runtime
    adapter_effect sweep_longest_tokens
    groups judged_groups scored_pairs row_ndcg_at_10 row_mrr_at_10 row_map sentinel
    """.split()  # noqa: SIM905 - a list of quoted names would be three times as long
)


def better(metric: str) -> Better:
    """Which way a metric (with or without its parameter, at any cut-off) improves; ``neither`` also for one that is not known."""
    base = cut(metric).base
    return "less" if base in LESS else "more" if base in MORE else "neither"
