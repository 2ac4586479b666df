"""Agreement of two rankings: against scipy and against the same measures of L2, group by group, and by its laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics import agreement, logits

pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9)


def both(rows: list[list[tuple[int, int]]]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    sides = tuple([np.array([pair[side] for pair in row], dtype=float) for row in rows] for side in (0, 1))
    return sides[0], sides[1]


@given(st.lists(pairs, min_size=1, max_size=6))
def test_tau_b_of_many_groups_is_that_of_each(rows: list[list[tuple[int, int]]]) -> None:
    reference, scores = both(rows)
    for found, one, other in zip(agreement.kendall_tau_b(reference, scores), reference, scores, strict=True):
        wanted = logits.kendall_tau_b(one, other)
        if wanted is None:
            wanted = float(np.ptp(one) == np.ptp(other))
        assert found == pytest.approx(wanted, abs=1e-12)


def test_tau_b_agrees_with_scipy() -> None:
    from scipy import stats

    generator = np.random.default_rng(3)
    rows = [generator.integers(0, 6, (2, size)).astype(float) for size in (5, 40, 17, 100)]
    found = agreement.kendall_tau_b([row[0] for row in rows], [row[1] for row in rows])
    assert found == pytest.approx([stats.kendalltau(*row).statistic for row in rows])


@given(st.lists(pairs, min_size=1, max_size=6), st.integers(1, 10))
def test_overlap_of_many_groups_is_that_of_each(rows: list[list[tuple[int, int]]], k: int) -> None:
    reference, scores = both(rows)
    for found, one, other in zip(agreement.overlap(reference, scores, k), reference, scores, strict=True):
        wanted = logits.top_k_agreement(one, other, k)
        assert (math.isnan(found) and wanted is None) or found == pytest.approx(wanted, abs=1e-12)


@given(pairs, st.integers(1, 4), st.randoms(use_true_random=False), st.integers(-1000, 1000))
def test_neither_the_order_of_candidates_nor_a_constant_changes_anything(
    rows: list[tuple[int, int]], k: int, random: object, constant: int
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    (reference,), (scores,) = both([rows])
    (other_reference,), (other_scores,) = both([shuffled])
    for measure in (lambda one, two: agreement.overlap(one, two, k), agreement.kendall_tau_b):
        wanted = measure([reference], [scores])
        np.testing.assert_array_equal(measure([other_reference], [other_scores + constant]), wanted)


def test_groups_looked_at_in_blocks_equal_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    rows = [generator.integers(0, 9, (2, size)).astype(float) for size in (3, 12, 7, 12, 1, 30)]
    reference, scores = [row[0] for row in rows], [row[1] for row in rows]
    whole = agreement.kendall_tau_b(reference, scores), agreement.overlap(reference, scores, 2)
    monkeypatch.setattr(agreement, "_CELLS", 1)
    np.testing.assert_array_equal(agreement.kendall_tau_b(reference, scores), whole[0])
    np.testing.assert_array_equal(agreement.overlap(reference, scores, 2), whole[1])


def test_a_score_that_is_not_finite_has_no_agreement() -> None:
    reference, scores = [np.array([1.0, 2.0, 3.0])] * 2, [np.array([1.0, math.nan, 3.0]), np.array([1.0, 2.0, 3.0])]
    for found in (agreement.kendall_tau_b(reference, scores), agreement.overlap(reference, scores, 1)):
        assert np.isnan(found).tolist() == [True, False]
        assert found[1] == 1.0
