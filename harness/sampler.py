"""Resident memory of a process tree, sampled from outside every 10 ms by a thread of the parent, and the machine's condition meanwhile.

On Linux a sample is one ``pread`` of ``/proc/PID/statm`` a process; the tree is walked every twentieth sample, so a new child counts
after 200 ms at the latest. Elsewhere psutil is asked. Shared pages count once per process that maps them, as in any sum of RSS.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from harness.machine import INTERVAL_MS, Machine, high_water_bytes, read_proc
from harness.raw import MachineRaw, MemoryRaw

INTERVAL_S = 0.010
_WALK_EVERY = 20
_MACHINE_EVERY = round(INTERVAL_MS / (1000 * INTERVAL_S))


class Sampler:
    """Samples the tree below ``pid`` from construction on; ``cpus`` are the processors it may use, null for this process's.

    Memory is sampled until ``memory``, the machine until ``machine``: what is compared with an artifact is no part of its memory, and
    is timed on the same machine.
    """

    def __init__(self, pid: int, cpus: Sequence[int] | None = None) -> None:
        self._pid = pid
        self._machine = Machine(cpus)
        self._at_ms: list[float] = []
        self._rss: list[int] = []
        self._no_more_memory, self._memory_ended, self._ending = (threading.Event() for _ in range(3))
        self._thread = threading.Thread(target=self._run, name="rss-sampler", daemon=True)
        self._thread.start()

    def memory(self) -> MemoryRaw:
        """End the samples of memory and return them: none when the process was gone before the first, or where one was not told."""
        self._no_more_memory.set()
        self._memory_ended.wait()
        return MemoryRaw(
            format=1,
            interval_ms=INTERVAL_S * 1000,
            at_ms=tuple(self._at_ms),
            rss_bytes=tuple(self._rss),
            high_water_bytes=high_water_bytes(self._pid),
        )

    def machine(self) -> MachineRaw:
        """End the thread, with a last reading, and return the readings of the machine."""
        self._no_more_memory.set()
        self._ending.set()
        self._thread.join()
        return self._machine.end(self._tree())

    def _run(self) -> None:
        try:
            self._sample()
        finally:
            self._memory_ended.set()
        while not self._ending.wait(INTERVAL_MS / 1000):
            self._machine.read(self._tree())
        self._machine.read(self._tree())

    def _sample(self) -> None:
        """Memory every 10 ms, and every tenth time the machine, until there shall be no more or the process has ended."""
        tree = tree_of(self._pid)
        turn = 0
        while not self._no_more_memory.is_set():
            try:
                rss = tree.rss()
            except PermissionError:  # a part of the tree that is not told makes its sum unknown, not smaller
                self._at_ms, self._rss = [], []
                break
            if rss is None:
                break
            self._at_ms.append(round(time.monotonic() * 1000, 3))
            self._rss.append(rss)
            if turn % _MACHINE_EVERY == 0:
                self._machine.read(tree.pids())
            turn += 1
            time.sleep(INTERVAL_S)
        tree.close()

    def _tree(self) -> list[int]:
        return [self._pid, *descendants(self._pid)]


class Tree(Protocol):
    """The resident memory of a process and all below it."""

    def rss(self) -> int | None:
        """Bytes now, or None when the process has ended. Raises ``PermissionError`` when the system does not tell of one below it."""

    def pids(self) -> Iterable[int]:
        """The processes that were counted last."""

    def close(self) -> None:
        """Give back what is open."""


def tree_of(pid: int) -> Tree:
    """The tree below ``pid``, itself included, by the way that this system has to look at it."""
    return _ProcTree(pid) if sys.platform == "linux" else _PsutilTree(pid)


class _ProcTree:
    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._files: dict[int, int] = {}
        self._count = 0
        self._page = os.sysconf("SC_PAGE_SIZE")

    def rss(self) -> int | None:
        """Bytes of the whole tree now, or None when its root has ended. Raises ``PermissionError``."""
        if self._count % _WALK_EVERY == 0:
            self._walk()
        self._count += 1
        total = 0
        for pid, file in self._files.items():
            try:
                pages = int(os.pread(file, 128, 0).split(maxsplit=2)[1])
            except OSError:
                pages = 0  # it has ended
            if pages == 0 and pid == self._pid:
                self.close()
                return None
            total += pages
        return total * self._page if self._files else None

    def pids(self) -> Iterable[int]:
        """The processes that were counted last, the root first."""
        return [self._pid, *(self._files.keys() - {self._pid})]

    def close(self) -> None:
        """Close every open file."""
        self._close(set(self._files))

    def _walk(self) -> None:
        alive = {self._pid, *descendants(self._pid)}
        self._close(set(self._files) - alive)
        for pid in alive - set(self._files):
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                self._files[pid] = _opened(pid)

    def _close(self, pids: set[int]) -> None:
        for pid in pids:
            os.close(self._files.pop(pid))


class _PsutilTree:
    def __init__(self, pid: int) -> None:
        import psutil

        self._error, self._denied = psutil.Error, psutil.AccessDenied
        self._root: psutil.Process | None = None
        with suppress(psutil.Error):
            self._root = psutil.Process(pid)

    def rss(self) -> int | None:
        """Bytes of the whole tree now, or None when its root has ended. Raises ``PermissionError``."""
        if self._root is None:
            return None
        try:
            total = int(self._root.memory_info().rss)
            children = self._root.children(recursive=True)
        except self._error:
            return None
        for child in children:
            try:
                total += int(child.memory_info().rss)
            except self._denied as error:
                raise PermissionError(str(error)) from error
            except self._error:  # it has ended
                continue
        return total

    def pids(self) -> Iterable[int]:
        """The root alone: where this way is taken, nobody tells what each process spent."""
        return [] if self._root is None else [self._root.pid]

    def close(self) -> None:
        """Nothing is open."""


def _opened(pid: int) -> int:
    """The file in which the kernel tells a process's resident pages, open. Raises ``OSError``."""
    return os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)


def descendants(pid: int) -> list[int]:
    """Processes below ``pid`` (Linux), from the children lists of all threads; empty when it is gone."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = list(_children(waiting.pop()))
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in os.scandir(f"/proc/{pid}/task"):
            with suppress(OSError):
                found += map(int, read_proc(f"/proc/{pid}/task/{task.name}/children").split())
    return found
