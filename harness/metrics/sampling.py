"""When to stop measuring, and in which order to measure: rules that a stage follows and a verifier follows again. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from harness.metrics import latency

if TYPE_CHECKING:
    from harness.records import PerfOptions

Ended = Literal["interval", "calls", "seconds"]
FEWEST = 6
"""Samples below which a median has no 95% interval."""
GROWTH = 1.1
"""The interval is looked at each time there are a tenth more samples: rarely, so that looking costs nothing."""


class Rule(NamedTuple):
    """Stop at a relative ``interval`` of the median from ``min_calls`` on, at ``calls`` samples, or at ``seconds`` spent in them."""

    calls: int
    min_calls: int
    interval: float
    seconds: float

    @classmethod
    def of(cls, options: PerfOptions) -> Rule:
        """When the steady calls of L1 end."""
        return cls(options.calls, options.min_calls, options.interval, options.seconds)


class Stopping:
    """Told sample by sample, says when to stop and why; the same samples always stop at the same place.

    The interval is the distribution-free one of the median (``latency.quantile_interval``). Stopping at a fixed width is Chow &
    Robbins 1965 ("On the asymptotic theory of fixed-width sequential confidence intervals"); it looks at the width alone, never
    at where the interval lies, so it favours no verdict. The seconds are those of the samples, not of the clock.
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._samples: list[float] = []
        self._sum_ms = 0.0
        self._next = max(FEWEST, min(rule.min_calls, rule.calls))

    def after(self, sample_ms: float) -> Ended | None:
        """Why sampling ends with this sample, or None when it goes on."""
        self._samples.append(sample_ms)
        self._sum_ms += sample_ms
        count, rule = len(self._samples), self._rule
        if count == self._next:
            self._next = max(count + 1, math.ceil(count * GROWTH))
            width = relative_width(self._samples)
            if width is not None and width <= rule.interval:
                return "interval"
        if count >= rule.calls:
            return "calls"
        return "seconds" if self._sum_ms >= 1000 * rule.seconds else None


def relative_width(samples_ms: Sequence[float]) -> float | None:
    """Width of the distribution-free 95% interval of the median over the median; None without one, or a median of 0."""
    found, middle = latency.quantile_interval(samples_ms, 0.5), latency.percentile(samples_ms, 0.5)
    return (found[1] - found[0]) / middle if found is not None and middle else None


def stopped(samples_ms: Iterable[float], rule: Rule) -> tuple[int, Ended | None]:
    """Where the rule stops in these samples, as a count, and why; all of them and None when it would have gone on."""
    stopping, count = Stopping(rule), 0
    for sample in samples_ms:
        count += 1
        ended = stopping.after(sample)
        if ended is not None:
            return count, ended
    return count, None


def mixed_order(shapes: int, calls: int, seed: int) -> tuple[int, ...]:
    """Which of the shapes each of ``calls`` calls has: all of them in random order, again and again."""
    rounds = _orders(shapes, -(-calls // shapes), seed, 1)
    return tuple(place for turn in rounds for place in turn)[:calls]


def sweep_orders(cells: int, calls: int, seed: int, session: int) -> tuple[tuple[int, ...], ...]:
    """The order of the cells in each round of one session of a sweep."""
    return _orders(cells, calls, seed, 2 + session)


def _orders(items: int, rounds: int, seed: int, stream: int) -> tuple[tuple[int, ...], ...]:
    """``rounds`` random orders of ``items`` things. Another ``stream`` of the same seed gives other orders."""
    generator = np.random.Generator(np.random.PCG64([seed, stream]))
    return tuple(tuple(int(item) for item in generator.permutation(items)) for _ in range(rounds))


def arrivals_ms(rate_per_s: float, count: int, seed: int) -> tuple[float, ...]:
    """Times of ``count`` random arrivals in ms from the first on: exponential gaps, as of many users who know nothing of each other."""
    generator = np.random.Generator(np.random.PCG64([seed, count]))
    gaps = generator.exponential(1000 / rate_per_s, size=count - 1)
    return (0.0, *(float(at) for at in np.cumsum(gaps)))
