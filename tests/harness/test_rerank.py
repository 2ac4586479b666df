from __future__ import annotations

from pathlib import Path

import pytest

from harness.metrics.rerank_names import SCORERS
from tests.support import graphs
from tests.support.models import TEXTS
from tests.support.steps import Bench


def test_every_score_and_a_row_for_every_query_are_sealed(climbed: Bench) -> None:
    ran = climbed.earlier("L3")
    assert ran.value("groups") == ran.value("judged_groups") == len(TEXTS)
    assert ran.value("scored_pairs") == len(TEXTS) ** 2
    assert len(ran.file("artifact.f32")) == len(ran.file("reference.f32")) == 4 * len(TEXTS) ** 2
    rows = ran.raw("per_query.json")["rows"]
    assert [row["query_id"] for row in rows] == [f"q{number}" for number in range(len(TEXTS))]
    mean = sum(row["artifact"]["expected"]["ndcg_at_10"] for row in rows) / len(rows)
    assert ran.value("ndcg_at_10") == pytest.approx(mean)


def test_the_drop_against_pytorch_is_paired_and_has_an_interval(climbed: Bench) -> None:
    ran = climbed.earlier("L3", "cpu-int8")
    measured = ran.measured()
    rows = ran.raw("per_query.json")["rows"]
    for metric in ("ndcg_at_10", "mrr_at_10", "map"):
        drops = [row["reference"]["expected"][metric] - row["artifact"]["expected"][metric] for row in rows]
        found = measured[f"{metric}_drop"]
        assert found.value == pytest.approx(sum(drops) / len(drops))
        assert found.interval is not None
        assert found.interval[0] <= sum(drops) / len(drops) <= found.interval[1]
        assert found.samples == len(TEXTS)


def test_other_scorers_stand_beside_the_model(climbed: Bench) -> None:
    measured = climbed.earlier("L3").measured()
    rows = {name: measured[f"row_ndcg_at_10.{name}"].value for name in SCORERS}
    assert rows["nan"] is None
    assert rows["oracle"] == 1.0
    assert rows["bm25"] == 1.0  # the right document is the query itself
    assert rows["constant"] == rows["random"]
    over = measured["ndcg_at_10_over_random"].value
    assert over == pytest.approx(measured["ndcg_at_10"].value - rows["random"])  # type: ignore[operator]


def test_the_reference_of_an_earlier_target_is_taken_with_its_seconds(climbed: Bench) -> None:
    first, later = climbed.earlier("L3").raw("scores.json"), climbed.earlier("L3", "cpu-fp16").raw("scores.json")
    assert first["reference_from"] is None
    assert later["reference_from"] == "steps/L3-rerank.cpu-fp32"
    assert later["reference_seconds"] == first["reference_seconds"]


def test_scores_that_are_not_finite_give_no_metric(climbed: Bench, tmp_path: Path) -> None:
    there = climbed.copy(tmp_path / "root")
    graph = there.root / "artifacts/cpu-fp32/model.onnx"
    graphs.with_head(graph, there.root / "artifacts/other-fp32/model.onnx", graphs.HEADS["nan"])
    measured = there.run(there.request("L3", "other-fp32")).measured()
    assert measured["non_finite_scores"].value == len(TEXTS) ** 2
    for name in ("ndcg_at_10", "ndcg_at_10_drop", "mrr_at_10", "map", "ndcg_at_10_over_random"):
        assert measured[name].value is None
    assert measured["ndcg_at_10"].note == f"{len(TEXTS)} groups have a score that is not finite"
