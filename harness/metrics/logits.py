"""Two lists of logits compared: a reference (PyTorch fp32) and a candidate, one number a pair.

Both are float arrays of shape (pairs,), as sealed in float32; all arithmetic is float64. Rules for every function:

- Any NaN or infinity on either side, or no pair at all: ``None``, never a number over the rest. ``non_finite_count``
  says how many there are; it alone takes non-finite input.
- Shapes that differ or are not (pairs,): ``ValueError``.
- A statistic that is not defined (a correlation with a constant, a ratio to nothing) is ``None`` too.

Gaps are in logits; the rest is without unit unless said.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]


def non_finite_count(*arrays: ArrayLike) -> int:
    """NaN and infinite values in all the arrays together; 0 for empty ones."""
    return sum(int(np.count_nonzero(~np.isfinite(np.asarray(array, dtype=np.float64)))) for array in arrays)


def max_abs_gap(reference: ArrayLike, candidate: ArrayLike) -> float | None:
    """Largest absolute difference, in logits."""
    sides = _sides(reference, candidate)
    return None if sides is None else float(np.abs(sides[1] - sides[0]).max())


def mean_abs_gap(reference: ArrayLike, candidate: ArrayLike) -> float | None:
    """Mean absolute difference, in logits."""
    sides = _sides(reference, candidate)
    return None if sides is None else float(np.abs(sides[1] - sides[0]).mean())


def p99_abs_gap(reference: ArrayLike, candidate: ArrayLike) -> float | None:
    """99th percentile of the absolute differences, in logits; Hyndman & Fan type 7 (linear between closest ranks).

    It describes these pairs. With fewer than a hundred it is nearly ``max_abs_gap``.
    """
    sides = _sides(reference, candidate)
    return None if sides is None else float(np.quantile(np.abs(sides[1] - sides[0]), 0.99, method="linear"))


def gap_over_spread(reference: ArrayLike, candidate: ArrayLike) -> float | None:
    """``max_abs_gap`` over the population standard deviation of the reference; None when all reference logits are one."""
    sides = _sides(reference, candidate)
    if sides is None or np.ptp(sides[0]) == 0:
        return None
    return float(np.abs(sides[1] - sides[0]).max() / sides[0].std())


def pearson(reference: ArrayLike, candidate: ArrayLike) -> float | None:
    """Pearson's product-moment correlation, -1 to 1; None when either side is constant."""
    sides = _sides(reference, candidate)
    return None if sides is None else _correlation(*sides)


def spearman(reference: ArrayLike, candidate: ArrayLike) -> float | None:
    """Spearman's rank correlation: Pearson's of the ranks, tied values sharing their mean rank. None as ``pearson``."""
    sides = _sides(reference, candidate)
    return None if sides is None else _correlation(_mean_ranks(sides[0]), _mean_ranks(sides[1]))


def kendall_tau_b(reference: ArrayLike, candidate: ArrayLike) -> float | None:
    """Kendall's rank correlation with the correction for ties, tau-b (Kendall 1945), -1 to 1.

    (C - D) / sqrt((n0 - n1) (n0 - n2)) with C concordant and D discordant pairs of pairs, n0 = n (n - 1) / 2, and n1
    and n2 those tied in the reference and in the candidate. All counts are whole numbers; O(n log n) in time and
    O(n) in memory. None when either side is constant.
    """
    sides = _sides(reference, candidate)
    if sides is None:
        return None
    first, second = (_dense_ranks(side) for side in sides)
    pairs = len(first) * (len(first) - 1) // 2
    tied_first, tied_second = _tied_pairs(first), _tied_pairs(second)
    if pairs in (tied_first, tied_second):
        return None
    tied_both = _tied_pairs(_dense_ranks(first * len(first) + second))
    order = np.lexsort((second, first))  # ties of the reference in rising candidate order: they count as no inversion
    every = np.ones(len(first), dtype=bool)
    discordant = _inversions(second[order], every, every)
    concordant = pairs - tied_first - tied_second + tied_both - discordant
    return (concordant - discordant) / math.sqrt((pairs - tied_first) * (pairs - tied_second))


def cosine(reference: ArrayLike, candidate: ArrayLike) -> float | None:
    """Cosine of the two vectors, -1 to 1; None when either is all zero.

    Never judge by this alone: unrelated logits that share an offset have a cosine near 1.
    """
    sides = _sides(reference, candidate)
    if sides is None:
        return None
    return _cosine(*sides)


def sqnr_db(reference: ArrayLike, candidate: ArrayLike) -> float | None:
    """Signal to quantisation noise in decibels: 10 log10(sum reference**2 / sum (candidate - reference)**2).

    Jayant & Noll 1984, "Digital Coding of Waveforms". None when the two are equal (no noise: the ratio is not
    finite; ``max_abs_gap`` is 0) and when the reference is all zero.
    """
    sides = _sides(reference, candidate)
    if sides is None:
        return None
    signal = float(np.sum(sides[0] ** 2))
    noise = float(np.sum((sides[1] - sides[0]) ** 2))
    return 10 * math.log10(signal / noise) if signal > 0 and noise > 0 else None


def discordant_pairs(reference: ArrayLike, candidate: ArrayLike, noise: float) -> int | None:
    """Pairs of pairs in reversed order: the reference ranks one higher by more than ``noise``, the candidate lower.

    ``noise`` is in logits, >= 0: a gap that numerical noise explains is no order. Counted are (i, j) with
    reference[j] < reference[i] - noise and candidate[j] > candidate[i]. A tie of the candidate is not reversed, so a
    constant candidate has none: see ``order_kept``. None when no reference gap exceeds the noise, since there is then
    no order to reverse. O(n log n).
    """
    sides = _sides(reference, candidate)
    return None if sides is None or not _has_order(sides[0], noise) else _lost(sides, noise, ties=False)


