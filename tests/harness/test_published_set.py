"""The published L3 (first 2 groups of mteb/scidocs-reranking, 10 candidates, 512 tokens) on a stand-in of its name, commit and schema.

A whole climb of a tiny model reads it from the loopback hub, under the table of the ladder that ships and a limit on a mean that every
order of candidates meets: it decides nothing, and gives reports a figure that they must not print.
"""

from __future__ import annotations

import json
import math
import re
import struct
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.report.wording import number
from tests.support.hub import Hub
from tests.support.ladders import REPO, qualify, write_ladder
from tests.support.models import make_bert
from tests.support.once import once
from tests.support.rankings import SCIDOCS, SCIDOCS_COMMIT, scidocs

OUTPUTS = ("said.txt", "run.xml", "run.sarif")
PUBLISHED = REPO / "ladders" / "ms-marco-minilm-l4-cpu.yaml"
SMOKE = "functional smoke: 2 judged groups, and an interval needs 30; no claim of accuracy"
BOUNDS = "functional smoke: 2 groups x 10 candidates, 512 tokens"
TOKEN = "hf_" + "Ab1" * 11 + "Z"


@dataclass(frozen=True)
class Climb:
    """A sealed root, and what was asked of the hub; what the climb said, and its files for other tools, are in the folder above."""

    root: Path
    requests: str
    tokens: str

    @property
    def said(self) -> str:
        """Everything that the climb put out beside the root."""
        return "".join((self.root.parent / name).read_text(encoding="utf-8") for name in OUTPUTS)

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
        table["limits"]["map"] = {"at_least": 0}
        perf = (
            "{candidates: 2, max_length: 16, warm_up: 1, calls: 24, growth_calls: 12, limits: {p50_ms: {at_most: 1e4}}}"
        )
        one = "\n  - {precision: fp32, threads: 1}\n"
        ladder = write_ladder(folder, "./model", one, L1=perf, L3=json.dumps(table))
        direct = dict.fromkeys(("HF_HUB_OFFLINE", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "")
        with Hub({SCIDOCS: scidocs()}) as hub:
            home = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(folder / "hf"), "HF_TOKEN": TOKEN}
            files = ("--junit", folder / "run.xml", "--sarif", folder / "run.sarif")
            said = qualify("run", ladder, "--out", folder / "root", *files, folder=folder, **direct, **home)
        (folder / "said.txt").write_text(said.out + said.err, encoding="utf-8")
        (folder / "requests.txt").write_text("\n".join(hub.requests), encoding="utf-8")
        (folder / "tokens.txt").write_text("\n".join(hub.tokens), encoding="utf-8")

    folder = once(tmp_path_factory, "published-set", climb)
    assert (folder / "root").is_dir(), (folder / "said.txt").read_text(encoding="utf-8")
    requests, tokens = ((folder / f"{name}.txt").read_text(encoding="utf-8") for name in ("requests", "tokens"))
    return Climb(folder / "root", requests, tokens)


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
    assert low <= _exact_chance(published.root) <= high


def _exact_chance(root: Path) -> float:
    """The share of all pairs of orders that meet the ladder's limits: 5 of 10 places in each group, 252 x 252, equally likely.

    Of two groups a resample's mean is one group's drop (a chance of a quarter each) or the mean of both, so the 95% interval goes from
    the smaller drop to the greater: both must be at most the limit, and no further apart than it.
    """
    limit = 0.005
    assert yaml.safe_load(PUBLISHED.read_bytes())["tiers"]["L3"]["limits"]["ndcg_at_10_drop"] == {"at_most": limit}
    groups = [json.loads(line)["candidates"] for line in (root / "inputs/groups.jsonl").read_text().splitlines()]
    scores = struct.unpack("<20f", (root / "steps/L3-rerank.cpu-fp32/reference.f32").read_bytes())
    discount = [1 / math.log2(place + 2) for place in range(10)]
    ideal = sum(discount[:5])
    drops = []
    for group, candidates in enumerate(groups):
        own = scores[10 * group : 10 * group + 10]
        assert len(set(own)) == 10
        order = sorted(range(10), key=lambda place: -own[place])
        reference = sum(discount[rank] for rank, place in enumerate(order) if candidates[place]["gain"]) / ideal
        drops.append([reference - sum(chosen) / ideal for chosen in combinations(discount, 5)])
    passed = sum(max(pair) <= limit and max(pair) - min(pair) <= limit for pair in product(*drops))
    return passed / math.comb(10, 5) ** 2


