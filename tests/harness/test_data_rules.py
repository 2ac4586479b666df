"""Which keys of L3's data go together, refused with the place before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import ladder
from harness.errors import LadderError
from tests.support.ladders import write_ladder

REVISION = f"revision: '{'1' * 40}'"


def parse(folder: Path, table: str) -> ladder.Ladder:
    path = write_ladder(folder, "./model", L3=f"{{{table}, limits: {{ndcg_at_10_drop: {{at_most: 0.9}}}}}}")
    return ladder.parse(path.read_bytes(), "l.yaml")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("data: {split: test}", "data: expected one of dataset, mteb, trec and file, got none of them; name one source"),
        (
            f"data: {{dataset: a/b, mteb: X, {REVISION}}}",
            "data: expected one of dataset, mteb, trec and file, got dataset and mteb; name one source",
        ),
        ("data: {dataset: a/b}", "data.revision: expected 40 hex digits of a commit, got nothing; a branch can move, so give the commit"),
        ("data: {mteb: X}", "data.revision: expected 40 hex digits of a commit, got nothing; give the one that mteb loads"),
        (f"data: {{dataset: a/b/c, {REVISION}}}", "data.dataset: expected a hub id (org/name), got 'a/b/c'"),
        (f"data: {{mteb: X, {REVISION}, positive: p}}", "data.positive: expected no positive beside mteb, got 'p'; remove it"),
        (
            f"data: {{trec: {{queries: q, docs: d, qrels: r, run: s}}, {REVISION}}}",
            f"data.revision: expected no revision beside trec, got '{'1' * 40}'; remove it",
        ),
        ("data: {trec: {queries: q, docs: d, qrels: r}}", "data.trec.run: expected text, got nothing; add the key"),
        (
            f"data: {{dataset: a/b, {REVISION}, documents: d, positive: p}}",
            "data: expected documents and gains, or positive and negative, got both; remove one of the two",
        ),
        (
            "data: {file: g.jsonl, query: q}",
            (
                "data.file: expected a .parquet file, whose columns are named here, got 'g.jsonl';"
                " JSONL has keys of its own: write its name alone as data"
            ),
        ),
        ("data: {file: g.parquet, split: dev}", "data.split: expected no split beside file, got 'dev'; remove it"),
        (
            f"data: {{file: g.parquet, {REVISION}}}",
            f"data.revision: expected no revision beside file, got '{'1' * 40}'; remove it",
        ),
        ("data: g.jsonl, candidates: 1", "candidates: expected an integer of at least 2, got 1"),
        (
            "data: g.jsonl, select: seeded",
            "select: expected a bound of groups or pairs for a sample, got none; add groups or pairs or take the first",
        ),
        (
            "data: g.jsonl, select: stratified, pairs: 90",
            "select: expected a bound of groups for a sample, got none; add groups or take the first",
        ),
        (
            "data: g.jsonl, negatives: seeded",
            "negatives: expected a bound of candidates to choose for, got none; add candidates or remove negatives",
        ),
        (
            "data: g.jsonl, pairs: 9, candidates: 10",
            "pairs: expected room for a group, got 9, fewer than one group of 10 candidates; raise it",
        ),
        ("data: g.jsonl, select: frist", "select: expected one of first, seeded, stratified, got 'frist'; did you mean 'first'?"),
    ],
)  # fmt: skip
def test_data_keys_that_do_not_go_together_are_refused(tmp_path: Path, table: str, message: str) -> None:
    with pytest.raises(LadderError) as caught:
        parse(tmp_path, table)
    assert str(caught.value) == f"l.yaml: tiers.L3.{message}"


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ("data: g.jsonl", set()),
        (f"data: {{dataset: a/b, {REVISION}}}", {"split", "query", "positive", "negative"}),
        (f"data: {{dataset: a/b, {REVISION}, documents: d, split: dev}}", {"query", "gains"}),
        (f"data: {{mteb: X, {REVISION}}}", {"split"}),
        ("data: {trec: {queries: q, docs: d, qrels: r, run: s}}", set()),
        ("data: {file: g.parquet, positive: good}", {"query", "negative"}),
    ],
)
def test_only_defaults_that_mean_something_for_the_source_are_listed(
    tmp_path: Path, table: str, named: set[str]
) -> None:
    path = write_ladder(tmp_path, "./model", L3=f"{{{table}, limits: {{ndcg_at_10_drop: {{at_most: 0.9}}}}}}")
    found = [name for name in ladder.defaults(path.read_bytes()) if name.startswith("/tiers/L3/data/")]
    assert {name.removeprefix("/tiers/L3/data/") for name in found} == named
