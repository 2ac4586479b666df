"""Read groups from a dataset on a hub, an mteb task or a parquet file, and bound them. In a child of its own: the libraries are heavy.

A dataset is streamed, and no more of it is asked for once the bound is met. Offline it is read from the hub client's cache, which
``hf download --repo-type dataset ID --revision COMMIT`` fills.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from harness import bounds, hub
from harness.bounds import Bounds
from harness.data import Doc, Group, render_groups
from harness.errors import LadderError, QualifyError, Unavailable
from harness.records import DataSource
from harness.stages import mteb_task
from harness.stages.broken_line import broken_line

TRIES = 2
TRY_AGAIN_S = 2
"""``datasets`` itself would try 20 times and wait up to a minute between them before it says that a hub does not answer."""


def fetch(folder: Path, progress: Callable[[int, int, str], None]) -> None:
    """Read ``folder/asked.json``; write ``groups.jsonl``, and ``read.json``, the same ``Selected`` without its groups.

    Raises ``LadderError`` for a wrong request and ``Unavailable`` for what could not be had, naming dataset and revision.
    """
    asked = json.loads((folder / "asked.json").read_bytes())
    wanted, named = msgspec.convert(asked["bounds"], Bounds), str(asked["named"])
    source = msgspec.convert(asked["source"], DataSource)
    beyond: dict[str, Any] = {}
    if source.mteb is not None:
        named = f"mteb task {source.mteb}"
        groups, beyond = mteb_task.read(source, named)
    elif source.dataset is not None:
        named = f"dataset {named}"
        groups = _groups(_rows(source, named), source, named)
    else:
        groups = _groups(_parquet(asked["file"], named), source, named)
    selected = bounds.select(_told(groups, wanted.groups, progress), wanted, named)
    (folder / "groups.jsonl").write_bytes(render_groups(selected.groups))
    about = msgspec.structs.replace(selected, groups=(), **beyond)
    (folder / "read.json").write_bytes(msgspec.json.encode(about))


def _told(groups: Iterable[Group], wanted: int | None, progress: Callable[[int, int, str], None]) -> Iterator[Group]:
    for number, group in enumerate(groups, 1):
        progress(number, max(number, wanted or number), "groups read")
        yield group


def _groups(rows: Iterable[dict[str, Any]], source: DataSource, named: str) -> Iterator[Group]:
    for number, row in enumerate(rows, 1):
        yield _group(row, source, f"{named}: row {number}", number)


def _rows(source: DataSource, named: str) -> Iterator[dict[str, Any]]:
    """The rows of a dataset at its pinned commit, as they come. What the library raises becomes one sentence."""
    import datasets

    datasets.config.STREAMING_READ_MAX_RETRIES = TRIES
    for name in ("", "SERVER_UNAVAILABLE_", "RATE_LIMIT_"):
        setattr(datasets.config, f"STREAMING_READ_{name}RETRY_INTERVAL", TRY_AGAIN_S)
    assert source.dataset is not None
    place = hub.dataset_place(source.dataset, source.revision)
    revision = source.revision if place == source.dataset else None
    try:
        builder = datasets.load_dataset_builder(place, name=source.config, revision=revision)
    except (ValueError, FileNotFoundError) as error:
        do = "correct the config in the ladder, or name another dataset"
        raise LadderError(f"{named}: expected data files of such a config, got {_said(error)}; {do}") from error
    except Exception as error:  # the client, readers and the network raise whatever they like
        raise _failed(error, source, named, 0) from error
    if revision is not None and builder.hash != revision:  # the library falls back to any copy that it has cached
        got = f"a cached copy of {builder.hash}"
        raise Unavailable(f"{named}: expected the commit itself, got {got}; run again when the hub answers")
    try:
        splits = builder.as_streaming_dataset()
    except Exception as error:  # as above
        raise _failed(error, source, named, 0, _files(builder, source)) from error
    if source.split not in splits:
        got = f"{source.split!r}; it has {', '.join(map(str, splits))}"
        raise LadderError(f"{named}: expected a split of the dataset, got {got}")
    yield from _read(iter(splits[source.split]), source, named, _files(builder, source))


def _files(builder: Any, source: DataSource) -> list[str]:
    """The places of the JSONL files of the split, in the order in which they are read."""
    of_split = (builder.config.data_files or {}).get(source.split, ())
    return [place for place in map(str, of_split) if place.endswith((".jsonl", ".ndjson"))]


def _read(
    rows: Iterator[dict[str, Any]], source: DataSource, named: str, files: Sequence[str]
) -> Iterator[dict[str, Any]]:
    count = 0
    while True:
        try:
            row = next(rows)
        except StopIteration:
            break
        except Exception as error:  # as above
            raise _failed(error, source, named, count, files) from error
        count += 1
        yield row
    if not count:
        raise LadderError(f"{named}: expected at least one row, got none; name another split")


def _failed(error: Exception, source: DataSource, named: str, count: int, files: Sequence[str] = ()) -> QualifyError:
    """The network's failures as the hub module words them; anything else is a row that cannot be read, its line looked up in ``files``."""
    cause = hub.root_cause(error)
    if hub.of_network(error):
        return hub.explained(error, f"dataset {source.dataset}", str(source.revision))
    with suppress(Exception):  # what cannot be read again is named by the row before it
        if line := broken_line(files, str(source.revision), count):
            return LadderError(f"{named}: {line}; mend the data, or pin another commit")
    what = f"{type(cause).__name__}: {_said(cause)}"
    return LadderError(
        f"{named}: after row {count}: expected a row that can be read, got {what}; mend the data, or pin another commit"
    )


