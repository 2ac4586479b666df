"""Groups in rank order, and the ranking metrics there: of one order, and expected over all orders of the ties. Pure.

What the metrics are, and whom they follow, is said in ``ranking``. Arrays have shape (groups, candidates), padded to one length
with candidates that are ranked last and not relevant; column 0 is rank 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]


class Spread(NamedTuple):
    """A metric of many groups over all orders of the ties; each array float64 of shape (groups,), NaN where it has no value."""

    expected: Floats
    best: Floats
    worst: Floats


@dataclass(frozen=True)
class Ranked:
    """Gains in rank order, and whether a tie class begins at a position. Each group has a relevant candidate."""

    gains: Floats  # within a tie the greatest gain first, so that the input's order leaves no trace
    begins: NDArray[np.bool_]

    @classmethod
    def of(cls, scores: Floats, gains: Floats) -> Ranked:
        """Rank candidates by score, higher first."""
        order = np.lexsort((-gains, -scores), axis=1)
        ordered = np.take_along_axis(scores, order, axis=1)
        begins = np.ones(scores.shape, dtype=np.bool_)
        begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]  # a class never reaches from one group into the next
        return cls(np.take_along_axis(gains, order, axis=1), begins)

    def take(self, groups: Integers) -> Ranked:
        """Some of the groups."""
        return Ranked(self.gains[groups], self.begins[groups])

    @cached_property
    def open(self) -> Integers:
        """Places of the groups where a relevant candidate is tied with another: elsewhere no metric depends on the ties."""
        tied = ~self.begins[:, 1:] & (self.gains[:, :-1] > 0)
        return np.flatnonzero(tied.any(axis=1))

    @cached_property
    def first(self) -> Integers:
        """First position of every tie class, in the flattened array."""
        return np.flatnonzero(self.begins)

    @cached_property
    def sizes(self) -> Integers:
        """Number of candidates of every tie class."""
        return np.diff(np.append(self.first, self.gains.size))

    @cached_property
    def start(self) -> Integers:
        """First position of the tie class that holds this position."""
        return self._spread(self.first % self.gains.shape[1])

    @cached_property
    def size(self) -> Integers:
        """Number of candidates in that class."""
        return self._spread(self.sizes)

    @property
    def worst_gains(self) -> Floats:
        """The same ranking with each tie class reversed: least gain first."""
        mirrored = 2 * self.start + self.size - 1 - np.arange(self.gains.shape[1])
        return np.take_along_axis(self.gains, mirrored, axis=1)

    def class_sum(self, values: Floats) -> Floats:
        """For each position the sum of ``values`` over its tie class."""
        sums: Floats = np.add.reduceat(values.ravel(), self.first)
        return np.repeat(sums, self.sizes).reshape(self.gains.shape)

    def _spread(self, by_class: Integers) -> Integers:
        return np.repeat(by_class, self.sizes).reshape(self.gains.shape)


def spread(ranked: Ranked, cuts: Sequence[int], families: Sequence[str]) -> dict[str, Spread]:
    """``map`` and every family at every cut-off. Where no tie is open, what one order gives is all there is."""
    tied = ranked.take(ranked.open)
    best = _in_order(ranked.gains, cuts, families)
    worst = _in_order(tied.worst_gains, cuts, families)
    expected = _expected(tied, cuts, families)
    found = {}
    for name, values in best.items():
        found[name] = Spread(values.copy(), values, values.copy())
        found[name].worst[ranked.open] = worst[name]
        # Rounding can carry a mean past the extremes by an ulp; a mean lies between them.
        found[name].expected[ranked.open] = np.clip(expected[name], worst[name], values[ranked.open])
    return found


def _in_order(gains: Floats, cuts: Sequence[int], families: Sequence[str]) -> dict[str, Floats]:
    """The metrics of gains in one order."""
    relevant = gains > 0
    first = np.argmax(relevant, axis=1)
    count = np.count_nonzero(relevant, axis=1).astype(np.float64)
    flags, rank = relevant.astype(np.float64), np.arange(1, gains.shape[1] + 1)
    found = {"map": np.sum(flags * np.cumsum(flags, axis=1) / rank, axis=1) / count}
    for k in cuts:
        made: dict[str, Callable[[], Floats]] = {
            "ndcg": partial(_ndcg, gains, gains, k),
            "mrr": partial(_reciprocal, first, k),
            "recall": partial(_share, flags, k, count),
            "precision": partial(_share, flags, k, float(k)),
            "hit": partial((first < k).astype, np.float64),
        }
        found |= {f"{family}_at_{k}": made[family]() for family in families}
    return found


def _ndcg(gain: Floats, gains: Floats, k: int) -> Floats:
    """The nDCG with ``gain`` at each rank, of groups that hold ``gains``."""
    return _dcg(gain, k) / _dcg(-np.sort(-gains, axis=1), k)


def _dcg(gains: Floats, k: int) -> Floats:
    discount = 1 / np.log2(np.arange(2, min(k, gains.shape[1]) + 2))
    sums: Floats = np.sum(gains[:, :k] * discount, axis=1)
    return sums


def _reciprocal(first: Integers, k: int) -> Floats:
    """The reciprocal of a rank, that of the place ``first``, within k."""
    return np.where(first < k, 1 / (first + 1), 0.0)


def _share(relevant: Floats, k: int, of: Floats | float) -> Floats:
    """What is relevant within the first k, over ``of``."""
    found: Floats = np.sum(relevant[:, :k], axis=1) / of
    return found


def _expected(ranked: Ranked, cuts: Sequence[int], families: Sequence[str]) -> dict[str, Floats]:
    """The mean of the metrics over all orders of the ties."""
    relevant = (ranked.gains > 0).astype(np.float64)
    in_class, count = ranked.class_sum(relevant), np.sum(relevant, axis=1)
    gain, share = ranked.class_sum(ranked.gains) / ranked.size, in_class / ranked.size
    chance = _first_relevant(ranked, in_class)
    found = {"map": _average_precision(ranked, relevant, in_class) / count}
    for k in cuts:
        made: dict[str, Callable[[], Floats]] = {
            "ndcg": partial(_ndcg, gain, ranked.gains, k),
            "mrr": partial(_mrr, chance, k),
            "recall": partial(_share, share, k, count),
            "precision": partial(_share, share, k, float(k)),
            "hit": partial(_hit, chance, k),
        }
        found |= {f"{family}_at_{k}": made[family]() for family in families}
    return found


class _First(NamedTuple):
    """Of each group's first tie class with a relevant candidate: its start, of shape (groups, 1), and P.

    P, of shape (groups, candidates): P[j] is the probability that the first relevant candidate stands at position begin + j.
    Drawing m candidates, r of them relevant, without replacement: none among the first j + 1 has probability
    prod_{i<=j} (m - r - i) / (m - i).
    """

    begin: Integers
    chance: Floats


def _first_relevant(ranked: Ranked, in_class: Floats) -> _First:
    place = np.argmax(ranked.gains > 0, axis=1)[:, np.newaxis]
    begin, size, within = (
        np.take_along_axis(values, place, axis=1) for values in (ranked.start, ranked.size, in_class.astype(np.int64))
    )
    drawn = np.arange(ranked.gains.shape[1])
    none_yet = np.cumprod(np.maximum(size - within - drawn, 0) / np.maximum(size - drawn, 1), axis=1)
    return _First(begin, -np.diff(none_yet, prepend=1.0, axis=1))


def _mrr(first: _First, k: int) -> Floats:
    ranks = first.begin + 1 + np.arange(first.chance.shape[1])
    sums: Floats = np.sum(first.chance * np.where(ranks <= k, 1 / ranks, 0.0), axis=1)
    return sums


def _hit(first: _First, k: int) -> Floats:
    within = np.arange(first.chance.shape[1]) < k - first.begin
    sums: Floats = np.sum(first.chance * within, axis=1)
    return sums


def _average_precision(ranked: Ranked, relevant: Floats, in_class: Floats) -> Floats:
    """The sum of the expected precision at each relevant candidate.

    At a position with j of its class before it: relevant with chance r/m; given that, the expected number of relevant candidates so
    far is (all of earlier classes) + j (r - 1) / (m - 1) + 1.
    """
    size, start = ranked.size, ranked.start
    rank = np.arange(1, relevant.shape[1] + 1)
    before = np.concatenate((np.zeros((len(relevant), 1)), np.cumsum(relevant, axis=1)), axis=1)
    earlier = np.take_along_axis(before, start, axis=1)
    within = (rank - 1 - start) * (in_class - 1) / np.maximum(size - 1, 1)
    sums: Floats = np.sum(in_class / size * (earlier + within + 1) / rank, axis=1)
    return sums
