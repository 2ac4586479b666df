"""Ranking metrics of groups of candidates, exact under ties: nDCG, MRR, MAP, recall, precision and hit rate.

A group is ``scores`` and ``gains``, both of shape (candidates,): the scorer's number for each candidate (any
float dtype, higher = earlier) and its graded relevance (finite, >= 0; 0 = not relevant). Candidates with equal
scores have no order of their own, so every metric is given as the expected value over all orders of the ties, and
the best and the worst order. The expected values follow McSherry & Najork 2008, "Computing Information Retrieval
Performance Measures Efficiently in the Presence of Tied Scores".

Common rules, stated once (docs/ranking-metrics.md gives the formulas):

- No candidate, no candidate with gain > 0, or any non-finite score: the group has no value, ``None`` or NaN. The caller
  counts such groups. (A NaN score is never sorted to some place and then judged.)
- ``scores`` and ``gains`` of different shape, a gain that is negative or not finite, or k < 1: ``ValueError``.
- nDCG uses *linear* gains (gain / log2(rank + 1)), as trec_eval and mteb do, not 2**gain - 1.
  All other metrics are binary: relevant means gain > 0.
- Ideal order and number of relevant candidates are those of the group itself, not of judgements outside it.
- With fewer candidates than k, precision still divides by k (as trec_eval does).
- Where the best order of all candidates gives what the worst gives (recall when k >= candidates), any scorer gets that
  value and it is no achievement. The caller leaves such groups out of the mean; ``expected_random`` tells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from harness.metrics.padding import blocks
from harness.metrics.rows import Rows
from harness.records import Record

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

FAMILIES = ("ndcg", "mrr", "recall", "precision", "hit")
"""The metrics that are cut at k; ``map`` is over the whole list."""

_CELLS = 1 << 20  # padded candidates looked at together: some 8 MB an array


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


class Spread(NamedTuple):
    """A metric of many groups over all orders of the ties; each array float64 of shape (groups,), NaN where it has no value."""

    expected: Floats
    best: Floats
    worst: Floats


class _Ranked(NamedTuple):
    """Groups in rank order, padded to the longest. Arrays have shape (groups, candidates); column 0 is rank 1."""

    gains: Floats  # within a tie the greatest gain first, so that the input's order leaves no trace
    first: Integers  # first position of every tie class, in the flattened array
    sizes: Integers  # number of candidates of every tie class

    @property
    def start(self) -> Integers:
        """First position of the tie class that holds this position."""
        return self._spread(self.first % self.gains.shape[1])

    @property
    def size(self) -> Integers:
        """Number of candidates in that class."""
        return self._spread(self.sizes)

    @property
    def worst_gains(self) -> Floats:
        """The same ranking with each tie class reversed: least gain first."""
        mirrored = 2 * self.start + self.size - 1 - np.arange(self.gains.shape[1])
        return np.take_along_axis(self.gains, mirrored, axis=1)

    def class_sum(self, values: NDArray[np.float64]) -> Floats:
        """For each position the sum of ``values`` over its tie class."""
        sums: Floats = np.add.reduceat(values.ravel(), self.first)
        return np.repeat(sums, self.sizes).reshape(self.gains.shape)

    def _spread(self, by_class: Integers) -> Integers:
        return np.repeat(by_class, self.sizes).reshape(self.gains.shape)


def spreads(
    scores: Rows | Sequence[ArrayLike],
    gains: Rows | Sequence[ArrayLike],
    cuts: Sequence[int],
    families: Sequence[str] = FAMILIES,
) -> dict[str, Spread]:
    """``map`` and, for every family and cut-off k, e.g. ``ndcg_at_10``, of all groups at once: float64 of shape (groups,)."""
    for k in cuts:
        _check_cut(k)
    score, gain = _groups(scores, gains)
    names = [f"{family}_at_{k}" for family in families for k in cuts] + ["map"]
    found = {name: Spread(*np.full((3, len(score)), np.nan)) for name in names}
    for rows in blocks(score.sizes, _CELLS):
        part = _block(score.take(rows), gain.take(rows), cuts, families)
        for name, spread in part.items():
            for whole, piece in zip(found[name], spread, strict=True):
                whole[rows] = piece
    return found


def group_metrics(scores: ArrayLike, gains: ArrayLike, k: int) -> GroupMetrics | None:
    """All metrics of one group; None where it has no value."""
    found = spreads([scores], [gains], [k])
    if np.isnan(found["map"].expected[0]):
        return None
    cut = {family: _tie_aware(found[f"{family}_at_{k}"]) for family in FAMILIES}
    return GroupMetrics(k=k, average_precision=_tie_aware(found["map"]), **cut)


def expected_random(gains: ArrayLike, k: int) -> GroupMetrics | None:
    """What ranking at random gives: ``expected`` is its mean, ``best`` and ``worst`` bound every scorer.

    A scorer that gives all candidates one score is one tie class over the whole group, which is the same thing.
    """
    return group_metrics(np.zeros(np.shape(gains)), gains, k)


def oracle(gains: ArrayLike, k: int) -> GroupMetrics | None:
    """What the perfect scorer gives (the gains themselves as scores): the ceiling in this group."""
    return group_metrics(gains, gains, k)


def _check_cut(k: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        message = f"k: expected a whole number >= 1, got {k!r}"
        raise ValueError(message)


def _groups(scores: Rows | Sequence[ArrayLike], gains: Rows | Sequence[ArrayLike]) -> tuple[Rows, Rows]:
    """Both, a row a group. Raises ``ValueError`` for what is no group (see the module's rules)."""
    if len(scores) != len(gains):
        message = f"scores and gains: expected as many groups of both, got {len(scores)} and {len(gains)}"
        raise ValueError(message)
    if not (isinstance(scores, Rows) and isinstance(gains, Rows)):
        for one, other in zip(scores, gains, strict=True):
            if np.ndim(one) != 1 or np.shape(one) != np.shape(other):
                message = (
                    f"scores and gains: expected one shape (candidates,), got {np.shape(one)} and {np.shape(other)}"
                )
                raise ValueError(message)
    score, gain = Rows.of(scores), Rows.of(gains)
    if not (score.sizes == gain.sizes).all():
        place = int(np.argmax(score.sizes != gain.sizes))
        got = f"{(int(score.sizes[place]),)} and {(int(gain.sizes[place]),)}"
        message = f"scores and gains: expected one shape (candidates,), got {got}"
        raise ValueError(message)
    if not (gain.flat >= 0).all() or np.isinf(gain.flat).any():
        message = "gains: expected finite numbers >= 0, got a negative or non-finite one"
        raise ValueError(message)
    return score, gain


def _block(scores: Rows, gains: Rows, cuts: Sequence[int], families: Sequence[str]) -> dict[str, Spread]:
    """All metrics of some groups, NaN for those without a value."""
    gain = gains.padded(0.0)
    score = scores.padded(-np.inf)
    valid = scores.finite() & (gain > 0).any(axis=1)
    if not valid.any():
        return {}
    ranked = _rank(score[valid], gain[valid])
    found: dict[str, Spread] = {"map": _average_precision(ranked)}
    chance = _first_relevant(ranked)
    relevant = np.count_nonzero(ranked.gains, axis=1).astype(np.float64)
    for k in cuts:
        made = {
            "ndcg": lambda k=k: _ndcg(ranked, k),
            "mrr": lambda k=k: _mrr(chance, k),
            "recall": lambda k=k: _found(ranked, k, relevant),
            "precision": lambda k=k: _found(ranked, k, np.full(len(relevant), float(k))),
            "hit": lambda k=k: _hit(chance, k),
        }
        found |= {f"{family}_at_{k}": made[family]() for family in families}
    return {name: _whole(spread, valid) for name, spread in found.items()}


def _whole(spread: Spread, valid: NDArray[np.bool_]) -> Spread:
    """Rounding can carry a mean past the extremes by an ulp; a mean lies between them. NaN where a group is not valid."""
    made = np.full((3, len(valid)), np.nan)
    made[:, valid] = np.clip(spread.expected, spread.worst, spread.best), spread.best, spread.worst
    return Spread(*made)


def _rank(score: Floats, gain: Floats) -> _Ranked:
    order = np.lexsort((-gain, -score), axis=1)
    ordered = np.take_along_axis(score, order, axis=1)
    begins = np.ones(score.shape, dtype=np.bool_)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]  # a class never reaches from one group into the next
    first = np.flatnonzero(begins)
    return _Ranked(np.take_along_axis(gain, order, axis=1), first, np.diff(np.append(first, score.size)))


