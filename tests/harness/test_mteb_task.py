"""Tasks of mteb are read from a loopback hub or from the cache alone; what is odd about them is counted, what is no text refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.bounds import Bounds
from harness.records import DataSource
from tests.support.hub import Hub
from tests.support.rankings import TASK, TASK_COMMIT, TASK_PLACE, answers, ask, python, task_repository

pytestmark = pytest.mark.slow

INSTRUCTED, INSTRUCTED_COMMIT = "Core17InstructionRetrieval", "67d8733dd0691f08f34ed9dda5941578cba8d91c"
NO_TEXT, NO_TEXT_COMMIT = "AskUbuntuDupQuestions", "c5691e3c48741d5f83b5cc8e630653d7a8cfc048"
NULL_TEXT, NULL_TEXT_COMMIT = "StackOverflowDupQuestions", "5debda000fe8e27ebb5c123d38081f92e1847a59"
IMAGES, IMAGES_COMMIT = "Vidore3HrBM25sReranking.v2", "25dd9c87572accc3488d5b349c0760c8b2d77dfb"
INSTRUCTIONS = [{"query-id": f"q{n}", "instruction": f"Only papers of {n}."} for n in (1, 2, 3)]
ODD, ODD_COMMIT = "MindSmallReranking", "227478e3235572039f4f7661840e059f31ef6eb1"
ODD_ROWS: dict[str, list[dict[str, Any]]] = {
    "qrels": [
        {"query-id": query, "corpus-id": doc, "score": score}
        for query, doc, score in (("q1", "d0", 1), ("q1", "d2", 1), ("q1", "d4", 0), ("q3", "d0", 1))
    ],
    "top_ranked": [
        {"query-id": "q1", "corpus-ids": ["d1", "d0", "d1", "d1"]},
        {"query-id": "q2", "corpus-ids": ["d4", "d4"]},
    ],
}
"""q1 lists d1 three times and lacks the relevant d2; q2 has no judgement; q3 has no candidates."""
SOURCE = DataSource(mteb=TASK, revision=TASK_COMMIT)


@pytest.fixture(scope="module")
def served() -> Iterator[Hub]:
    no_text = [{"_id": f"d{n}", "title": f"title {n}"} for n in range(5)]
    null_text = [{"_id": f"d{n}", "text": None if n == 3 else "x"} for n in range(5)]
    tasks = {
        TASK_PLACE: task_repository(),
        f"mteb/{INSTRUCTED}": task_repository(INSTRUCTED_COMMIT, instruction=INSTRUCTIONS),
        f"mteb/{NO_TEXT}": task_repository(NO_TEXT_COMMIT, corpus=no_text),
        f"mteb/{ODD}": task_repository(ODD_COMMIT, **ODD_ROWS),
        f"mteb/{NULL_TEXT}": task_repository(NULL_TEXT_COMMIT, corpus=null_text),
    }
    with Hub(tasks) as running:
        yield running


def test_offline_or_without_a_hub_a_task_comes_from_the_cache_as_it_came_from_the_hub(
    tmp_path: Path, served: Hub
) -> None:
    asks = [ask(SOURCE)]
    (online,) = answers(tmp_path, served.endpoint, asks)
    before = len(served.requests)
    assert online[0] == 0, online
    assert [group["query_id"] for group in online[1]] == ["q2", "q1"]
    assert answers(tmp_path, served.endpoint, asks, HF_HUB_OFFLINE="1") == [online]
    assert answers(tmp_path, "http://127.0.0.1:9", asks) == [online]
    assert len(served.requests) == before


def test_offline_without_a_copy_it_is_said_that_the_client_is_offline(tmp_path: Path, served: Hub) -> None:
    at = f"mteb task {TASK}: dataset {TASK_PLACE} at revision {TASK_COMMIT}"
    assert answers(tmp_path, served.endpoint, [ask(SOURCE)], HF_HUB_OFFLINE="1") == [
        [30, f"{at}: expected it in the cache, since the client is offline, got no copy; unset HF_HUB_OFFLINE"]
    ]


def test_a_copy_that_lacks_a_file_is_no_fault_of_the_ladder(tmp_path: Path, served: Hub) -> None:
    """As other tools leave one in the cache, which fetch file by file."""
    some = "README.md", "queries.jsonl", "corpus.jsonl", "qrels.jsonl"
    code = f"for name in {some}: hf_hub_download({TASK_PLACE!r}, name, repo_type='dataset', revision={TASK_COMMIT!r})"
    python(f"from huggingface_hub import hf_hub_download\n{code}", tmp_path, served.endpoint, "", {})
    ((ended, said),) = answers(tmp_path, served.endpoint, [ask(SOURCE)], HF_HUB_OFFLINE="1")
    assert ended == 30
    assert said.startswith(
        f"mteb task {TASK} ({TASK_PLACE}@{TASK_COMMIT}): expected a complete copy in the cache, since no hub is asked, got "
    )
    assert "top_ranked.jsonl" in said
    assert said.endswith("; run again when the hub answers: what is missing is fetched then")


def test_a_cached_copy_of_another_commit_is_never_taken(tmp_path: Path) -> None:
    """The name and the branch are there, another commit of it is cached, also in what ``datasets`` keeps: the pinned one is not."""
    other = "2" * 40
    with Hub({TASK_PLACE: task_repository(other)}) as hub:
        load = f"datasets.load_dataset({TASK_PLACE!r}, 'corpus', revision={other!r})"
        python(
            f"import datasets, huggingface_hub as h\n{load}\nh.snapshot_download({TASK_PLACE!r}, repo_type='dataset', revision={other!r})",
            tmp_path,
            hub.endpoint,
            "",
            {},
        )
    at = f"mteb task {TASK}: dataset {TASK_PLACE} at revision {TASK_COMMIT}"
    none = "expected a reachable hub, got ConnectionRefusedError and no complete copy in the cache"
    assert answers(tmp_path, "http://127.0.0.1:9", [ask(SOURCE)]) == [
        [30, f"{at}: {none}; check the network and HF_ENDPOINT, then run again"]
    ]


@pytest.fixture(scope="module")
def found(served: Hub, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process makes of each task."""
    tasks = {
        INSTRUCTED: INSTRUCTED_COMMIT,
        NO_TEXT: NO_TEXT_COMMIT,
        NULL_TEXT: NULL_TEXT_COMMIT,
        IMAGES: IMAGES_COMMIT,
        ODD: ODD_COMMIT,
    }
    bound = Bounds(groups=1)
    asks = [
        ask(DataSource(mteb=name, revision=commit), bound if name == ODD else None) for name, commit in tasks.items()
    ]
    return dict(zip(tasks, answers(tmp_path_factory.mktemp("tasks"), served.endpoint, asks), strict=True))


