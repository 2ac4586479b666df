from __future__ import annotations

import io

from harness.report.hashing import Hashing


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def shown(*, interactive: bool, at: list[float]) -> str:
    """What is written when a tenth more is hashed at each of these seconds, until the bar is taken away."""
    stream, clock = io.StringIO(), Clock()
    with Hashing(stream, interactive=interactive, clock=clock) as progress:
        for number, second in enumerate(at, 1):
            clock.seconds = 100 + second
            progress(number * 10**8, 10**9)
    return stream.getvalue()


def test_nothing_is_shown_within_the_first_second() -> None:
    for interactive in (True, False):
        assert shown(interactive=interactive, at=[0, 0.5, 0.99]) == ""


def test_without_a_terminal_it_is_one_line_after_a_second_and_one_every_ten() -> None:
    assert (
        shown(interactive=False, at=[0.5, 1.5, 2, 11, 11.6, 12]) == "hashed 200 of 1,000 MB\nhashed 500 of 1,000 MB\n"
    )


def test_on_a_terminal_it_is_a_bar_that_is_drawn_at_most_ten_times_a_second() -> None:
    once = shown(interactive=True, at=[0.5, 1.5, 1.55, 1.59])
    assert "hashing" in once
    assert "200.0 MB" in once or "0.2/1.0 GB" in once
    assert "0.4/1.0 GB" not in once
    assert "0.4/1.0 GB" in shown(interactive=True, at=[0.5, 1.5, 1.55, 1.65])