def _tie_aware(spread: Spread) -> TieAware:
    return TieAware(expected=float(spread.expected[0]), best=float(spread.best[0]), worst=float(spread.worst[0]))


def _ndcg(ranked: _Ranked, k: int) -> Spread:
    discount = 1 / np.log2(np.arange(2, min(k, ranked.gains.shape[1]) + 2))

    def dcg(gains: Floats) -> Floats:
        sums: Floats = np.sum(gains[:, :k] * discount, axis=1)
        return sums

    ideal = dcg(-np.sort(-ranked.gains, axis=1))
    mean = ranked.class_sum(ranked.gains) / ranked.size
    return Spread(dcg(mean) / ideal, dcg(ranked.gains) / ideal, dcg(ranked.worst_gains) / ideal)


def _found(ranked: _Ranked, k: int, divisor: Floats) -> Spread:
    """Relevant candidates within the first k over ``divisor``."""
    relevant = (ranked.gains > 0).astype(np.float64)
    mean = ranked.class_sum(relevant) / ranked.size
    sums = [np.sum(side[:, :k], axis=1) / divisor for side in (mean, relevant, ranked.worst_gains > 0)]
    return Spread(*sums)


class _First(NamedTuple):
    """Of each group's first tie class with a relevant candidate: its start, its members that are not relevant, and P.

    ``begin`` and ``others`` have shape (groups, 1). P, of shape (groups, candidates): P[j] is the probability that the first
    relevant candidate stands at position begin + j. Drawing m candidates, r of them relevant, without replacement: none
    among the first j + 1 has probability prod_{i<=j} (m - r - i) / (m - i).
    """

    begin: Integers
    others: Integers
    chance: Floats


