from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics import cells, latency, sampling
from harness.metrics.sampling import Rule, stopped
from harness.records import SweepOptions

NARROW = tuple(10.0 + 0.01 * (number % 3) for number in range(1000))
WIDE = tuple(10.0 + 5.0 * (number % 2) for number in range(1000))


def test_a_narrow_interval_ends_sampling_once_there_are_the_fewest_calls() -> None:
    assert stopped(NARROW, Rule(500, 72, 0.02, 1e9)) == (72, "interval")


def test_a_wide_interval_goes_on_to_the_cap_of_calls() -> None:
    assert stopped(WIDE, Rule(500, 72, 0.02, 1e9)) == (500, "calls")


def test_a_cap_of_calls_below_the_fewest_is_the_fewest() -> None:
    assert stopped(WIDE, Rule(20, 72, 0.02, 1e9)) == (20, "calls")
    assert stopped(NARROW, Rule(20, 72, 0.02, 1e9)) == (20, "interval")


def test_the_seconds_of_the_calls_end_sampling_whatever_the_interval() -> None:
    assert stopped((100.0,) * 50, Rule(500, 72, 0.02, 1.0)) == (10, "seconds")


def test_samples_that_the_rule_would_not_have_ended_yet_end_by_nothing() -> None:
    assert stopped(WIDE[:100], Rule(500, 72, 0.02, 1e9)) == (100, None)


def test_the_interval_is_looked_at_each_tenth_more_so_a_later_end_is_not_the_first_possible() -> None:
    noisy = (*WIDE[:72], *(12.0,) * 400)
    count, ended = stopped(noisy, Rule(500, 72, 0.02, 1e9))
    assert ended == "interval"
    assert count in {80, 88, 97, 107, 118, 130, 143, 158, 174, 192, 212, 234, 258}
    width = sampling.relative_width(noisy[:count])
    assert width is not None
    assert width <= 0.02


@given(st.lists(st.floats(0.1, 100.0), min_size=1, max_size=300), st.integers(1, 200), st.integers(1, 100))
def test_a_verifier_stops_where_the_stage_stopped(samples: list[float], calls: int, fewest: int) -> None:
    rule = Rule(calls, fewest, 0.05, 2.0)
    count, ended = stopped(samples, rule)
    assert stopped(samples[:count], rule) == (count, ended)
    if ended is not None and count > 1:
        assert stopped(samples[: count - 1], rule) == (count - 1, None)


def test_too_few_samples_have_no_width() -> None:
    assert sampling.relative_width((1.0,) * 5) is None
    assert sampling.relative_width((1.0,) * 6) == 0.0
    assert latency.quantile_interval((1.0,) * 5, 0.5) is None


def test_orders_are_of_the_seed_and_hold_every_shape_once_a_round() -> None:
    order = sampling.mixed_order(4, 10, 7)
    assert order == sampling.mixed_order(4, 10, 7)
    assert order != sampling.mixed_order(4, 10, 8)
    assert [sorted(order[begin : begin + 4]) for begin in (0, 4)] == [[0, 1, 2, 3]] * 2
    assert len(order) == 10


def test_a_sweep_is_every_combination_and_each_session_has_orders_of_its_own() -> None:
    asked = SweepOptions(candidates=(2, 8), max_length=(16, 48), batch_size=(4,), threads=(1, 2))
    groups = cells.cells_of(asked, 3)
    assert groups[0] == ((2, 16, 4, 1), (2, 48, 4, 1), (8, 16, 4, 1), (8, 48, 4, 1))
    assert [cell.threads for cell in groups[1]] == [2] * 4
    own = SweepOptions(candidates=(2,), max_length=(16,), batch_size=(4,))
    assert cells.cells_of(own, 3) == (((2, 16, 4, 3),),)
    orders = sampling.sweep_orders(4, 20, 7, 0)
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    assert len(set(orders)) > 5
    assert sampling.sweep_orders(4, 20, 7, 1) != orders


def test_arrivals_rise_from_zero_at_about_their_rate() -> None:
    times = sampling.arrivals_ms(100.0, 1000, 3)
    assert times[0] == 0.0
    assert list(times) == sorted(times)
    assert np.diff(times).mean() == pytest.approx(10.0, rel=0.1)
    assert sampling.arrivals_ms(100.0, 1, 3) == (0.0,)
