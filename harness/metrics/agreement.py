"""How far two scorers rank the candidates of each group alike, without looking at relevance.

``reference`` and ``scores`` hold a row a group, each of shape (candidates,); results are float64 of shape (groups,). A group
where either side has a score that is not finite has no value: NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from harness.metrics.padding import blocks
from harness.metrics.rows import Rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_CELLS = 1 << 14  # padded candidates looked at together, where a group needs as many cells as it has candidates squared


def kendall_tau_b(reference: Rows | Sequence[ArrayLike], scores: Rows | Sequence[ArrayLike]) -> Floats:
    """Kendall's tau-b of each group, -1 to 1 (Kendall 1945, "The treatment of ties in ranking problems").

    Where one side ties all candidates it is 0/0: 0 here, since nothing of the order is kept; 1 where both do, which is the
    same ranking. O(candidates**2) a group.
    """
    left_side, right_side = Rows.of(reference), Rows.of(scores)
    finite = left_side.finite() & right_side.finite()
    found = np.full(len(left_side), np.nan)
    sizes = left_side.sizes
    for rows in blocks(sizes**2, 16 * _CELLS):
        one, other = (side.take(rows).padded(np.nan) for side in (left_side, right_side))
        first, second = _signs(one), _signs(other)
        both, left, right = (
            np.sum(a * b, axis=(1, 2), dtype=np.int64) for a, b in ((first, second), (first, first), (second, second))
        )
        size = np.sqrt(left.astype(np.float64) * right)
        tau = np.where(size > 0, both / np.maximum(size, 1), np.where((left == 0) & (right == 0), 1.0, 0.0))
        found[rows] = np.where(finite[rows], tau, np.nan)
    return found


def overlap(reference: Rows | Sequence[ArrayLike], scores: Rows | Sequence[ArrayLike], k: int) -> Floats:
    """Share (0 to 1) of the scorer's first k that belong to the reference's first k; at k = 1, top-1 agreement.

    A candidate belongs when its reference score is at least the k-th greatest, so ties there lose nothing. Ties of the scorer
    across its k-th place are taken in every order, and the mean is given. NaN also where every candidate belongs
    (k >= candidates, or a reference tied all the way down): any scorer would agree.
    """
    left_side, right_side = Rows.of(reference), Rows.of(scores)
    finite = left_side.finite() & right_side.finite()
    found = np.full(len(left_side), np.nan)
    sizes = left_side.sizes
    for rows in blocks(sizes, 4 * _CELLS):
        decided = rows[finite[rows] & (sizes[rows] > k)]
        if not len(decided):
            continue
        one, other = (side.take(decided).padded(-np.inf) for side in (left_side, right_side))
        belongs = one >= _kth(one, k)
        edge = _kth(other, k)
        above, tied = other > edge, other == edge
        share = (k - np.count_nonzero(above, axis=1)) / np.count_nonzero(tied, axis=1)
        among = np.count_nonzero(above & belongs, axis=1) + share * np.count_nonzero(tied & belongs, axis=1)
        open_ = np.count_nonzero(belongs, axis=1) < sizes[decided]
        found[decided] = np.where(open_, among / k, np.nan)
    return found


def _kth(values: Floats, k: int) -> Floats:
    """The k-th greatest of each row, shape (rows, 1)."""
    return -np.partition(-values, k - 1, axis=1)[:, k - 1 : k]


def _signs(values: Floats) -> NDArray[np.int8]:
    """Sign of every difference, shape (rows, n, n); 0 where either is NaN."""
    left, right = values[:, :, np.newaxis], values[:, np.newaxis, :]
    return (left > right).astype(np.int8) - (left < right).astype(np.int8)
