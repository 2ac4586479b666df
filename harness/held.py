"""The name of a root-to-be, held while it is climbed, so that two climbs to one name collide at the start and not after hours of work.

``NAME.lock`` beside the root is locked with flock(2), which the system lets go of when the process ends, however it ends: what a
kill leaves is an empty file that the next climb to that name takes over, and that ``qualify doctor`` names.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.errors import AskedWrongly

SUFFIX = ".lock"


@contextmanager
def held(out: Path) -> Iterator[None]:
    """Hold the name ``out``; its parent folder is made. Raises ``AskedWrongly`` when another process holds it, OSError."""
    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    marker = _marker(out)
    descriptor = _taken(marker)
    while descriptor is None:  # the file was removed between opening and locking it: by whoever held it before
        descriptor = _taken(marker)
    try:
        yield
    finally:
        with suppress(OSError):
            marker.unlink()
        os.close(descriptor)


def left_in(folder: Path) -> list[Path]:
    """Markers in a folder that nobody holds: what a killed climb left."""
    return sorted(
        path for path in folder.glob(f"*{SUFFIX}") if path.is_file() and path.stat().st_size == 0 and _free(path)
    )


def _marker(out: Path) -> Path:
    place = out.absolute()
    return place.with_name(place.name + SUFFIX)


def _taken(marker: Path) -> int | None:
    """A descriptor that holds the lock; None when it is of a file that is no longer there. Raises ``AskedWrongly``."""
    descriptor = os.open(marker, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if marker.exists() and os.path.samestat(os.fstat(descriptor), marker.stat()):
            return descriptor
    except BlockingIOError as error:
        os.close(descriptor)
        name = marker.name.removesuffix(SUFFIX)
        raise AskedWrongly(
            f"{marker.with_name(name)}: expected a name that no other climb is making, got one that a running climb holds;"
            " wait for it or choose another"
        ) from error
    os.close(descriptor)
    return None


def _free(marker: Path) -> bool:
    with marker.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
