"""Every ladder that ships is read, gives a plan for its candidate, and argues for its limits."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from harness import ladder, plan
from harness.records import Candidate, DataSource, Limit
from tests.support.plans import CANDIDATE, INPUTS

FOLDER = Path(__file__).parent.parent.parent / "ladders"
LADDERS = sorted(FOLDER.rglob("*.yaml"))
REVISIONS = {
    "cross-encoder/ms-marco-MiniLM-L4-v2": "777b2f369bc1c2f850df8bd367ed1654bda4497b",
    "cross-encoder/ms-marco-MiniLM-L6-v2": "233902d25c440f23af6f7d6e94d2946bac0bee0a",
    "BAAI/bge-reranker-base": "2cfc18c9415c912f9d8155881c133215df768a70",
}
SCIDOCS = DataSource(dataset="mteb/scidocs-reranking", revision="56a6d0140cf6356659e2a7c1413286a774468d44")


def read(name: str) -> ladder.Ladder:
    return ladder.parse((FOLDER / name).read_bytes(), name)


def of(asked: ladder.Ladder) -> Candidate:
    """A made-up candidate with the facts that the plan of this ladder depends on."""
    xlm = "bge" in asked.name
    return msgspec.structs.replace(
        CANDIDATE,
        model=asked.candidate.model,
        revision=asked.candidate.revision,
        architecture="XLMRobertaForSequenceClassification" if xlm else "BertForSequenceClassification",
        model_type="xlm-roberta" if xlm else "bert",
        type_vocab_size=1 if xlm else 2,
        pad_token_id=1 if xlm else 0,
    )


def test_four_ladders_ship() -> None:
    assert [path.relative_to(FOLDER).as_posix() for path in LADDERS] == [
        "bge-reranker-base-cpu.yaml",
        "ms-marco-minilm-l4-cpu.yaml",
        "ms-marco-minilm-l6-cpu.yaml",
        "quickstart/ladder.yaml",
    ]


@pytest.mark.parametrize("path", LADDERS, ids=lambda path: path.parent.name + "/" + path.stem)
def test_a_ladder_gives_a_plan_that_climbs_every_target_to_the_goal(path: Path) -> None:
    data = path.read_bytes()
    asked = ladder.parse(data, path.name)
    made = plan.make(asked, data, of(asked), INPUTS, {})
    assert asked.name == (path.parent.name if path.stem == "ladder" else path.stem)
    assert [step.tier for target in made.targets for step in target.steps] == ["L0", "L1", "L2", "L3"] * len(
        made.targets
    )
    assert "max_abs_gap" in made.targets[0].steps[2].limits
    assert "ndcg_at_10_drop" in made.targets[0].steps[3].limits


@pytest.mark.parametrize("path", LADDERS, ids=lambda path: path.parent.name + "/" + path.stem)
def test_hub_candidates_are_pinned_as_published(path: Path) -> None:
    asked = ladder.parse(path.read_bytes(), path.name)
    assert asked.candidate.revision == REVISIONS.get(asked.candidate.model)
    assert asked.candidate.model in {*REVISIONS, "./model"}


@pytest.mark.parametrize("path", LADDERS, ids=lambda path: path.parent.name + "/" + path.stem)
def test_every_limit_is_argued_for_by_a_comment_above_it(path: Path) -> None:
    """The comment stands above the limit or above a block of limits without an empty line between."""
    argued = False
    for line in path.read_text("utf-8").splitlines():
        argued = (argued or line.lstrip().startswith("#")) and line.strip() != ""
        if re.search(r"at_most|at_least|exactly", line) and not line.lstrip().startswith("#"):
            assert argued, f"{line.strip()}: expected a comment above it, got none"


def test_the_l4_ladder_asks_for_the_published_recipe() -> None:
    asked = read("ms-marco-minilm-l4-cpu.yaml")
    build, perf, rerank = asked.tiers.L0, asked.tiers.L1, asked.tiers.L3
    assert (build.opset, build.shape, build.integers, build.optimize) == (17, (1, 512), "int32", "fused")
    assert perf is not None
    assert rerank is not None
    assert (rerank.data, rerank.groups, rerank.candidates) == (SCIDOCS, 2, 10)
    assert [target.precision for target in asked.targets] == ["fp32", "fp16"]
    single, half = (ladder.limits_of(asked, target, "L2") for target in asked.targets)
    assert (single["cosine"], single["max_abs_gap"]) == (Limit(at_least=0.99999), Limit(at_most=1e-3))
    assert (half["cosine"], half["max_abs_gap"]) == (Limit(at_least=0.999), Limit(at_most=0.1))
    for target, name, published in zip(asked.targets, ("FLOAT", "FLOAT16"), (76_710_324, 38_381_076), strict=True):
        limits = ladder.limits_of(asked, target, "L0")
        payload = limits["payload_bytes"]
        assert limits[f"initializer_count.{name}"] == Limit(exactly=76)
        assert payload.at_least is not None
        assert payload.at_most is not None
        assert published * 0.995 <= payload.at_least < published < payload.at_most <= published * 1.0053


def test_the_l6_ladder_scores_a_hundred_candidates_in_three_gibibytes() -> None:
    asked = read("ms-marco-minilm-l6-cpu.yaml")
    perf = asked.tiers.L1
    assert perf is not None
    assert (asked.tiers.L0.shape, perf.candidates, perf.batch_size) == ("dynamic", 100, 16)
    assert perf.limits["peak_rss_bytes"] == Limit(at_most=3 * 2**30)
    assert ladder.limits_of(asked, asked.targets[0], "L2")["max_abs_gap"] == Limit(at_most=1e-3)


def test_the_quickstart_climbs_three_precisions_with_data_beside_it() -> None:
    asked = read("quickstart/ladder.yaml")
    assert [(target.name, target.threads) for target in asked.targets] == [
        ("cpu-fp32", 2),
        ("cpu-fp16", 2),
        ("cpu-int8", 2),
    ]
    assert asked.tiers.L2 is not None
    assert asked.tiers.L3 is not None
    assert (asked.candidate.model, asked.tiers.L2.pairs, asked.tiers.L3.data) == (
        "./model",
        "pairs.jsonl",
        "groups.jsonl",
    )
    assert ladder.limits_of(asked, asked.targets[0], "L2")["max_abs_gap"] == Limit(at_most=1e-4)
