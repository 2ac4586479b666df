"""Fetch the rows of a pinned hub dataset that a bound needs, as JSONL of groups. Runs in a child of its own: ``datasets`` is heavy."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from harness.errors import Unavailable
from harness.records import HubData


def fetch(folder: Path, progress: Callable[[int, int, str], None]) -> None:
    """Read ``folder/asked.json`` and write ``folder/groups.jsonl``. Raises ``Unavailable`` naming dataset and revision."""
    asked = json.loads((folder / "asked.json").read_bytes())
    hub = msgspec.convert(asked["hub"], HubData)
    groups, candidates = asked["groups"], asked["candidates"]
    named = f"dataset {hub.dataset}@{hub.revision} split {hub.split}"
    try:
        rows = _rows(hub)
        with (folder / "groups.jsonl").open("x", encoding="utf-8") as out:
            count = 0
            for count, row in enumerate(itertools.islice(rows, groups), 1):
                line = _group(row, hub, candidates, f"{named}: row {count}")
                out.write(json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n")
                progress(count, groups or count, "rows")
    except Unavailable:
        raise
    except Exception as error:  # the hub client, parquet readers and the network raise whatever they like
        message = " ".join(str(error).split())[:300]
        raise Unavailable(
            f"{named}: expected its rows, got {type(error).__name__}: {message}; check id, revision and network"
        ) from error
    if not count:
        raise Unavailable(f"{named}: expected at least one row, got none; name another split")


def _rows(hub: HubData) -> Any:
    import datasets

    return datasets.load_dataset(hub.dataset, name=hub.config, revision=hub.revision, split=hub.split, streaming=True)


def _group(row: dict[str, Any], hub: HubData, candidates: int | None, where: str) -> dict[str, Any]:
    for column in (hub.query, hub.positive, hub.negative):
        if column not in row:
            raise Unavailable(
                f"{where}: expected a column {column!r}, got {', '.join(map(str, row))}; name it in the ladder"
            )
    if not isinstance(row[hub.query], str):
        raise Unavailable(f"{where}: expected text in {hub.query!r}, got {type(row[hub.query]).__name__}")
    return {
        "query": row[hub.query],
        "positive": _texts(row, hub.positive, where)[:candidates],
        "negative": _texts(row, hub.negative, where)[:candidates],
    }


def _texts(row: dict[str, Any], column: str, where: str) -> list[str]:
    value = row[column]
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise Unavailable(f"{where}: expected text or a list of texts in {column!r}, got {type(value).__name__}")
    return texts
