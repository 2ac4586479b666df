"""The artifact of a root runs under mteb unchanged, and its L3 figures are exported in mteb's own result format."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.answer import check
from harness.derive_raw import raw_floats
from harness.errors import AskedWrongly, CandidateError
from harness.mteb_result import result
from harness.runtimes.mteb_model import CrossEncoder
from tests.support.hub import Hub
from tests.support.ladders import REPO, qualify
from tests.support.models import TEXTS, make_bert
from tests.support.rankings import TASK, TASK_PLACE, python, task_repository


@pytest.fixture(scope="module")
def task() -> Iterator[Any]:
    """A reranking task of mteb with the groups of the tiny ladder, made here: nothing is loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mteb
        from datasets import Dataset
        from mteb.abstasks.retrieval import AbsTaskRetrieval
        from mteb.abstasks.task_metadata import TaskMetadata

    class Tiny(AbsTaskRetrieval):  # type: ignore[misc]
        metadata = TaskMetadata(
            name="TinyReranking",
            description="The texts of the tiny ladder.",
            dataset={"path": "local/tiny", "revision": "1" * 40},
            type="Reranking",
            category="t2t",
            modalities=["text"],
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="ndcg_at_10",
        )

        def load_data(self, **_more: Any) -> None:
            names = [f"d{place}" for place in range(len(TEXTS))]
            self.dataset = {
                "default": {
                    "test": {
                        "corpus": Dataset.from_dict({"id": names, "title": [""] * len(TEXTS), "text": list(TEXTS)}),
                        "queries": Dataset.from_dict({"id": [f"q{n}" for n in range(len(TEXTS))], "text": list(TEXTS)}),
                        "relevant_docs": {f"q{n}": {f"d{n}": 1} for n in range(len(TEXTS))},
                        "top_ranked": {f"q{n}": names for n in range(len(TEXTS))},
                    }
                }
            }
            self.data_loaded = True

    yield Tiny()
    assert mteb


def test_mteb_evaluates_an_artifact_and_finds_the_figures_of_the_root(
    tiny_root: Path, tiny_model: Path, task: Any, tmp_path: Path
) -> None:
    import mteb

    model = CrossEncoder(tiny_root, "cpu-int8", tiny_model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mteb.evaluate(model, task, cache=None, co2_tracker=False, encode_kwargs={"batch_size": 4})
    scores = found.task_results[0].scores["test"][0]
    mine = {m.metric: m.value for m in check(tiny_root).records.steps["cpu-int8", "L3"].measurements.measurements}  # type: ignore[union-attr]
    for name, theirs in (("ndcg_at_10", "ndcg_at_10"), ("mrr_at_10", "mrr_at_10"), ("map", "map_at_1000")):
        assert scores[theirs] == pytest.approx(mine[name], abs=1e-5), name
    assert found.model_name == f"local/{tiny_model.name}--cpu-int8"


def test_the_logits_are_those_that_were_sealed(tiny_root: Path, tiny_model: Path) -> None:
    model = CrossEncoder(tiny_root, "cpu-fp16", tiny_model)
    order = [(query, text) for query in TEXTS for text in (query, *(other for other in TEXTS if other != query))]
    queries, documents = ([{"text": list(side)}] for side in zip(*order, strict=True))
    sealed = raw_floats(lambda path: (tiny_root / path).read_bytes(), "steps/L3-rerank.cpu-fp16/artifact.f32", 64)
    assert np.array_equal(model.predict(queries, documents, hf_split="test"), sealed)


def test_another_checkpoint_an_unknown_target_and_a_missing_folder_are_refused(
    tiny_root: Path, tiny_model: Path, tmp_path: Path
) -> None:
    with pytest.raises(AskedWrongly) as caught:
        CrossEncoder(tiny_root, "gpu", tiny_model)
    assert str(caught.value) == ("target: expected one of cpu-fp32, cpu-fp16, cpu-int8, got 'gpu'; name one of them")
    with pytest.raises(
        CandidateError, match=r"expected the folder of the candidate, got none; give its folder as model"
    ):
        CrossEncoder(tiny_root, "cpu-fp32")
    (tmp_path / "other").mkdir()
    other = make_bert(tmp_path / "other", seed=5)
    with pytest.raises(CandidateError, match=r"expected the candidate blake3:.*, got blake3:"):
        CrossEncoder(tiny_root, "cpu-fp32", other)


def test_the_exported_result_is_one_that_mteb_reads(tiny_root: Path, tmp_path: Path) -> None:
    from mteb.results import TaskResult

    out = tmp_path / "tiny.json"
    said = qualify("export", tiny_root, "--target", "cpu-fp32", "--out", out)
    assert (said.code, said.out, said.err) == (0, f"{out}\n", "")
    records = check(tiny_root).records
    assert json.loads(out.read_text()) == result(records, "cpu-fp32")
    read = TaskResult.from_disk(out)
    measured = {m.metric: m.value for m in records.steps["cpu-fp32", "L3"].measurements.measurements}  # type: ignore[union-attr]
    assert read.task_name == "groups.jsonl (functional smoke)"
    assert read.scores["test"][0]["main_score"] == measured["ndcg_at_10"]
    assert records.plan.inputs.groups is not None
    assert read.dataset_revision == records.plan.inputs.groups.digest
    again = qualify("export", tiny_root, "--target", "cpu-fp32", "--out", out)
    assert again.code == 64


def test_what_the_page_on_data_shows_of_mteb_gives_a_result(tiny_root: Path, tiny_model: Path, tmp_path: Path) -> None:
    """With a small task of the name on a loopback hub: two queries with candidates, of which the better are to be first."""
    page = (REPO / "docs/how-to-bring-your-own-data.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    shutil.copytree(tiny_root, tmp_path / "runs/my-root")
    shutil.copytree(tiny_model, tmp_path / "model")
    with Hub({TASK_PLACE: task_repository()}) as hub:
        python(shown, tmp_path / "hf", hub.endpoint, "", {"MTEB_CACHE": str(tmp_path / "mteb")}, tmp_path)
    (written,) = (tmp_path / "mteb").rglob(f"{TASK}.json")
    (scores,) = json.loads(written.read_text(encoding="utf-8"))["scores"]["test"]
    assert written.parent.parent.name == f"local__{tiny_model.name}--cpu-fp16"
    assert 0 < scores["ndcg_at_10"] <= 1
    assert scores["main_score"] == scores["map_at_1000"]