def _first_relevant(ranked: _Ranked) -> _First:
    relevant = ranked.gains > 0
    place = np.argmax(relevant, axis=1)[:, np.newaxis]
    begin, size = (np.take_along_axis(values, place, axis=1) for values in (ranked.start, ranked.size))
    within = np.take_along_axis(ranked.class_sum(relevant.astype(np.float64)), place, axis=1)
    others = size - within.astype(np.int64)
    drawn = np.arange(relevant.shape[1])
    none_yet = np.cumprod(np.maximum(others - drawn, 0) / np.maximum(size - drawn, 1), axis=1)
    return _First(begin, others, -np.diff(none_yet, prepend=1.0, axis=1))


def _mrr(first: _First, k: int) -> Spread:
    ranks = first.begin + 1 + np.arange(first.chance.shape[1])
    reciprocal = np.where(ranks <= k, 1 / ranks, 0.0)
    worst = np.take_along_axis(reciprocal, first.others, axis=1)
    return Spread(np.sum(first.chance * reciprocal, axis=1), reciprocal[:, 0], worst[:, 0])


def _hit(first: _First, k: int) -> Spread:
    within = np.arange(first.chance.shape[1]) < k - first.begin
    worst = first.begin + first.others < k
    sums = np.sum(first.chance * within, axis=1)
    return Spread(sums, (first.begin < k)[:, 0].astype(np.float64), worst[:, 0].astype(np.float64))


def _average_precision(ranked: _Ranked) -> Spread:
    relevant = (ranked.gains > 0).astype(np.float64)
    rank = np.arange(1, relevant.shape[1] + 1)
    total = np.sum(relevant, axis=1)

    def exact(flags: Floats) -> Floats:
        sums: Floats = np.sum(flags * np.cumsum(flags, axis=1) / rank, axis=1) / total
        return sums

    # At a position with j of its class before it: relevant with chance r/m; given that, the expected number of
    # relevant candidates so far is (all of earlier classes) + j (r - 1) / (m - 1) + 1.
    size, start = ranked.size, ranked.start
    in_class = ranked.class_sum(relevant)
    before = np.concatenate((np.zeros((len(relevant), 1)), np.cumsum(relevant, axis=1)), axis=1)
    earlier = np.take_along_axis(before, start, axis=1)
    within = (rank - 1 - start) * (in_class - 1) / np.maximum(size - 1, 1)
    expected = np.sum(in_class / size * (earlier + within + 1) / rank, axis=1) / total
    return Spread(expected, exact(relevant), exact((ranked.worst_gains > 0).astype(np.float64)))
