"""Datasets and mteb tasks are read by the real client libraries from a hub on loopback: pinned, bounded, and every failure named."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness import data, group_facts, launch, sources, trec
from harness.bounds import Bounds, Selected, bounds_of, whole
from harness.errors import AskedWrongly, LadderError, Unavailable
from harness.group_facts import source_of
from harness.records import DataSource, RerankOptions, TrecFiles
from harness.run import read_ladder
from tests.harness.test_trec import FILES
from tests.support.hub import COMMIT, Hub, Repository
from tests.support.rankings import (
    SCIDOCS,
    SCIDOCS_COMMIT,
    TASK,
    TASK_COMMIT,
    TASK_PLACE,
    answers,
    ask,
    dataset,
    download,
    jsonl,
    parquet,
    python,
    row,
    scidocs,
    sharded,
    shown_tiers,
    task_repository,
)

OTHER = "2" * 40
GRADED = {"query": "tea", "docs": ["a", "b", "c"], "labels": [0, 3, 1]}
DEV_CARD = b"---\nconfigs:\n- config_name: default\n  data_files:\n  - split: dev\n    path: dev.jsonl\n---\n"
"""A card that calls its split ``dev``; from the file's name alone ``datasets`` would make that ``validation``."""
FAULTY: dict[str, tuple[list[Any], str]] = {
    "no column": ([{"query": "a", "positive": ["b"]}], "row 1: expected a column 'negative', got query, positive; name it in the ladder"),
    "no query": ([row(1), {**row(2), "query": " "}], "row 2: expected text in 'query', got empty text; correct the row"),
    "no list": ([{**row(1), "positive": 3}], "row 1: expected text or a list of texts in 'positive', got int; correct the row"),
    "null": (
        [row(1), {**row(2), "negative": ["a", None]}],
        "row 2: expected a list of texts in 'negative', got null at place 2; correct the row",
    ),
    "nothing": ([{"query": "a", "positive": [], "negative": []}], "row 1: expected at least one candidate, got none; correct the row"),
}  # fmt: skip


def source(name: str = "some/ranking", revision: str = COMMIT, **more: Any) -> DataSource:
    return DataSource(dataset=name, revision=revision, **more)


@pytest.fixture(scope="module")
def served() -> Iterator[Hub]:
    """A hub with good data sets, faulty ones, and one for each way in which a hub refuses."""
    good = {"test.jsonl": jsonl([row(1), row(2)]), "README.md": b"---\nlicense: mit\n---\n"}
    broken = jsonl([row(1), row(2)]) + b'{"query": "x", "positive": [\n' + jsonl([row(3)])
    later = {
        "data/test-00000-of-00002.jsonl": jsonl([row(1), row(2)]),
        "data/test-00001-of-00002.jsonl": b"\n" + jsonl([row(3)]) + b"\n" + b'{"query" 3}\n',
    }
    repositories = {
        "some/ranking": dataset(sharded()),
        "some/long": dataset({name.replace("data/", "long/"): rows for name, rows in sharded().items()}),
        "some/parquet": dataset({"test.parquet": parquet([row(1), row(2)])}),
        "some/graded": dataset({"test.jsonl": jsonl([GRADED, {**GRADED, "labels": [1, 2]}])}),
        "some/twice": Repository({COMMIT: good, OTHER: {"test.jsonl": jsonl([row(9)])}}, kind="dataset"),
        "some/broken": dataset({"test.jsonl": broken}),
        "some/broken-later": dataset(later),
        "some/surrogate": dataset({"test.jsonl": jsonl([row(1), {**row(2), "query": "\ud800"}])}),
        "some/gone": dataset(good, gone="test.jsonl"),
        "some/not-text": dataset({"test.jsonl": jsonl([row(1)]) + b'{"query": "\xff"}\n'}),
        "some/no-parquet": dataset({"test.parquet": b"PAR1" * 8}),
        "some/gated": dataset(good, gated=True),
        "some/private": dataset(good, private=True),
        "some/failing": dataset(good, status=500),
        "some/limited": dataset(good, status=429),
        "some/cut": dataset(good, cut_after=10),
        "some/old": dataset(good, moved="some/new"),
        "some/new": dataset(good),
        SCIDOCS: scidocs(),
        "org/graded": Repository({SHOWN_COMMIT: {"README.md": DEV_CARD, "dev.jsonl": jsonl([GRADED])}}, kind="dataset"),
        TASK_PLACE: task_repository(),
    }
    repositories |= {
        f"faulty/{name.replace(' ', '-')}": dataset({"test.jsonl": jsonl(rows)}) for name, (rows, _) in FAULTY.items()
    }
    with Hub(repositories) as running:
        yield running


