"""Run one child process to its end, with a time limit, and leave nothing of it behind.

The child is the leader of a new session, so a Ctrl-C reaches only the parent, and one signal reaches the child's whole group.
On Linux the parent makes itself the reaper of orphans (``PR_SET_CHILD_SUBREAPER``) while the child runs: what the child leaves
behind becomes the parent's own child, is known by the session or by a mark in its environment, and is killed and reaped too.
POSIX only.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.records import Exit
from harness.sampler import descendants, tree_of

MARK = "QUALIFY_STEP"
_POLL_S = 0.05
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 1, 36, 37


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    time_limit_s: float,
    started: Callable[[int], None],
    on_line: Callable[[bytes], bytes] | None,
    where: Path | None = None,
    memory_limit_bytes: int | None = None,
) -> Exit:
    """Run ``command`` plus the number of a socket's descriptor; output goes to ``folder/stdout`` and ``folder/stderr``.

    Without ``on_line`` there is no socket and the command stays as it is. It runs in ``where``, in ``folder`` without it.
    ``started`` is told the process id. ``on_line`` is given each line the child writes to the socket and returns what to
    answer (mostly nothing). With more than ``memory_limit_bytes`` resident its whole tree is ended; see ``_Memory``.
    Whatever ends this function, also an interrupt, the child and all it started are dead by then.
    """
    ours, theirs = socket.socketpair()
    mark = secrets.token_hex(16)
    begin = time.monotonic()
    with (
        ours,
        theirs,
        _orphans_come_here(),
        (folder / "stdout").open("xb") as out,
        (folder / "stderr").open("xb") as err,
    ):
        child = subprocess.Popen(
            [*command, *((str(theirs.fileno()),) if on_line is not None else ())],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=where or folder,
            env={**environment, MARK: mark},
            pass_fds=(theirs.fileno(),) if on_line is not None else (),
            start_new_session=True,
        )
        memory = _Memory(child.pid, memory_limit_bytes)
        timed_out = True
        try:
            theirs.close()
            started(child.pid)
            timed_out = not _serve(child, ours, begin + time_limit_s, on_line or (lambda _line: b""), memory)
        finally:
            memory.close()
            _end(child, mark)
    return _exit(child.returncode, timed_out, memory.over_bytes, time.monotonic() - begin)


def _exit(code: int, timed_out: bool, over_memory_bytes: int | None, seconds: float) -> Exit:
    return Exit(
        code=code if code >= 0 else None,
        signal=signal.Signals(-code).name if code < 0 else None,
        timed_out=timed_out,
        over_memory_bytes=over_memory_bytes,
        seconds=round(seconds, 6),
    )


class _Memory:
    """The memory limit of one child, kept from outside: what its tree has resident, looked at every 50 ms.

    No limit of the kernel's own counts that without a control group, which needs rights: ``RLIMIT_AS`` and ``RLIMIT_DATA`` count
    addresses, of which torch and ONNX Runtime reserve many times what they use (thread stacks, arenas, mapped weights), and
    ``RLIMIT_RSS`` does nothing. Between two looks a child can take more, about 100 MB at the speed of one core.
    """

    def __init__(self, pid: int, limit_bytes: int | None) -> None:
        self._limit = limit_bytes
        self._tree = tree_of(pid) if limit_bytes is not None else None
        self.over_bytes: int | None = None

    def is_over(self) -> bool:
        """Whether the tree has more than its limit resident now; ``over_bytes`` then says how much."""
        resident = self._tree.rss() if self._tree is not None else None
        if resident is not None and self._limit is not None and resident > self._limit:
            self.over_bytes = resident
        return self.over_bytes is not None

    def close(self) -> None:
        """Look no more."""
        if self._tree is not None:
            self._tree.close()


def _serve(
    child: subprocess.Popen[bytes],
    ours: socket.socket,
    deadline: float,
    on_line: Callable[[bytes], bytes],
    memory: _Memory,
) -> bool:
    """Hand on lines until the child ends or is over its memory limit (True), or the deadline passes (False)."""
    pending = b""
    open_ = True
    while not _ended(child) and not memory.is_over():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        wait = min(left, _POLL_S if open_ else 0.005)  # the child closes its end as it goes: then it is a matter of ms
        ready = select.select([ours] if open_ else [], [], [], wait)[0]
        if not ready:
            continue
        received = _receive(ours)
        open_ = bool(received)
        *lines, pending = (pending + received).split(b"\n")
        for line in lines:
            with suppress(OSError):  # the child may be gone before its answer
                ours.sendall(on_line(line))
    return True


def _receive(ours: socket.socket) -> bytes:
    try:
        return ours.recv(65536)
    except ConnectionResetError:
        return b""


def _ended(child: subprocess.Popen[bytes]) -> bool:
    """Whether the child ended, without reaping it where that is possible: its id stays taken until its group is killed."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    return child.poll() is not None


def _end(child: subprocess.Popen[bytes], mark: str) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS says EPERM for a group of zombies
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if sys.platform == "linux":
        while any(_end_stray(pid, child.pid, mark) for pid in descendants(os.getpid())):
            pass


def _end_stray(pid: int, session: int, mark: str) -> bool:
    """Kill and reap one process if the step left it; whether it did."""
    with suppress(OSError, ValueError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        of_session = int(stat.rpartition(")")[2].split()[3]) == session
        if of_session or f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return True
    return False


def die_with_parent() -> None:
    """In a child: be killed when the parent is (Linux), so that nothing writes into a staging folder that nobody watches."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


@contextmanager
def _orphans_come_here() -> Iterator[None]:
    if sys.platform != "linux":
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    before = ctypes.c_int(0)
    libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)
