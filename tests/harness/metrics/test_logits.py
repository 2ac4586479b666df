"""Comparison of logits: against scipy and scikit-learn, against loops over all pairs, and on what met others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics import logits

TWO_SIDED: list[Callable[..., Any]] = [
    logits.max_abs_gap,
    logits.mean_abs_gap,
    logits.p99_abs_gap,
    logits.gap_over_spread,
    logits.pearson,
    logits.spearman,
    logits.kendall_tau_b,
    logits.cosine,
    logits.sqnr_db,
    lambda reference, candidate: logits.discordant_pairs(reference, candidate, 0.1),
    logits.order_kept,
    lambda reference, candidate: logits.top_k_agreement(reference, candidate, 2),
]
small = st.integers(-4, 4)
pairs = st.lists(st.tuples(small, small), min_size=2, max_size=12)


def sample(count: int = 300, noise: float = 0.3) -> tuple[Any, Any]:
    generator = np.random.default_rng(4)
    reference = generator.normal(0, 5, count).astype(np.float32)
    return reference, (reference + generator.normal(0, noise, count)).astype(np.float32)


def halves(rows: list[tuple[int, int]]) -> tuple[Any, Any]:
    return np.array([a for a, _ in rows], np.float32), np.array([b for _, b in rows], np.float32)


def test_gaps_of_a_small_case_worked_by_hand() -> None:
    reference, candidate = [1.0, 2.0, 3.0], [1.0, 2.5, 2.0]
    assert logits.max_abs_gap(reference, candidate) == 1.0
    assert logits.mean_abs_gap(reference, candidate) == 0.5
    assert logits.p99_abs_gap(reference, candidate) == pytest.approx(0.99)
    assert logits.gap_over_spread(reference, candidate) == pytest.approx(1 / math.sqrt(2 / 3))
    assert logits.sqnr_db(reference, candidate) == pytest.approx(10 * math.log10(14 / 1.25))
    assert logits.cosine(reference, candidate) == pytest.approx(12 / math.sqrt(14 * 11.25))


def test_correlations_agree_with_scipy() -> None:
    from scipy import stats

    reference, candidate = sample()
    for digits in (9, 0):  # untied, then heavily tied
        first, second = reference.round(digits), candidate.round(digits)
        assert logits.pearson(first, second) == pytest.approx(
            stats.pearsonr(first.astype(float), second.astype(float)).statistic
        )
        assert logits.spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)
        assert logits.kendall_tau_b(first, second) == pytest.approx(stats.kendalltau(first, second).statistic)


def test_cosine_agrees_with_scikit_learn() -> None:
    from sklearn.metrics.pairwise import cosine_similarity

    reference, candidate = sample()
    peer = cosine_similarity([reference.astype(float)], [candidate.astype(float)])[0, 0]
    assert logits.cosine(reference, candidate) == pytest.approx(peer)


@given(pairs)
def test_kendall_equals_its_definition_over_all_pairs(rows: list[tuple[int, int]]) -> None:
    found = logits.kendall_tau_b(*halves(rows))
    signs = [((a > c) - (a < c), (b > d) - (b < d)) for i, (a, b) in enumerate(rows) for c, d in rows[i + 1 :]]
    first, second = sum(a * a for a, _ in signs), sum(b * b for _, b in signs)
    if first * second == 0:
        assert found is None
    else:
        assert found == pytest.approx(sum(a * b for a, b in signs) / math.sqrt(first * second))


@given(pairs, st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_discordant_pairs_and_order_equal_their_definition_over_all_pairs(
    rows: list[tuple[int, int]], noise: float
) -> None:
    ordered = [(b, d) for a, b in rows for c, d in rows if c < a - noise]
    reference, candidate = halves(rows)
    discordant = logits.discordant_pairs(reference, candidate, noise)
    kept = logits.order_kept(reference, candidate, noise)
    if not ordered:
        assert (discordant, kept) == (None, None)
    else:
        assert discordant == sum(d > b for b, d in ordered)
        assert kept == all(b > d for b, d in ordered)


@given(pairs, st.randoms(use_true_random=False))
def test_the_order_of_the_pairs_does_not_matter_to_counts(rows: list[tuple[int, int]], random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    before, after = halves(rows), halves(shuffled)
    assert logits.kendall_tau_b(*before) == logits.kendall_tau_b(*after)
    assert logits.discordant_pairs(*before, noise=1) == logits.discordant_pairs(*after, noise=1)
    assert logits.top_k_agreement(*before, k=1) == logits.top_k_agreement(*after, k=1)


def test_five_thousand_and_many_more_pairs_agree_with_scipy() -> None:
    from scipy import stats

    reference, candidate = sample(50_000)
    assert logits.kendall_tau_b(reference, candidate) == pytest.approx(stats.kendalltau(reference, candidate).statistic)


def test_cosine_and_gaps_do_not_hide_an_inverted_order() -> None:
    reference = np.array([-10.02, -10.01, -10.0], np.float32)
    inverted = reference[::-1].copy()
    assert (logits.cosine(reference, inverted) or 0) > 0.99999
    assert (logits.pearson(reference, inverted), logits.spearman(reference, inverted)) == pytest.approx((-1, -1))
    assert logits.kendall_tau_b(reference, inverted) == -1
    assert logits.discordant_pairs(reference, inverted, 0.005) == 3
    assert logits.order_kept(reference, inverted) is False


def test_a_constant_candidate_keeps_no_order_though_nothing_is_reversed() -> None:
    reference, constant = [1.0, 2.0, 3.0], [7.0, 7.0, 7.0]
    assert logits.discordant_pairs(reference, constant, 0) == 0
    assert logits.order_kept(reference, constant) is False
    assert logits.distinct_scores(constant) == 1
    assert logits.top_k_agreement(reference, constant, 1) == pytest.approx(1 / 3)
    for correlation in (logits.pearson, logits.spearman, logits.kendall_tau_b):
        assert correlation(reference, constant) is None
        assert correlation(constant, reference) is None


def test_a_gap_within_the_noise_is_no_order() -> None:
    assert logits.order_kept([1.0, 1.25, 5.0], [1.25, 1.0, 5.0], noise=0.25) is True
    assert logits.order_kept([1.0, 1.25, 5.0], [1.25, 1.0, 5.0], noise=0.125) is False


def test_top_k_takes_ties_of_the_reference_as_members_and_ties_of_the_candidate_in_every_order() -> None:
    assert logits.top_k_agreement([3, 2, 2, 1], [3, 1, 2, 0], 2) == 1.0
    assert logits.top_k_agreement([4, 3, 2, 1], [4, 2, 2, 1], 2) == pytest.approx(0.75)
    assert logits.top_k_agreement([4, 3, 2, 1], [1, 2, 3, 4], 2) == 0.0


def test_top_k_that_any_scorer_would_reach_is_none() -> None:
    assert logits.top_k_agreement([2.0, 1.0], [1.0, 2.0], 2) is None
    assert logits.top_k_agreement([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], 2) is None


def test_equal_sides_have_no_gap_and_no_noise() -> None:
    reference, _ = sample(20)
    assert logits.max_abs_gap(reference, reference) == 0.0
    assert logits.gap_over_spread(reference, reference) == 0.0
    assert logits.sqnr_db(reference, reference) is None
    assert logits.order_kept(reference, reference) is True
    for correlation in (logits.pearson, logits.spearman, logits.kendall_tau_b, logits.cosine):
        assert correlation(reference, reference) == 1.0


def test_ratios_to_nothing_are_none() -> None:
    assert logits.gap_over_spread([2.0, 2.0], [1.0, 3.0]) is None
    assert logits.cosine([0.0, 0.0], [1.0, 3.0]) is None
    assert logits.sqnr_db([0.0, 0.0], [1.0, 3.0]) is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("position", [0, 4])
def test_one_non_finite_value_leaves_no_summary(bad: float, side: int, position: int) -> None:
    arrays = list(sample(5))
    arrays[side][position] = bad
    assert [function(*arrays) for function in TWO_SIDED] == [None] * len(TWO_SIDED)
    assert logits.distinct_scores(arrays[side]) is None
    assert logits.non_finite_count(*arrays) == 1


def test_no_pairs_give_no_number() -> None:
    empty = np.zeros(0, np.float32)
    assert [function(empty, empty) for function in TWO_SIDED] == [None] * len(TWO_SIDED)
    assert logits.distinct_scores(empty) is None
    assert logits.non_finite_count(empty) == 0


def test_one_pair_has_a_gap_but_no_order_and_no_correlation() -> None:
    one = ([1.0], [1.5])
    assert logits.max_abs_gap(*one) == 0.5
    assert logits.gap_over_spread(*one) is None
    assert logits.kendall_tau_b(*one) is None
    assert logits.order_kept(*one) is None


@pytest.mark.parametrize("function", TWO_SIDED)
def test_shapes_that_differ_are_refused(function: Callable[..., Any]) -> None:
    for first, second in (([1.0], [1.0, 2.0]), ([[1.0]], [[1.0]])):
        with pytest.raises(ValueError, match=r"logits: expected two arrays of one shape \(pairs,\), got"):
            function(first, second)


def test_a_noise_or_a_k_without_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="noise: expected a number of logits >= 0, got nan"):
        logits.order_kept([1.0, 2.0], [1.0, 2.0], math.nan)
    with pytest.raises(ValueError, match="noise: expected a number of logits >= 0, got -1"):
        logits.discordant_pairs([1.0, 2.0], [1.0, 2.0], -1)
    with pytest.raises(ValueError, match="k: expected a whole number >= 1, got 0"):
        logits.top_k_agreement([1.0, 2.0], [1.0, 2.0], 0)
