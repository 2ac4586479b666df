"""Means over groups with their percentile bootstrap intervals, many metrics on the same resamples.

Efron & Tibshirani 1993, "An Introduction to the Bootstrap", ch. 13; for ranking metrics: Sakai 2006, "Evaluating evaluation
metrics based on the bootstrap". Groups are drawn with replacement; a paired difference of two scorers is a value a group.

Every value is rounded to 37 significant bits of the largest of its metric. Up to 65,536 groups all sums are then exact in a
float64, so they do not depend on the order in which a linear algebra library adds, and a verifier on another machine gets
the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_CELLS = 2_000_000  # random indices held at once: 16 MB of int64, and as many counts
_BITS = 37


class Interval(NamedTuple):
    """A mean with the ends of its confidence interval, all in the unit of the values."""

    mean: float
    low: float
    high: float


def bootstrap(values: ArrayLike, seed: int, resamples: int = 10_000, confidence: float = 0.95) -> list[Interval | None]:
    """The mean of each column of ``values``, shape (groups, metrics), with its interval.

    Same seed, same answer; the draws are ``Generator(PCG64(seed)).integers`` and do not depend on how they are blocked, nor on
    how many columns there are. ``None`` for fewer than 2 groups (one group says nothing about others), and for a column with a
    value that is not finite. With few groups the interval is known to be too narrow; it is no wider than the values given.
    """
    columns = np.asarray(values, dtype=np.float64)
    if columns.ndim != 2:
        message = f"values: expected shape (groups, metrics), got {columns.shape}"
        raise ValueError(message)
    if resamples < 1 or not 0 < confidence < 1:
        message = f"bootstrap: expected resamples >= 1 and 0 < confidence < 1, got {resamples} and {confidence}"
        raise ValueError(message)
    groups, finite = len(columns), np.atleast_1d(np.isfinite(columns).all(axis=0))
    if groups < 2 or not finite.any():
        return [None] * columns.shape[1]
    kept = rounded(columns[:, finite])
    means = _resampled(kept, seed, resamples)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0, method="linear", overwrite_input=True)
    made = iter(map(Interval, *((kept.sum(axis=0) / groups).tolist(), low.tolist(), high.tolist())))
    return [next(made) if whole else None for whole in finite]


def paired_bootstrap(
    deltas: ArrayLike, seed: int, resamples: int = 10_000, confidence: float = 0.95
) -> Interval | None:
    """``bootstrap`` of one column: ``deltas`` of shape (groups,), candidate minus reference of the same group."""
    values = np.asarray(deltas, dtype=np.float64)
    if values.ndim != 1:
        message = f"deltas: expected shape (groups,), got {values.shape}"
        raise ValueError(message)
    return bootstrap(values[:, np.newaxis], seed, resamples, confidence)[0]


def rounded(columns: Floats) -> Floats:
    """Each column on a grid of 2**-37 of its largest value, so that sums are exact."""
    _, exponent = np.frexp(np.abs(columns).max(axis=0))
    step = np.ldexp(1.0, exponent - _BITS)
    made: Floats = np.round(columns / step) * step
    return made


def _resampled(columns: Floats, seed: int, resamples: int) -> Floats:
    """Means of each resample, shape (resamples, metrics): how often each group was drawn, times its values."""
    groups = len(columns)
    generator = np.random.Generator(np.random.PCG64(seed))
    means = np.empty((resamples, columns.shape[1]))
    rows = max(1, _CELLS // groups)
    for begin in range(0, resamples, rows):
        count = min(rows, resamples - begin)
        drawn = generator.integers(0, groups, size=(count, groups))
        drawn += np.arange(count)[:, np.newaxis] * groups
        times = np.bincount(drawn.ravel(), minlength=count * groups).reshape(count, groups)
        means[begin : begin + count] = (times.astype(np.float64) @ columns) / groups
    return means
