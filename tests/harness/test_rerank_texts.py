"""``rerank(query, documents, top_k)``: the thing a service calls, on a real session."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.runtimes.rerank import Document, Reranker, open_reranker, order_of
from tests.support.models import TEXTS
from tests.support.steps import Bench

DOCUMENTS = [Document(f"doc-{number}", text) for number, text in enumerate((*TEXTS, TEXTS[0] * 9))]


@pytest.fixture(scope="module")
def reranker(climbed: Bench) -> Reranker:
    graph = climbed.root / "artifacts/cpu-fp32/model.onnx"
    return open_reranker(climbed.model, graph, threads=1, max_length=48, batch_size=3)


def test_the_best_come_first_with_the_ids_of_their_owner(reranker: Reranker) -> None:
    found = reranker.rerank(TEXTS[0], DOCUMENTS, top_k=3)
    assert len(found.ranked) == 3
    assert found.logits.shape == (len(DOCUMENTS),)
    assert [document.logit for document in found.ranked] == sorted(map(float, found.logits), reverse=True)[:3]
    assert [document.id for document in found.ranked] == [f"doc-{document.place}" for document in found.ranked]


def test_a_document_scores_the_same_among_others_as_alone(reranker: Reranker) -> None:
    together = reranker.rerank(TEXTS[1], DOCUMENTS).logits
    alone = [float(reranker.rerank(TEXTS[1], [document]).logits[0]) for document in DOCUMENTS]
    assert together == pytest.approx(alone, abs=1e-5)


def test_equal_documents_keep_the_order_they_were_given_in(reranker: Reranker) -> None:
    same = [Document(str(number), TEXTS[2]) for number in range(6)]
    assert [document.id for document in reranker.rerank(TEXTS[2], same).ranked] == list("012345")


def test_no_documents_are_an_empty_ranking(reranker: Reranker) -> None:
    assert reranker.rerank(TEXTS[0], [], top_k=5).ranked == ()


def test_nan_comes_last_and_ties_stay_in_place() -> None:
    assert order_of(np.array([1.0, np.nan, 3.0, 1.0], dtype=np.float32)).tolist() == [2, 0, 3, 1]


def test_the_example_of_the_docs_runs(climbed: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs/performance.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    graph = climbed.root / "artifacts/cpu-fp32/model.onnx"
    code = code.replace('Path("model")', f"Path({str(climbed.model)!r})")
    code = code.replace('Path("root/artifacts/cpu-fp32/model.onnx")', f"Path({str(graph)!r})")
    exec(compile(code, "performance.md", "exec"), {})  # noqa: S102 - the page's own example
    assert capsys.readouterr().out in {"a\n", "b\n"}
