"""How far the hashing of a root is, on stderr, once it takes longer than a second: a bar on a terminal, lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TextIO

PATIENCE_S = 1.0
"""Nothing is shown before: most roots are hashed by then, and a bar that only flashes tells nobody anything."""
BETWEEN_LINES_S = 10.0


class Hashing:
    """Call it with bytes done and bytes in all; use it as ``with Hashing(...) as progress``.

    A bar is drawn at most ten times a second and taken away at the end. Without a terminal it is one line after the first
    second and one every ten seconds after that. ``clock`` gives monotonic seconds.
    """

    def __init__(self, stream: TextIO, *, interactive: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._interactive = interactive
        self._clock = clock
        self._next = clock() + PATIENCE_S
        self._bar: Any = None

    def __enter__(self) -> Self:
        """Begin; nothing is shown yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away, if there is one."""
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` bytes are hashed, if it is time to."""
        now = self._clock()
        if now < self._next:
            return
        if not self._interactive:
            self._next = now + BETWEEN_LINES_S
            print(f"hashed {done / 1e6:,.0f} of {total / 1e6:,.0f} MB", file=self._stream, flush=True)
            return
        self._next = now + 0.1
        if self._bar is None:
            self._bar = _bar(self._stream, total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done)
        self._bar.refresh()


def _bar(stream: TextIO, total: int) -> Any:
    """A bar that draws when it is told to: no thread of its own takes time from the hashing. rich is loaded only here."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("hashing"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(file=stream, highlight=False, force_terminal=True)  # the caller has looked
    bar = Progress(*columns, console=console, transient=True, auto_refresh=False)
    bar.add_task("", total=total)
    return bar
