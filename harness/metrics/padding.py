"""Rows of different length looked at together: padded to one array, in blocks of like size. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]


def padded(rows: Sequence[Floats], fill: float) -> Floats:
    """Arrays of different length as one, float64 of shape (rows, longest), ``fill`` behind the end of each."""
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    made = np.full((len(rows), int(sizes.max(initial=0))), fill)
    made[np.arange(made.shape[1]) < sizes[:, np.newaxis]] = np.concatenate(rows) if len(rows) else []
    return made


def blocks(sizes: Integers, cells: int) -> Iterator[Integers]:
    """Indices of rows that are looked at together: rows of like size, padded to at most about ``cells`` cells."""
    order = np.argsort(sizes, kind="stable")[::-1]
    begin = 0
    while begin < len(order):
        longest = max(1, int(sizes[order[begin]]))
        end = begin + max(1, cells // longest)
        yield order[begin:end]
        begin = end
