"""The pairs and groups that are scored: read from JSONL, and written again in the one spelling that is sealed. Pure.

A line of groups is ``{"query_id", "query", "candidates": [{"id", "text", "gain"}]}`` or ``{"query", "positive": [text],
"negative": [text]}``; the second form gets gains 1 and 0 and ids from the position, which say nothing of the label. A line of
pairs is ``{"query", "document"}``, with ``stratum`` if wanted. Only the built-in pairs are read from a file here, the package's own.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec

from evidence.manifest import digest_of
from harness import fields
from harness.errors import LadderError
from harness.records import PAIRS, DataFact, Record

T = TypeVar("T", bound=Record)

Name = Annotated[str, msgspec.Meta(min_length=1)]
Written = Annotated[str, msgspec.Meta(pattern=r"\S")]
Text = Annotated[str, msgspec.Meta(min_length=0)]
MOST_GAIN = 1_000_000
Gain = Annotated[float, msgspec.Meta(ge=0, le=MOST_GAIN)]

_ENCODER = msgspec.json.Encoder(order="sorted")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Doc(Record, frozen=True, gc=False):
    """One candidate document. ``gain`` is its relevance: 0 is not relevant, more is better. Of a name something shows."""

    id: Name
    text: Text
    gain: Gain


class Group(Record, frozen=True, gc=False):
    """One query and its candidates in source order; ids are unique in the group."""

    query_id: Name
    query: Name
    candidates: Annotated[tuple[Doc, ...], msgspec.Meta(min_length=1)]


_GROUPS = msgspec.json.Decoder(Group)


class Pair(Record, frozen=True):
    """One query and one document. ``stratum`` says what kind of text it is (``long``, ``emoji``), empty when not given."""

    query: Written
    document: Text
    stratum: Text = ""


class _WrittenDoc(Record, frozen=True):
    id: Written
    text: Text
    gain: Gain


class _WrittenGroup(Record, frozen=True):
    """A ``Group`` that is read with care: that a name is not blank takes as long to look at as all the rest."""

    query_id: Written
    query: Written
    candidates: Annotated[tuple[_WrittenDoc, ...], msgspec.Meta(min_length=1)]


class _Labelled(Record, frozen=True):
    """A group as two lists of text, relevant and not."""

    query: Written
    positive: tuple[Text, ...]
    negative: tuple[Text, ...]


def read_groups(data: bytes, where: str) -> tuple[Group, ...]:
    """Groups from JSONL. Raises ``LadderError`` with line and key; ``where`` is the file's name in messages."""
    rendered = rendered_groups(data)
    return rendered if rendered is not None else _written_groups(data, where)


def rendered_groups(data: bytes) -> tuple[Group, ...] | None:
    """Groups in the spelling that is sealed, so that no key comes twice; None for any other bytes, which are read with care."""
    try:
        groups = _GROUPS.decode_lines(data)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None
    if not groups or not all(map(_sound, groups)):
        return None
    if len({group.query_id for group in groups}) < len(groups) or render_groups(groups) != data:
        return None
    return tuple(groups)


def _sound(group: Group) -> bool:
    """Whether no name is blank, and each candidate's id is its own."""
    ids = {doc.id for doc in group.candidates}
    return len(ids) == len(group.candidates) and not any(map(str.isspace, (group.query_id, group.query, *ids)))


def _written_groups(data: bytes, where: str) -> tuple[Group, ...]:
    """Groups as people write them."""
    groups: list[Group] = []
    lines: dict[str, int] = {}
    for number, row in _rows(data, where):
        graded = isinstance(row, dict) and ("candidates" in row or "query_id" in row)
        if isinstance(row, dict) and not graded and not {"positive", "negative"} & set(row):
            expected = "the keys query_id, query, candidates, or the keys query, positive, negative"
            _refuse(where, number, expected, f"the keys {', '.join(map(str, row)) or 'none'}"[:80])
        group = (
            _from_graded(_value(row, _WrittenGroup, where, number))
            if graded
            else _from_labels(_value(row, _Labelled, where, number), number)
        )
        if not group.candidates:
            _refuse(where, number, "at least one positive or negative", "none")
        doubled = [name for name, count in Counter(doc.id for doc in group.candidates).items() if count > 1]
        if doubled:
            _refuse(where, number, "each candidate's id once in its group", f"{fields.show(doubled[0])} again")
        if group.query_id in lines:
            got = f"{fields.show(group.query_id)}, as line {lines[group.query_id]}"
            _refuse(where, number, "each query_id once", got)
        lines[group.query_id] = number
        groups.append(group)
    return tuple(groups)