def test_a_task_with_instructions_is_ranked_with_them(found: dict[str, Any]) -> None:
    code, groups, told = found[INSTRUCTED]
    assert code == 0
    assert [group["query"] for group in groups] == ["query 2 Only papers of 2.", "query 1 Only papers of 1."]
    assert told["task"] == {"main_score": "p-MRR", "languages": ["eng-Latn"]}


def test_a_task_with_images_and_a_document_without_text_are_refused_by_name(found: dict[str, Any]) -> None:
    assert found[IMAGES] == [
        64,
        f"mteb task {IMAGES}: expected a task of text alone, got text and image; name another",
    ]
    assert found[NO_TEXT] == [
        64,
        f"mteb task {NO_TEXT}: expected text as document 'd4', got none; name another task",
    ]
    assert found[NULL_TEXT] == [
        64,
        f"mteb task {NULL_TEXT}: expected text as document 'd3', got none; name another task",
    ]


def test_what_a_task_passes_over_is_counted_of_the_whole_task_also_within_a_bound(found: dict[str, Any]) -> None:
    code, groups, told = found[ODD]
    assert code == 0
    assert [[doc["id"] for doc in group["candidates"]] for group in groups] == [["d1", "d0"]]
    counted = {"elsewhere": 1, "without_candidates": 1, "without_judgement": 1, "repeated": 2}
    assert {name: told[name] for name in ("read", "whole", *counted)} == {"read": 1, "whole": False, **counted}
