"""The groups that a ladder names, wherever they are, bounded: files beside the ladder are read here, all else in a child."""

from __future__ import annotations

import errno
from pathlib import Path

import msgspec

from harness import bounds, data, launch, trec
from harness.bounds import Selected
from harness.errors import AskedWrongly
from harness.group_facts import facts, source_of
from harness.records import DataFact, DataSource, RerankOptions, TrecFiles


def load(
    options: RerankOptions, seed: int, base: Path, on_progress: launch.Progress | None = None
) -> tuple[tuple[data.Group, ...], DataFact]:
    """The bounded groups and what the plan says of them; paths are relative to ``base``.

    Raises ``AskedWrongly`` for what is wrong with ladder or data, and ``Unavailable`` for what could not be had.
    """
    asked = bounds.bounds_of(options, seed)
    named = source_of(options.data)
    if isinstance(options.data, DataSource):
        files = options.data.trec
        selected = (
            launch.load_dataset(options.data, asked, named, on_progress)
            if files is None
            else _trec(files, base, asked, named)
        )
    elif options.data.endswith(".parquet"):
        read_bytes(base / options.data, options.data, "a parquet file")
        selected = launch.load_dataset(base / options.data, asked, named, on_progress)
    else:
        groups = data.read_groups(read_bytes(base / options.data, options.data, "a JSONL file"), options.data)
        selected = _all_read(bounds.select(groups, asked, named), len(groups))
    return selected.groups, facts(selected, source=named, bounds=asked)


def file_bytes(path: Path) -> bytes:
    """The bytes of a file. Raises OSError, also for a pipe or a device: nobody may ever write its end."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "a pipe, socket or device")
    return path.read_bytes()


def read_bytes(path: Path, named: str, kind: str) -> bytes:
    """The bytes of a data file of the ladder. Raises ``AskedWrongly``."""
    try:
        return file_bytes(path)
    except OSError as error:
        raise AskedWrongly(
            f"{named}: expected {kind} beside the ladder, got {error.strerror}; correct the path in the ladder"
        ) from error


def _trec(names: TrecFiles, base: Path, asked: bounds.Bounds, named: str) -> Selected:
    files = (names.queries, names.docs, names.qrels, names.run)
    found = trec.read(names, {name: read_bytes(base / name, name, "a file") for name in files})
    selected = _all_read(bounds.select(found.groups, asked, named), len(found.groups))
    return msgspec.structs.replace(selected, elsewhere=found.elsewhere)


def _all_read(selected: Selected, count: int) -> Selected:
    """A file is read whole before it is bounded, so how many groups there are is known."""
    return msgspec.structs.replace(selected, read=count, whole=True)