def read_pairs(data: bytes, where: str) -> tuple[Pair, ...]:
    """Pairs from JSONL. Raises ``LadderError`` with line and key."""
    return tuple(_value(row, Pair, where, number) for number, row in _rows(data, where))


def builtin_pairs() -> tuple[Pair, ...]:
    """The pairs that every parity step scores, whatever the ladder names: the strata on which exports are known to go wrong."""
    name = "parity_pairs.jsonl"
    return read_pairs(resources.files("harness").joinpath("builtin", name).read_bytes(), name)


def render_groups(groups: Iterable[Group]) -> bytes:
    """The one spelling of groups: a line each, keys sorted, UTF-8, no spaces. ``read_groups`` gives the same groups again."""
    return _render(groups)


def render_pairs(pairs: Iterable[Pair]) -> bytes:
    """The one spelling of pairs, as for groups."""
    return _render(pairs)


def pair_facts(pairs: Sequence[Pair], *, source: str) -> DataFact:
    """What a plan says of pairs: digest of the rendered bytes, rows, and how many there are of each stratum."""
    strata = Counter(pair.stratum for pair in pairs if pair.stratum)
    return DataFact(
        path=PAIRS,
        digest=digest_of(render_pairs(pairs)),
        source=source,
        rows=len(pairs),
        notes=tuple(f"{count} of stratum {name}" for name, count in sorted(strata.items())),
    )


def _from_graded(row: _WrittenGroup) -> Group:
    docs = tuple(Doc(id=doc.id, text=doc.text, gain=doc.gain) for doc in row.candidates)
    return Group(query_id=row.query_id, query=row.query, candidates=docs)


def _from_labels(row: _Labelled, number: int) -> Group:
    texts = [(text, 1.0) for text in row.positive] + [(text, 0.0) for text in row.negative]
    docs = (Doc(id=f"d{position}", text=text, gain=gain) for position, (text, gain) in enumerate(texts, 1))
    return Group(query_id=f"q{number}", query=row.query, candidates=tuple(docs))


def _render(rows: Iterable[Record]) -> bytes:
    return _ENCODER.encode_lines(rows)


def _rows(data: bytes, where: str) -> Iterator[tuple[int, Any]]:
    """Every line's number, from 1, and its JSON value."""
    if not data.strip():
        message = f"{where}: expected at least one line of JSON, got an empty file; fill it or name another"
        raise LadderError(message)
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), 1):
        try:
            value = json.loads(line.decode("utf-8"), object_pairs_hook=_each_key_once, parse_constant=_no_constant)
            if b"\\ud" in line.lower() and has_surrogate(value):
                _refuse(where, number, "text that can be written as UTF-8", "a lone surrogate, \\ud800 to \\udfff")
        except json.JSONDecodeError as error:
            got = f"{error.msg} at column {error.colno}" if line.strip() else "an empty line"
            if line.startswith(b"\xef\xbb\xbf"):
                got = "a byte order mark"
            _refuse(where, number, "one JSON object", got)
        except UnicodeDecodeError as error:
            _refuse(where, number, "UTF-8", f"byte 0x{line[error.start]:02x} at byte {error.start + 1} of the line")
        except (ValueError, RecursionError) as error:
            _refuse(where, number, "one JSON object", f"{error}"[:120])
        yield number, value


def has_surrogate(value: Any) -> bool:
    """Whether a value of JSON holds text that is no UTF-8."""
    if isinstance(value, dict):
        return any(has_surrogate(item) for pair in value.items() for item in pair)
    if isinstance(value, list):
        return any(map(has_surrogate, value))
    return isinstance(value, str) and _SURROGATE.search(value) is not None


def _value(row: Any, kind: type[T], where: str, number: int) -> T:
    """The row as a value. msgspec is fast and decides; only when it refuses is the fault put in words."""
    try:
        return msgspec.convert(row, kind)
    except (msgspec.ValidationError, OverflowError) as error:
        words = str(error)
        try:
            fields.check(row, msgspec.inspect.type_info(kind))
        except fields.FieldError as found:
            words = str(found)
        message = f"{where}: line {number}: {words}"
        raise LadderError(message) from error


def _refuse(where: str, number: int, expected: str, got: str) -> NoReturn:
    message = f"{where}: line {number}: expected {expected}, got {got}; correct the line"
    raise LadderError(message)


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        message = f"the key {fields.show(next(name for name in names if names.count(name) > 1))} twice"
        raise ValueError(message)
    return found


def _no_constant(name: str) -> NoReturn:
    message = f"{name}, which JSON does not have"
    raise ValueError(message)
