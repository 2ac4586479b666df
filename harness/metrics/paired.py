"""Two sides that are timed in turn: their ratio, with an interval over fresh pairs of sessions. Pure.

The two sides of a *call pair* stand a few milliseconds apart, so whatever slows the machine slows both, and their ratio keeps. Calls of one
session are no independent samples of it (where its memory happens to lie favours it for as long as it lives); sessions are. So each
pair of fresh sessions gives one number, and the interval is over those.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from harness.metrics.latency import quantile_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST_SESSIONS = 6
"""Pairs of sessions below which no order statistic bounds a median at 95%: 2 * 0.5**6 < 0.05 < 2 * 0.5**5."""


class Ratio(NamedTuple):
    """A ratio with its 95% interval, both over pairs of sessions. ``low`` and ``high`` are None with fewer than ``FEWEST_SESSIONS``."""

    value: float
    low: float | None
    high: float | None


def turns(seed: int, stream: int, count: int) -> tuple[bool, ...]:
    """Whether the first side goes first, ``count`` times, drawn in blocks of two of which one is True.

    So either side goes first equally often, at equal distance from the middle of every second block (ABBA or BAAB): a drift of the machine
    that is linear over a block cancels. The bits are the highest of PCG64's raw output, whose stream numpy keeps (NEP 19).
    """
    bits = np.random.PCG64([seed, stream]).random_raw((count + 1) // 2) >> np.uint64(63)
    return tuple(bool(bit) is bool(place == 0) for bit in bits for place in (0, 1))[:count]


def log_median_ratio(first_ms: Sequence[float], second_ms: Sequence[float]) -> float:
    """Logarithm of how many times as long the first side takes: the median over call pairs of the log ratio."""
    return float(np.median(np.log(_both(first_ms, second_ms)[0]) - np.log(second_ms)))


def log_quantile_ratio(first_ms: Sequence[float], second_ms: Sequence[float], q: float) -> float:
    """Logarithm of the ratio of the sides' ``q``-quantiles (Hyndman & Fan type 7)."""
    first, second = (np.quantile(side, q, method="linear") for side in _both(first_ms, second_ms))
    return math.log(first) - math.log(second)


def log_total_ratio(first_ms: Sequence[float], second_ms: Sequence[float]) -> float:
    """Logarithm of the ratio of all the time that the sides took."""
    first, second = (side.sum() for side in _both(first_ms, second_ms))
    return math.log(first) - math.log(second)


def ratio(logs: Sequence[float]) -> Ratio | None:
    """The median over pairs of sessions, and its distribution-free interval: two order statistics (``latency.quantile_interval``).

    A session that a neighbour spoiled moves neither far. The coverage is at least 95% whatever the distribution: at 22 pairs, from the
    sixth least to the sixth largest, 98.3%. None without a number, or with one that is not finite.
    """
    if not logs or not all(map(math.isfinite, logs)):
        return None
    between = quantile_interval(logs, 0.5) or (None, None)
    low, high = (None if end is None else math.exp(end) for end in between)
    return Ratio(math.exp(float(np.median(logs))), low, high)


def _both(first_ms: Sequence[float], second_ms: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if len(first_ms) != len(second_ms) or not first_ms or min(*first_ms, *second_ms) <= 0:
        message = f"call pairs: expected as many calls of either side, each above 0 ms, got {len(first_ms)} and {len(second_ms)}"
        raise ValueError(message)
    return np.asarray(first_ms, dtype=np.float64), np.asarray(second_ms, dtype=np.float64)
