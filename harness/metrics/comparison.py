"""Two sets of samples compared: the ratio of a statistic of latencies, and mean differences paired by query, each with a 95% interval.

Both are percentile bootstraps (Efron & Tibshirani 1993, ch. 13). Latencies of two sessions are resampled apart (ch. 16: two independent
samples). Calls of one session are not quite independent and two sessions differ, so that interval says how well *these two sessions*
were measured; it is too narrow for "is the candidate slower", which takes sessions in turn: a paired measurement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from harness.metrics.bootstrap import LARGE, bootstrap
from harness.metrics.latency import resampled

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

RESAMPLES = 2_000
"""Enough for a 95% percentile interval (Efron & Tibshirani 1993, ch. 13: 1,000 or more)."""


class Estimate(NamedTuple):
    """A figure and the ends of its 95% interval."""

    value: float
    low: float
    high: float


def ratio_of_quantiles(baseline_ms: ArrayLike, candidate_ms: ArrayLike, q: float, seed: int) -> Estimate | None:
    """Candidate's over baseline's q-quantile (type 7). None with fewer than 6 samples on a side, or one not finite and above 0."""

    def statistic(samples: Floats) -> Floats:
        found: Floats = np.quantile(samples, q, axis=-1, method="linear")
        return found

    return _ratio(baseline_ms, candidate_ms, statistic, seed)


def ratio_of_means(baseline_ms: ArrayLike, candidate_ms: ArrayLike, seed: int) -> Estimate | None:
    """Candidate's over baseline's mean. None as for ``ratio_of_quantiles``."""

    def statistic(samples: Floats) -> Floats:
        found: Floats = np.mean(samples, axis=-1)
        return found

    return _ratio(baseline_ms, candidate_ms, statistic, seed)


def paired_means(deltas: ArrayLike, seed: int) -> tuple[Estimate, ...] | None:
    """The mean of each column of ``deltas``, shape (queries, columns), queries drawn with replacement, all columns by the same draws.

    From ``LARGE`` queries on as ``bootstrap`` gives it. None for fewer than 2 queries, or a delta that is not finite.
    """
    values = np.asarray(deltas, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] < 2 or not np.isfinite(values).all():
        return None
    if not values.any():
        return tuple(Estimate(0.0, 0.0, 0.0) for _ in range(values.shape[1]))
    count = values.shape[0]
    if count >= LARGE:
        found = [interval for interval in bootstrap(values, seed, RESAMPLES) if interval is not None]
        return tuple(Estimate(mean, min(low, mean), max(high, mean)) for mean, low, high in found)
    generator = np.random.Generator(np.random.PCG64(seed))
    means = np.empty((RESAMPLES, values.shape[1]))
    for row in range(RESAMPLES):
        drawn = np.bincount(generator.integers(0, count, count, dtype=np.int32), minlength=count)
        means[row] = drawn @ values / count
    own = values.mean(axis=0)
    low, high = np.quantile(means, [0.025, 0.975], axis=0, method="linear")
    return tuple(
        Estimate(float(mean), min(float(a), float(mean)), max(float(b), float(mean)))
        for mean, a, b in zip(own, low, high, strict=True)
    )


def _ratio(
    baseline: ArrayLike, candidate: ArrayLike, statistic: Callable[[Floats], Floats], seed: int
) -> Estimate | None:
    sides = [np.asarray(side, dtype=np.float64) for side in (baseline, candidate)]
    if any(side.ndim != 1 or side.size < 6 or not np.isfinite(side).all() or side.min() <= 0 for side in sides):
        return None
    generator = np.random.Generator(np.random.PCG64(seed))
    before, after = (resampled(side, statistic, generator, RESAMPLES) for side in sides)
    low, high = np.quantile(after / before, [0.025, 0.975], method="linear")
    ratio = float(statistic(sides[1]) / statistic(sides[0]))
    return Estimate(ratio, min(float(low), ratio), max(float(high), ratio))
