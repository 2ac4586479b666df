"""Groups from the files of a TREC collection: each query's candidates are the documents that a run names for it. Pure.

Formats, as trec_eval and ir_datasets read them: queries and docs are ``id TAB text`` (or JSONL of ``id`` or ``_id``, ``text`` and
perhaps ``title``, where the file's name ends in ``.jsonl``); qrels are ``query 0 document relevance``; a run is ``query Q0 document
rank score tag``. Candidates stand by score, the highest first, equal scores as the file has them; the rank column decides nothing,
as in trec_eval. A document without a judgement, or with a relevance below 0, has gain 0. What could not be sealed and read again as
it is (an empty query, a lone surrogate, a relevance beyond what a gain may be) is refused here, where its line is known.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple, NoReturn

from harness.data import MOST_GAIN, Doc, Group, has_surrogate
from harness.errors import LadderError
from harness.records import TrecFiles


class Read(NamedTuple):
    """The groups in the order in which the run first names their queries, and what the run does not name.

    ``elsewhere`` counts relevant documents, of queries that it names; ``without_candidates`` judged queries.
    """

    groups: tuple[Group, ...]
    elsewhere: int
    without_candidates: int


def read(names: TrecFiles, content: Mapping[str, bytes]) -> Read:
    """Read the four files; ``content`` is by name. Raises ``LadderError`` with file and line."""
    run = _run(names.run, content[names.run])
    wanted = {document for documents in run.values() for document, _, _ in documents}
    queries = _texts(names.queries, content[names.queries], set(run), blank=False)
    docs = _texts(names.docs, content[names.docs], wanted, blank=True)
    gains = _qrels(names.qrels, content[names.qrels])
    groups = []
    elsewhere = 0
    for query, documents in run.items():
        if query not in queries:
            got = f"the query {query!r:.60}, which {names.queries} does not hold"
            _refuse(names.run, documents[0][2], "a query with a text", got)
        judged = gains.get(query, {})
        candidates = []
        for document, _, line in sorted(documents, key=lambda item: -item[1]):
            if document not in docs:
                got = f"the document {document!r:.60}, which {names.docs} does not hold"
                _refuse(names.run, line, "a document with a text", got)
            candidates.append(Doc(id=document, text=docs[document], gain=max(0.0, judged.get(document, 0.0))))
        named = {document for document, _, _ in documents}
        elsewhere += sum(gain > 0 and document not in named for document, gain in judged.items())
        groups.append(Group(query_id=query, query=queries[query], candidates=tuple(candidates)))
    return Read(tuple(groups), elsewhere, without_candidates=len(gains.keys() - run.keys()))


def _run(where: str, data: bytes) -> dict[str, list[tuple[str, float, int]]]:
    """Documents with score and line, by query."""
    found: dict[str, list[tuple[str, float, int]]] = {}
    seen: set[tuple[str, str]] = set()
    for number, line in _lines(where, data):
        fields = line.split()
        if len(fields) != 6:
            _refuse(where, number, "query Q0 document rank score tag", f"{len(fields)} fields")
        query, _, document, _, score, _ = fields
        if (query, document) in seen:
            _refuse(where, number, "each document once for a query", f"{document!r:.60} again for {query!r:.60}")
        seen.add((query, document))
        found.setdefault(query, []).append((document, _number(where, number, "score", score), number))
    return found


def _qrels(where: str, data: bytes) -> dict[str, dict[str, float]]:
    """Relevance by query and document."""
    found: dict[str, dict[str, float]] = {}
    for number, line in _lines(where, data):
        fields = line.split()
        if len(fields) != 4:
            _refuse(where, number, "query 0 document relevance", f"{len(fields)} fields")
        query, _, document, relevance = fields
        if document in found.setdefault(query, {}):
            _refuse(where, number, "one judgement of a document for a query", f"{document!r:.60} again")
        gain = _number(where, number, "relevance", relevance)
        if gain > MOST_GAIN:
            _refuse(where, number, f"a relevance of at most {MOST_GAIN}", relevance[:60])
        found[query][document] = gain
    return found


def _texts(where: str, data: bytes, wanted: set[str], *, blank: bool) -> dict[str, str]:
    """The texts of the wanted ids, ``blank`` ones where they may be. All lines are looked at, so that an id that stands twice is found."""
    found: dict[str, str] = {}
    for number, line in _lines(where, data):
        name, text = _record(where, number, line) if where.endswith(".jsonl") else _columns(where, number, line)
        if name in found:
            _refuse(where, number, "each id once", f"{name!r:.60} again")
        if name in wanted:
            if not blank and not text.strip():
                _refuse(where, number, "a text", "an empty one" if not text else "blanks alone")
            found[name] = text
    return found


def _columns(where: str, number: int, line: str) -> tuple[str, str]:
    name, tab, text = line.partition("\t")
    if not tab or not name.strip():
        _refuse(where, number, "id, a tab, text", "no tab" if not tab else "no id")
    return name.strip(), text


def _record(where: str, number: int, line: str) -> tuple[str, str]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        _refuse(where, number, "one JSON object", f"{error}"[:120])
    if not isinstance(row, dict):
        _refuse(where, number, "one JSON object", f"a {type(row).__name__}")
    name, text, title = row.get("_id", row.get("id")), row.get("text"), row.get("title", "")
    if not isinstance(name, str) or not isinstance(text, str) or not isinstance(title, str):
        _refuse(where, number, "id (or _id) and text, both text", f"the keys {', '.join(map(str, row)) or 'none'}"[:80])
    if has_surrogate([name, text, title]):
        _refuse(where, number, "text that can be written as UTF-8", "a lone surrogate, \\ud800 to \\udfff")
    return name, f"{title} {text}".strip()


def _lines(where: str, data: bytes) -> Iterator[tuple[int, str]]:
    """Lines that are not empty, numbered from 1."""
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        _refuse(where, line, "UTF-8", f"byte 0x{data[error.start]:02x}")
    found = [(number, line.removesuffix("\r")) for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise LadderError(f"{where}: expected at least one line, got an empty file; fill it or name another")
    yield from found


def _number(where: str, line: int, what: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        _refuse(where, line, f"a finite number as {what}", repr(text)[:60])
    return value


def _refuse(where: str, line: int, expected: str, got: str) -> NoReturn:
    raise LadderError(f"{where}: line {line}: expected {expected}, got {got}; correct the line")
