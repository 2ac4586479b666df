from __future__ import annotations

import pytest

from harness.metrics.machine import Condition, condition

AT = (0.0, 500.0, 1000.0)


def test_shares_are_of_all_the_processors_time() -> None:
    found = condition(
        AT, (0.0, 600.0, 1200.0), (0.0, 300.0, 600.0), (0.0, 100.0, 200.0), (0.0, 300.0, 700.0), (0.0, 10.0, 250.0)
    )
    assert found == Condition(others=0.25, stolen=0.1, pressed=0.25)


def test_what_is_not_told_is_unknown_and_never_idle() -> None:
    assert condition(AT, None, None, None, None, None) == Condition(others=None, stolen=None, pressed=None)
    assert condition((), (), (), (), (), ()) == Condition(others=None, stolen=None, pressed=None)
    without_own = condition(AT, (0.0, 1.0, 2.0), (0.0, 1.0, 2.0), (0.0, 0.0, 0.0), None, None)
    assert (without_own.others, without_own.stolen) == (None, 0.0)


def test_own_time_beyond_the_coarse_ticks_of_the_system_is_no_negative_share() -> None:
    found = condition(AT, (0.0, 0.0, 990.0), (0.0, 0.0, 10.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1000.0), None)
    assert found.others == 0.0


def test_a_series_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="machine: expected 3 readings, as times, got 2"):
        condition(AT, (0.0, 1.0), None, None, None, None)