def _parquet(path: str, named: str) -> Iterator[dict[str, Any]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        do = "install it with: pip install '.[run]'"
        raise Unavailable(f"{named}: expected the package pyarrow, got none; {do}") from error
    try:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=64):
            yield from batch.to_pylist()
    except UnicodeDecodeError as error:
        got = f"byte 0x{error.object[error.start]:02x} in a text"
        raise LadderError(f"{named}: expected UTF-8, got {got}; write the file again") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise LadderError(f"{named}: expected a parquet file, got {_said(error)}; write it again") from error


def _group(row: dict[str, Any], source: DataSource, where: str, number: int) -> Group:
    graded = source.documents is not None
    lists = (source.documents, source.gains) if graded else (source.positive, source.negative)
    for column in (source.query, *lists):
        if column not in row:
            raise LadderError(
                f"{where}: expected a column {column!r}, got {', '.join(map(str, row))}; name it in the ladder"
            )
    query = row[source.query]
    if not isinstance(query, str) or not query.strip():
        raise LadderError(f"{where}: expected text in {source.query!r}, got {_kind(query)}; correct the row")
    if graded:
        texts, gains = _texts(row, str(source.documents), where), _gains(row, source.gains, where)
        if len(texts) != len(gains):
            got = f"{len(texts)} and {len(gains)}"
            raise LadderError(f"{where}: expected as many gains as documents, got {got}; correct the row")
    else:
        positive, negative = (_texts(row, str(column), where) for column in lists)
        texts, gains = positive + negative, [1.0] * len(positive) + [0.0] * len(negative)
    if not texts:
        raise LadderError(f"{where}: expected at least one candidate, got none; correct the row")
    docs = (
        Doc(id=f"d{place}", text=text, gain=gain)
        for place, (text, gain) in enumerate(zip(texts, gains, strict=True), 1)
    )
    return Group(query_id=f"q{number}", query=query, candidates=tuple(docs))


def _texts(row: dict[str, Any], column: str, where: str) -> list[str]:
    value = row[column]
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list):
        raise LadderError(
            f"{where}: expected text or a list of texts in {column!r}, got {_kind(value)}; correct the row"
        )
    for place, text in enumerate(texts, 1):
        if not isinstance(text, str):
            got = f"{_kind(text)} at place {place}"
            raise LadderError(f"{where}: expected a list of texts in {column!r}, got {got}; correct the row")
    return texts


def _gains(row: dict[str, Any], column: str, where: str) -> list[float]:
    values = row[column]
    if not isinstance(values, list):
        raise LadderError(f"{where}: expected a list of numbers in {column!r}, got {_kind(values)}; correct the row")
    for place, value in enumerate(values, 1):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1_000_000:
            got = f"{value!r:.40} at place {place}"
            raise LadderError(f"{where}: expected numbers from 0 to 1000000 in {column!r}, got {got}; correct the row")
    return [float(value) for value in values]


def _kind(value: Any) -> str:
    return "empty text" if isinstance(value, str) else "null" if value is None else type(value).__name__


def _said(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
