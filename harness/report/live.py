"""The climb as it goes: a live table on a terminal, plain lines anywhere else. Both go to stderr; stdout is the answer."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TextIO

from harness.records import GateOutcome, Outcome, Plan, Tier
from harness.report import escape, view, wording

if TYPE_CHECKING:
    from rich.console import RenderableType

STYLES = {"PASS": "green", "FAIL": "bold red", "BLOCKED": "bold magenta", "INCONCLUSIVE": "yellow", "NOT_RUN": "dim"}
"""Colours of verdicts on a terminal; the sign and the word say the same without them."""


class _Running(NamedTuple):
    """A running step: when it started (monotonic seconds), and how far it is."""

    since: float
    done: int
    total: int
    what: str


class Live:
    """Shows a climb between ``with`` and its end. Made for one plan; the methods are called by ``run.climb``.

    Interactive, it draws one row a target and one column a tier and clears itself at the end, where the final
    report stands. Otherwise it writes one line at the start and the end of each step, and nothing in between.
    """

    def __init__(self, plan: Plan, stream: TextIO, *, interactive: bool) -> None:
        self._plan = plan
        self._stream = stream
        self._running: dict[tuple[str, Tier], _Running] = {}
        self._ended: dict[tuple[str, Tier], Outcome] = {}
        self._screen: Any = _screen(self, stream) if interactive else None

    def __enter__(self) -> Self:
        """Start drawing."""
        if self._screen is not None:
            self._screen.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing and give the terminal back as it was."""
        if self._screen is not None:
            self._screen.stop()

    def gate(self, name: str, outcome: GateOutcome | None) -> None:
        """Say that a gate starts, or what came of it."""
        if outcome is None:
            self._line(f"gate {escape.terminal(name)}: started")
            return
        took = f" after {duration(outcome.exit.seconds)}" if outcome.exit else ""
        why = f": {escape.terminal(escape.shorten(outcome.reason, 400))}" if outcome.reason else ""
        self._line(f"gate {escape.terminal(name)}: {wording.WORDS[outcome.verdict]}{took}{why}")

    def step_started(self, target: str, tier: Tier) -> None:
        """Say that a step's child process starts."""
        self._running[target, tier] = _Running(time.monotonic(), 0, 0, "")
        self._line(f"{escape.terminal(target)} {view.tier_name(tier)}: started")

    def progress(self, target: str, tier: Tier, done: int, total: int, what: str) -> None:
        """Say that ``done`` of ``total`` (0 when unknown) units of ``what`` are done in a running step."""
        running = self._running.get((target, tier))
        if running is not None:
            self._running[target, tier] = running._replace(done=done, total=total, what=what)

    def step_ended(self, target: str, tier: Tier, outcome: Outcome) -> None:
        """Say what came of a step."""
        self._running.pop((target, tier), None)
        self._ended[target, tier] = outcome
        took = f" after {duration(outcome.exit.seconds)}" if outcome.exit else ""
        why = f": {escape.terminal(escape.shorten(outcome.reason, 400))}" if outcome.reason else ""
        self._line(f"{escape.terminal(target)} {view.tier_name(tier)}: {wording.WORDS[outcome.verdict]}{took}{why}")

    def _line(self, text: str) -> None:
        if self._screen is None:
            print(text, file=self._stream, flush=True)

    def __rich__(self) -> RenderableType:
        """The table as it is now; the screen asks for it twice a second."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
        table.add_column("target", overflow="fold", max_width=24)
        for tier in view.tiers(self._plan):
            table.add_column(view.tier_name(tier), min_width=10, max_width=14)
        for target in self._plan.targets:
            planned = {step.tier for step in target.steps}
            cells = [
                self._cell(target.name, tier) if tier in planned else Text("deferred", "dim")
                for tier in view.tiers(self._plan)
            ]
            table.add_row(Text(escape.terminal(target.name)), *cells)
        return table

    def _cell(self, target: str, tier: Tier) -> RenderableType:
        from rich.text import Text

        outcome = self._ended.get((target, tier))
        if outcome is not None:
            cell = Text(wording.sign(outcome.verdict), STYLES[outcome.verdict])
            return cell.append(f"\n{duration(outcome.exit.seconds)}", "dim") if outcome.exit else cell
        running = self._running.get((target, tier))
        if running is None:
            stopped = any(done.verdict != "PASS" for (name, _), done in self._ended.items() if name == target)
            return Text(wording.sign("NOT_RUN"), STYLES["NOT_RUN"]) if stopped else Text("·", "dim")
        return _running_cell(running)


def _running_cell(running: _Running) -> RenderableType:
    """Time so far and, where the step tells how far it is, a bar and what it counts."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    elapsed = duration(time.monotonic() - running.since)
    cell = Table.grid()
    if running.total > 0:
        share = min(running.done / running.total, 1.0)
        cell.add_row(Text(f"{share:4.0%} {elapsed}", "cyan"))
        cell.add_row(ProgressBar(total=1.0, completed=share, width=12))
    else:
        cell.add_row(Text(f"running {elapsed}", "cyan"))
    cell.add_row(Text(escape.terminal(running.what), "dim", overflow="ellipsis", no_wrap=True))
    return cell


def duration(seconds: float) -> str:
    """Seconds as people read them: ``0.4 s``, ``12 s``, ``3 min 05 s``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"


def _screen(live: Live, stream: TextIO) -> Any:
    """The terminal; rich is loaded only here, so that a log in CI never waits for it."""
    from rich.console import Console
    from rich.live import Live as Screen

    # Twice a second: what draws here takes time from the cores that are being measured.
    return Screen(live, console=Console(file=stream, highlight=False), refresh_per_second=2, transient=True)
