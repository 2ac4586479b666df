"""The metrics of L2, for ``catalogue``: whether it computes what PyTorch computes. Pure; no import of numpy."""

from __future__ import annotations

from harness.metrics.metric import Metric

METRICS: dict[str, Metric] = {
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
}
