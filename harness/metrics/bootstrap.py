"""Means over groups with their percentile bootstrap intervals, many metrics on the same resamples.

Efron & Tibshirani 1993, "An Introduction to the Bootstrap", ch. 13; for ranking metrics: Sakai 2006, "Evaluating evaluation
metrics based on the bootstrap". Groups are drawn with replacement; a paired difference of two scorers is a value a group.

From ``LARGE`` groups on nothing is drawn where drawing would only add noise. The ends are then those of the *ideal* bootstrap (as many
resamples as one likes; Efron & Tibshirani, ch. 6), whose cumulants are known without a draw: those of the values over powers of the
number of groups. Cornish & Fisher 1938, "Moments and cumulants in the specification of distributions", turn them into quantiles; the
error is of the order of groups**-1.5 (Hall 1992, "The Bootstrap and Edgeworth Expansion", sections 2.5 and 3.2), and the quantile of
10,000 draws is off by 0.027 standard errors (one in 37) by chance alone. A column whose few values decide (a mean still skewed beyond
``SKEWED``) is resampled all the same, row by distinct row.

Every value is rounded to 37 significant bits of the largest of its metric. Up to 65,536 groups all sums are then exact in a
float64, so they do not depend on the order in which a linear algebra library adds, and a verifier on another machine gets
the same bits.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_CELLS = 2_000_000  # random indices held at once: 16 MB of int64, and as many counts
_BITS = 37
_COLUMNS = 16  # metrics whose ends are calculated together: more would leave a processor's cache, and be fresh memory each time
LARGE = 4096
"""Groups from which on ends are calculated. Fewer are drawn in a blink."""
SKEWED = 0.05
"""Skewness of the resampled mean beyond which the expansion is not trusted; its excess kurtosis likewise. A share needs about 400 hits."""
_FEW = 8  # groups to a distinct row: a multinomial draw costs about as much as so many single draws


class Interval(NamedTuple):
    """A mean with the ends of its confidence interval, all in the unit of the values."""

    mean: float
    low: float
    high: float


def bootstrap(values: ArrayLike, seed: int, resamples: int = 10_000, confidence: float = 0.95) -> list[Interval | None]:
    """The mean of each column of ``values``, shape (groups, metrics), with its interval.

    Same seed, same answer; below ``LARGE`` groups the draws are ``Generator(PCG64(seed)).integers`` and do not depend on how
    they are blocked, nor on how many columns there are. ``None`` for fewer than 2 groups (one group says nothing about others),
    and for a column with a value that is not finite. With few groups the interval is known to be too narrow; it is no wider
    than the values given.
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
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    low, high = (_ends if groups >= LARGE else _drawn)(kept, seed, resamples, tails)
    made = iter(map(Interval, *((kept.sum(axis=0) / groups).tolist(), low.tolist(), high.tolist())))
    return [next(made) if whole else None for whole in finite]


def rounded(columns: Floats) -> Floats:
    """Each column on a grid of 2**-37 of its largest value, so that sums are exact."""
    step = _grid(columns)
    made: Floats = np.round(columns / step) * step
    return made


def _grid(columns: Floats) -> Floats:
    _, exponent = np.frexp(np.abs(columns).max(axis=0))
    step: Floats = np.ldexp(1.0, exponent - _BITS)
    return step


def _drawn(columns: Floats, seed: int, resamples: int, tails: tuple[float, float]) -> Floats:
    """The ends by resampling, shape (2, metrics)."""
    means = _resampled(columns, seed, resamples)
    ends: Floats = np.quantile(means, tails, axis=0, method="linear", overwrite_input=True)
    return ends


def _ends(columns: Floats, seed: int, resamples: int, tails: tuple[float, float]) -> Floats:
    """The ends of many groups, shape (2, metrics): calculated, or resampled where that is not to be trusted."""
    parts = np.array_split(columns, 1 + (columns.shape[1] - 1) // _COLUMNS, axis=1)
    ends, unsure = (
        np.concatenate(side, axis=-1) for side in zip(*(_expanded(part, tails) for part in parts), strict=True)
    )
    if unsure.any():
        ends[:, unsure] = _drawn_by_row(columns[:, unsure], seed, resamples, tails)
    step = _grid(columns)
    made: Floats = np.round(ends / step) * step
    return made


def _expanded(columns: Floats, tails: tuple[float, float]) -> tuple[Floats, NDArray[np.bool_]]:
    """The ends by expansion, shape (2, metrics), and for which metrics they are not to be trusted."""
    groups = len(columns)
    mean = columns.sum(axis=0) / groups
    apart = columns - mean
    square = apart * apart
    second, third, fourth = ((power.sum(axis=0) / groups) for power in (square, square * apart, square * square))
    varied = np.where(second > 0, second, 1.0)
    skew, excess = third / varied**1.5 / groups**0.5, (fourth / varied**2 - 3) / groups
    z = np.array([[NormalDist().inv_cdf(tail)] for tail in tails])
    expanded = z + (z**2 - 1) * skew / 6 + (z**3 - 3 * z) * excess / 24 - (2 * z**3 - 5 * z) * skew**2 / 36
    ends: Floats = mean + np.sqrt(second / groups) * expanded
    return ends, (second > 0) & ((np.abs(skew) > SKEWED) | (np.abs(excess) > SKEWED))


def _drawn_by_row(columns: Floats, seed: int, resamples: int, tails: tuple[float, float]) -> Floats:
    """As ``_drawn``, drawing how often each distinct row comes: where most groups have the same, there are few of them."""
    groups = len(columns)
    rows, counts = np.unique(columns, axis=0, return_counts=True)
    if len(rows) * _FEW > groups:
        return _drawn(columns, seed, resamples, tails)
    generator = np.random.Generator(np.random.PCG64(seed))
    block = max(1, _CELLS // len(rows))
    sizes = [min(block, resamples - begin) for begin in range(0, resamples, block)]
    means = [generator.multinomial(groups, counts / groups, size=size) @ rows / groups for size in sizes]
    ends: Floats = np.quantile(np.concatenate(means), tails, axis=0, method="linear")
    return ends


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
