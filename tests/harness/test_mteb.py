"""The artifact of a root runs under mteb unchanged, and its L3 figures are exported in mteb's own result format."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from harness.answer import check
from harness.derive_raw import raw_floats
from harness.errors import AskedWrongly, CandidateError
from harness.mteb_result import result
from harness.records import DataFact, TaskFact
from harness.root import RootRecords
from harness.runtimes.mteb_model import CrossEncoder
from tests.support.hub import Hub
from tests.support.ladders import REPO, qualify, write_ladder
from tests.support.models import TEXTS, make_bert
from tests.support.rankings import TASK, TASK_COMMIT, TASK_PLACE, python, task_repository


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
    assert read.get_score() == read.main_score == measured["ndcg_at_10"]
    (scores,) = read.scores["test"]
    assert scores.keys() - {"mteb_version"} == {
        "ndcg_at_10", "mrr_at_10", "map_at_1000", "main_score", "hf_subset", "languages"
    }  # fmt: skip
    assert (scores["map_at_1000"], scores["languages"]) == (measured["map"], ["und"])
    assert records.plan.inputs.groups is not None
    assert read.dataset_revision == records.plan.inputs.groups.digest
    again = qualify("export", tiny_root, "--target", "cpu-fp32", "--out", out)
    assert again.code == 64


SMOKE = f"{TASK} (functional smoke)"
EVALUATE = """
import json, sys, mteb
from harness.runtimes.mteb_model import CrossEncoder

root, model = sys.stdin.read().split()
found = mteb.evaluate(CrossEncoder(root, "cpu-fp32", model=model), mteb.get_task("SciDocsRR"), cache=None, co2_tracker=False)
(result,) = found.task_results
print(json.dumps([result.task_name, result.dataset_revision, result.get_score(), result.scores["test"]]))
"""


@pytest.mark.slow
def test_a_task_of_mteb_is_exported_as_mteb_itself_scores_it(tiny_model: Path, tmp_path: Path) -> None:
    """Climbed and evaluated through a loopback hub: name, commit, languages, and the main score, which is MAP and not nDCG here."""
    from mteb.results import TaskResult

    source = f"{{mteb: {TASK}, revision: {TASK_COMMIT}}}"
    tier = f"{{data: {source}, limits: {{ndcg_at_10_drop: {{at_most: 0.9}}}}}}"
    ladder = write_ladder(tmp_path, tiny_model, "\n  - {precision: fp32, threads: 1}\n", L3=tier)
    root, out = tmp_path / "root", tmp_path / "task.json"
    lists = {"q1": ["d1", "d3", "d0"], "q2": ["d4", "d2"], "q3": ["d3", "d2", "d0", "d1"]}
    listed = task_repository(top_ranked=[{"query-id": name, "corpus-ids": found} for name, found in lists.items()])
    with Hub({TASK_PLACE: listed}) as hub:
        home, none = str(tmp_path / "hf"), ""
        qualify(
            "run", ladder, "--out", root, HF_HOME=home, HF_ENDPOINT=hub.endpoint, HF_HUB_OFFLINE=none, HF_TOKEN=none
        )
        theirs = json.loads(
            python(EVALUATE, tmp_path / "hf", hub.endpoint, f"{root} {tiny_model}", {"MTEB_CACHE": str(tmp_path)})
        )
    said = qualify("export", root, "--target", "cpu-fp32", "--out", out, HF_HUB_OFFLINE="1")
    assert said.code == 0, said.err
    ours = TaskResult.from_disk(out)
    assert theirs[:2] == [TASK, TASK_COMMIT]
    assert (ours.task_name, ours.dataset_revision) == (SMOKE, TASK_COMMIT)
    assert ours.get_score() == pytest.approx(theirs[2], abs=1e-5)
    (mine,), (scores,) = ours.scores["test"], theirs[3]
    for name in ("ndcg_at_10", "mrr_at_10", "map_at_1000", "main_score"):
        assert mine[name] == pytest.approx(scores[name], abs=1e-5), name
    assert [mine[name] for name in ("hf_subset", "languages")] == [scores[name] for name in ("hf_subset", "languages")]
    _check_names(check(root).records)


def _check_names(records: RootRecords) -> None:
    """The records of that climb with one thing changed at a time: what then is no longer the task, or has no main score."""
    replace = msgspec.structs.replace
    plan, fact, options = records.plan, records.plan.inputs.groups, records.plan.options.L3
    assert fact is not None
    assert fact.task is not None
    assert options is not None

    def exported(changed: DataFact, max_length: int = 512) -> Any:
        inputs = replace(plan.inputs, groups=changed)
        asked = replace(plan.options, L3=replace(options, max_length=max_length))
        return result(replace(records, plan=replace(plan, inputs=inputs, options=asked)), "cpu-fp32")

    def name(**counts: int) -> Any:
        return exported(replace(fact, counts={**fact.counts, **counts}))["task_name"]

    assert name() == SMOKE
    outcome = records.steps["cpu-fp32", "L3"].outcome
    enough = tuple(
        finding for finding in outcome.findings if finding.metric not in ("judged_groups", "ndcg_at_10_drop")
    )
    step = replace(records.steps["cpu-fp32", "L3"], outcome=replace(outcome, findings=enough))
    records = replace(records, steps={**records.steps, ("cpu-fp32", "L3"): step})
    assert name() == TASK
    assert exported(replace(fact, bounds={"groups": 2}))["task_name"] == f"{TASK} (at most 2 groups)"
    assert exported(fact, max_length=8)["task_name"] == f"{TASK} (at most 8 tokens a pair)"
    assert name(relevant_elsewhere=3) == f"{TASK} (3 relevant documents that are no candidates left out)"
    assert name(queries_without_candidates=1) == f"{TASK} (1 queries without candidates left out)"
    assert name(without_positive=1, positives_only=1) == f"{TASK} (2 groups left out of the means)"
    other = exported(replace(fact, task=TaskFact(main_score="p-MRR", languages=("eng-Latn",))))
    assert other["scores"]["test"][0]["main_score"] is None
    long = exported(replace(fact, counts={**fact.counts, "most_candidates": 1001}))["scores"]["test"][0]
    assert "map" in long
    assert "map_at_1000" not in long
    assert long["main_score"] is None


@pytest.mark.slow
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
