"""TREC files become groups: candidates by the run, gains by the judgements; a faulty line is named with its file."""

from __future__ import annotations

import pytest

from harness import data, trec
from harness.data import Doc, Group
from harness.errors import LadderError
from harness.records import TrecFiles

NAMES = TrecFiles(queries="q.tsv", docs="d.tsv", qrels="qrels", run="run")
FILES = {
    "q.tsv": b"1\tgreen tea\r\n2\tblack\ttea\n3\tno candidates\n",
    "d.tsv": b"a\tleaves\nb\t\nc\ta bridge\n\nunused\tx\n",
    "qrels": b"1 0 a 2\n1 0 c -1\n1 0 gone 1\n2\t0\tb\t1\n9 0 a 1\n",
    "run": b"2 Q0 b 1 7.5 bm25\n1 Q0 c 1 3 bm25\n1 Q0 a 2 4.0 bm25\n1 Q0 b 3 3 bm25\n",
}


def read(**changes: bytes) -> trec.Read:
    return trec.read(NAMES, FILES | {name.replace("_", "."): content for name, content in changes.items()})


def test_candidates_stand_by_score_and_gains_are_the_judgements() -> None:
    found = read()
    assert found.groups == (
        Group(query_id="2", query="black\ttea", candidates=(Doc(id="b", text="", gain=1),)),
        Group(
            query_id="1",
            query="green tea",
            candidates=(
                Doc(id="a", text="leaves", gain=2),
                Doc(id="c", text="a bridge", gain=0),
                Doc(id="b", text="", gain=0),
            ),
        ),
    )
    assert found.elsewhere == 1


def test_judged_queries_that_the_run_does_not_name_are_counted() -> None:
    assert read().without_candidates == 1
    assert read(run=b"1 Q0 a 1 3 t\n", qrels=b"1 0 a 1\n2 0 b 1\n3 0 b 0\n").without_candidates == 2


def test_texts_may_be_json_lines_with_a_title() -> None:
    names = TrecFiles(queries="q.tsv", docs="corpus.jsonl", qrels="qrels", run="run")
    lines = b'{"_id": "a", "title": "Tea", "text": "leaves"}\n{"id": "b", "text": "x"}\n{"id": "c", "text": "y"}\n'
    found = trec.read(names, FILES | {"corpus.jsonl": lines})
    assert [doc.text for doc in found.groups[1].candidates] == ["Tea leaves", "y", "x"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "run",
            b"1 Q0 a 1 3\n",
            "run: line 1: expected query Q0 document rank score tag, got 5 fields; correct the line",
        ),
        ("run", b"\n1 Q0 a 1 nan t\n", "run: line 2: expected a finite number as score, got 'nan'; correct the line"),
        (
            "run",
            b"1 Q0 a 1 3 t\n1 Q0 a 2 2 t\n",
            "run: line 2: expected each document once for a query, got 'a' again for '1'; correct the line",
        ),
        (
            "run",
            b"7 Q0 a 1 3 t\n",
            "run: line 1: expected a query with a text, got the query '7', which q.tsv does not hold; correct the line",
        ),
        (
            "run",
            b"1 Q0 z 1 3 t\n",
            "run: line 1: expected a document with a text, got the document 'z', which d.tsv does not hold; correct the line",
        ),
        ("run", b" \n", "run: expected at least one line, got an empty file; fill it or name another"),
        ("qrels", b"1 0 a\n", "qrels: line 1: expected query 0 document relevance, got 3 fields; correct the line"),
        (
            "qrels",
            b"1 0 a yes\n",
            "qrels: line 1: expected a finite number as relevance, got 'yes'; correct the line",
        ),
        (
            "qrels",
            b"1 0 a 1\n1 0 a 0\n",
            "qrels: line 2: expected one judgement of a document for a query, got 'a' again; correct the line",
        ),
        ("q_tsv", b"1 green tea\n", "q.tsv: line 1: expected id, a tab, text, got no tab; correct the line"),
        ("q_tsv", b"2\tx\n1\t\n", "q.tsv: line 2: expected a text, got an empty one; correct the line"),
        ("q_tsv", b"1\t \t\n2\tx\n", "q.tsv: line 1: expected a text, got blanks alone; correct the line"),
        ("qrels", b"1 0 a 1\n1 0 b 1000001\n", "qrels: line 2: expected a relevance of at most 1000000, got 1000001; correct the line"),
        ("d_tsv", b"a\tx\na\ty\n", "d.tsv: line 2: expected each id once, got 'a' again; correct the line"),
        ("d_tsv", b"a\tx\nb\t\xff\n", "d.tsv: line 2: expected UTF-8, got byte 0xff; correct the line"),
    ],
)  # fmt: skip
def test_a_faulty_line_is_refused_with_its_file_and_number(name: str, content: bytes, message: str) -> None:
    with pytest.raises(LadderError) as caught:
        read(**{name: content})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("line", "got"),
    [
        (b'{"_id": "b", "text": "tea \\ud800"}', "a lone surrogate, \\ud800 to \\udfff"),
        (b'{"_id": "b", "title": "\\uDFFF", "text": ""}', "a lone surrogate, \\ud800 to \\udfff"),
    ],
)
def test_text_that_is_no_utf8_is_refused_with_its_line(line: bytes, got: str) -> None:
    names = TrecFiles(queries="q.tsv", docs="corpus.jsonl", qrels="qrels", run="run")
    lines = b'{"_id": "a", "text": "x"}\n' + line + b'\n{"id": "c", "text": "y"}\n'
    with pytest.raises(LadderError) as caught:
        trec.read(names, FILES | {"corpus.jsonl": lines})
    assert str(caught.value) == (
        f"corpus.jsonl: line 2: expected text that can be written as UTF-8, got {got}; correct the line"
    )


def test_a_pair_of_surrogates_is_a_character_and_an_empty_document_stays() -> None:
    names = TrecFiles(queries="q.tsv", docs="corpus.jsonl", qrels="qrels", run="run")
    lines = b'{"_id": "a", "text": "\\ud83d\\ude00"}\n{"id": "b", "text": ""}\n{"id": "c", "text": "y"}\n'
    found = trec.read(names, FILES | {"corpus.jsonl": lines}).groups
    assert [doc.text for doc in found[1].candidates] == ["\U0001f600", "y", ""]
    assert data.read_groups(data.render_groups(found), "again") == found
