from __future__ import annotations

import io

from rich.cells import cell_len
from rich.console import Console

from harness.report.live import Live, duration
from tests.support.roots import Example


def climb(live: Live, root: Example) -> None:
    for (target, tier), step in root.records.steps.items():
        live.step_started(target, tier)
        live.progress(target, tier, 3, 4, "calls")
        live.step_ended(target, tier, step.outcome)


def drawn(live: Live) -> str:
    stream = io.StringIO()
    Console(file=stream, width=80).print(live)
    return stream.getvalue()


def test_without_a_terminal_each_step_has_a_line_at_start_and_end(root: Example) -> None:
    stream = io.StringIO()
    with Live(root.records.plan, stream, interactive=False) as live:
        climb(live, root)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2 * len(root.records.steps)
    assert lines[:2] == ["cpu-fp32 L0 build: started", "cpu-fp32 L0 build: PASS after 3.9 s"]
    assert lines[-1].startswith("cpu-int8 L2 parity: FAIL after 2.4 s: kendall_tau_b: expected at least 0.99")
    assert "cpu-fp16 L1 perf: BLOCKED after 15 min 00 s: timed out" in stream.getvalue()


def test_the_table_shows_a_bar_and_what_is_counted_in_the_running_cell(root: Example) -> None:
    live = Live(root.records.plan, io.StringIO(), interactive=False)
    live.step_started("cpu-fp32", "L1")
    live.progress("cpu-fp32", "L1", 3, 4, "calls")
    text = drawn(live)
    assert "75% 0.0 s" in text
    assert "━" in text
    assert "calls" in text


def test_a_step_that_cannot_tell_how_far_it_is_shows_that_it_runs(root: Example) -> None:
    live = Live(root.records.plan, io.StringIO(), interactive=False)
    live.step_started("cpu-fp32", "L0")
    assert "running 0.0 s" in drawn(live)


def test_the_table_ends_with_words_seconds_and_not_run_after_a_failure(root: Example) -> None:
    live = Live(root.records.plan, io.StringIO(), interactive=False)
    climb(live, root)
    words = drawn(live).split()
    assert words.count("PASS") == 7
    assert words.count("FAIL") == 1
    assert words.count("BLOCKED") == 1
    assert words.count("RUN") == 3
    assert "8.8" in words


def test_an_interactive_table_leaves_the_terminal_as_it_was(root: Example) -> None:
    stream = io.StringIO()
    with Live(root.records.plan, stream, interactive=True) as live:
        climb(live, root)
    assert "started" not in stream.getvalue()


def test_hostile_names_and_reasons_stay_on_their_line(hostile_root: Example) -> None:
    stream = io.StringIO()
    with Live(hostile_root.records.plan, stream, interactive=False) as live:
        climb(live, hostile_root)
    assert len(stream.getvalue().splitlines()) == 2 * len(hostile_root.records.steps)
    assert "\x1b" not in stream.getvalue() + drawn(live)
    assert max(map(cell_len, drawn(live).splitlines())) <= 80


def test_durations_read_as_people_say_them() -> None:
    assert [duration(s) for s in (0.04, 9.94, 12.4, 59.6, 185.0)] == [
        "0.0 s",
        "9.9 s",
        "12 s",
        "1 min 00 s",
        "3 min 05 s",
    ]
