"""Figures of the quickstart reranker on groups, beside random order and scorers without training: nDCG@10, MRR@10, MAP.

Run from the project's root: ``python -m ladders.quickstart.evaluate [--teacher DIR] [FILE.jsonl ...]``; without a file it
takes ``groups.jsonl`` of this folder. Takes some seconds; with the teacher (see ``train``) about half a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from harness.data import Group, read_groups
from harness.metrics.lexical import bm25_scores, length_scores, overlap_scores
from harness.metrics.ranking import group_metrics
from ladders.quickstart.teacher import Teacher

HERE = Path(__file__).parent
BATCH = 32


class Reranker:
    """The model in a folder, on PyTorch in fp32: raw logits."""

    def __init__(self, folder: Path) -> None:
        self._model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
        self._tokenizer = AutoTokenizer.from_pretrained(folder)

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """One logit a document; a pair beyond the model's length is cut at the document's end."""
        scores: list[float] = []
        for start in range(0, len(documents), BATCH):
            part = list(documents[start : start + BATCH])
            tensors = self._tokenizer(
                [query] * len(part), part, padding=True, truncation="only_second", return_tensors="pt"
            )
            with torch.inference_mode():
                scores += self._model(**tensors).logits[:, 0].tolist()
        return scores


def figures(groups: Sequence[Group], model: Reranker, teacher: Teacher | None) -> dict[str, tuple[float, float, float]]:
    """Scorer's name to the mean over groups of nDCG@10, MRR@10 and MAP, each the expected value over ties."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for group in groups:
        texts = [candidate.text for candidate in group.candidates]
        scores: dict[str, Sequence[float]] = {
            "random, constant": [0.0] * len(texts),
            "length": length_scores(texts),
            "word overlap": overlap_scores(group.query, texts),
            "BM25 in the group": bm25_scores(group.query, texts),
            "quickstart reranker": model.score(group.query, texts),
        }
        if teacher:
            query, *documents = teacher.embed([group.query, *texts])
            scores["all-MiniLM-L6-v2 (teacher)"] = [float(query @ document) for document in documents]
        for name, values in scores.items():
            metrics = group_metrics(values, [candidate.gain for candidate in group.candidates], 10)
            assert metrics is not None, f"{group.query_id}: no relevant candidate or a score that is not finite"
            row = (metrics.ndcg.expected, metrics.mrr.expected, metrics.average_precision.expected)
            found.setdefault(name, []).append(row)
    means = {name: np.mean(rows, axis=0) for name, rows in found.items()}
    return {name: (float(mean[0]), float(mean[1]), float(mean[2])) for name, mean in means.items()}


def table(title: str, groups: Sequence[Group], model: Reranker, teacher: Teacher | None) -> str:
    """The figures as a Markdown table."""
    lines = [f"| {title}: {len(groups)} groups | nDCG@10 | MRR@10 | MAP |", "| --- | --- | --- | --- |"]
    for name, (ndcg, mrr, mean_precision) in figures(groups, model, teacher).items():
        lines.append(f"| {name} | {ndcg:.3f} | {mrr:.3f} | {mean_precision:.3f} |")
    return "\n".join(lines)


def main() -> None:
    """Print one table for all groups of each file and, where query ids name several kinds, one for each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, default=[HERE / "groups.jsonl"])
    parser.add_argument("--model", type=Path, default=HERE / "model")
    parser.add_argument("--teacher", type=Path, help="folder of all-MiniLM-L6-v2")
    options = parser.parse_args()
    model = Reranker(options.model)
    teacher = Teacher(options.teacher, fast=False) if options.teacher else None
    for path in options.files:
        groups = read_groups(path.read_bytes(), str(path))
        print(table(path.name, groups, model, teacher), "\n")
        kinds = sorted({group.query_id.split(":")[0] for group in groups if ":" in group.query_id})
        for kind in kinds:
            part = [group for group in groups if group.query_id.startswith(kind + ":")]
            print(table(kind, part, model, teacher), "\n")


if __name__ == "__main__":
    main()