NAMED = {"query": "query", "documents": "docs", "gains": "labels"}
LIMITED = (
    "expected an answer, got HTTP status 429 and no copy in the cache; the hub limits the rate; wait, or set HF_TOKEN"
)
GONE = (
    "expected an answer, got HTTP status 404 and no copy in the cache;"
    " the repository names a file at that commit that the hub does not hold; pin another commit"
)
NONE = "expected a repository of that name, got none that is open to this user; correct the name, or set HF_TOKEN if it is private"
REFUSED = {
    f"some/none@{COMMIT}": (64, NONE),
    f"some/private@{COMMIT}": (64, NONE),
    f"some/new@{OTHER}": (64, "expected that commit, got none in the repository; no other is taken, so correct it"),
    f"some/old@{COMMIT}": (64, "expected a repository of that name, got one that moved to some/new; name that one"),
    f"some/gated@{COMMIT}": (30, "expected access, got a gated repository; accept its terms on the hub and set HF_TOKEN"),
    f"some/failing@{COMMIT}": (30, "expected an answer, got HTTP status 500 and no copy in the cache; try again later"),
    f"some/limited@{COMMIT}": (30, LIMITED),
    f"some/gone@{COMMIT}": (30, GONE),
}  # fmt: skip
TASKS = {
    "task": (DataSource(mteb=TASK, revision=TASK_COMMIT), Bounds()),
    "task bounded": (DataSource(mteb=TASK, revision=TASK_COMMIT), Bounds(groups=1, candidates=2)),
    "task moved": (DataSource(mteb=TASK, revision=COMMIT), Bounds()),
    "task split": (DataSource(mteb=TASK, revision=TASK_COMMIT, split="dev"), Bounds()),
    "task unknown": (DataSource(mteb="SciDocsRRR", revision=TASK_COMMIT), Bounds()),
    "task other": (DataSource(mteb="Banking77Classification", revision=TASK_COMMIT), Bounds()),
}
SHOWN_COMMIT = "0123456789" * 4
SHOWN = shown_tiers()
SHOWN_ON_A_HUB = {
    source_of(tier.data): (tier.data, bounds_of(tier, 0))
    for tier in SHOWN
    if isinstance(tier.data, DataSource) and tier.data.revision is not None
}
ASKED: dict[str, tuple[DataSource, Bounds]] = {
    "streamed": (source("some/long"), Bounds(groups=2, candidates=10)),
    "sample": (source(), Bounds(groups=5, select="seeded", seed=1)),
    "parquet": (source("some/parquet"), Bounds()),
    "graded": (source("some/graded", **NAMED), Bounds(groups=1)),
    "uneven": (source("some/graded", **NAMED), Bounds()),
    "broken": (source("some/broken"), Bounds()),
    "broken later": (source("some/broken-later"), Bounds()),
    "not text": (source("some/not-text"), Bounds()),
    "surrogate": (source("some/surrogate"), Bounds()),
    "no parquet": (source("some/no-parquet"), Bounds()),
    "split": (source("some/new", split="dev"), Bounds()),
    "config": (source("some/new", config="fr"), Bounds()),
    "cut": (source("some/cut"), Bounds()),
    "first commit": (source("some/twice"), Bounds()),
    "second commit": (source("some/twice", OTHER), Bounds()),
    "third commit": (source("some/twice", "3" * 40), Bounds()),
    **{name: (source(f"faulty/{name.replace(' ', '-')}"), Bounds()) for name in FAULTY},
    **{name: (source(*name.split("@")), Bounds()) for name in REFUSED},
    **TASKS,
    **SHOWN_ON_A_HUB,
}
TOKEN = "hf_" + "aB3" * 11


