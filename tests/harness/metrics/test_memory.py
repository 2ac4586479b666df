"""Memory statistics: phases by event times, and growth against scipy's Theil-Sen and planted leaks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics import memory
from harness.metrics.memory import Phases

MIB = 2.0**20


def calls_and_sizes(per_1000: float, count: int = 400, seed: int = 1) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    calls = np.arange(count) * 5
    return calls, 300 * MIB + calls * per_1000 / 1000 + generator.normal(0, 0.2 * MIB, count)


def test_phases_are_read_at_the_events() -> None:
    found = memory.phases([0, 10, 20, 30, 40], [100, 110, 400, 300, 350], load_begin_ms=15, load_end_ms=30)
    assert found == Phases(baseline_bytes=110, loaded_bytes=300, peak_bytes=400)


def test_a_phase_without_a_sample_is_unknown_not_zero() -> None:
    assert memory.phases([20, 25], [400, 410], load_begin_ms=15, load_end_ms=30) == Phases(
        baseline_bytes=None, loaded_bytes=None, peak_bytes=410
    )


@pytest.mark.parametrize("sizes", [[], [0, 100], [-1, 100], [math.nan, 100], [math.inf, 100]])
def test_unknown_sizes_give_no_number(sizes: list[float]) -> None:
    times = list(range(len(sizes)))
    assert memory.peak(sizes) is None
    assert memory.phases(times, sizes, 0, 1) == Phases(baseline_bytes=None, loaded_bytes=None, peak_bytes=None)
    assert memory.growth_slope(list(range(50)), [*sizes, *[100] * (50 - len(sizes))] if sizes else [0] * 50) is None


def test_growth_finds_a_planted_leak_and_no_other() -> None:
    leak = memory.growth_slope(*calls_and_sizes(10 * MIB))
    assert leak is not None
    assert leak.low < 10 * MIB < leak.high
    assert leak.low > 9 * MIB
    flat = memory.growth_slope(*calls_and_sizes(0))
    assert flat is not None
    assert flat.low < 0 < flat.high


def test_growth_is_not_carried_away_by_one_step() -> None:
    calls, sizes = calls_and_sizes(0)
    sizes[-40:] += 50 * MIB
    found = memory.growth_slope(calls, sizes)
    assert found is not None
    assert abs(found.bytes_per_1000_calls) < MIB


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=12, max_size=40).filter(
        lambda r: len({c for c, _ in r}) > 6
    )
)
def test_growth_agrees_with_scipy_also_with_ties(rows: list[tuple[int, int]]) -> None:
    from scipy import stats

    calls, sizes = [c for c, _ in rows], [s for _, s in rows]
    found = memory.growth_slope(calls, sizes)
    peer = stats.theilslopes(sizes, calls, 0.95)
    assert found is not None
    assert found.bytes_per_1000_calls == pytest.approx(1000 * peer.slope)
    assert found.low <= 1000 * peer.low_slope + 1e-9
    assert found.high >= 1000 * peer.high_slope - 1e-9


def test_growth_interval_is_that_of_scipy_where_its_rounding_is_ours() -> None:
    from scipy import stats

    calls, sizes = calls_and_sizes(MIB)
    found, peer = memory.growth_slope(calls, sizes), stats.theilslopes(sizes, calls, 0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((1000 * peer.low_slope, 1000 * peer.high_slope), rel=1e-3)


def test_growth_covers_the_truth_about_as_often_as_it_says() -> None:
    found = [memory.growth_slope(*calls_and_sizes(MIB, count=30, seed=seed)) for seed in range(400)]
    held = sum(growth is not None and growth.low <= MIB <= growth.high for growth in found)
    assert 366 <= held <= 398  # 380 with about three standard deviations


def test_growth_of_flat_memory_is_nothing_and_of_five_samples_unknown() -> None:
    flat = memory.growth_slope(list(range(6)), [100] * 6)
    assert flat is not None
    assert (flat.bytes_per_1000_calls, flat.low, flat.high, flat.points) == (0.0, 0.0, 0.0, 6)
    assert memory.growth_slope(list(range(5)), [100] * 5) is None
    assert memory.growth_slope([], []) is None
    assert memory.growth_slope([7] * 20, list(range(1, 21))) is None
    assert memory.growth_slope([math.nan] * 20, [100] * 20) is None


def test_many_samples_are_thinned_evenly() -> None:
    calls, sizes = calls_and_sizes(10 * MIB, count=20_000)
    found = memory.growth_slope(calls, sizes)
    assert found is not None
    assert found.points == memory.MAX_POINTS
    assert found.bytes_per_1000_calls == pytest.approx(10 * MIB, rel=0.01)


def test_what_is_asked_wrongly_is_refused() -> None:
    with pytest.raises(ValueError, match="expected as many sizes as times or calls, got 1 and 2"):
        memory.phases([1, 2], [1], 0, 0)
    with pytest.raises(ValueError, match="expected as many sizes as times or calls, got 2 and 1"):
        memory.growth_slope([1], [1, 2])
    with pytest.raises(ValueError, match="expected rising times"):
        memory.phases([2, 1], [1, 1], 0, 0)
    with pytest.raises(ValueError, match="expected rising times"):
        memory.phases([1, 2], [1, 1], 1, math.nan)
    with pytest.raises(ValueError, match="confidence: expected a fraction between 0 and 1, got 95"):
        memory.growth_slope([1, 2], [1, 2], 95)
