"""The condition of the machine while a step is timed, read by the parent every 100 ms from ``/proc`` (Linux).

What counts are the processors that the step may use. Time is in ms of processor time since boot, so two readings give a share.
Elsewhere, and where the kernel does not tell, a series is null: unknown is not idle.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from harness.raw import MachineRaw

T = TypeVar("T")

INTERVAL_MS = 100.0
BUSY_SHARE = 0.05
"""Share of one processor above which another process counts as busy."""

_CPU_SYSFS = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"


class Machine:
    """Readings of the processors ``cpus`` and of the step's processes; ``read`` takes one, ``end`` gives all of them."""

    def __init__(self, cpus: Sequence[int] | None) -> None:
        may = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        self._cpus = tuple(cpus) if cpus is not None else tuple(may)
        self._tick_ms = 1000.0 / os.sysconf("SC_CLK_TCK")
        self._at: list[float] = []
        self._times: list[tuple[float, float, float] | None] = []
        self._own: list[float | None] = []
        self._load: list[float | None] = []
        self._mhz: list[float | None] = []
        self._pressure: list[float | None] = []
        self._before = dict(_processes(self._tick_ms))
        self._began = time.monotonic()

    def read(self, own: Iterable[int]) -> None:
        """Take a reading; ``own`` are the step's processes, its root first, whose time and this process's is not that of others."""
        # the root last: what a child that has just ended spent is then in the count of whoever waited for it
        spent = [_spent_ms(pid, self._tick_ms) for pid in reversed([*own])]
        self._at.append(round(time.monotonic() * 1000, 3))
        self._times.append(self._processors())
        root = spent[-1] if spent else 0.0
        self._own.append(None if root is None else sum(filter(None, spent)) + 1000 * time.process_time())
        self._load.append(os.getloadavg()[0] if hasattr(os, "getloadavg") else None)
        self._mhz.append(self._frequency())
        self._pressure.append(_pressure_ms())

    def end(self, own: Iterable[int]) -> MachineRaw:
        """All readings, and how many other processes were busy since the first."""
        elapsed = 1000 * (time.monotonic() - self._began)
        ours = {os.getpid(), *own}
        times = _whole(self._times)
        return MachineRaw(
            format=1,
            interval_ms=INTERVAL_MS,
            cpus=self._cpus,
            at_ms=tuple(self._at),
            busy_ms=None if times is None else tuple(busy for busy, _, _ in times),
            idle_ms=None if times is None else tuple(idle for _, idle, _ in times),
            stolen_ms=None if times is None else tuple(stolen for _, _, stolen in times),
            own_ms=_whole(self._own),
            load_1min=_whole(self._load),
            mhz=_whole(self._mhz),
            pressure_ms=_whole(self._pressure),
            busy_processes=self._busy(ours, elapsed) if self._before and elapsed > 0 else None,
        )

    def _busy(self, ours: set[int], elapsed: float) -> int:
        now = dict(_processes(self._tick_ms))
        spent = {pid: ms - self._before.get(pid, 0.0) for pid, ms in now.items() if pid not in ours}
        return sum(ms > BUSY_SHARE * elapsed for ms in spent.values())

    def _processors(self) -> tuple[float, float, float] | None:
        """Busy, idle and stolen ms of the processors, summed."""
        wanted = {b"cpu%d" % number for number in self._cpus}
        busy = idle = stolen = 0
        with suppress(OSError, ValueError, IndexError):
            for line in read_proc("/proc/stat").splitlines():
                name, *ticks = line.split(maxsplit=9)
                if not name.startswith(b"cpu"):
                    break  # what follows is of interrupts, and long
                if name in wanted:
                    wanted.discard(name)
                    user, nice, system, waiting, io, irq, soft, steal = map(int, ticks[:8])
                    busy += user + nice + system + irq + soft
                    idle += waiting + io
                    stolen += steal
            if not wanted and self._cpus:
                return busy * self._tick_ms, idle * self._tick_ms, stolen * self._tick_ms
        return None

    def _frequency(self) -> float | None:
        """Mean MHz of the processors, as the kernel says it now."""
        with suppress(OSError, ValueError):
            khz = [float(read_proc(_CPU_SYSFS.format(number))) for number in self._cpus]
            return sum(khz) / len(khz) / 1000 if khz else None
        return None


def read_proc(path: str) -> bytes:
    """A small file that the kernel makes when it is read. Raises ``OSError``. Bare calls, since this is most of what sampling costs."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, 65536)
    finally:
        os.close(file)


def high_water_bytes(pid: int) -> int | None:
    """The most memory that a process ever had resident, by the kernel's own count (VmHWM); None where it does not tell."""
    with suppress(OSError, ValueError, StopIteration):
        lines = read_proc(f"/proc/{pid}/status").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(b"VmHWM"))
    return None


def _whole(readings: list[T | None]) -> tuple[T, ...] | None:
    """A series without a hole, or nothing."""
    found = tuple(reading for reading in readings if reading is not None)
    return found if found and len(found) == len(readings) else None


def _processes(tick_ms: float) -> Iterator[tuple[int, float]]:
    """Every process that can be seen and the ms of processor time it has spent."""
    with suppress(OSError):
        for name in (place.name for place in os.scandir("/proc")):
            spent = _spent_ms(int(name), tick_ms) if name.isdigit() else None
            if spent is not None:
                yield int(name), spent


def _spent_ms(pid: int, tick_ms: float) -> float | None:
    try:
        fields = read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split(maxsplit=15)
        return sum(int(field) for field in fields[11:15]) * tick_ms
    except (OSError, ValueError):
        return None


def _pressure_ms() -> float | None:
    """Ms since boot in which some task waited for a processor."""
    with suppress(OSError, ValueError, IndexError):
        return int(read_proc("/proc/pressure/cpu").split(b"total=", 1)[1].split(maxsplit=1)[0]) / 1000
    return None
