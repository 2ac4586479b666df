"""What readings of the machine say of a time span: shares of its processors' time. Pure; a series that is null gives null."""

from __future__ import annotations

from collections.abc import Sequence

from harness.records import Record

BUSY_ABOVE = 0.1
STOLEN_ABOVE = 0.02
"""Shares of processor time, taken by others or by the hypervisor, above which a machine is called busy."""


class Condition(Record, frozen=True):
    """Shares of the time of the processors that a step could use, over a span; null where unknown.

    ``others`` is what processes other than the step's had, ``stolen`` what the hypervisor gave to other machines, ``pressed`` the
    share of the span in which some task waited for a processor.
    """

    others: float | None
    stolen: float | None
    pressed: float | None


def condition(
    at_ms: Sequence[float],
    busy_ms: Sequence[float] | None,
    idle_ms: Sequence[float] | None,
    stolen_ms: Sequence[float] | None,
    own_ms: Sequence[float] | None,
    pressure_ms: Sequence[float] | None,
) -> Condition:
    """The condition between the first reading and the last. ``ValueError`` when a series has another length than the times."""
    for series in (busy_ms, idle_ms, stolen_ms, own_ms, pressure_ms):
        if series is not None and len(series) != len(at_ms):
            message = f"machine: expected {len(at_ms)} readings, as times, got {len(series)}"
            raise ValueError(message)
    busy, idle, stolen, own, pressed = map(_gained, (busy_ms, idle_ms, stolen_ms, own_ms, pressure_ms))
    elapsed = _gained(at_ms)
    total = None if busy is None or idle is None or stolen is None else busy + idle + stolen
    return Condition(
        others=None if busy is None or own is None else _share(max(0.0, busy - own), total),
        stolen=_share(stolen, total),
        pressed=_share(pressed, elapsed),
    )


def _gained(series: Sequence[float] | None) -> float | None:
    return series[-1] - series[0] if series is not None and len(series) > 1 else None


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or whole is None or whole <= 0 else min(1.0, part / whole)
