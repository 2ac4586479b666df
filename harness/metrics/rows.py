"""Numbers by group, in one flat array: the scores or gains of the candidates of many groups. Pure.

A row is a group's numbers, one a candidate; rows differ in length. A list of fifty thousand small arrays costs more to walk than
the arithmetic on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]


def within(sizes: Integers) -> Integers:
    """The place of each number within its row, from 0."""
    places: Integers = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return places


class Rows:
    """``flat``: float64 of shape (candidates of all groups,), group after group. ``sizes``: int64 of shape (groups,)."""

    __slots__ = ("flat", "sizes", "starts")

    def __init__(self, flat: NDArray[Any], sizes: ArrayLike) -> None:
        self.flat: Floats = np.asarray(flat, dtype=np.float64)
        self.sizes: Integers = np.asarray(sizes, dtype=np.int64)
        self.starts: Integers = np.concatenate(([0], np.cumsum(self.sizes)))

    @classmethod
    def of(cls, rows: Rows | Iterable[ArrayLike]) -> Rows:
        """Rows from an array a group. Raises ``ValueError`` for an array that is not of shape (candidates,)."""
        if isinstance(rows, Rows):
            return rows
        made = [np.asarray(row, dtype=np.float64) for row in rows]
        for row in made:
            if row.ndim != 1:
                message = f"rows: expected one shape (candidates,), got {row.shape}"
                raise ValueError(message)
        return cls(np.concatenate(made) if made else np.zeros(0), [len(row) for row in made])

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Floats]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, place: int) -> Floats:
        return self.flat[self.starts[place] : self.starts[place + 1]]

    def like(self, flat: NDArray[Any]) -> Rows:
        """Other numbers for the same candidates."""
        return Rows(flat, self.sizes)

    def take(self, places: Integers) -> Rows:
        """The rows at these places, in that order."""
        sizes = self.sizes[places]
        return Rows(self.flat[np.repeat(self.starts[places], sizes) + within(sizes)], sizes)

    def repeated(self, times: int) -> Rows:
        """All rows that many times, one after another."""
        return Rows(np.tile(self.flat, times), np.tile(self.sizes, times))

    def count(self, flags: NDArray[np.bool_]) -> Integers:
        """How many of each row's candidates have a flag; ``flags`` is of the shape of ``flat``."""
        so_far = np.concatenate(([0], np.cumsum(flags)))
        counts: Integers = so_far[self.starts[1:]] - so_far[self.starts[:-1]]
        return counts

    def finite(self) -> NDArray[np.bool_]:
        """Whether all numbers of a row are finite, bool of shape (groups,)."""
        whole: NDArray[np.bool_] = self.count(np.isfinite(self.flat)) == self.sizes
        return whole

    def padded(self, fill: float, longest: int | None = None) -> Floats:
        """One array, float64 of shape (groups, longest), ``fill`` behind the end of each row; the longest row's length unless given."""
        longest = int(self.sizes.max(initial=0)) if longest is None else longest
        if longest * len(self) == self.flat.size:
            return self.flat.reshape(len(self), longest)
        made = np.full((len(self), longest), fill)
        made[np.arange(longest) < self.sizes[:, np.newaxis]] = self.flat
        return made
