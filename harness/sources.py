"""The groups that a ladder names, wherever they are, bounded: files beside the ladder are read here, all else in a child."""

from __future__ import annotations

import errno
from pathlib import Path

import msgspec

from harness import bounds, data, launch, trec
from harness.bounds import Selected
from harness.errors import AskedWrongly, LadderError
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
    source = options.data
    if isinstance(source, str) and source.endswith(".parquet"):
        source = DataSource(file=source)
    if isinstance(source, str):
        groups = data.read_groups(read_bytes(base / source, source, "a JSONL file"), source)
        selected = _all_read(bounds.select(groups, asked, named), len(groups))
    elif source.trec is not None:
        selected = _trec(source.trec, base, asked, named)
    else:
        file = None if source.file is None else base / source.file
        if file is not None:
            read_bytes(file, named, "a parquet file")
        selected = launch.load_dataset(source, asked, named, on_progress, file=file)
    sealed = _as_sealed(selected.groups, named)
    return sealed, facts(msgspec.structs.replace(selected, groups=sealed), source=named, bounds=asked)


def _as_sealed(groups: tuple[data.Group, ...], named: str) -> tuple[data.Group, ...]:
    """The groups as they are read again once they are sealed, whatever reader made them: what a verifier refuses is refused now."""
    try:
        return data.read_groups(data.render_groups(groups), named)
    except UnicodeEncodeError as error:
        got = "a lone surrogate, \\ud800 to \\udfff"
        raise LadderError(f"{named}: expected text that can be written as UTF-8, got {got}; correct it") from error


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
    return msgspec.structs.replace(selected, elsewhere=found.elsewhere, without_candidates=found.without_candidates)


def _all_read(selected: Selected, count: int) -> Selected:
    """A file is read whole before it is bounded, so how many groups there are is known."""
    return msgspec.structs.replace(selected, read=count, whole=True)
