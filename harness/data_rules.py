"""The rules of a ladder's L3 data that look at two keys at once: which source it is, and which bounds go together. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.fields import refuse, show
from harness.ladder_format import is_hub_id
from harness.records import DataSource, RerankOptions

WHERE = "tiers.L3.data"
SOURCES = ("dataset", "mteb", "trec", "file")
_OF: dict[str, tuple[str, ...]] = {
    "dataset": ("revision", "split", "config", "query", "positive", "negative", "documents", "gains"),
    "mteb": ("revision", "split", "config"),
    "trec": (),
    "file": ("query", "positive", "negative", "documents", "gains"),
}
"""The keys that say something of each kind of source."""


def check(options: RerankOptions) -> None:
    """Raise ``FieldError`` for the first thing that does not go together."""
    if isinstance(options.data, DataSource):
        _check_source(options.data)
    if (
        options.select != "first"
        and options.groups is None
        and (options.pairs is None or options.select == "stratified")
    ):
        wanted = "groups" if options.select == "stratified" else "groups or pairs"
        refuse("tiers.L3.select", f"a bound of {wanted} for a sample", "none", f"add {wanted} or take the first")
    if options.negatives == "seeded" and options.candidates is None:
        refuse(
            "tiers.L3.negatives", "a bound of candidates to choose for", "none", "add candidates or remove negatives"
        )
    if options.pairs is not None and options.candidates is not None and options.pairs < options.candidates:
        got = f"{options.pairs}, fewer than one group of {options.candidates} candidates"
        refuse("tiers.L3.pairs", "room for a group", got, "raise it")


def defaulted(table: Mapping[str, Any]) -> list[str]:
    """The keys of a source that have a default which means something for it, and that were not given."""
    kind = next((name for name in SOURCES if name in table), "dataset")
    lists = {"gains"} if "documents" in table else {"positive", "negative"}
    quiet = {"gains", "positive", "negative"} - lists
    plain = {field.name: field.default for field in msgspec.structs.fields(DataSource)}
    return [name for name in _OF[kind] if plain[name] is not None and name not in quiet and name not in table]


def _check_source(data: DataSource) -> None:
    given = [name for name in SOURCES if getattr(data, name) is not None]
    if len(given) != 1:
        refuse(WHERE, "one of dataset, mteb, trec and file", " and ".join(given) or "none of them", "name one source")
    kind = given[0]
    plain = {field.name: field.default for field in msgspec.structs.fields(DataSource)}
    for name, default in plain.items():
        if name not in (*SOURCES, *_OF[kind]) and getattr(data, name) != default:
            refuse(f"{WHERE}.{name}", f"no {name} beside {kind}", show(getattr(data, name)), "remove it")
    if kind in {"dataset", "mteb"} and data.revision is None:
        do = "a branch can move, so give the commit" if kind == "dataset" else "give the one that mteb loads"
        refuse(f"{WHERE}.revision", "40 hex digits of a commit", "nothing", do)
    if data.dataset is not None and not is_hub_id(data.dataset):
        refuse(f"{WHERE}.dataset", "a hub id (org/name)", show(data.dataset))
    if data.file is not None and not data.file.endswith(".parquet"):
        do = "JSONL has keys of its own: write its name alone as data"
        refuse(f"{WHERE}.file", "a .parquet file, whose columns are named here", show(data.file), do)
    if data.documents is not None and (data.positive, data.negative) != (plain["positive"], plain["negative"]):
        refuse(WHERE, "documents and gains, or positive and negative", "both", "remove one of the two")
