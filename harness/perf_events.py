"""Whether all that L1 timed fits between the monotonic times around it: a sample made smaller or larger afterwards shows. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from harness.errors import RecordError
from harness.raw import PerfRaw, Span

EVENTS = ("start", "loaded", "first_call", "warm_up", "steady", "end")
"""Monotonic times of one climb through L1, in this order; others may follow."""
ROUNDING_MS = 0.01
IDLE_MS, IDLE_SHARE = 1000.0, 0.75
"""Of the time in which calls followed each other, what may have been spent between them: nobody knows how long a process was held up."""


def fits(span_ms: Span, calls_ms: Sequence[float]) -> bool:
    """Whether calls that followed each other can have taken what is said of them, between these monotonic times.

    Together no longer; and not so little that most of the time would have passed between them.
    """
    whole, spent = span_ms[1] - span_ms[0], math.fsum(calls_ms)
    return 0 <= spent <= whole + ROUNDING_MS and whole - spent <= max(IDLE_MS, IDLE_SHARE * whole)


def check_events(raw: PerfRaw, where: str) -> None:
    """Raise ``RecordError`` unless every event is there, none is early, and what was timed after each fits before the next."""
    times = list(raw.events_ms.values())
    spent = {
        "start": raw.load_ms,
        "first_call": raw.first_call_ms,
        "warm_up": math.fsum(raw.warm_up_ms),
        "steady": math.fsum(raw.steady_ms),
    }
    at = {name: raw.events_ms.get(name, math.nan) for name in EVENTS}
    until = dict(zip(EVENTS, [*at.values()][1:], strict=False))
    short = [name for name, ms in spent.items() if not 0 <= ms <= until[name] - at[name] + ROUNDING_MS]
    later = [time for name, time in raw.events_ms.items() if name not in EVENTS]
    if short or len(times) - len(later) != len(EVENTS) or not all(a <= b for a, b in pairwise([*at.values(), *later])):
        shown = ", ".join(f"{name} {time:.3f}" for name, time in raw.events_ms.items())
        raise RecordError(
            f"{where}: expected the events {', '.join(EVENTS)} in order, with time for what was timed after each, got {shown};"
            f" too short is {', '.join(short) or 'none'}"
        )
