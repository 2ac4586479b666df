"""What a crash left beside roots, and how to be rid of a root: found by name, moved aside, removed.

A staging folder is `NAME.staging-PID-RANDOM` (see `evidence.seal`), a half-removed root `NAME.removing-PID-RANDOM`; both mean something
only while the process PID runs. None of this decides whether a root verifies.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import psutil

from evidence import seal, tree
from evidence.manifest import SEAL_LIMIT_BYTES, SEAL_NAME, FormatError, parse_seal
from evidence.seal import SealError
from harness.errors import AskedWrongly
from harness.held import held

QUARANTINE = "quarantine"
_ASIDE = re.compile(r"(?P<root>.+)\.(?:staging|removing)-(?P<process>[0-9]{1,9})-[0-9a-f]{8}")
_OPEN = 0o755


def is_aside(folder: Path) -> bool:
    """Whether a folder is half-written, half-removed or where such folders are kept, by its name: no root, whatever it holds."""
    return folder.name == QUARANTINE or _ASIDE.fullmatch(folder.name) is not None


def leftovers(folder: Path) -> list[Path]:
    """Half-written staging folders in ``folder`` whose process is gone, and all that is in its ``quarantine/``, sorted.

    A process number that the system has given to another process hides a leftover until that one ends.
    """
    found = [
        path for path in _entries(folder) if (match := _ASIDE.fullmatch(path.name)) and _gone(int(match["process"]))
    ]
    return sorted(found + _entries(folder / QUARANTINE))


def quarantine(leftover: Path) -> Path:
    """Move a staging folder to ``quarantine/`` beside it, so that nobody takes it for work under way; returns its new place.

    The name of its root is held meanwhile: a climb in another container has a process number that says nothing here. Raises
    ``SealError`` for another folder and where a climb holds the name, OSError.
    """
    match = _ASIDE.fullmatch(leftover.name)
    if match is None:
        raise SealError(f"{leftover}: expected a staging folder, got another name")
    place = leftover.parent / QUARANTINE / leftover.name
    try:
        with held(leftover.with_name(match["root"])):
            place.parent.mkdir(exist_ok=True)
            leftover.chmod(_OPEN)  # a folder that moves to another parent must be writable
            seal.rename_new(leftover, place)
    except AskedWrongly as error:
        raise SealError(str(error)) from error
    return place


def set_aside(folder: Path) -> list[tuple[Path, Path | str]]:
    """Quarantine every leftover directly in ``folder``: where it was, and where it is now or why it was not moved."""
    return [(left, _moved(left)) for left in leftovers(folder) if left.parent == folder]


def _moved(leftover: Path) -> Path | str:
    try:
        return quarantine(leftover)
    except SealError as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)


def remove(root: Path) -> None:
    """Remove a root or staging folder, read-only or not; raises ``SealError`` for any other folder, and for a link.

    It is renamed first, so that a removal cut short leaves a leftover and never half a root.
    """
    match = _ASIDE.fullmatch(root.name)
    if root.is_symlink() or not (match or _looks_sealed(root)):
        raise SealError(
            f"{root}: expected a root or a staging folder, got something else: remove it by hand if you mean it"
        )
    process = int(match["process"]) if match is not None else os.getpid()
    if process != os.getpid() and not _gone(process):
        raise SealError(f"{root}: expected a staging folder whose process ended, got one that process {process} fills")
    doomed = seal.aside(root, "removing")
    root.chmod(_OPEN)
    seal.rename_new(root, doomed)
    for place, _, _ in os.walk(doomed):
        Path(place).chmod(_OPEN)  # top down: a folder must be writable before its entries can go
    shutil.rmtree(doomed)


def _entries(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []


def _gone(process: int) -> bool:
    """Whether a process ended, also one that nobody has reaped: in a container whose first process does not, that is for ever."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    try:
        return psutil.Process(process).status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:
        return False


def _looks_sealed(root: Path) -> bool:
    """Whether ``root`` holds a seal line: enough to know what it was made as, whatever became of it since."""
    try:
        with tree.opened(root, tree.FOLDER) as folder:
            parse_seal(tree.read_file(folder, SEAL_NAME, SEAL_LIMIT_BYTES)[0])
    except (OSError, FormatError):
        return False
    return True