@pytest.fixture(scope="module")
def found(served: Hub, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process with an empty cache, and a token, makes of every request."""
    asks = [ask(item, bounds) for item, bounds in ASKED.values()]
    return dict(zip(ASKED, answers(tmp_path_factory.mktemp("hub"), served.endpoint, asks, HF_TOKEN=TOKEN), strict=True))


def about(**more: Any) -> Any:
    """What a child says of a source beside its groups."""
    return json.loads(msgspec.json.encode(Selected(groups=(), **more)))


def texts(group: dict[str, Any]) -> list[tuple[str, float]]:
    return [(doc["text"], doc["gain"]) for doc in group["candidates"]]


def test_a_streamed_dataset_is_stopped_as_soon_as_the_bound_is_met(found: dict[str, Any], served: Hub) -> None:
    """Of four shards of three rows, two groups need the first alone: nothing of the others is sent."""
    code, groups, read = found["streamed"]
    assert (code, read) == (0, about(read=2, whole=False))
    assert [group["query"] for group in groups] == ["query 0", "query 1"]
    assert texts(groups[0]) == [(f"paper 0 cited {n}", 1.0) for n in range(5)] + [
        (f"paper 0 other {n}", 0.0) for n in range(5)
    ]
    assert [path for path in served.served if path.startswith("long/")] == ["long/test-00000-of-00004.jsonl"]
    assert not any("/main" in line for line in served.requests)


def test_rows_are_read_in_all_their_forms(found: dict[str, Any]) -> None:
    sample = found["sample"]
    assert (len(sample[1]), sample[2]) == (5, about(read=12, whole=True))
    assert [group["query"] for group in found["parquet"][1]] == ["query 1", "query 2"]
    assert texts(found["graded"][1][0]) == [("a", 0.0), ("b", 3.0), ("c", 1.0)]
    name = source_of(source("some/graded"))
    assert found["uneven"] == [
        64,
        f"dataset {name}: row 2: expected as many gains as documents, got 3 and 2; correct the row",
    ]


@pytest.mark.parametrize("name", list(FAULTY))
def test_a_faulty_row_is_named_with_its_column_and_what_was_there(found: dict[str, Any], name: str) -> None:
    assert found[name] == [64, f"dataset {source_of(ASKED[name][0])}: {FAULTY[name][1]}"]


BROKEN = {
    "broken": "test.jsonl line 3: expected JSON, got expecting value at character 29",
    "broken later": "data/test-00001-of-00002.jsonl line 4: expected JSON, got expecting ':' delimiter at character 10",
    "not text": "test.jsonl line 2: expected JSON, got bytes that are not UTF-8 at byte 12",
    "surrogate": "test.jsonl line 2: expected JSON, got a lone surrogate, \\ud800 to \\udfff",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_line_of_a_hub_file_is_named_with_its_file_and_number(found: dict[str, Any], name: str) -> None:
    said = f"dataset {source_of(ASKED[name][0])}: {BROKEN[name]}; mend the data, or pin another commit"
    assert found[name] == [64, said]


def test_a_file_that_is_no_list_of_lines_is_named_with_the_row_before_it(found: dict[str, Any]) -> None:
    code, said = found["no parquet"]
    assert code == 64
    assert said.startswith(
        f"dataset {source_of(source('some/no-parquet'))}: after row 0: expected a row that can be read, got "
    )
    assert said.endswith("; mend the data, or pin another commit")


def test_a_split_or_config_that_is_not_there_is_named(found: dict[str, Any]) -> None:
    (one, split), (two, config) = found["split"], found["config"]
    assert (one, two) == (64, 64)
    assert split == f"dataset some/new@{COMMIT}:dev: expected a split of the dataset, got 'dev'; it has test"
    assert config.startswith(
        f"dataset some/new@{COMMIT}:fr:test: expected data files of such a config, got BuilderConfig 'fr'"
    )
    assert config.endswith("; correct the config in the ladder, or name another dataset")


@pytest.mark.parametrize("name", REFUSED)
def test_every_refusal_of_a_hub_is_one_line_with_dataset_and_revision(found: dict[str, Any], name: str) -> None:
    code, text = REFUSED[name]
    assert found[name] == [code, f"dataset {name.replace('@', ' at revision ')}: {text}"]


def test_a_file_that_is_always_cut_off_is_a_download_that_was_not_complete(found: dict[str, Any]) -> None:
    code, said = found["cut"]
    assert code == 30
    assert said.startswith(f"dataset some/cut at revision {COMMIT}: expected a complete download, got ")


def test_a_commit_that_is_cached_is_never_taken_for_another(found: dict[str, Any]) -> None:
    """``datasets`` itself falls back to whatever commit of the name it has cached."""
    assert [group["query"] for group in found["first commit"][1]] == ["query 1", "query 2"]
    assert [group["query"] for group in found["second commit"][1]] == ["query 9"]
    assert found["third commit"][0] == 64


def test_a_token_is_shown_to_the_hub_and_stands_in_no_answer(found: dict[str, Any], served: Hub) -> None:
    assert f"Bearer {TOKEN}" in served.tokens
    assert TOKEN not in json.dumps(found)


def test_an_mteb_task_gives_its_candidates_with_gains_in_the_order_of_its_queries(found: dict[str, Any]) -> None:
    import mteb

    task = found["task"]
    assert task[0] == 0, task
    assert [(group["query_id"], group["query"]) for group in task[1]] == [("q2", "query 2"), ("q1", "query 1")]
    assert texts(task[1][1]) == [("title 1 text 1", 0.0), ("title 3 text 3", 1.0), ("text 0", 2.0)]
    assert [group["query_id"] for group in found["task bounded"][1]] == ["q2"]
    assert found["task moved"] == [
        64,
        (
            f"mteb task {TASK}: expected the revision {COMMIT}, got {TASK_COMMIT} of {TASK_PLACE},"
            f" which mteb {mteb.__version__} loads; pin that one, or name the repository itself as dataset"
        ),
    ]
    assert found["task split"] == [64, f"mteb task {TASK}: expected a split of the task, got 'dev'; it has test"]
    assert found["task unknown"][0] == 64
    assert found["task unknown"][1].startswith(
        f"mteb task SciDocsRRR: expected a task that mteb {mteb.__version__} knows, got "
    )
    assert found["task other"] == [
        64,
        "mteb task Banking77Classification: expected a reranking task, got one of type Classification; name another",
    ]


def test_offline_a_dataset_comes_from_the_cache_and_without_a_copy_it_is_named(tmp_path: Path, served: Hub) -> None:
    download(tmp_path, served.endpoint, "some/twice", COMMIT)
    before = len(served.requests)
    asks = [ask(source("some/twice")), ask(source("some/twice", OTHER)), ask(source("some/parquet"))]
    copy, other, missing = answers(tmp_path, served.endpoint, asks, HF_HUB_OFFLINE="1")
    assert [group["query"] for group in copy[1]] == ["query 1", "query 2"]
    none = "expected it in the cache, since the client is offline, got no copy; unset HF_HUB_OFFLINE"
    assert other == [30, f"dataset some/twice at revision {OTHER}: {none}"]
    assert missing == [30, f"dataset some/parquet at revision {COMMIT}: {none}"]
    assert len(served.requests) == before
    unreachable = answers(tmp_path, "http://127.0.0.1:9", asks[:1])
    assert unreachable == [copy]


@pytest.fixture
def hub_home(tmp_path: Path, served: Hub, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_ENDPOINT", served.endpoint)
    for name in ("HF_HUB_OFFLINE", "HF_TOKEN", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_the_published_set_is_bounded_as_published(hub_home: Path) -> None:
    told: list[tuple[int, int, str]] = []
    options = RerankOptions(data=source(SCIDOCS, SCIDOCS_COMMIT), groups=2, candidates=10)
    groups, fact = sources.load(options, 0, hub_home, lambda done, total, what: told.append((done, total, what)))
    assert [sum(doc.gain > 0 for doc in group.candidates) for group in groups] == [5, 5]
    assert (fact.source, fact.rows, fact.bounds) == (
        f"{SCIDOCS}@{SCIDOCS_COMMIT}:test",
        2,
        {"groups": 2, "candidates": 10},
    )
    assert fact.notes == (
        "first 2 groups; the source was read no further",
        "20 candidates, 10 to 10 a group",
        "2 of 2 groups with all positives first, so source order alone ranks them perfectly",
    )
    assert told[-1] == (2, 2, "groups read")


def test_what_the_page_on_data_shows_of_hubs_and_tasks_gives_groups(found: dict[str, Any]) -> None:
    counts = {name: (len(found[name][1]), max(len(g["candidates"]) for g in found[name][1])) for name in SHOWN_ON_A_HUB}
    assert counts == {
        f"{SCIDOCS}@{SCIDOCS_COMMIT}:test": (2, 10),
        f"org/graded@{SHOWN_COMMIT}:dev": (1, 3),
        f"mteb:{TASK}@{TASK_COMMIT}:test": (2, 3),
    }


def test_what_the_page_on_data_shows_of_files_gives_groups(tmp_path: Path) -> None:
    """Beside a ladder whose files are called as on the page."""
    (tmp_path / "groups.jsonl").write_bytes(jsonl([row(1), row(2)]))
    for name, content in zip(("queries.tsv", "docs.tsv", "qrels.txt", "bm25.run"), FILES.values(), strict=True):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "pairs.parquet").write_bytes(parquet([{"question": "tea", "answers": ["a"], "others": ["b", "c"]}]))
    files = [tier for tier in SHOWN if not isinstance(tier.data, DataSource) or tier.data.revision is None]
    loaded = [sources.load(tier, 0, tmp_path) for tier in files]
    assert [[group.query for group in groups] for groups, _ in loaded] == [
        ["query 1", "query 2"],
        ["tea"],
        ["black\ttea", "green tea"],
    ]
    assert len(SHOWN) == len(files) + len(SHOWN_ON_A_HUB)


def test_a_child_hands_on_whose_fault_it_was(hub_home: Path) -> None:
    asked = source(positive="relevant")
    with pytest.raises(LadderError) as caught:
        launch.load_dataset(asked, Bounds(groups=1), source_of(asked))
    assert str(caught.value) == (
        f"dataset some/ranking@{COMMIT}:test: row 1: expected a column 'relevant', got query, positive, negative;"
        " name it in the ladder"
    )
    gated = source("some/gated")
    with pytest.raises(Unavailable, match=f"^dataset some/gated at revision {COMMIT}: expected access, got a gated"):
        launch.load_dataset(gated, Bounds(groups=1), source_of(gated))


def test_a_parquet_file_beside_the_ladder_is_read_as_its_rows_are(tmp_path: Path) -> None:
    (tmp_path / "g.parquet").write_bytes(parquet([row(1), row(2), row(3)]))
    groups, fact = sources.load(RerankOptions(data="g.parquet", groups=2, candidates=7), 0, tmp_path)
    assert [(group.query, len(group.candidates)) for group in groups] == [("query 1", 7), ("query 2", 7)]
    assert (fact.source, fact.rows) == ("g.parquet", 2)
    (tmp_path / "bad.parquet").write_bytes(b"PAR0")
    with pytest.raises(LadderError, match=r"^bad\.parquet: expected a parquet file, got .*; write it again$"):
        sources.load(RerankOptions(data="bad.parquet"), 0, tmp_path)


def test_trec_files_beside_the_ladder_are_read_and_what_is_missing_is_named(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    files = TrecFiles(queries="q.tsv", docs="d.tsv", qrels="qrels", run="run")
    groups, fact = sources.load(RerankOptions(data=DataSource(trec=files), groups=1, unjudged="drop"), 0, tmp_path)
    assert [group.query_id for group in groups] == ["1"]
    assert fact.notes == (
        "first 1 of 2 groups",
        "1 groups without both a positive and a negative dropped before the bound",
        "1 relevant documents are in no candidate list: no ranking can find them",
        "1 judged queries have no candidates: not ranked, so no figure says anything of them",
        "3 candidates, 3 to 3 a group",
        "1 of 1 groups with fewer than 10 candidates: recall and hit rate at 10 say nothing of them",
        "1 of 1 groups with all positives first, so source order alone ranks them perfectly",
    )
    (tmp_path / "qrels").unlink()
    with pytest.raises(AskedWrongly) as caught:
        sources.load(RerankOptions(data=DataSource(trec=files)), 0, tmp_path)
    assert str(caught.value) == (
        "qrels: expected a file beside the ladder, got No such file or directory; correct the path in the ladder"
    )


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (" ", "line 1: query: expected text"),
        ("\ud800", "expected text that can be written as UTF-8, got a lone surrogate, \\ud800 to \\udfff; correct it"),
    ],
)
def test_what_could_not_be_read_again_once_sealed_is_refused_whatever_reader_let_it_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, said: str
) -> None:
    """A reader that looks at nothing, in the place of one that refuses such a line."""
    made = data.Group(query_id="1", query=query, candidates=(data.Doc(id="a", text="x", gain=1),))
    monkeypatch.setattr(trec, "read", lambda *_files: trec.Read((made,), 0, 0))
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    source = DataSource(trec=TrecFiles(queries="q.tsv", docs="d.tsv", qrels="qrels", run="run"))
    with pytest.raises(LadderError) as caught:
        sources.load(RerankOptions(data=source), 0, tmp_path)
    assert str(caught.value).startswith(f"{source_of(source)}: {said}")


GRADED_FILE = DataSource(file="g.parquet", documents="docs", gains="labels")
OTHER_LISTS = DataSource(file="g.parquet", query="q", positive="good", negative="bad")


@pytest.mark.parametrize(
    ("source", "rows", "found"),
    [
        (GRADED_FILE, [GRADED], [("a", 0.0), ("b", 3.0), ("c", 1.0)]),
        (OTHER_LISTS, [{"q": "tea", "good": ["a"], "bad": ["b", "c"]}], [("a", 1.0), ("b", 0.0), ("c", 0.0)]),
    ],
)
def test_the_columns_of_a_parquet_file_beside_the_ladder_can_be_named(
    tmp_path: Path, source: DataSource, rows: list[dict[str, Any]], found: list[tuple[str, float]]
) -> None:
    (tmp_path / "g.parquet").write_bytes(parquet(rows))
    (group,), fact = sources.load(RerankOptions(data=source), 0, tmp_path)
    assert [(doc.text, doc.gain) for doc in group.candidates] == found
    assert (group.query, fact.source) == ("tea", "g.parquet")
    with pytest.raises(LadderError) as caught:
        sources.load(RerankOptions(data="g.parquet"), 0, tmp_path)
    assert ": row 1: expected a column '" in str(caught.value)
    with pytest.raises(AskedWrongly, match=r"^none\.parquet: expected a parquet file beside the ladder, got No such"):
        sources.load(RerankOptions(data=msgspec.structs.replace(source, file="none.parquet")), 0, tmp_path)


def test_a_parquet_file_whose_text_is_no_utf8_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\x04\0\0\0"), pa.py_buffer(b"a\xed\xa0\x80"))
    pq.write_table(pa.table({"query": text}), tmp_path / "g.parquet")
    with pytest.raises(LadderError) as caught:
        sources.load(RerankOptions(data="g.parquet"), 0, tmp_path)
    assert str(caught.value) == "g.parquet: expected UTF-8, got byte 0xed in a text; write the file again"


CACHED_ALONE = """
import datasets, sys
from harness import hub
from harness.errors import QualifyError
from harness.records import DataSource
from harness.stages import dataset

cached, asked = sys.stdin.read().split()
datasets.load_dataset("some/twice", revision=cached)
hub.dataset_place = lambda name, revision: name  # the hub answered this, and then
datasets.config.HF_HUB_OFFLINE = True  # it was gone
try:
    print(list(dataset._rows(DataSource(dataset="some/twice", revision=asked), "dataset x")))
except QualifyError as error:
    print(error.exit_code, error)
"""


def test_a_hub_that_goes_away_after_it_named_the_commit_gives_no_other_commit(tmp_path: Path, served: Hub) -> None:
    """``datasets`` then takes whichever commit of the name it has cached."""
    said = python(CACHED_ALONE, tmp_path, served.endpoint, f"{OTHER} {COMMIT}", {})
    assert said == (
        f"30 dataset x: expected the commit itself, got a cached copy of {OTHER}; run again when the hub answers\n"
    )


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(AskedWrongly) as caught:
        sources.load(RerankOptions(data="pipe"), 0, tmp_path)
    assert str(caught.value) == (
        "pipe: expected a JSONL file beside the ladder, got a pipe, socket or device; correct the path in the ladder"
    )
    with pytest.raises(
        AskedWrongly, match="expected a ladder file, got a pipe, socket or device; give the path of a YAML"
    ):
        read_ladder(tmp_path / "pipe")


def test_two_uploads_of_one_name_give_two_digests_and_two_names(found: dict[str, Any]) -> None:
    facts = [
        group_facts.facts(
            whole(data.read_groups(jsonl(found[name][1]), name)), source=source_of(ASKED[name][0]), bounds=Bounds()
        )
        for name in ("first commit", "second commit")
    ]
    assert facts[0].digest != facts[1].digest
    assert [fact.source for fact in facts] == [f"some/twice@{COMMIT}:test", f"some/twice@{OTHER}:test"]
