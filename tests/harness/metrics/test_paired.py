from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics import paired

times = st.lists(st.floats(0.01, 1e4), min_size=1, max_size=40)


@given(st.integers(0, 2**32 - 1), st.integers(0, 100), st.integers(0, 60))
def test_either_side_goes_first_once_in_every_block_of_two(seed: int, stream: int, count: int) -> None:
    drawn = paired.turns(seed, stream, count)
    assert len(drawn) == count
    assert all(set(drawn[place : place + 2]) == {True, False} for place in range(0, count - 1, 2))


def test_the_order_is_drawn_by_the_seed_and_keeps() -> None:
    assert paired.turns(0, 0, 8) == (True, False, False, True, False, True, False, True)
    assert paired.turns(1, 0, 60) != paired.turns(0, 0, 60)
    assert paired.turns(0, 1, 60) != paired.turns(0, 0, 60)


@given(times, st.floats(0.1, 10))
def test_a_side_that_takes_k_times_as_long_has_the_ratio_k_by_every_measure(first: list[float], k: float) -> None:
    second = [value / k for value in first]
    expected = pytest.approx(math.log(k), abs=1e-9)
    assert paired.log_median_ratio(first, second) == expected
    assert paired.log_quantile_ratio(first, second, 0.95) == expected
    assert paired.log_total_ratio(first, second) == expected


@given(st.lists(st.tuples(st.floats(0.01, 1e4), st.floats(0.01, 1e4)), min_size=1, max_size=40))
def test_swapping_the_sides_inverts_every_ratio(pairs: list[tuple[float, float]]) -> None:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    assert paired.log_median_ratio(first, second) == pytest.approx(-paired.log_median_ratio(second, first), abs=1e-9)
    assert paired.log_total_ratio(first, second) == pytest.approx(-paired.log_total_ratio(second, first), abs=1e-9)


def test_what_slows_both_calls_of_a_pair_moves_no_ratio() -> None:
    storm = [1.0, 40.0, 3.0, 1.0, 7.0]
    first, second = [1.02 * wind for wind in storm], storm
    assert math.exp(paired.log_median_ratio(first, second)) == pytest.approx(1.02)


def test_a_spike_of_one_call_moves_the_median_ratio_by_no_more_than_its_neighbours() -> None:
    first, second = [1.0, 1.0, 900.0, 1.0, 1.0], [1.0] * 5
    assert paired.log_median_ratio(first, second) == 0
    assert paired.log_total_ratio(first, second) == pytest.approx(math.log(904 / 5))


def test_the_interval_is_over_sessions_and_one_spoiled_session_does_not_widen_it() -> None:
    logs = [math.log(1.02) + place * 1e-4 for place in range(-5, 6)]
    found = paired.ratio(logs)
    assert found is not None
    assert found.value == pytest.approx(1.02)
    assert found.low == pytest.approx(1.02 * math.exp(-4e-4))
    assert found.high == pytest.approx(1.02 * math.exp(4e-4))
    assert paired.ratio([*logs[:-1], 3.0]) == found


@given(st.lists(st.floats(-5, 5), min_size=6, max_size=40))
def test_the_interval_holds_the_value(logs: list[float]) -> None:
    found = paired.ratio(logs)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high


def test_too_few_sessions_have_no_interval_and_none_have_no_ratio() -> None:
    assert paired.ratio([0.0] * 5) == paired.Ratio(1.0, None, None)
    assert paired.ratio([]) is None
    assert paired.ratio([0.0, math.nan, 0.0]) is None


@pytest.mark.parametrize(
    ("first", "second", "counts"),
    [([], [], (0, 0)), ([1.0], [1.0, 2.0], (1, 2)), ([0.0], [1.0], (1, 1))],
    ids=["none", "uneven", "zero"],
)
def test_sides_that_are_no_pairs_are_refused(first: list[float], second: list[float], counts: tuple[int, int]) -> None:
    message = f"call pairs: expected as many calls of either side, each above 0 ms, got {counts[0]} and {counts[1]}"
    with pytest.raises(ValueError, match=f"^{message}$"):
        paired.log_median_ratio(first, second)
