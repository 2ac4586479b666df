"""Several threads at once, none of which is waited for without end."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable


def all_back(work: Callable[[int], None], threads: int, limit_s: float, keep: object) -> tuple[str, bool]:
    """Run ``work`` in so many threads for at most ``limit_s``; the first error, and whether some have not come back.

    Threads that never come back are left behind, and what they use, ``keep``, is kept for them.
    """
    errors: list[str] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except Exception as error:  # noqa: BLE001 - whatever a runtime raises when it is shared is what this is for
            errors.append(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")

    workers = [threading.Thread(target=guarded, args=(number,), daemon=True) for number in range(threads)]
    deadline = time.monotonic() + limit_s
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
    stuck = any(worker.is_alive() for worker in workers)
    if stuck:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(keep))  # else the session would be destroyed under its threads
    return (errors[0] if errors else ""), stuck
