"""Latency statistics: against scipy and numpy, against published counts, and by their coverage."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics import latency

RUN = np.random.default_rng(3).lognormal(1.5, 0.2, 500)
OF_SAMPLES: list[Callable[[Any], Any]] = [
    lambda samples: latency.percentile(samples, 0.5),
    lambda samples: latency.quantile_interval(samples, 0.5),
    lambda samples: latency.bootstrap_median_interval(samples, 1),
    lambda samples: latency.drift(samples, 1),
    latency.summary,
    lambda samples: latency.throughput_per_s(8, samples),
    latency.outliers,
]


@given(st.lists(st.floats(0.001, 1e6), min_size=2, max_size=30), st.floats(0.01, 0.99))
def test_percentile_is_type_7(samples: list[float], q: float) -> None:
    ordered = sorted(samples)
    whole, part = divmod(q * (len(ordered) - 1), 1)
    rank = int(whole)
    wanted = ordered[rank] + part * (ordered[min(rank + 1, len(ordered) - 1)] - ordered[rank])
    assert latency.percentile(samples, q) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("q", "confidence", "count"),
    [(0.95, 0.95, 59), (0.99, 0.99, 459), (0.99, 0.95, 299), (0.9, 0.95, 29), (0.5, 0.75, 2), (0.01, 0.5, 1)],
)
def test_minimum_samples_equals_the_published_counts(q: float, confidence: float, count: int) -> None:
    assert latency.minimum_samples(q, confidence) == count


@given(st.floats(0.05, 0.999), st.floats(0.05, 0.999))
def test_minimum_samples_is_the_least_that_suffices(q: float, confidence: float) -> None:
    count = latency.minimum_samples(q, confidence)
    assert 1 - q**count >= confidence
    assert count == 1 or 1 - q ** (count - 1) < confidence + 1e-12


@pytest.mark.parametrize(("q", "count"), [(0.5, 6), (0.95, 72), (0.99, 368)])
def test_quantile_interval_is_none_until_the_count_supports_it(q: float, count: int) -> None:
    samples = np.arange(1.0, count + 1)
    assert latency.quantile_interval(samples[:-1], q) is None
    found = latency.quantile_interval(samples, q)
    assert found is not None
    assert found[1] == count


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9, 0.95])
@pytest.mark.parametrize("count", [72, 100, 999])
def test_quantile_interval_takes_the_ranks_that_the_binomial_of_scipy_gives(q: float, count: int) -> None:
    from scipy import stats

    found = latency.quantile_interval(np.arange(1.0, count + 1), q)
    law = stats.binom(count, q)
    if found is None:
        assert law.cdf(0) > 0.025 or law.sf(count - 1) > 0.025
        return
    low, high = int(found[0]), int(found[1])
    assert law.cdf(low - 1) <= 0.025 < law.cdf(low)
    assert law.sf(high - 1) <= 0.025 < law.sf(high - 2)
    assert law.cdf(high - 1) - law.cdf(low - 1) >= 0.95


def test_quantile_interval_covers_the_true_quantile_at_least_as_often_as_it_says() -> None:
    generator = np.random.default_rng(11)
    truth = math.log(20)  # p95 of the unit exponential
    held = 0
    for _ in range(1000):
        found = latency.quantile_interval(generator.exponential(1, 120), 0.95)
        assert found is not None
        held += found[0] <= truth <= found[1]
    assert held >= 935  # 950 less two standard deviations


def test_bootstrap_of_the_median_is_seeded_and_near_the_order_statistics() -> None:
    found = latency.bootstrap_median_interval(RUN, 5)
    assert found == latency.bootstrap_median_interval(RUN, 5)
    assert found != latency.bootstrap_median_interval(RUN, 6)
    peer = latency.quantile_interval(RUN, 0.5)
    assert found == pytest.approx(peer, rel=0.02)


def test_bootstrap_does_not_depend_on_how_it_is_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = latency.bootstrap_median_interval(RUN[:50], 5, resamples=500)
    monkeypatch.setattr(latency, "_BOOTSTRAP_CELLS", 50 * 7)
    assert latency.bootstrap_median_interval(RUN[:50], 5, resamples=500) == whole


def test_a_median_of_five_has_no_interval_and_of_six_has_one() -> None:
    assert latency.bootstrap_median_interval(RUN[:5], 1) is None
    assert latency.bootstrap_median_interval(RUN[:6], 1) is not None


def test_drift_sees_a_slowdown_and_not_a_steady_run() -> None:
    steady = latency.drift(RUN, 2)
    assert steady is not None
    assert steady.low < 1 < steady.high
    assert steady.calls_each == 166
    slowing = latency.drift(RUN * np.linspace(1, 1.3, len(RUN)), 2)
    assert slowing is not None
    assert 1.1 < slowing.low < slowing.ratio < slowing.high < 1.3
    assert latency.drift(RUN[:17], 2) is None
    assert latency.drift(np.zeros(30), 2) is None


def test_summary_agrees_with_the_standard_library() -> None:
    found = latency.summary(RUN)
    assert found is not None
    cuts = statistics.quantiles(RUN, n=100, method="inclusive")
    assert (found.count, found.min_ms, found.max_ms) == (500, min(RUN), max(RUN))
    assert found.mean_ms == pytest.approx(statistics.mean(RUN))
    assert found.std_ms == pytest.approx(statistics.stdev(RUN))
    assert found.cv == pytest.approx(statistics.stdev(RUN) / statistics.mean(RUN))
    assert (found.p50_ms, found.p90_ms, found.p95_ms, found.p99_ms) == pytest.approx(
        (cuts[49], cuts[89], cuts[94], cuts[98])
    )


def test_p99_is_null_with_the_count_it_needs() -> None:
    few, enough = latency.summary(RUN[:458]), latency.summary(RUN[:459])
    assert few is not None
    assert enough is not None
    assert few.p99_ms is None
    assert few.samples_needed == {"p90": 29, "p95": 59, "p99": 459}
    assert enough.p99_ms is not None


def test_one_sample_has_no_deviation() -> None:
    found = latency.summary([4.0])
    assert found is not None
    assert (found.mean_ms, found.std_ms, found.cv, found.p50_ms) == (4.0, None, None, 4.0)


def test_throughput_is_all_pairs_over_all_time() -> None:
    assert latency.throughput_per_s(8, [10.0, 30.0]) == 400.0
    assert latency.throughput_per_s(8, [0.0]) is None


def test_outliers_by_the_modified_z_score() -> None:
    samples = [2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3]  # the worked example of Iglewicz & Hoaglin
    assert latency.outliers(samples) == (8, 9)
    assert latency.outliers([1.0, 1.0, 1.0]) == ()
    assert latency.outliers([1.0, 1.0, 1.0, 9.0]) is None


@pytest.mark.parametrize("function", OF_SAMPLES)
@pytest.mark.parametrize("bad", [[], [math.nan] * 40, [*RUN[:40], math.inf], [math.nan, *RUN[:40]]])
def test_no_samples_or_a_non_finite_one_give_no_number(function: Callable[[Any], Any], bad: list[float]) -> None:
    assert function(bad) is None


@pytest.mark.parametrize("function", OF_SAMPLES)
def test_samples_of_another_shape_are_refused(function: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"samples: expected shape \(calls,\), got \(2, 2\)"):
        function([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("value", [0, 1, 95, math.nan])
def test_a_fraction_that_is_none_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="q: expected a fraction between 0 and 1, got"):
        latency.percentile(RUN, value)
    with pytest.raises(ValueError, match="confidence: expected a fraction between 0 and 1, got"):
        latency.minimum_samples(0.5, value)
    with pytest.raises(ValueError, match="resamples: expected a whole number >= 1, got 0"):
        latency.bootstrap_median_interval(RUN, 1, resamples=0)
