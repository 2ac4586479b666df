"""Pairs and groups are read strictly, bounded by a stated rule and written in one spelling."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.manifest import digest_of
from harness import data
from harness.data import Doc, Group, Pair
from harness.errors import LadderError


def lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def group(*gains: float, query_id: str = "q", query: str = "a query") -> Group:
    docs = tuple(Doc(id=f"d{n}", text=f"text {n}", gain=gain) for n, gain in enumerate(gains, 1))
    return Group(query_id=query_id, query=query, candidates=docs)


GRADED = {"query_id": "7", "query": "tea", "candidates": [{"id": "a", "text": "", "gain": 2}]}
LABELLED = {"query": "tea", "positive": ["green tea"], "negative": ["a bridge", "green tea"]}


def test_both_forms_of_a_line_give_groups() -> None:
    graded, labelled = data.read_groups(lines(GRADED, LABELLED), "groups.jsonl")
    assert graded == Group(query_id="7", query="tea", candidates=(Doc(id="a", text="", gain=2.0),))
    assert labelled == Group(
        query_id="q2",
        query="tea",
        candidates=(
            Doc(id="d1", text="green tea", gain=1.0),
            Doc(id="d2", text="a bridge", gain=0.0),
            Doc(id="d3", text="green tea", gain=0.0),
        ),
    )


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "g.jsonl: expected at least one line of JSON, got an empty file; fill it or name another"),
        (b"\n\n", "g.jsonl: expected at least one line of JSON, got an empty file; fill it or name another"),
        (
            lines(LABELLED) + b'{"query": ',
            "g.jsonl: line 2: expected one JSON object, got Expecting value at column 11; correct the line",
        ),
        (
            lines(LABELLED) + b"\n" + lines(LABELLED),
            "g.jsonl: line 2: expected one JSON object, got an empty line; correct the line",
        ),
        (b"\xff", "g.jsonl: line 1: expected UTF-8, got byte 0xff at byte 1 of the line; correct the line"),
        (b"[1]", "g.jsonl: line 1: expected a table with query, positive, negative, got a list"),
        (
            b'{"text": 1}',
            (
                "g.jsonl: line 1: expected the keys query_id, query, candidates, or the keys query, positive, negative,"
                " got the keys text; correct the line"
            ),
        ),
        (
            lines({"query": "a", "positive": ["b"]}),
            "g.jsonl: line 1: negative: expected a list, got nothing; add the key",
        ),
        (
            lines(LABELLED | {"extra": 1}),
            "g.jsonl: line 1: expected only the keys query, positive, negative, got 'extra'; remove it",
        ),
        (lines(LABELLED | {"positive": "b"}), "g.jsonl: line 1: positive: expected a list, got 'b'"),
        (lines(LABELLED | {"negative": ["b", 3]}), "g.jsonl: line 1: negative[1]: expected text, got 3"),
        (lines(LABELLED | {"query": " "}), "g.jsonl: line 1: query: expected text, got ' '"),
        (
            lines(LABELLED | {"positive": [], "negative": []}),
            "g.jsonl: line 1: expected at least one positive or negative, got none; correct the line",
        ),
        (
            lines(GRADED | {"candidates": []}),
            "g.jsonl: line 1: candidates: expected a list of at least 1, got an empty list",
        ),
        (
            lines(GRADED | {"candidates": [{"id": "a", "text": "b"}]}),
            (
                "g.jsonl: line 1: candidates[0].gain: expected a finite number of at least 0 and at most 1000000,"
                " got nothing; add the key"
            ),
        ),
        (
            lines(GRADED | {"candidates": [{"id": "a", "text": "b", "gain": -1}]}),
            "g.jsonl: line 1: candidates[0].gain: expected a finite number of at least 0 and at most 1000000, got -1",
        ),
        (
            lines(GRADED | {"candidates": [{"id": "a", "text": "b", "gain": True}]}),
            "g.jsonl: line 1: candidates[0].gain: expected a finite number of at least 0 and at most 1000000, got true",
        ),
        (
            lines(GRADED | {"candidates": [{"id": "a", "text": "b", "gain": float("nan")}]}),
            "g.jsonl: line 1: expected one JSON object, got NaN, which JSON does not have; correct the line",
        ),
        (
            lines(GRADED | {"candidates": [{"id": "a", "text": "b", "gain": 10**400}]}),
            (
                "g.jsonl: line 1: candidates[0].gain: expected a finite number of at least 0 and at most 1000000,"
                f" got {'1' + '0' * 56}..."
            ),
        ),
        (
            lines(GRADED | {"candidates": [{"id": "a", "text": t, "gain": 1} for t in "bc"]}),
            "g.jsonl: line 1: expected each candidate's id once in its group, got 'a' again; correct the line",
        ),
        (
            lines(GRADED, LABELLED, GRADED),
            "g.jsonl: line 3: expected each query_id once, got '7', as line 1; correct the line",
        ),
        (
            b'{"query": "a", "query": "b"}',
            "g.jsonl: line 1: expected one JSON object, got the key 'query' twice; correct the line",
        ),
        (
            b'{"query": "a", "positive": ["\\uD800"], "negative": []}',
            (
                "g.jsonl: line 1: expected text that can be written as UTF-8,"
                " got a lone surrogate, \\ud800 to \\udfff; correct the line"
            ),
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else repr(value[:40]),
)
def test_a_faulty_line_is_refused_with_its_number_and_key(raw: bytes, message: str) -> None:
    with pytest.raises(LadderError) as caught:
        data.read_groups(raw, "g.jsonl")
    assert str(caught.value) == message


def test_deep_nesting_is_refused_like_any_other_line() -> None:
    with pytest.raises(LadderError, match=r"^g\.jsonl: line 1: expected one JSON object, got maximum recursion"):
        data.read_groups(b"[" * 100_000, "g.jsonl")


def test_a_pair_may_say_its_stratum_and_may_have_an_empty_document() -> None:
    rows = lines({"query": "a", "document": ""}, {"query": "b", "document": "c", "stratum": "short"})
    assert data.read_pairs(rows, "p") == (Pair(query="a", document=""), Pair(query="b", document="c", stratum="short"))
    with pytest.raises(LadderError, match=r"^p: line 1: document: expected text, got nothing; add the key$"):
        data.read_pairs(lines({"query": "a"}), "p")


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused_in_one_line(raw: bytes) -> None:
    for read in (data.read_groups, data.read_pairs):
        try:
            said = f"x: {len(read(raw, 'x'))} rows"
        except LadderError as error:
            said = str(error)
        assert said.startswith("x: ")
        assert "\n" not in said


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
names = texts.filter(lambda text: text.strip() != "")
docs = st.builds(Doc, id=names, text=texts, gain=st.floats(0, 1e6))
groups = st.builds(
    Group,
    query_id=names,
    query=names,
    candidates=st.lists(docs, min_size=1, max_size=5, unique_by=lambda doc: doc.id).map(tuple),
)


@given(st.lists(groups, min_size=1, max_size=4, unique_by=lambda item: item.query_id))
def test_groups_read_back_as_they_were_written(found: list[Group]) -> None:
    written = data.render_groups(found)
    assert data.read_groups(written, "x") == tuple(found)
    assert data.render_groups(data.read_groups(written, "x")) == written


def test_the_spelling_of_groups_and_pairs_is_fixed() -> None:
    found = data.render_groups([Group(query_id="1", query="é\u2028", candidates=(Doc(id="a", text="\0", gain=1),))])
    spelled = '{"candidates":[{"gain":1.0,"id":"a","text":"\\u0000"}],"query":"é\u2028","query_id":"1"}\n'
    assert data.read_groups(spelled.encode(), "x") == data.read_groups(found, "x")
    assert data.render_groups(data.read_groups(found, "x")) == spelled.encode()
    assert data.render_pairs([Pair(query="a", document="b")]) == b'{"document":"b","query":"a","stratum":""}\n'


def test_the_built_in_pairs_cover_the_strata_on_which_exports_go_wrong() -> None:
    found = data.builtin_pairs()
    facts = data.pair_facts(found, source="built-in")
    assert len(found) >= 64
    assert (facts.rows, facts.digest) == (len(found), digest_of(data.render_pairs(found)))
    strata = {pair.stratum for pair in found}
    assert strata >= {"short", "medium", "long", "duplicate", "empty-document", "one-token-query", "emoji"}
    assert strata >= {"chinese", "japanese", "arabic", "hindi", "russian", "greek", "hebrew", "code", "numbers"}
    assert strata >= {"control-characters", "right-to-left-marks", "10000-characters"}
    whole = "".join(pair.query + pair.document for pair in found)
    assert set("\0\a\x1b\u202e\u200f\u200d") <= set(whole)
    assert max(len(pair.document) for pair in found) == 10_000
    assert all(len((pair.query + pair.document).split()) > 350 for pair in found if pair.stratum == "long")
    assert len({(pair.query, pair.document) for pair in found if pair.stratum == "duplicate"}) == 3
