"""What is odd about groups is counted by kind with the rule for it, and a verifier counts it again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from evidence.manifest import digest_of
from harness import data
from harness.bounds import Bounds, Selected, whole
from harness.data import Doc, Group
from harness.group_facts import counted, disagreements, facts, source_of
from harness.records import DataFact, DataSource, RerankOptions, TaskFact, TrecFiles
from tests.harness.test_bounds import group

COMMIT = "1" * 40


def test_facts_name_digest_bounds_and_everything_odd() -> None:
    found = (group(1, 0), group(0, 0, query_id="none"), group(1, 2, query_id="all"))
    task = TaskFact(main_score="map_at_1000", languages=("eng-Latn",))
    beyond = {"elsewhere": 4, "without_candidates": 5, "without_judgement": 6, "repeated": 7}
    said = facts(
        Selected(groups=found, read=9, whole=True, left_out=2, task=task, **beyond),
        source="g.jsonl",
        bounds=Bounds(groups=4, candidates=2, seed=7),
    )
    assert said.path == "inputs/groups.jsonl"
    assert said.digest == digest_of(data.render_groups(found))
    assert (said.source, said.rows, said.bounds) == ("g.jsonl", 3, {"groups": 4, "candidates": 2})
    assert said.notes == (
        "first 3 of 9 groups",
        "4 groups were asked for and 3 are there",
        "2 groups without both a positive and a negative dropped before the bound",
        "4 relevant documents are in no candidate list: no ranking can find them",
        "5 judged queries have no candidates: not ranked, so no figure says anything of them",
        "6 queries with candidates have no judgement: not ranked, as mteb does not rank them",
        "7 candidates were named again in their list: ranked once, at the first place",
        "6 candidates, 2 to 2 a group",
        "1 of 3 groups without a positive candidate: scored, left out of the means",
        "1 of 3 groups with positive candidates only: scored, left out of the means",
        "1 of 3 groups with graded gains: nDCG uses the gains, the other metrics any gain above 0",
        "3 of 3 groups with fewer than 10 candidates: recall and hit rate at 10 say nothing of them",
        "1 of 3 groups with all positives first, so source order alone ranks them perfectly",
        "2 of 3 groups with the query of an earlier group: scored as one more; not independent, so intervals are too narrow",
    )
    assert said.task == task
    assert (said.counts["without_positive"], said.counts["positives_only"], said.counts["graded"]) == (1, 1, 1)


def test_doubled_texts_are_counted_and_apart_those_under_two_gains() -> None:
    same = tuple(Doc(id=i, text="same", gain=0) for i in "abcdefghij")
    twice = Group(query_id="q", query="x", candidates=same)
    torn = Group(query_id="r", query="y", candidates=(*same, Doc(id="k", text="same", gain=1)))
    assert facts(whole([twice, torn]), source="s", bounds=Bounds()).notes == (
        "21 candidates, 10 to 11 a group",
        "1 of 2 groups without a positive candidate: scored, left out of the means",
        "2 of 2 groups with the same text twice: kept as the source has them, each a tie",
        "1 of 2 groups with one text under two gains: kept, though no scorer can rank both right",
    )


def test_a_source_that_was_not_read_to_its_end_is_not_said_to_be_counted() -> None:
    said = facts(Selected(groups=(group(1, 0),), read=1, whole=False), source="s", bounds=Bounds(groups=1))
    assert said.notes[0] == "first 1 groups; the source was read no further"


@pytest.mark.parametrize(
    ("bounds", "stated"),
    [
        (Bounds(seed=3), {}),
        (Bounds(groups=2, seed=3), {"groups": 2}),
        (Bounds(groups=2, select="seeded", seed=3), {"groups": 2, "select": "seeded", "seed": 3}),
        (Bounds(candidates=9, negatives="seeded"), {"candidates": 9, "negatives": "seeded", "seed": 0}),
        (Bounds(pairs=8, unjudged="drop"), {"pairs": 8, "unjudged": "drop"}),
    ],
)
def test_every_bound_that_binds_is_stated(bounds: Bounds, stated: dict[str, Any]) -> None:
    assert facts(whole([group(1, 0)]), source="s", bounds=bounds).bounds == stated


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("g.jsonl", "g.jsonl"),
        (DataSource(dataset="a/b", revision=COMMIT), f"a/b@{COMMIT}:test"),
        (DataSource(dataset="a/b", revision=COMMIT, config="c", split="dev"), f"a/b@{COMMIT}:c:dev"),
        (DataSource(mteb="SciDocsRR", revision=COMMIT), f"mteb:SciDocsRR@{COMMIT}:test"),
        (DataSource(file="g.parquet", query="q"), "g.parquet"),
        (DataSource(trec=TrecFiles(queries="q", docs="d", qrels="r", run="b.run")), "b.run over q, d and r"),
    ],
)
def test_a_source_is_named_by_what_the_ladder_says(source: str | DataSource, named: str) -> None:
    assert source_of(source) == named


GROUPS = (group(1, 0, 0), group(0, 1, query_id="r"))
OPTIONS = RerankOptions(data="g.jsonl", groups=2, candidates=3)


def claimed(**changes: Any) -> DataFact:
    fact = facts(Selected(groups=GROUPS, read=5, whole=True), source="g.jsonl", bounds=Bounds(groups=2, candidates=3))
    return msgspec.structs.replace(fact, **changes)


def test_honest_facts_agree() -> None:
    assert disagreements(claimed(), counted(GROUPS), OPTIONS, seed=9) == []


@pytest.mark.parametrize(
    ("changes", "options", "said"),
    [
        ({"rows": 60}, {}, "rows: expected 2, got 60"),
        ({"bounds": {}}, {}, "bounds: expected {'groups': 2, 'candidates': 3}, got {}"),
        ({"source": "other"}, {}, "source: expected 'g.jsonl', got 'other'"),
        ({}, {"groups": None}, "bounds: expected {'candidates': 3}, got {'groups': 2, 'candidates': 3}"),
        ({}, {"groups": 1}, "groups: expected at most 1, got 2"),
        ({}, {"candidates": 2}, "candidates: expected at most 2, got 3 in the group 'q'"),
        ({}, {"pairs": 4}, "pairs: expected at most 4, got 5"),
    ],
)
def test_groups_that_are_not_as_the_plan_says_are_found_out(
    changes: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    asked = msgspec.structs.replace(OPTIONS, **options)
    assert said in disagreements(claimed(**changes), counted(GROUPS), asked, seed=9)


def test_a_count_or_a_note_that_was_made_prettier_is_found_out() -> None:
    fact = claimed()
    counts = {**fact.counts, "positives_first": 0}
    found = disagreements(msgspec.structs.replace(fact, counts=counts, notes=()), counted(GROUPS), OPTIONS, seed=9)
    assert [line.partition(":")[0] for line in found] == ["counts", "notes"]


def test_a_group_that_should_have_been_dropped_and_too_little_reading_are_found_out() -> None:
    bad = (*GROUPS, group(0, 0, query_id="none"))
    asked = msgspec.structs.replace(OPTIONS, groups=3, unjudged="drop")
    fact = facts(
        Selected(groups=bad, read=1, whole=True),
        source="g.jsonl",
        bounds=Bounds(groups=3, candidates=3, unjudged="drop"),
    )
    assert disagreements(fact, counted(bad), asked, seed=0) == [
        "unjudged: expected a positive and a negative in each group, got 'none' without",
        "read: expected at least the 3 groups that were kept, got 1",
    ]


def test_one_group_three_times_is_two_groups_with_the_query_of_an_earlier_one_also_counted_in_parts() -> None:
    """Counted again from the sealed groups, so a plan cannot hide it; halves that are counted apart see what the other has."""
    same = (*(group(1, 0, query_id=name) for name in "abc"), msgspec.structs.replace(group(1, 0), query="other"))
    honest = facts(whole(same), source="g.jsonl", bounds=Bounds())
    assert honest.counts["same_query_again"] == 2
    assert counted(same[:2]).joined(counted(same[2:])).kinds == counted(same).kinds
    asked = RerankOptions(data="g.jsonl")
    assert disagreements(honest, counted(same), asked, seed=0) == []
    told = msgspec.structs.replace(honest, counts={**honest.counts, "same_query_again": 0}, notes=honest.notes[:-1])
    found = disagreements(told, counted(same), asked, seed=0)
    assert [line.partition(":")[0] for line in found] == ["counts", "notes"]


def test_what_mteb_says_of_a_task_is_taken_as_claimed_and_of_nothing_else() -> None:
    task = TaskFact(main_score="map_at_1000", languages=("eng-Latn",))
    source = DataSource(mteb="SciDocsRR", revision=COMMIT)
    fact = facts(msgspec.structs.replace(whole(GROUPS), task=task), source=source_of(source), bounds=Bounds())
    assert disagreements(fact, counted(GROUPS), RerankOptions(data=source), seed=0) == []
    fact = msgspec.structs.replace(fact, source="g.jsonl")
    (said,) = disagreements(fact, counted(GROUPS), RerankOptions(data="g.jsonl"), seed=0)
    assert said.startswith("task: expected None, got {")


BEYOND = ("relevant_elsewhere", "queries_without_candidates", "queries_without_judgement", "candidates_repeated")
TREC = DataSource(trec=TrecFiles(queries="q", docs="d", qrels="r", run="b.run"))


@pytest.mark.parametrize(
    ("source", "told"),
    [("g.jsonl", ()), (TREC, BEYOND[:2]), (DataSource(mteb="SciDocsRR", revision=COMMIT), BEYOND)],
)
def test_only_a_source_that_can_tell_is_taken_as_claimed(source: str | DataSource, told: tuple[str, ...]) -> None:
    names = ("elsewhere", "without_candidates", "without_judgement", "repeated")
    for count, name in zip(BEYOND, names, strict=True):
        selected = msgspec.structs.replace(whole(GROUPS), **{name: 2})
        fact = facts(selected, source=source_of(source), bounds=Bounds())
        found = disagreements(fact, counted(GROUPS), RerankOptions(data=source), seed=0)
        assert (found == []) == (count in told), count
