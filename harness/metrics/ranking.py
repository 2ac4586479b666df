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
from typing import TYPE_CHECKING

import numpy as np

from harness.metrics.padding import blocks
from harness.metrics.ranked import Ranked, Spread, spread
from harness.metrics.rows import Rows
from harness.records import Record

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

FAMILIES = ("ndcg", "mrr", "recall", "precision", "hit")
"""The metrics that are cut at k; ``map`` is over the whole list."""

_CELLS = 1 << 20  # padded candidates of one length: a sum in another length could differ in its last bit
_AT_ONCE = 1 << 15  # of those looked at together: a dozen arrays of them fit a processor's cache


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
    for block in blocks(score.sizes, _CELLS):
        longest = int(score.sizes[block[0]])
        for rows in np.array_split(block, 1 + len(block) * longest // _AT_ONCE):
            part = _block(score.take(rows), gain.take(rows), longest, cuts, families)
            for name, its in part.items():
                for whole, piece in zip(found[name], its, strict=True):
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


def _block(scores: Rows, gains: Rows, longest: int, cuts: Sequence[int], families: Sequence[str]) -> dict[str, Spread]:
    """All metrics of some groups, NaN for those without a value."""
    gain = gains.padded(0.0, longest)
    score = scores.padded(-np.inf, longest)
    valid = scores.finite() & (gain > 0).any(axis=1)
    if not valid.any():
        return {}
    found = spread(Ranked.of(score[valid], gain[valid]), cuts, families)
    return {name: _whole(its, valid) for name, its in found.items()}


def _whole(its: Spread, valid: NDArray[np.bool_]) -> Spread:
    """NaN where a group is not valid."""
    made = np.full((3, len(valid)), np.nan)
    made[:, valid] = its
    return Spread(*made)


def _tie_aware(spread: Spread) -> TieAware:
    return TieAware(expected=float(spread.expected[0]), best=float(spread.best[0]), worst=float(spread.worst[0]))
