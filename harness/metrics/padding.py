"""Rows of different length looked at together: in blocks of like size. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]


def blocks(sizes: Integers, cells: int) -> Iterator[Integers]:
    """Indices of rows that are looked at together: rows of like size, padded to at most about ``cells`` cells."""
    order = np.argsort(sizes, kind="stable")[::-1]
    begin = 0
    while begin < len(order):
        longest = max(1, int(sizes[order[begin]]))
        end = begin + max(1, cells // longest)
        yield order[begin:end]
        begin = end
