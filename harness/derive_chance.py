"""The chance that ranking at random meets every limit on the ranking, on the groups of this very set. Pure.

A limit is met as the judge says it: on the value with its interval. Two ways, and the record says which:

- A bound. Under random order the groups are independent and their values lie between 0 and 1, so the chance that their mean is
  above its expectation by t is at most exp(-2 groups t**2) (Hoeffding 1963, "Probability Inequalities for Sums of Bounded Random
  Variables", theorem 1). Where that is below one in ten thousand for one limit, nothing is drawn.
- Else seeded draws of random orders, each judged; the interval is Wilson's (Wilson 1927, "Probable Inference").
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from harness.judge import decide
from harness.metrics.bootstrap import bootstrap
from harness.metrics.rerank_names import asked, is_ranking
from harness.records import Limit, Limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from harness.metrics.scored import Bench

    Floats = NDArray[np.float64]

DRAWS = 1000
FEWEST = 50
NEGLIGIBLE = 1e-4
_CELLS = 1_000_000  # candidates drawn in all, beyond the fewest draws: about a second
_COLUMNS = 64  # draws whose intervals are taken together


class Chance(NamedTuple):
    """A probability with its interval; ``draws`` is None where it is a bound. ``value`` is None where no limit looks at the ranking."""

    value: float | None
    interval: tuple[float, float] | None
    draws: int | None
    note: str


def random_passes(bench: Bench, limits: Limits, seed: int, resamples: int) -> Chance:
    """The chance for these limits. ``bench`` holds at least one judged group."""
    own = {name: limit for name, limit in limits.items() if is_ranking(name)}
    if not own:
        return Chance(None, None, None, "no limit looks at the ranking")
    if not np.isfinite(bench.reference.flat).all():
        return Chance(None, None, None, "a score of PyTorch is not finite")
    most = _bound(bench, own)
    if most < NEGLIGIBLE:
        return Chance(most, (0.0, most), None, "at most, by Hoeffding's inequality")
    draws = max(FEWEST, min(DRAWS, _CELLS // bench.reference.flat.size))
    passed = _passed(bench, own, seed, resamples, draws)
    return Chance(passed / draws, wilson(passed, draws), draws, f"{passed} of {draws:,} random orders, seed {seed}")


def wilson(hits: int, draws: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's 95% interval of a share, within 0 and 1."""
    share, scale = hits / draws, 1 + z * z / draws
    middle = (share + z * z / (2 * draws)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / draws + z * z / (4 * draws * draws))
    return max(0.0, middle - half) if hits else 0.0, min(1.0, middle + half) if hits < draws else 1.0


def _bound(bench: Bench, limits: Limits) -> float:
    """Hoeffding's bound for the limit that is hardest to meet at random; 1.0 where none says more."""
    most = 1.0
    plain = {name: name.removesuffix("_best").removesuffix("_worst") for name in limits}  # a random order has no ties
    tied = bench.reference.like(np.zeros(bench.reference.flat.size))
    columns = bench.columns(tied, [*dict.fromkeys(plain.values())], bench.of_random)
    for name, limit in limits.items():
        column = columns[plain[name]][bench.counted(name)]
        if not len(column):
            continue
        expected, width = float(column.mean()), 2.0 if name.startswith("kendall_") else 1.0
        beyond = max(
            limit.at_least - expected if limit.at_least is not None else 0.0,
            expected - limit.at_most if limit.at_most is not None else 0.0,
        )
        if beyond > 0:
            most = min(most, math.exp(-2 * len(column) * (beyond / width) ** 2))
    return most


def _passed(bench: Bench, limits: Limits, seed: int, resamples: int, draws: int) -> int:
    """How many of the random orders meet every limit. Only those whose mean meets a limit can meet it with their interval."""
    values = {name: drawn[:, bench.counted(name)] for name, drawn in _drawn(bench, limits, seed, draws).items()}
    left = np.ones(draws, dtype=np.bool_)
    for name, limit in limits.items():
        counted = values[name]
        if counted.shape[1] < 2:
            return 0  # there is no interval, so nobody passes
        left &= np.array([decide("", limit, mean, None)[0] == "PASS" for mean in counted.mean(axis=1).tolist()])
    for name, limit in limits.items():
        for begin in range(0, draws, _COLUMNS):
            rows = begin + np.flatnonzero(left[begin : begin + _COLUMNS])
            if len(rows):
                left[rows] = _meet(name, limit, values[name][rows].T, seed, resamples)
    return int(left.sum())


def _meet(name: str, limit: Limit, columns: Floats, seed: int, resamples: int) -> list[bool]:
    """For each column whether its mean, with its interval, meets the limit."""
    return [
        found is not None and decide(name, limit, found.mean, (found.low, found.high))[0] == "PASS"
        for found in bootstrap(columns, seed, resamples)
    ]


def _drawn(bench: Bench, limits: Mapping[str, Limit], seed: int, draws: int) -> dict[str, Floats]:
    """For each limit what every draw has in every group, shape (draws, groups)."""
    generator = np.random.Generator(np.random.PCG64(seed))
    groups, pairs, names = len(bench.reference), bench.reference.flat.size, asked(limits)
    at_once = max(1, _CELLS // pairs)
    found: dict[str, list[Floats]] = {name: [] for name in names}
    for begin in range(0, draws, at_once):
        times = min(at_once, draws - begin)
        repeated = bench.repeated(times)
        orders = repeated.reference.like(generator.random(pairs * times))
        for name, values in repeated.columns(orders, names).items():
            found[name].append(values.reshape(times, groups))
    return {name: np.concatenate(parts) for name, parts in found.items()}