def order_kept(reference: ArrayLike, candidate: ArrayLike, noise: float = 0.0) -> bool | None:
    """Whether the candidate ranks every two pairs as the reference does, where the reference gap exceeds ``noise``.

    Stricter than "no discordant pair": a tie of the candidate loses the order as well. None when no gap exceeds
    the noise.
    """
    sides = _sides(reference, candidate)
    return None if sides is None or not _has_order(sides[0], noise) else _lost(sides, noise, ties=True) == 0


def distinct_scores(scores: ArrayLike) -> int | None:
    """Number of distinct values; 1 means a constant scorer."""
    sides = _sides(scores, scores)
    return None if sides is None else len(np.unique(sides[0]))


def top_k_agreement(reference: ArrayLike, candidate: ArrayLike, k: int) -> float | None:
    """Share (0 to 1) of the candidate's first k that belong to the reference's first k.

    A pair belongs when its reference logit is at least the k-th greatest, so ties there lose nothing. Ties of
    the candidate across its k-th place are taken in every order, and the mean is given. None when every pair belongs
    (k >= pairs, or a reference tied all the way down): any scorer would agree. ``ValueError`` for k < 1.
    """
    if k < 1:
        message = f"k: expected a whole number >= 1, got {k}"
        raise ValueError(message)
    sides = _sides(reference, candidate)
    if sides is None or k >= len(sides[0]):
        return None
    belongs = sides[0] >= np.sort(sides[0])[-k]
    if belongs.all():
        return None
    edge = np.sort(sides[1])[-k]
    above, tied = sides[1] > edge, sides[1] == edge
    share = (k - np.count_nonzero(above)) / np.count_nonzero(tied)
    return float((np.count_nonzero(above & belongs) + share * np.count_nonzero(tied & belongs)) / k)


def _sides(reference: ArrayLike, candidate: ArrayLike) -> tuple[Floats, Floats] | None:
    """Both sides as float64, or None when there is no pair or any value is not finite."""
    first, second = np.asarray(reference, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        message = f"logits: expected two arrays of one shape (pairs,), got {first.shape} and {second.shape}"
        raise ValueError(message)
    if not first.size or not np.isfinite(first).all() or not np.isfinite(second).all():
        return None
    return first, second


def _correlation(first: Floats, second: Floats) -> float | None:
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return _cosine(first - first.mean(), second - second.mean())


def _cosine(first: Floats, second: Floats) -> float | None:
    # Scaled first, so that no square is lost to underflow.
    sizes = np.abs(first).max(), np.abs(second).max()
    if 0 in sizes:
        return None
    first, second = first / sizes[0], second / sizes[1]
    value = float(np.sum(first * second)) / math.sqrt(float(np.sum(first**2)) * float(np.sum(second**2)))
    return min(1.0, max(-1.0, value))


def _dense_ranks(values: Floats | Integers) -> Integers:
    """0 for the least value, 1 for the next distinct one, and so on."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _mean_ranks(values: Floats) -> Floats:
    _, dense, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[dense]


def _tied_pairs(dense: Integers) -> int:
    counts = np.bincount(dense)
    return int(np.sum(counts * (counts - 1) // 2))


def _has_order(reference: Floats, noise: float) -> bool:
    if not noise >= 0:
        message = f"noise: expected a number of logits >= 0, got {noise}"
        raise ValueError(message)
    return bool(reference.min() < reference.max() - noise)


def _lost(sides: tuple[Floats, Floats], noise: float, *, ties: bool) -> int:
    """Pairs (i, j), reference[j] < reference[i] - noise, that the candidate reverses (with ``ties``: or ties).

    Every pair stands in one list twice, as j at its reference and as i at its reference - noise. In rising order
    (at equal height i first: the gap must exceed the noise) the j of every counted (i, j) comes before the i.
    """
    reference, candidate = sides
    count = len(reference)
    upper = np.repeat([True, False], count)  # i first
    order = np.lexsort((~upper, np.concatenate((reference - noise, reference))))
    dense = _dense_ranks(candidate)
    # An inversion is a greater number before a smaller one, so to count ties too, every i moves down by half a step.
    values = np.concatenate((2 * dense - int(ties), 2 * dense))
    return _inversions((values - values.min())[order], ~upper[order], upper[order])


def _inversions(values: Integers, left: NDArray[np.bool_], right: NDArray[np.bool_]) -> int:
    """Count a < b with left[a], right[b] and values[a] > values[b]; values >= 0. O(n log(max)) in time.

    Two numbers are ordered by their highest differing bit. So for each bit, among numbers equal above it and in their
    original order: sum, over the right ones with a 0, the left ones with a 1 that came before.
    """
    total = 0
    order = np.arange(len(values))
    for bit in range(int(values.max()).bit_length() - 1, -1, -1):
        sorted_values = values[order]
        one = (sorted_values >> bit) & 1 == 1
        before = np.cumsum(one & left[order])
        prefix = sorted_values >> (bit + 1)
        begins = np.flatnonzero(np.concatenate(([True], prefix[1:] != prefix[:-1])))
        earlier = np.concatenate(([0], before))[begins]
        within = before - np.repeat(earlier, np.diff(np.append(begins, len(values))))
        total += int(within[~one & right[order]].sum())
        order = order[np.argsort(sorted_values >> bit, kind="stable")]
    return total
