"""Files of the user's, beside roots: read no further than a reader accepts, and written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from operator import attrgetter
from pathlib import Path

from blake3 import blake3

from evidence.manifest import MANIFEST_NAME, SEAL_NAME
from harness.errors import AskedWrongly, NotSealed


def read_small(path: Path, limit_bytes: int = 1 << 20) -> bytes:
    """The start of a file of the user's, at most one byte more than what any reader here accepts. Raises ``AskedWrongly``."""
    try:
        with path.open("rb") as file:
            return file.read(limit_bytes + 1)
    except OSError as error:
        raise AskedWrongly(f"{path}: expected a file, got {error.strerror}; correct the path") from error


def hash_file(path: Path) -> str:
    """BLAKE3 (64 hex) of a file outside any root, links followed, any content. Raises ``OSError``, also when it changes meanwhile."""
    state = attrgetter("st_size", "st_ctime_ns")
    with path.open("rb", buffering=0) as file:
        before, hasher = os.fstat(file.fileno()), blake3()
        while block := file.read(1 << 20):
            hasher.update(block)
        if state(before) != state(os.fstat(file.fileno())):
            raise OSError(f"{path}: expected a file that nobody writes, got a change while it was read")
    return hasher.hexdigest()


def refuse_existing(out: Path) -> None:
    """A file or folder to make: it must not exist, and not stand in a root, which is never changed. Raises ``AskedWrongly``."""
    if out.exists() or out.is_symlink():
        raise AskedWrongly(
            f"{out}: expected a path that does not exist, got an existing one; name another or remove it"
        )
    for folder in out.absolute().resolve().parents:
        if (folder / SEAL_NAME).exists() and (folder / MANIFEST_NAME).exists():
            raise AskedWrongly(f"{out}: expected a path outside any root, got one in {folder.name}; name another")


def check_new(files: Iterable[Path | None], root: Path | None = None) -> None:
    """Files to write when the work is done: refused now if they could not be, since the work may take hours.

    ``root`` is the root that the work makes; a file in it would break it. Raises ``AskedWrongly``.
    """
    taken: list[Path] = []
    for file in files:
        if file is None:
            continue
        refuse_existing(file)
        place = file.absolute().resolve()
        if root is not None and place.is_relative_to(root.absolute().resolve()):
            raise AskedWrongly(
                f"{file}: expected a path outside the root to make, got one in {root.name}; name another"
            )
        if place in taken:
            raise AskedWrongly(f"{file}: expected a file for each option, got one path twice; name another")
        if not place.parent.is_dir():
            raise AskedWrongly(f"{file}: expected a path in a folder that exists, got none; make the folder first")
        taken.append(place)


def write_new(out: Path, data: bytes) -> None:
    """Write a new file whole or not at all. Raises ``AskedWrongly`` when it exists, ``NotSealed`` when it cannot be written."""
    try:
        with out.open("xb") as file:
            try:
                file.write(data)
                file.flush()
            except OSError:
                out.unlink()
                raise
    except FileExistsError as error:
        raise AskedWrongly(
            f"{out}: expected a file that does not exist, got an existing one; name another or remove it"
        ) from error
    except OSError as error:
        raise NotSealed(f"{out}: expected a file that can be written, got {error.strerror}; name another") from error


def write_all(answer: Mapping[Path, bytes]) -> None:
    """Write several new files, or none of them. Raises as ``write_new``."""
    written: list[Path] = []
    try:
        for path, data in answer.items():
            write_new(path, data)
            written.append(path)
    except (AskedWrongly, NotSealed):
        for path in written:
            path.unlink()
        raise
