"""Statistics of latency samples: one duration a call, in milliseconds, in the order they were taken.

Samples are a float array of shape (calls,). Rules for every function: no sample, or any NaN or infinity, gives
``None``; so does a sample count that can not support what is asked. ``q`` and ``confidence`` are fractions strictly
between 0 and 1 and anything else is a ``ValueError``. Quantiles are Hyndman & Fan 1996 type 7: linear between the
closest ranks, the k-th of n sorted samples (from 0) standing at the fraction k / (n - 1).

Every interval here takes calls for independent. Calls within one session are not quite: such an interval says how
well this session was measured, not what another session will give.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from harness.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_BOOTSTRAP_CELLS = 2_000_000  # samples drawn at once: 16 MB of indices and 16 MB of values


class Summary(Record, frozen=True):
    """Steady-state latency in ms. ``cv`` is std over mean, without unit; both are null for one sample.

    ``p99_ms`` is null below ``samples_needed["p99"]``. The other quantiles are of the samples as they are;
    below ``samples_needed`` they bound nothing about later calls, and ``quantile_interval`` is None.
    """

    count: int
    mean_ms: float
    std_ms: float | None
    cv: float | None
    min_ms: float
    max_ms: float
    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float | None
    samples_needed: dict[str, int]


class Drift(Record, frozen=True):
    """Median of the last third of the calls over that of the first, with its interval; 1 = no drift."""

    ratio: float
    low: float
    high: float
    calls_each: int


def percentile(samples_ms: ArrayLike, q: float) -> float | None:
    """The q-quantile of the samples, in ms (type 7)."""
    _fraction("q", q)
    samples = _samples(samples_ms)
    return None if samples is None else float(np.quantile(samples, q, method="linear"))


def minimum_samples(q: float, confidence: float) -> int:
    """Samples needed before their maximum is an upper confidence bound on the q-quantile, whatever the distribution.

    The least n with 1 - q**n >= confidence (Wilks 1941; Hahn & Meeker 1991, ch. 5): 59 for p95 at 95%, 459 for p99
    at 99%.
    """
    _fraction("q", q)
    _fraction("confidence", confidence)
    count = max(1, math.floor(math.log1p(-confidence) / math.log(q)))  # one less than the answer, or the answer
    while 1 - q**count < confidence:
        count += 1
    return count


def quantile_interval(samples_ms: ArrayLike, q: float, confidence: float = 0.95) -> tuple[float, float] | None:
    """Distribution-free two-sided interval of the q-quantile, in ms: two order statistics.

    The number of n samples below the quantile is Binomial(n, q). The low end is the last order statistic whose
    chance to lie above the quantile is at most (1 - confidence) / 2, the high end the first whose chance to lie below
    is (Conover 1999, "Practical Nonparametric Statistics", 3.2; Hahn & Meeker 1991, 5.2). The coverage is at least
    ``confidence``. None when there is no such order statistic on one of the sides: too few samples (at 95%, 6 for
    p50, 72 for p95, 368 for p99).
    """
    _fraction("q", q)
    _fraction("confidence", confidence)
    samples = _samples(samples_ms)
    if samples is None:
        return None
    count = len(samples)
    tail = (1 - confidence) / 2
    below = np.cumsum(_binomial(count, q))  # below[k]: chance that at most k samples lie below the quantile
    low = int(np.count_nonzero(below <= tail))  # rank from 1; 0 = not even the minimum is sure to lie below
    high = int(np.count_nonzero(1 - below > tail)) + 1
    if low < 1 or high > count:
        return None
    ordered = np.sort(samples)
    return float(ordered[low - 1]), float(ordered[high - 1])


def bootstrap_median_interval(
    samples_ms: ArrayLike, seed: int, confidence: float = 0.95, resamples: int = 10_000
) -> tuple[float, float] | None:
    """Percentile bootstrap interval of the median, in ms (Efron & Tibshirani 1993, ch. 13). Same seed, same answer.

    None with fewer samples than any interval of a median needs, 2 * 0.5**n > 1 - confidence (6 at 95%).
    """
    _fraction("confidence", confidence)
    samples = _samples(samples_ms)
    if samples is None or not _supports_median(len(samples), confidence):
        return None
    medians = _bootstrap_medians(samples, np.random.Generator(np.random.PCG64(seed)), resamples)
    return _central(medians, confidence)


def drift(samples_ms: ArrayLike, seed: int, confidence: float = 0.95, resamples: int = 10_000) -> Drift | None:
    """First third of the calls against the last: ratio of medians, percentile bootstrap with each third resampled.

    The middle third is left out. None when a third is too short for an interval of its median (fewer than 18 calls in
    all at 95%) or a sample is not above 0.
    """
    _fraction("confidence", confidence)
    samples = _samples(samples_ms)
    if samples is None or not _supports_median(len(samples) // 3, confidence):
        return None
    if samples.min() <= 0:
        return None
    third = len(samples) // 3
    first, last = samples[:third], samples[-third:]
    generator = np.random.Generator(np.random.PCG64(seed))
    ratios = _bootstrap_medians(last, generator, resamples) / _bootstrap_medians(first, generator, resamples)
    low, high = _central(ratios, confidence)
    return Drift(ratio=float(np.median(last) / np.median(first)), low=low, high=high, calls_each=third)


def summary(samples_ms: ArrayLike) -> Summary | None:
    """The usual figures. ``std_ms`` is the sample standard deviation (n - 1).

    ``samples_needed`` is ``minimum_samples`` for p90 and p95 at 95% and for p99 at 99% confidence.
    """
    samples = _samples(samples_ms)
    if samples is None:
        return None
    needed = {"p90": minimum_samples(0.9, 0.95), "p95": minimum_samples(0.95, 0.95), "p99": minimum_samples(0.99, 0.99)}
    count, mean = len(samples), float(samples.mean())
    std = float(samples.std(ddof=1)) if count > 1 else None
    p50, p90, p95, p99 = (float(value) for value in np.quantile(samples, [0.5, 0.9, 0.95, 0.99], method="linear"))
    return Summary(
        count=count,
        mean_ms=mean,
        std_ms=std,
        cv=std / mean if std is not None and mean > 0 else None,
        min_ms=float(samples.min()),
        max_ms=float(samples.max()),
        p50_ms=p50,
        p90_ms=p90,
        p95_ms=p95,
        p99_ms=p99 if count >= needed["p99"] else None,
        samples_needed=needed,
    )


def throughput_per_s(pairs_per_call: int, samples_ms: ArrayLike) -> float | None:
    """Pairs per second over all the calls: every pair scored over all the time spent. None when that time is 0."""
    samples = _samples(samples_ms)
    if samples is None or samples.sum() <= 0:
        return None
    return float(1000 * pairs_per_call * len(samples) / samples.sum())


def outliers(samples_ms: ArrayLike, threshold: float = 3.5) -> tuple[int, ...] | None:
    """Positions of samples whose modified z-score exceeds ``threshold``: 0.6745 |x - median| / MAD.

    Iglewicz & Hoaglin 1993, "How to Detect and Handle Outliers", whose advice 3.5 is. MAD is the median absolute
    deviation from the median. None when it is 0 though the samples differ: the score is then not defined.
    """
    samples = _samples(samples_ms)
    if samples is None:
        return None
    gaps = np.abs(samples - np.median(samples))
    mad = np.median(gaps)
    if mad == 0:
        return None if gaps.any() else ()
    return tuple(int(index) for index in np.flatnonzero(0.6745 * gaps / mad > threshold))


def resampled(
    samples: Floats, statistic: Callable[[Floats], Floats], generator: np.random.Generator, resamples: int
) -> Floats:
    """``statistic`` of each of ``resamples`` samples drawn with replacement, in blocks: it takes shape (n, count), gives (n,)."""
    block = max(1, _BOOTSTRAP_CELLS // len(samples))
    rows = [min(block, resamples - begin) for begin in range(0, resamples, block)]
    draws = (samples[generator.integers(0, len(samples), size=(row, len(samples)))] for row in rows)
    return np.concatenate([statistic(draw) for draw in draws])


def _samples(samples_ms: ArrayLike) -> Floats | None:
    samples = np.asarray(samples_ms, dtype=np.float64)
    if samples.ndim != 1:
        message = f"samples: expected shape (calls,), got {samples.shape}"
        raise ValueError(message)
    return samples if samples.size and np.isfinite(samples).all() else None


def _fraction(name: str, value: float) -> None:
    if not 0 < value < 1:
        message = f"{name}: expected a fraction between 0 and 1, got {value}"
        raise ValueError(message)


def _binomial(count: int, q: float) -> Floats:
    """P(k of ``count``) for k = 0 to count, by logarithms of factorials so that no power underflows."""
    factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, count + 1)))))
    drawn = np.arange(count + 1)
    logs: Floats = (
        factorials[-1] - factorials - factorials[::-1] + drawn * math.log(q) + (count - drawn) * math.log1p(-q)
    )
    return np.exp(logs)


def _supports_median(count: int, confidence: float) -> bool:
    return 2 * 0.5**count <= 1 - confidence


def _bootstrap_medians(samples: Floats, generator: np.random.Generator, resamples: int) -> Floats:
    if resamples < 1:
        message = f"resamples: expected a whole number >= 1, got {resamples}"
        raise ValueError(message)
    return resampled(samples, lambda draw: np.median(draw, axis=1), generator, resamples)


def _central(values: Floats, confidence: float) -> tuple[float, float]:
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail], method="linear")
    return float(low), float(high)
