"""The bootstrap over groups: against scipy and the normal interval, and by its laws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from harness.metrics import bootstrap as ranking_bootstrap
from harness.metrics.bootstrap import Interval, bootstrap


def of_one(deltas: ArrayLike, seed: int, **options: Any) -> Interval | None:
    """The bootstrap of one column."""
    return bootstrap(np.asarray(deltas, dtype=np.float64)[:, np.newaxis], seed, **options)[0]


def test_bootstrap_is_seeded_and_holds_the_mean() -> None:
    deltas = np.random.default_rng(1).normal(0.1, 0.2, 60)
    first = of_one(deltas, 5)
    assert first == of_one(deltas, 5)
    assert first != of_one(deltas, 6)
    assert first is not None
    assert first.low < first.mean < first.high
    assert first.mean == pytest.approx(deltas.mean(), abs=1e-10)


def test_bootstrap_does_not_depend_on_how_it_is_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    deltas = np.random.default_rng(2).normal(0, 1, 33)
    whole = of_one(deltas, 3, resamples=1000)
    monkeypatch.setattr(ranking_bootstrap, "_CELLS", 33 * 7)
    assert of_one(deltas, 3, resamples=1000) == whole


def test_bootstrap_agrees_with_scipy_and_with_the_normal_interval() -> None:
    from scipy import stats

    deltas = np.random.default_rng(3).normal(0.05, 0.3, 400)
    found = of_one(deltas, 9)
    peer = stats.bootstrap((deltas,), np.mean, method="percentile", n_resamples=10_000, rng=np.random.default_rng(9))
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(peer.confidence_interval), abs=0.003)
    half = 1.96 * deltas.std(ddof=1) / 20
    assert (found.low, found.high) == pytest.approx((deltas.mean() - half, deltas.mean() + half), abs=0.003)


def test_bootstrap_of_equal_deltas_has_no_width() -> None:
    assert of_one([0.25, 0.25, 0.25], 1) == (0.25, 0.25, 0.25)


@pytest.mark.parametrize("deltas", [[], [0.1], [0.1, math.nan], [0.1, math.inf, 0.2]])
def test_bootstrap_without_two_finite_deltas_is_none(deltas: list[float]) -> None:
    assert of_one(deltas, 1) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resamples": 0}, "bootstrap: expected resamples >= 1 and 0 < confidence < 1, got 0 and 0.95"),
        ({"confidence": 1.0}, "bootstrap: expected resamples >= 1 and 0 < confidence < 1, got 10000 and 1.0"),
    ],
)
def test_bootstrap_that_is_asked_wrongly_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        of_one([0.1, 0.2], 1, **options)
    assert str(caught.value) == message


def test_bootstrap_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"values: expected shape \(groups, metrics\), got \(2,\)"):
        bootstrap([0.1, 0.2], 1)


def test_columns_share_their_resamples_and_do_not_see_each_other() -> None:
    columns = np.random.default_rng(4).normal(0, 1, (25, 3))
    together = bootstrap(columns, 3, resamples=500)
    assert together == [of_one(column, 3, resamples=500) for column in columns.T]
    assert bootstrap(np.column_stack([columns[:, 0], columns[:, 0] + 1]), 3, resamples=500)[0] == together[0]


def test_a_column_that_is_not_finite_has_no_interval_and_spoils_no_other() -> None:
    columns = np.array([[0.1, math.nan], [0.2, 0.5], [0.4, 0.5]])
    found = bootstrap(columns, 1, resamples=100)
    assert found[1] is None
    assert found[0] == of_one([0.1, 0.2, 0.4], 1, resamples=100)


def test_sums_are_exact_so_that_another_order_of_adding_gives_the_same_bits() -> None:
    values = ranking_bootstrap.rounded(np.random.default_rng(5).random((1000, 1)))[:, 0]
    times = np.random.default_rng(6).integers(0, 9, 1000)
    forth, back = 0.0, 0.0
    for value, count in zip(values, times, strict=True):
        forth += value * count
    for value, count in zip(values[::-1], times[::-1], strict=True):
        back += value * count
    assert forth == back == float(np.dot(values, times)) == math.fsum(values * times)


def test_ends_of_many_groups_are_those_of_more_draws_than_one_would_make() -> None:
    """Against the binomial, which the resampled share of hits is exactly, and against drawing, within its own noise."""
    from scipy import stats

    random = np.random.default_rng(7)
    columns = np.column_stack([random.random(5000) < 0.3, random.gamma(0.5, 1, 5000)]).astype(np.float64)
    share, skewed = bootstrap(columns, 1)
    assert share is not None
    assert skewed is not None
    exact = stats.binom.ppf([0.025, 0.975], 5000, columns[:, 0].mean()) / 5000
    assert (share.low, share.high) == pytest.approx(tuple(exact), abs=1 / 5000)
    drawn = np.quantile(ranking_bootstrap._resampled(columns[:, 1:], 3, 4000), [0.025, 0.975])
    error = columns[:, 1].std() / 5000**0.5
    assert (skewed.low, skewed.high) == pytest.approx(tuple(drawn), abs=0.15 * error)


def test_many_groups_need_no_seed_and_no_number_of_draws() -> None:
    column = np.random.default_rng(8).random(ranking_bootstrap.LARGE)
    assert of_one(column, 1, resamples=1) == of_one(column, 2, resamples=9)


def test_a_few_queries_that_moved_among_many_are_drawn_and_not_expanded() -> None:
    """Three of 5,000: their number in a resample is Poisson with mean 3, so both ends are whole numbers of hits."""
    column = np.zeros(5000)
    column[:3] = 1.0
    found = of_one(column, 1)
    assert found is not None
    assert [round(end * 5000, 6) for end in (found.low, found.mean, found.high)] == [0, 3, 7]


def test_values_that_all_differ_and_where_one_decides_are_drawn_group_by_group() -> None:
    column = np.random.default_rng(9).random(ranking_bootstrap.LARGE)
    column[0] = 1e4
    drawn = ranking_bootstrap._drawn(ranking_bootstrap.rounded(column[:, np.newaxis]), 4, 200, (0.025, 0.975))
    found = of_one(column, 4, resamples=200)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(drawn[:, 0]))


def test_many_equal_values_have_no_width() -> None:
    assert of_one(np.full(5000, 0.25), 1) == (0.25, 0.25, 0.25)
