"""L1: readings of the machine -> its condition before the steady calls, over them, after them, and while artifacts were compared. Pure.

Each of the last three is a part of its own, since one long quiet part would hide that another was busy; the worst is what a limit
judges. The comparison begins where the parent ended its samples of memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from harness.derive_raw import make
from harness.metrics.catalogue import is_time
from harness.metrics.machine import BUSY_ABOVE, STOLEN_ABOVE, Condition, condition
from harness.raw import MachineRaw, MemoryRaw, PerfRaw
from harness.records import Measurement

BUSY = "a busy machine"
UNTOLD = "this system does not tell"
SHORTEST_MS = 500.0
"""A shorter part after the steady calls is not judged: the kernel counts in steps of 10 ms, so its share would be one of noise."""
BEFORE = " before the steady calls"
STEADY, AFTER, COMPARED = "the steady calls", "the calls after them", "the comparison"


class Found(NamedTuple):
    """The measurements, and by part what to say beside a figure of it: nothing unless the machine was busy."""

    measurements: tuple[Measurement, ...]
    busy: dict[str, str]


def found(raw: PerfRaw, rss: MemoryRaw, machine: MachineRaw) -> Found:
    """All that the readings say. ``ValueError`` when a series has another length than the times."""
    spans = _spans(raw, rss, machine)
    parts = {name: _condition(machine, span) for name, span in spans.items()}
    start = slice(spans[STEADY].start + 1)
    unknown = Condition(others=None, stolen=None, pressed=None)
    before = _condition(machine, start) if _long(machine, start) else unknown
    busy = {name: _busy(part) for name, part in parts.items()}
    return Found(tuple(_measurements(machine, spans, before, parts)), busy)


def beside(measurements: Iterable[Measurement], busy: str | None) -> Iterator[Measurement]:
    """Measurements of a part, each figure made of times with what there is to say of the machine meanwhile."""
    for one in measurements:
        told = busy and one.value is not None and (is_time(one.metric) or one.unit == "ratio")
        yield msgspec.structs.replace(one, note="; ".join(filter(None, (one.note, busy)))) if told else one


def _spans(raw: PerfRaw, rss: MemoryRaw, machine: MachineRaw) -> dict[str, slice]:
    """The readings of each part: the last before it begins to the first after it ends."""
    at, events = machine.at_ms, raw.events_ms
    first = max((i for i, t in enumerate(at) if t <= events["steady"]), default=0)
    last, compared = (
        min((i for i, t in enumerate(at) if t >= time), default=len(at) - 1)
        for time in (events["end"], max([events["end"], *rss.at_ms[-1:]]))
    )
    spans = {STEADY: slice(first, last + 1)}
    later = {AFTER: slice(last, compared + 1), COMPARED: slice(compared, len(at))}
    return spans | {name: span for name, span in later.items() if _long(machine, span)}


def _long(machine: MachineRaw, span: slice) -> bool:
    at = machine.at_ms[span]
    return len(at) > 1 and at[-1] - at[0] >= SHORTEST_MS


def _condition(machine: MachineRaw, span: slice) -> Condition:
    series = (machine.busy_ms, machine.idle_ms, machine.stolen_ms, machine.own_ms, machine.pressure_ms)
    return condition(machine.at_ms[span], *(_cut(machine, one, span) for one in series))


def _cut(machine: MachineRaw, series: tuple[float, ...] | None, span: slice) -> tuple[float, ...] | None:
    if series is not None and len(series) != len(machine.at_ms):
        raise ValueError(f"machine.json: expected {len(machine.at_ms)} readings, as times, got {len(series)}")
    return series[span] if series else None


def _busy(part: Condition) -> str:
    above = (("busy_share", part.others, BUSY_ABOVE), ("stolen_share", part.stolen, STOLEN_ABOVE))
    told = [f"{name} was {share:.0%}" for name, share, most in above if share is not None and share > most]
    return f"on {BUSY}: {', '.join(told)}" if told else ""


def _measurements(
    machine: MachineRaw, spans: dict[str, slice], before: Condition, parts: dict[str, Condition]
) -> Iterator[Measurement]:
    load = _cut(machine, machine.load_1min, slice(spans[STEADY].start, None))
    mhz = _cut(machine, machine.mhz, spans[STEADY])
    yield _told("load_average_before", machine.load_1min[0] if machine.load_1min else None)
    yield _told("busy_share_before", before.others, BUSY_ABOVE, BEFORE)
    yield _told("stolen_share_before", before.stolen, STOLEN_ABOVE, BEFORE)
    yield _told("load_average", max(load) if load else None)
    yield _worst("busy_share", {name: part.others for name, part in parts.items()}, BUSY_ABOVE)
    yield _told("busy_processes", machine.busy_processes)
    yield _worst("stolen_share", {name: part.stolen for name, part in parts.items()}, STOLEN_ABOVE)
    yield _worst("cpu_pressure_share", {name: part.pressed for name, part in parts.items()})
    yield _told("cpu_mhz", sum(mhz) / len(mhz) if mhz else None)


def _worst(metric: str, parts: dict[str, float | None], above: float | None = None) -> Measurement:
    """The largest share of all parts; unknown where it is unknown of one. Busy, it says of which part."""
    known = {name: share for name, share in parts.items() if share is not None}
    if len(known) < len(parts):
        return _told(metric, None)
    name = max(known, key=known.__getitem__)
    return _told(metric, known[name], above, f" in {name}")


def _told(metric: str, value: float | None, above: float | None = None, where: str = "") -> Measurement:
    if value is None:
        return make(metric, None, note=UNTOLD)
    return make(metric, value, note=f"{BUSY}{where}" if above is not None and value > above else "")
