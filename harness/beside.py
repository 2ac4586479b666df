"""Two pieces of work at once, on two processors: one here, one in a copy of this process that has all that was read so far."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

T = TypeVar("T")
U = TypeVar("U")


def both(here: Callable[[], T], there: Callable[[], U]) -> tuple[T, U]:
    """What both give. ``there`` works in a forked child, whose end this call is, however it ends: also by an interrupt.

    Where a copy cannot be had (one processor, another system than Linux), or does not answer, ``there`` works here too, so that whatever it
    raises is raised here.
    """
    if sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2:
        return here(), there()
    import multiprocessing

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(there, sender), daemon=True)
    with warnings.catch_warnings():  # of threads that a fork leaves behind: those of linear algebra, which start again
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    try:
        sender.close()
        own = here()
        with suppress(EOFError):
            return own, receiver.recv()
    finally:
        child.kill()
        child.join()
        receiver.close()
    return own, there()


def _answer(work: Callable[[], object], sender: Connection) -> None:
    """Send what the work gives. Of a failure nothing is said here: the parent meets it itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt goes to the parent, which ends this process
    with suppress(Exception):
        sender.send(work())
