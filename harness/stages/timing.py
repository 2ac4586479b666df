"""Timing of calls in a child, and how often its process lost a processor by the system's own count."""

from __future__ import annotations

import ctypes
import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.runtimes.batching import Tensors


class Scorer(Protocol):
    """What can be timed: a session of a runtime, or the reference."""

    def logits(self, tensors: Tensors) -> NDArray[np.float32]:
        """Logits of one batch."""


def involuntary_switches() -> int | None:
    """How often this process lost a processor so far; None where the system does not count."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


class Resident:
    """Resident bytes of this process, read again and again from one open file (Linux)."""

    def __init__(self) -> None:
        try:
            self._file: int | None = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = None
        self._page = os.sysconf("SC_PAGE_SIZE")

    def bytes_now(self) -> int | None:
        """Bytes resident now; None where the system does not tell."""
        return None if self._file is None else int(os.pread(self._file, 128, 0).split()[1]) * self._page

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Clock:
    """Monotonic times of events, and the involuntary switches by then."""

    def __init__(self) -> None:
        self.at_ms: dict[str, float] = {}
        self.switches: dict[str, int] = {}
        self.mark("start")

    def mark(self, event: str) -> None:
        """Note that ``event`` begins now."""
        self.at_ms[event] = now_ms()
        count = involuntary_switches()
        if count is not None:
            self.switches[event] = count


def timed_both_ms(scorer: Scorer, call: list[Tensors]) -> tuple[float, float]:
    """The ms of a call by the clock, and those of the processors, all threads of this process together."""
    cpu = time.process_time_ns()
    wall_ms = timed_ms(scorer, call)
    return wall_ms, (time.process_time_ns() - cpu) / 1e6


def timed_ms(scorer: Scorer, call: list[Tensors]) -> float:
    """The ms that the session takes for all micro-batches of a call."""
    logits = scorer.logits
    begin = time.perf_counter_ns()
    for tensors in call:
        logits(tensors)
    return (time.perf_counter_ns() - begin) / 1e6


def shapes(call: list[Tensors]) -> tuple[tuple[int, int], ...]:
    """Pairs and tokens of each micro-batch."""
    return tuple((len(first), len(first[0])) for first in (next(iter(tensors.values())) for tensors in call))


@contextmanager
def collector_off() -> Iterator[None]:
    """No garbage collection falls into a timed call."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def give_back_memory() -> None:
    """Return to the system what this process has freed and its allocator keeps (glibc), so that it is not taken for a new session's."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def now_ms() -> float:
    """Monotonic ms, the clock of the parent too."""
    return time.monotonic_ns() / 1e6
