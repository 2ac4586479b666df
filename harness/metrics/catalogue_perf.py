"""The metrics of L1, for ``catalogue``: time, memory and the condition of the machine. Pure; no import of numpy."""

from __future__ import annotations

from harness.metrics.metric import Metric


def _time(unit: str, meaning: str, parameter: str = "") -> Metric:
    """A metric that comes of how long calls took."""
    return Metric("L1", unit, float, meaning, parameter, timed=True)


METRICS: dict[str, Metric] = {
    "load_ms": _time("ms", "session load"),
    "own_node_share": Metric(
        "L1", "share", float, "share of the graph's nodes, shape arithmetic apart, that the target's provider ran"
    ),
    "first_call_ms": _time("ms", "first call after load"),
    "first_call_ratio": _time("ratio", "first call over the median of the steady calls"),
    "mean_ms": _time("ms", "mean of the steady calls"),
    "min_ms": _time("ms", "fastest steady call"),
    "max_ms": _time("ms", "slowest steady call"),
    "p50_ms": _time("ms", "median of the steady calls, 95% bootstrap interval"),
    "p50_interval_ratio": Metric(
        "L1",
        "ratio",
        float,
        "width of the order-statistics interval of the median over the median",
        condition=True,
        timed=True,
    ),
    "p90_ms": _time("ms", "90th percentile of the steady calls; null with fewer samples than it needs"),
    "p95_ms": _time("ms", "95th percentile, order-statistics interval; null with fewer samples than it needs"),
    "p99_ms": _time("ms", "99th percentile; null with fewer samples than it needs"),
    "std_ms": _time("ms", "standard deviation of the steady calls"),
    "cv": _time("ratio", "standard deviation of the steady calls over their mean"),
    "outliers": Metric("L1", "calls", int, "steady calls whose modified z-score is above 3.5", timed=True),
    "calls": Metric("L1", "calls", int, "steady calls measured"),
    "sampling_ended_by": Metric(
        "L1",
        "reason",
        str,
        "what ended the steady calls: interval (narrow enough), calls or seconds (a cap)",
        condition=True,
        timed=True,
    ),
    "pairs_per_s": _time("pairs/s", "pairs scored per second over the steady calls"),
    "drift_ratio": _time("ratio", "median of the last third of the steady calls over that of the first third"),
    "involuntary_switches": Metric(
        "L1", "switches", int, "times the process lost a processor during the steady calls", timed=True
    ),
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
    "ratio_eager": _time(
        "ratio", "time of a call of PyTorch fp32 eager over the artifact's: how many times faster it is"
    ),
    "baseline_rss_bytes": Metric(
        "L1", "bytes", int, "resident memory of the process tree before the session is loaded"
    ),
    "loaded_rss_bytes": Metric("L1", "bytes", int, "resident memory of the process tree after load"),
    "peak_rss_bytes": Metric(
        "L1", "bytes", int, "sampled peak of the process tree's resident memory up to the calls of mixed shapes"
    ),
    "high_water_bytes": Metric(
        "L1", "bytes", int, "most resident memory of the process until anything is compared, by the kernel's count"
    ),
    "growth_bytes_per_1000_calls": Metric(
        "L1", "bytes", float, "growth of resident memory over calls of mixed shapes, Theil-Sen, 95% interval"
    ),
    "load_average_before": Metric("L1", "tasks", float, "load average of a minute before the load", condition=True),
    "busy_share_before": Metric(
        "L1", "share", float, "as busy_share, from the child's start to the first steady call", condition=True
    ),
    "stolen_share_before": Metric("L1", "share", float, "as stolen_share, over the same time", condition=True),
    "load_average": Metric(
        "L1", "tasks", float, "largest load average of a minute from the steady calls on", condition=True
    ),
    "busy_share": Metric(
        "L1",
        "share",
        float,
        "share of the usable processors' time that other processes took, in the worst part of L1",
        condition=True,
    ),
    "busy_processes": Metric(
        "L1", "processes", int, "other processes that used more than 5% of a processor", condition=True
    ),
    "stolen_share": Metric(
        "L1",
        "share",
        float,
        "share of the processors' time that the hypervisor gave to others, likewise",
        condition=True,
    ),
    "cpu_pressure_share": Metric(
        "L1", "share", float, "share of the time in which some task waited for a processor, likewise", condition=True
    ),
    "cpu_mhz": Metric("L1", "MHz", float, "mean frequency of the processors; null where not readable", condition=True),
    "end_to_end_p50_ms": _time("ms", "median of whole requests, from text to ranking"),
    "end_to_end_p95_ms": _time("ms", "95th percentile of whole requests"),
    "end_to_end_pairs_per_s": _time("pairs/s", "documents ranked per second, tokenisation included"),
    "tokenise_share": _time("share", "share of whole requests that is spent in the tokenizer"),
    "load_p50_ms": _time("ms", "median of the calls of so many callers at once", "callers"),
    "load_p95_ms": _time("ms", "95th percentile of the calls of so many callers at once", "callers"),
    "load_slowest_p95_ms": _time("ms", "95th percentile of the caller that has the largest, and each one's", "callers"),
    "load_pairs_per_s": _time("pairs/s", "pairs scored per second with so many callers", "callers"),
    "load_differing_logits": Metric("L1", "logits", int, "logits of several callers that differ from those of one"),
    "load_unfinished_calls": Metric("L1", "calls", int, "calls of several callers that failed or never came back"),
    "arrival_p50_ms": _time("ms", "median from when a call was due to when it was done, open loop"),
    "arrival_p95_ms": _time("ms", "95th percentile of that"),
    "arrival_wait_p50_ms": _time("ms", "median from when a call was due to when it began"),
    "sweep_longest_tokens": Metric("L1", "tokens", int, "tokens of the longest pair of one cell of the sweep", "cell"),
    "sweep_p50_ms": _time("ms", "median of the calls of one cell of the sweep", "cell"),
    "sweep_p95_ms": _time("ms", "95th percentile of the calls of one cell of the sweep", "cell"),
    "sweep_pairs_per_s": _time("pairs/s", "pairs scored per second in one cell of the sweep", "cell"),
    "sweep_peak_rss_bytes": Metric(
        "L1", "bytes", int, "sampled peak of memory that one cell of the sweep needs", "cell"
    ),
}