def test_a_token_is_shown_to_the_hub_and_is_in_no_file_of_the_root_and_in_no_output(published: Climb) -> None:
    assert f"Bearer {TOKEN}" in published.tokens.splitlines()
    files = [path for path in published.root.rglob("*") if path.is_file()]
    assert len(files) > 40
    assert [path.name for path in files if TOKEN.encode() in path.read_bytes()] == []
    assert TOKEN not in published.said


def test_show_markdown_and_page_call_it_functional_smoke_and_print_no_claim(published: Climb, tmp_path: Path) -> None:
    shown = " ".join(qualify("show", published.root).out.split())
    markdown = qualify("report", published.root, "--markdown").out
    assert qualify("report", published.root, "--html", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for text in (shown, markdown, page):
        assert SMOKE in text
        assert BOUNDS in text
    assert "(functional smoke)" in shown
    tier = re.search(r"<h3><span>L3 rerank.*?</section>", page, re.DOTALL)  # other tiers have numbers of their own
    assert tier is not None
    assert "<code>map</code>" in tier[0]
    for text in (shown, markdown, tier[0]):
        assert not [figure for figure in _figures(published) if figure in text]
    assert not re.search(r"(nDCG@10|MAP|drop) [0-9]", page)


def _figures(published: Climb) -> list[str]:
    """The values of the ranking and the ends of their intervals, as they are printed."""
    found = [published.measured[name] for name in ("ndcg_at_10", "map")]
    return [number(value) for item in found for value in (item["value"], float(f"{item['interval'][1]:.3g}"))]


COMMANDS = (
    "show {root}",
    "show {root} --json",
    "report {root} --markdown",
    "report {root} --html {out}",
    "report {root} --annotations",
    "verify {root}",
    "verify {root} --json",
    "verify {root} --junit {out}",
    "verify {root} --sarif {out}",
    "verify {root} --attest-as reviewer --out {out}",
    "attest {root} --out {out}",
    "attest {root} --out {out} --json",
    "export {root} --target cpu-fp32 --out {out}",
    "export {root} --target cpu-fp32 --out {out} --json",
    "history {folder}",
    "history {folder} --json",
    "cover {root} --ladder {root}/ladder.yaml",
    "cover {root} --ladder {root}/ladder.yaml --json",
)
"""Every command that says something of the ranking in one root, a row each. A file that it makes is an output of its own."""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_output_of_a_smoke_root_is_labelled(command: str, published: Climb, tmp_path: Path) -> None:
    place = {"root": published.root, "folder": published.root.parent, "out": tmp_path / "made"}
    said = qualify(*(part.format(**place) for part in command.split()))
    assert said.code == 0, said.err
    outputs = [said.out] if "--json" in command or "{out}" not in command else []
    outputs += [(tmp_path / "made").read_text(encoding="utf-8")] if "{out}" in command else []
    assert [text for text in outputs if "functional smoke" not in text] == []


def test_a_climb_labels_it_for_people_and_for_other_tools(published: Climb) -> None:
    said, junit, sarif = ((published.root.parent / name).read_text(encoding="utf-8") for name in OUTPUTS)
    assert SMOKE in " ".join(said.split())
    assert 'name="cpu-fp32 L3 rerank (functional smoke)"' in junit
    assert f'<property name="smoke" value="{SMOKE}" />' in junit
    assert json.loads(sarif)["runs"][0]["properties"]["smoke"] == [SMOKE]
    assert not [figure for figure in _figures(published) if figure in junit + sarif]


def test_an_attestation_of_it_warns_and_names_no_l3_among_what_passed(published: Climb, tmp_path: Path) -> None:
    assert qualify("attest", published.root, "--out", tmp_path / "said.json").out.startswith("WARNED: ")
    predicate = json.loads((tmp_path / "said.json").read_bytes())["predicate"]
    assert predicate["result"] == "WARNED"
    assert predicate["passedTests"] == ["L0-build.cpu-fp32", "L1-perf.cpu-fp32", "L2-parity.cpu-fp32"]
    assert (predicate["warnedTests"], predicate["failedTests"]) == (["L3-rerank.cpu-fp32"], [])
    assert predicate["https://qualify.invalid/attestation/verdict/v1"]["smoke"] == [SMOKE]


def test_the_root_verifies_with_its_own_verdict_and_the_label(published: Climb) -> None:
    said = qualify("verify", published.root, "--json").json
    assert (said["faults"], said["smoke"]) == ([], [SMOKE])
