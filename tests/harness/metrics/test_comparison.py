"""Intervals of a ratio of latencies and of paired means: known answers, coverage, and what has none."""

from __future__ import annotations

import numpy as np
import pytest

from harness.metrics import comparison
from harness.metrics.bootstrap import bootstrap
from harness.metrics.comparison import Estimate


def test_the_ratio_is_of_the_statistic_and_lies_in_its_interval() -> None:
    one, other = np.linspace(9, 11, 101), np.linspace(18, 22, 101)
    for found in (comparison.ratio_of_quantiles(one, other, 0.5, 0), comparison.ratio_of_means(one, other, 0)):
        assert found is not None
        assert found.value == pytest.approx(2.0)
        assert found.low <= found.value <= found.high
        assert found.high - found.low < 0.2


def test_the_same_seed_gives_the_same_interval() -> None:
    random = np.random.Generator(np.random.PCG64(3))
    one, other = random.gamma(9, 1, 80), random.gamma(9, 1, 90)
    assert comparison.ratio_of_quantiles(one, other, 0.9, 5) == comparison.ratio_of_quantiles(one, other, 0.9, 5)
    assert comparison.ratio_of_quantiles(one, other, 0.9, 5) != comparison.ratio_of_quantiles(one, other, 0.9, 6)


def test_two_sets_of_one_distribution_are_called_different_about_one_time_in_twenty() -> None:
    random = np.random.Generator(np.random.PCG64(7))
    outside = 0
    for seed in range(100):
        found = comparison.ratio_of_quantiles(random.gamma(20, 1, 72), random.gamma(20, 1, 72), 0.5, seed)
        assert found is not None
        outside += not found.low <= 1 <= found.high
    assert 1 <= outside <= 14


@pytest.mark.parametrize("bad", [[1.0] * 5, [1.0] * 9 + [np.nan], [1.0] * 9 + [0.0], [1.0] * 9 + [np.inf]])
def test_too_few_or_impossible_samples_have_no_ratio(bad: list[float]) -> None:
    good = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    assert comparison.ratio_of_quantiles(bad, good, 0.5, 0) is None
    assert comparison.ratio_of_means(good, bad, 0) is None


def test_paired_means_agree_with_the_bootstrap_of_one_column() -> None:
    deltas = np.random.Generator(np.random.PCG64(1)).normal(0.01, 0.1, (400, 2))
    found = comparison.paired_means(deltas, 0)
    assert found is not None
    for column, estimate in enumerate(found):
        (own,) = bootstrap(deltas[:, [column]], 0)
        assert own is not None
        assert estimate.value == pytest.approx(own.mean)
        assert estimate.low == pytest.approx(own.low, abs=0.002)
        assert estimate.high == pytest.approx(own.high, abs=0.002)


def test_no_change_is_no_change_and_what_is_not_finite_has_no_mean() -> None:
    assert comparison.paired_means(np.zeros((10, 2)), 0) == (Estimate(0.0, 0.0, 0.0),) * 2
    assert comparison.paired_means(np.array([[1.0], [np.nan]]), 0) is None
    assert comparison.paired_means(np.array([[1.0]]), 0) is None
