"""Statistics of sampled memory: resident set size (RSS) in bytes, of a process tree.

A sample is a time (ms, any origin, rising) with a size (bytes > 0). A size that could not be read must be left out by
the sampler: a size of 0 or less, or one that is not finite, is no measurement, and makes what depends on it ``None``.
Unknown is ``None``, never 0. Lists of different length are a ``ValueError``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from harness.records import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_POINTS = 2000
"""Points that ``growth_slope`` uses at most: two million slopes, 16 MB."""

MIN_POINTS = 6
"""Points below which there is no growth: five distinct sizes make no 95% interval, and three equal ones would."""


class Phases(Record, frozen=True):
    """RSS in bytes before the load, after it, and at its highest over all samples; null where no sample tells."""

    baseline_bytes: int | None
    loaded_bytes: int | None
    peak_bytes: int | None


class Growth(Record, frozen=True):
    """Growth of RSS in bytes per 1,000 calls with its confidence interval; ``points`` are the samples it rests on."""

    bytes_per_1000_calls: float
    low: float
    high: float
    points: int


def peak(rss_bytes: Sequence[float]) -> int | None:
    """Largest sample, in bytes. Sampling misses what comes and goes between two samples: it is a lower bound."""
    return int(max(rss_bytes)) if rss_bytes and _known(rss_bytes) else None


def phases(t_ms: Sequence[float], rss_bytes: Sequence[float], load_begin_ms: float, load_end_ms: float) -> Phases:
    """Baseline: the last sample at or before the load begins. Loaded: the first at or after it ends. Peak: of all.

    Each is None when there is no such sample, and all are when any size is unknown. ``ValueError`` when the times
    fall or the load ends before it begins.
    """
    _same_length(t_ms, rss_bytes)
    if not load_begin_ms <= load_end_ms or any(not a <= b for a, b in pairwise(t_ms)):
        message = "memory: expected rising times in ms and a load that ends after it begins, got others"
        raise ValueError(message)
    if not rss_bytes or not _known(rss_bytes):
        return Phases(baseline_bytes=None, loaded_bytes=None, peak_bytes=None)
    before = [size for t, size in zip(t_ms, rss_bytes, strict=True) if t <= load_begin_ms]
    after = [size for t, size in zip(t_ms, rss_bytes, strict=True) if t >= load_end_ms]
    return Phases(
        baseline_bytes=int(before[-1]) if before else None,
        loaded_bytes=int(after[0]) if after else None,
        peak_bytes=peak(rss_bytes),
    )


def growth_slope(call_index: Sequence[float], rss_bytes: Sequence[float], confidence: float = 0.95) -> Growth | None:
    """Growth of RSS over calls, by the Theil-Sen estimator: the median of the slopes between all two samples.

    Theil 1950; the interval is Sen's 1968 (order statistics of the slopes by the normal approximation to Kendall's S,
    variance corrected for tied sizes). Chosen over least squares since RSS moves in steps, with a jump at an
    allocation and no normal residuals: one step does not carry the median with it. A single late jump is therefore no
    growth here; ``peak`` shows it. The interval takes samples for independent.

    ``call_index`` (number of the call a sample was taken after) must not be the same for all samples; samples of one
    call make no slope with each other. Of more than ``MAX_POINTS`` samples, evenly spaced ones are used. None for
    unknown sizes, non-finite calls, fewer than ``MIN_POINTS`` samples, or too few slopes for the interval.
    """
    _same_length(call_index, rss_bytes)
    if not 0 < confidence < 1:
        message = f"confidence: expected a fraction between 0 and 1, got {confidence}"
        raise ValueError(message)
    calls, sizes = np.asarray(call_index, dtype=np.float64), np.asarray(rss_bytes, dtype=np.float64)
    if len(sizes) < MIN_POINTS or not _known(rss_bytes) or not np.isfinite(calls).all():
        return None
    if len(calls) > MAX_POINTS:
        kept = np.linspace(0, len(calls) - 1, MAX_POINTS).round().astype(np.int64)
        calls, sizes = calls[kept], sizes[kept]
    order = np.argsort(calls, kind="stable")
    calls, sizes = calls[order], sizes[order]
    first, second = np.triu_indices(len(calls), 1)
    steps = calls[second] - calls[first]
    slopes = np.sort((sizes[second] - sizes[first])[steps > 0] / steps[steps > 0])
    half = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(_kendall_variance(calls, sizes)) / 2
    low, high = math.floor(len(slopes) / 2 - half) - 1, math.ceil(len(slopes) / 2 + half)
    if low < 0 or high >= len(slopes):
        return None
    return Growth(
        bytes_per_1000_calls=1000 * float(np.median(slopes)),
        low=1000 * float(slopes[low]),
        high=1000 * float(slopes[high]),
        points=len(calls),
    )


def _kendall_variance(calls: NDArray[np.float64], sizes: NDArray[np.float64]) -> float:
    """Variance of Kendall's S with ties on both sides (Kendall 1970, "Rank Correlation Methods", 4.9)."""
    n = len(calls)
    t, u = (np.unique(values, return_counts=True)[1].astype(np.float64) for values in (calls, sizes))

    def whole(counts: NDArray[np.float64]) -> float:
        return float(np.sum(counts * (counts - 1) * (2 * counts + 5)))

    def twos(counts: NDArray[np.float64]) -> float:
        return float(np.sum(counts * (counts - 1)))

    def threes(counts: NDArray[np.float64]) -> float:
        return float(np.sum(counts * (counts - 1) * (counts - 2)))

    plain = (n * (n - 1) * (2 * n + 5) - whole(t) - whole(u)) / 18
    both = twos(t) * twos(u) / (2 * n * (n - 1)) + threes(t) * threes(u) / (9 * n * (n - 1) * (n - 2))
    return max(0.0, plain + both)


def _known(rss_bytes: Sequence[float]) -> bool:
    return all(math.isfinite(size) and size > 0 for size in rss_bytes)


def _same_length(first: Sequence[float], second: Sequence[float]) -> None:
    if len(first) != len(second):
        message = f"memory: expected as many sizes as times or calls, got {len(second)} and {len(first)}"
        raise ValueError(message)
