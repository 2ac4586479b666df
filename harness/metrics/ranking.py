"""Ranking metrics of one group of candidates, exact under ties, and the bootstrap over groups.

A group is ``scores`` and ``gains``, both of shape (candidates,): the scorer's number for each candidate (any
float dtype, higher = earlier) and its graded relevance (finite, >= 0; 0 = not relevant). Candidates with equal
scores have no order of their own, so every metric is given as a ``TieAware``: the expected value over all orders
of the ties, and the best and the worst order. The expected values follow McSherry & Najork 2008, "Computing
Information Retrieval Performance Measures Efficiently in the Presence of Tied Scores".

Common rules, stated once:

- No candidate, no candidate with gain > 0, or any non-finite score: the group has no value, ``None``. The caller
  counts such groups. (A NaN score is never sorted to some place and then judged.)
- ``scores`` and ``gains`` of different shape, a gain that is negative or not finite, or k < 1: ``ValueError``.
- nDCG uses *linear* gains (gain / log2(rank + 1)), as trec_eval and mteb do, not 2**gain - 1.
  All other metrics are binary: relevant means gain > 0.
- Ideal order and number of relevant candidates are those of the group itself, not of judgements outside it.
- With fewer candidates than k, precision still divides by k (as trec_eval does).
- ``expected_random(gains, k)`` also tells what a metric can be at all in this group: where its best equals its
  worst (recall when k >= candidates), any scorer gets that value and it is no achievement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from harness.records import Record

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_BOOTSTRAP_CELLS = 2_000_000  # random indices held at once: 16 MB of int64 and 16 MB of the values drawn


class TieAware(Record, frozen=True):
    """A metric (0 to 1) over all orders of the ties: its mean, its greatest and its least value."""

    expected: float
    best: float
    worst: float


class GroupMetrics(Record, frozen=True):
    """All metrics of one group; ``average_precision`` over the whole list, the rest cut at ``k``."""

    k: int
    ndcg: TieAware
    mrr: TieAware
    average_precision: TieAware
    recall: TieAware
    precision: TieAware
    hit: TieAware


class Interval(NamedTuple):
    """A mean with the ends of its confidence interval, all in the unit of the values."""

    mean: float
    low: float
    high: float


class _Ranked(NamedTuple):
    """A group in rank order. All arrays have shape (candidates,); position 0 is rank 1."""

    gains: Floats  # within a tie the greatest gain first, so that the input's order leaves no trace
    start: NDArray[np.int64]  # first position of the tie class that holds this position
    size: NDArray[np.int64]  # number of candidates in that class

    @property
    def worst_gains(self) -> Floats:
        """The same ranking with each tie class reversed: least gain first."""
        mirrored: Floats = self.gains[2 * self.start + self.size - 1 - np.arange(len(self.gains))]
        return mirrored

    def class_mean(self, values: Floats) -> Floats:
        """For each position the mean of ``values`` over its tie class, shape (candidates,)."""
        first = np.flatnonzero(self.start == np.arange(len(values)))
        size = self.size[first]
        means: Floats = np.add.reduceat(values, first) / size
        return np.repeat(means, size)


def ndcg(scores: ArrayLike, gains: ArrayLike, k: int) -> TieAware | None:
    """Normalised discounted cumulative gain at k, linear gains (Jarvelin & Kekalainen 2002, log2(rank + 1))."""
    ranked = _rank(scores, gains)
    return None if ranked is None else _ndcg(ranked, _cut(k))


def mrr(scores: ArrayLike, gains: ArrayLike, k: int) -> TieAware | None:
    """Reciprocal of the rank of the first relevant candidate, 0 when that rank is beyond k (Voorhees 1999)."""
    ranked = _rank(scores, gains)
    return None if ranked is None else _mrr(ranked, _cut(k))


def average_precision(scores: ArrayLike, gains: ArrayLike) -> TieAware | None:
    """Mean over the relevant candidates of the precision at their ranks, over the whole list (trec_eval's map)."""
    ranked = _rank(scores, gains)
    return None if ranked is None else _average_precision(ranked)


def recall(scores: ArrayLike, gains: ArrayLike, k: int) -> TieAware | None:
    """Relevant candidates in the first k, divided by all relevant candidates of the group."""
    ranked = _rank(scores, gains)
    return None if ranked is None else _found(ranked, _cut(k), float(np.count_nonzero(ranked.gains)))


def precision(scores: ArrayLike, gains: ArrayLike, k: int) -> TieAware | None:
    """Relevant candidates in the first k, divided by k."""
    ranked = _rank(scores, gains)
    return None if ranked is None else _found(ranked, _cut(k), float(k))


def hit(scores: ArrayLike, gains: ArrayLike, k: int) -> TieAware | None:
    """1 when at least one of the first k is relevant, else 0; the expected value is that event's probability."""
    ranked = _rank(scores, gains)
    return None if ranked is None else _hit(ranked, _cut(k))


def group_metrics(scores: ArrayLike, gains: ArrayLike, k: int) -> GroupMetrics | None:
    """All metrics of one group at once (one sort); each equals the function of its name."""
    cut = _cut(k)
    ranked = _rank(scores, gains)
    if ranked is None:
        return None
    return GroupMetrics(
        k=k,
        ndcg=_ndcg(ranked, cut),
        mrr=_mrr(ranked, cut),
        average_precision=_average_precision(ranked),
        recall=_found(ranked, cut, float(np.count_nonzero(ranked.gains))),
        precision=_found(ranked, cut, float(k)),
        hit=_hit(ranked, cut),
    )


def expected_random(gains: ArrayLike, k: int) -> GroupMetrics | None:
    """What ranking at random gives: ``expected`` is its mean, ``best`` and ``worst`` bound every scorer.

    A scorer that gives all candidates one score is one tie class over the whole group, which is the same thing.
    """
    return group_metrics(np.zeros(np.shape(gains)), gains, k)


def oracle(gains: ArrayLike, k: int) -> GroupMetrics | None:
    """What the perfect scorer gives (the gains themselves as scores): the ceiling in this group."""
    return group_metrics(gains, gains, k)


def paired_bootstrap(
    deltas: ArrayLike, seed: int, resamples: int = 10_000, confidence: float = 0.95
) -> Interval | None:
    """Mean of per-group differences with its percentile bootstrap interval, groups drawn with replacement.

    Efron & Tibshirani 1993, ch. 13; for ranking metrics: Sakai 2006, "Evaluating evaluation metrics based on the
    bootstrap". ``deltas``: shape (groups,), candidate minus reference of the same group, any unit. Same seed,
    same answer; the draws are ``Generator(PCG64(seed)).integers`` and do not depend on how they are blocked.
    At most about 32 MB is held, whatever the number of resamples.

    ``None`` for fewer than 2 groups (one group says nothing about others) or any non-finite delta. With few groups
    the interval is known to be too narrow; it is no wider than the deltas it was given.
    """
    values = np.asarray(deltas, dtype=np.float64)
    if values.ndim != 1:
        message = f"deltas: expected shape (groups,), got {values.shape}"
        raise ValueError(message)
    if resamples < 1 or not 0 < confidence < 1:
        message = f"bootstrap: expected resamples >= 1 and 0 < confidence < 1, got {resamples} and {confidence}"
        raise ValueError(message)
    if values.size < 2 or not np.isfinite(values).all():
        return None
    generator = np.random.Generator(np.random.PCG64(seed))
    block = max(1, _BOOTSTRAP_CELLS // values.size)
    means = np.empty(resamples)
    for begin in range(0, resamples, block):
        rows = min(block, resamples - begin)
        drawn = generator.integers(0, values.size, size=(rows, values.size))
        means[begin : begin + rows] = values[drawn].mean(axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail], method="linear")
    return Interval(float(values.mean()), float(low), float(high))


def _cut(k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        message = f"k: expected a whole number >= 1, got {k!r}"
        raise ValueError(message)
    return k


def _rank(scores: ArrayLike, gains: ArrayLike) -> _Ranked | None:
    """The group in rank order, or ``None`` where no metric has a value (see the module's rules)."""
    score = np.asarray(scores, dtype=np.float64)
    gain = np.asarray(gains, dtype=np.float64)
    if score.ndim != 1 or score.shape != gain.shape:
        message = f"scores and gains: expected one shape (candidates,), got {score.shape} and {gain.shape}"
        raise ValueError(message)
    if not np.isfinite(gain).all() or (gain < 0).any():
        message = "gains: expected finite numbers >= 0, got a negative or non-finite one"
        raise ValueError(message)
    if not (gain > 0).any() or not np.isfinite(score).all():
        return None
    order = np.lexsort((-gain, -score))
    ordered = score[order]
    begins = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    first = np.flatnonzero(begins)
    size = np.diff(np.append(first, len(ordered)))
    return _Ranked(gains=gain[order], start=np.repeat(first, size), size=np.repeat(size, size))


def _tie_aware(expected: Any, best: Any, worst: Any) -> TieAware:
    """Rounding can carry a mean past the extremes by an ulp; a mean lies between them."""
    low, high = float(worst), float(best)
    return TieAware(expected=min(max(float(expected), low), high), best=high, worst=low)


def _ndcg(ranked: _Ranked, k: int) -> TieAware:
    discount = 1 / np.log2(np.arange(2, min(k, len(ranked.gains)) + 2))

    def dcg(gains: Floats) -> float:
        return float(np.sum(gains[:k] * discount))

    ideal = dcg(np.sort(ranked.gains)[::-1])
    expected = dcg(ranked.class_mean(ranked.gains))
    return _tie_aware(expected / ideal, dcg(ranked.gains) / ideal, dcg(ranked.worst_gains) / ideal)


def _found(ranked: _Ranked, k: int, divisor: float) -> TieAware:
    relevant = (ranked.gains > 0).astype(np.float64)
    worst = np.count_nonzero(ranked.worst_gains[:k])
    return _tie_aware(ranked.class_mean(relevant)[:k].sum() / divisor, relevant[:k].sum() / divisor, worst / divisor)


def _first_relevant(ranked: _Ranked) -> tuple[int, int, Floats]:
    """Of the first tie class with a relevant candidate: its start, its size less its relevant ones, and P.

    P[j] is the probability that the first relevant candidate of the class stands at position start + j. Drawing
    m candidates, r of them relevant, without replacement: none among the first j + 1 has probability
    prod_{i<=j} (m - r - i) / (m - i).
    """
    begin = int(ranked.start[np.argmax(ranked.gains > 0)])
    size = int(ranked.size[begin])
    others = size - int(np.count_nonzero(ranked.gains[begin : begin + size]))
    drawn = np.arange(others + 1)
    none_yet = np.cumprod((others - drawn) / (size - drawn))
    return begin, others, -np.diff(none_yet, prepend=1.0)


def _mrr(ranked: _Ranked, k: int) -> TieAware:
    begin, others, chance = _first_relevant(ranked)
    ranks = begin + 1 + np.arange(others + 1)
    reciprocal = np.where(ranks <= k, 1 / ranks, 0.0)
    return _tie_aware((chance * reciprocal).sum(), reciprocal[0], reciprocal[-1])


def _hit(ranked: _Ranked, k: int) -> TieAware:
    begin, others, chance = _first_relevant(ranked)
    return _tie_aware(chance[: max(0, k - begin)].sum(), begin < k, begin + others < k)


def _average_precision(ranked: _Ranked) -> TieAware:
    relevant = (ranked.gains > 0).astype(np.float64)
    rank = np.arange(1, len(relevant) + 1)
    total = float(relevant.sum())

    def exact(flags: Floats) -> float:
        return float(np.sum(flags * np.cumsum(flags) / rank)) / total

    # At a position with j of its class before it: relevant with chance r/m; given that, the expected number of
    # relevant candidates so far is (all of earlier classes) + j (r - 1) / (m - 1) + 1.
    chance = ranked.class_mean(relevant)
    in_class = chance * ranked.size
    earlier = np.concatenate(([0.0], np.cumsum(relevant)))[ranked.start]
    within = (rank - 1 - ranked.start) * (in_class - 1) / np.maximum(ranked.size - 1, 1)
    expected = np.sum(chance * (earlier + within + 1) / rank) / total
    return _tie_aware(expected, exact(relevant), exact((ranked.worst_gains > 0).astype(np.float64)))
