"""The published L3 (first 2 groups of mteb/scidocs-reranking, 10 candidates, 512 tokens) on a stand-in of its name, commit and schema.

A whole climb of a tiny model reads it from the loopback hub, under the very table of the ladder that ships.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.hub import Hub
from tests.support.ladders import REPO, qualify, write_ladder
from tests.support.models import make_bert
from tests.support.once import once
from tests.support.rankings import SCIDOCS, SCIDOCS_COMMIT, scidocs

PUBLISHED = REPO / "ladders" / "ms-marco-minilm-l4-cpu.yaml"
SMOKE = "functional smoke: 2 judged groups, and an interval needs 30; no claim of accuracy"
BOUNDS = "functional smoke: 2 groups x 10 candidates, 512 tokens"


@dataclass(frozen=True)
class Climb:
    """A sealed root, and what was asked of the hub."""

    root: Path
    requests: str

    @property
    def outcome(self) -> Any:
        return json.loads((self.root / "steps/L3-rerank.cpu-fp32/outcome.json").read_bytes())

    @property
    def measured(self) -> dict[str, Any]:
        found = json.loads((self.root / "steps/L3-rerank.cpu-fp32/measurements.json").read_bytes())
        return {item["metric"]: item for item in found["measurements"]}


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Climb:
    """Read only."""

    def climb(folder: Path) -> None:
        (folder / "model").mkdir()
        make_bert(folder / "model", positions=512)
        table = yaml.safe_load(PUBLISHED.read_bytes())["tiers"]["L3"]
        perf = (
            "{candidates: 2, max_length: 16, warm_up: 1, calls: 24, growth_calls: 12, limits: {p50_ms: {at_most: 1e4}}}"
        )
        one = "\n  - {precision: fp32, threads: 1}\n"
        ladder = write_ladder(folder, "./model", one, L1=perf, L3=json.dumps(table))
        direct = dict.fromkeys(
            ("HF_HUB_OFFLINE", "HF_TOKEN", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), ""
        )
        with Hub({SCIDOCS: scidocs()}) as hub:
            home = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(folder / "hf")}
            said = qualify("run", ladder, "--out", folder / "root", folder=folder, **direct, **home)
        (folder / "said.txt").write_text(said.out + said.err, encoding="utf-8")
        (folder / "requests.txt").write_text("\n".join(hub.requests), encoding="utf-8")

    folder = once(tmp_path_factory, "published-set", climb)
    assert (folder / "root").is_dir(), (folder / "said.txt").read_text(encoding="utf-8")
    return Climb(folder / "root", (folder / "requests.txt").read_text(encoding="utf-8"))


def test_the_groups_are_the_first_two_of_the_pinned_commit_and_nothing_else_is_read(published: Climb) -> None:
    plan = json.loads((published.root / "plan.json").read_bytes())
    fact = plan["inputs"]["groups"]
    assert (fact["source"], fact["rows"], fact["bounds"]) == (
        f"{SCIDOCS}@{SCIDOCS_COMMIT}:test",
        2,
        {"groups": 2, "candidates": 10},
    )
    assert plan["options"]["L3"]["max_length"] == 512
    groups = [json.loads(line) for line in (published.root / "inputs/groups.jsonl").read_text().splitlines()]
    assert [group["query"] for group in groups] == ["query 0", "query 1"]
    assert [[doc["gain"] for doc in group["candidates"]] for group in groups] == [[1.0] * 5 + [0.0] * 5] * 2
    assert f"/datasets/{SCIDOCS}/resolve/{SCIDOCS_COMMIT}/data/test-00001-of-00006.jsonl" in published.requests
    assert "test-00002-of-00006" not in published.requests
    assert "main" not in published.requests


def test_its_outcome_is_labelled_functional_smoke_whatever_its_verdict(published: Climb) -> None:
    assert published.outcome["reason"].endswith(SMOKE)
    assert published.measured["groups"]["value"] == 2
    assert published.measured["scored_pairs"]["value"] == 20


def test_the_chance_that_ranking_at_random_passes_the_ladders_own_limits_is_measured(published: Climb) -> None:
    """Its limit is a drop against PyTorch, so the chance is that of random orders as good as the reference on both groups."""
    found = published.measured["random_pass_chance"]
    low, high = found["interval"]
    assert 0 <= low <= found["value"] <= high <= 1
    assert found["samples"] == 1000
    assert found["note"].endswith("of 1,000 random orders, seed 0")


def test_show_markdown_and_page_call_it_functional_smoke_and_print_no_claim(published: Climb, tmp_path: Path) -> None:
    shown = " ".join(qualify("show", published.root).out.split())
    markdown = qualify("report", published.root, "--markdown").out
    assert qualify("report", published.root, "--html", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for text in (shown, markdown, page):
        assert SMOKE in text
        assert BOUNDS in text
    assert "(functional smoke)" in shown
    ndcg = published.measured["ndcg_at_10"]["value"]
    assert all(f"{ndcg:.4f}"[:5] not in text for text in (shown, markdown))


def test_the_root_verifies_with_its_own_verdict_and_the_label(published: Climb) -> None:
    said = qualify("verify", published.root, "--json").json
    assert (said["faults"], said["smoke"]) == ([], [SMOKE])
