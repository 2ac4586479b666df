"""Ranking data sets as repositories of the loopback hub: rows in shards, the published schema, an mteb task; and a reader of them."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

import harness
from harness import ladder
from harness.bounds import Bounds
from harness.group_facts import source_of
from harness.ladder_format import RerankTier
from harness.records import DataSource
from tests.support.hub import COMMIT, Repository
from tests.support.ladders import REPO

SCIDOCS = "mteb/scidocs-reranking"
SCIDOCS_COMMIT = "56a6d0140cf6356659e2a7c1413286a774468d44"
TASK, TASK_PLACE, TASK_COMMIT = "SciDocsRR", "mteb/SciDocsRR", "39b8377811871075eed9de3b8a7e21aaa6acb3d8"

BELOW = {"L0": "opset: {exactly: 17}", "L1": "p50_ms: {at_most: 100}", "L2": "max_abs_gap: {at_most: 1e-3}"}

SCRIPT = """
import json, sys, tempfile, time
from pathlib import Path
from harness.errors import QualifyError
from harness.stages import dataset

time.sleep = lambda seconds: None  # the clients wait between their tries; a test has seen enough without
for line in sys.stdin:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "asked.json").write_text(line)
        try:
            dataset.fetch(folder, lambda *told: None)
            rows = [json.loads(row) for row in (folder / "groups.jsonl").read_text().splitlines()]
            print(json.dumps([0, rows, json.loads((folder / "read.json").read_text())]))
        except QualifyError as error:
            print(json.dumps([error.exit_code, str(error)]))
"""


def jsonl(rows: Iterable[Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def row(number: int, positives: int = 5, negatives: int = 25) -> dict[str, Any]:
    """A row of the published schema: a query, about 5 positives and 25 negatives."""
    return {
        "query": f"query {number}",
        "positive": [f"paper {number} cited {place}" for place in range(positives)],
        "negative": [f"paper {number} other {place}" for place in range(negatives)],
    }


def dataset(files: dict[str, bytes], **faults: Any) -> Repository:
    return Repository({COMMIT: files}, kind="dataset", **faults)


def sharded(shards: int = 4, rows: int = 3) -> dict[str, bytes]:
    """``shards`` files of ``rows`` rows each, as a dataset repository lays out a large split."""
    return {
        f"data/test-{shard:05}-of-{shards:05}.jsonl": jsonl(row(shard * rows + place) for place in range(rows))
        for shard in range(shards)
    }


def scidocs(groups: int = 6) -> Repository:
    """A stand-in for the published data set: its name, commit, split and schema, with rows made here."""
    files = {f"test-{number:05}-of-{groups:05}.jsonl": jsonl([row(number)]) for number in range(groups)}
    return Repository({SCIDOCS_COMMIT: {f"data/{name}": content for name, content in files.items()}}, kind="dataset")


def task_repository(commit: str = TASK_COMMIT, **other: list[dict[str, Any]]) -> Repository:
    """What mteb loads as a task, small: graded judgements, one query without a candidate list; ``other`` rows of a file instead."""
    files = {
        "corpus.jsonl": jsonl(
            {"_id": f"d{n}", "title": f"title {n}" if n else "", "text": f"text {n}"} for n in range(5)
        ),
        "queries.jsonl": jsonl({"_id": f"q{n}", "text": f"query {n}"} for n in (2, 1, 3)),
        "qrels.jsonl": jsonl(
            {"query-id": query, "corpus-id": doc, "score": score}
            for query, doc, score in (("q1", "d0", 2), ("q1", "d3", 1), ("q2", "d4", 1), ("q3", "d0", 1))
        ),
        "top_ranked.jsonl": jsonl(
            [{"query-id": "q1", "corpus-ids": ["d1", "d3", "d0"]}, {"query-id": "q2", "corpus-ids": ["d4", "d2"]}]
        ),
    }
    files |= {f"{name}.jsonl": jsonl(rows) for name, rows in other.items()}
    configs = {"corpus": "corpus", "queries": "queries", "default": "qrels", "top_ranked": "top_ranked"}
    configs |= {"instruction": "instruction"} if "instruction" in other else {}
    card = "---\nconfigs:\n" + "".join(
        f"- config_name: {config}\n  data_files:\n  - split: test\n    path: {name}.jsonl\n"
        for config, name in configs.items()
    )
    return Repository({commit: {"README.md": f"{card}---\n".encode(), **files}}, kind="dataset")


def shown_tiers() -> list[RerankTier]:
    """Every table of L3 that the page on bringing data shows, as a ladder with it is read."""
    page = (REPO / "docs" / "how-to-bring-your-own-data.md").read_text(encoding="utf-8")
    found = []
    for text in re.findall(r"```yaml\n# L3\n(.*?)```", page, re.DOTALL):
        table = "".join(f"    {line}\n" for line in text.splitlines())
        below = "".join(f"  {tier}: {{limits: {{{limit}}}}}\n" for tier, limit in BELOW.items())
        start = f"format: 1\nname: mine\ncandidate: {{model: ./model}}\ntiers:\n{below}  L3:\n{table}"
        tier = ladder.parse(f"{start}targets: [{{precision: fp32}}]\n".encode()).tiers.L3
        assert tier is not None
        found.append(tier)
    return found


def ask(source: DataSource | Path, bounds: Bounds | None = None) -> dict[str, Any]:
    """What a child is asked for."""
    return {
        "source": msgspec.to_builtins(DataSource(file=source.name) if isinstance(source, Path) else source),
        "file": str(source) if isinstance(source, Path) else None,
        "bounds": msgspec.to_builtins(bounds or Bounds()),
        "named": source.name if isinstance(source, Path) else source_of(source),
    }


def answers(home: Path, endpoint: str, asks: Iterable[Mapping[str, Any]], **more: str) -> list[Any]:
    """What one fresh process makes of each request, with an empty environment but for the hub's variables."""
    said = python(SCRIPT, home, endpoint, "".join(json.dumps(item) + "\n" for item in asks), more)
    return [json.loads(line) for line in said.splitlines()]


def download(home: Path, endpoint: str, name: str, commit: str) -> None:
    """Put a dataset into the client's cache, as ``hf download`` does."""
    code = f"import huggingface_hub as h; h.snapshot_download({name!r}, repo_type='dataset', revision={commit!r})"
    python(code, home, endpoint, "", {})


def python(
    code: str, home: Path, endpoint: str, given: str, more: Mapping[str, str], folder: Path | None = None
) -> str:
    """What a script prints in a fresh process that stands in ``folder``, with an empty environment but for the hub's variables."""
    environment = {
        **more,
        "HF_HOME": str(home),
        "HF_ENDPOINT": endpoint,
        "HF_HUB_DISABLE_XET": "1",
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(harness.__file__).parent.parent),
    }
    command = [sys.executable, "-c", code]
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, input=given, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
