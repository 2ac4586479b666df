"""The quickstart reranker, BM25 and the sentinels on files of groups, with the values of pytrec_eval and mteb beside ours.

    python -m benchmarks.rerank_table FILE.jsonl [FILE.jsonl ...]

Ours are expected over ties, with the worst and the best order where ties leave something open. The peers break ties by document
id, so they fall somewhere in between; where nothing is tied all three are equal. Only groups with a positive and a negative count.
Ranking at random is an expectation and no scores, so the peers have nothing to say of it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harness.data import Group
from harness.data import read_groups as read_texts
from harness.metrics.ranking import spreads
from harness.metrics.rerank_names import HEADLINE, SENTINELS
from harness.metrics.rows import Rows
from harness.rerank_groups import Groups, read_groups
from ladders.quickstart.evaluate import Reranker

MODEL = Path(__file__).parent.parent / "ladders/quickstart/model"


class Peers(NamedTuple):
    """The means of the other implementations by our names."""

    pytrec_eval: Mapping[str, float]
    mteb: Mapping[str, float]


def peers(scores: Sequence[Any], gains: Sequence[Any]) -> Peers:
    """The means that pytrec_eval and mteb give; NaN scores are given to them as they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pytrec_eval
        from mteb._evaluators.retrieval_metrics import calculate_retrieval_scores, mrr
    qrels = {f"q{i}": {f"d{j:04}": int(gain) for j, gain in enumerate(row)} for i, row in enumerate(gains)}
    run = {f"q{i}": {f"d{j:04}": float(score) for j, score in enumerate(row)} for i, row in enumerate(scores)}
    rows = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "map"}).evaluate(run).values()
    first = {query: dict(sorted(found.items(), key=lambda item: item[::-1])[-10:]) for query, found in run.items()}
    ranks = (
        pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(first).values()
    )  # it has no cut-off of its own
    other = calculate_retrieval_scores(run, qrels, [10, 1000])
    trec = {"ndcg_at_10": "ndcg_cut_10", "map": "map"}
    return Peers(
        {
            **{name: float(np.mean([row[theirs] for row in rows])) for name, theirs in trec.items()},
            "mrr_at_10": float(np.mean([row["recip_rank"] for row in ranks])),
        },
        {
            "ndcg_at_10": float(other.ndcg["NDCG@10"]),
            "map": float(other.map["MAP@1000"]),
            "mrr_at_10": float(np.mean(mrr(qrels, run, [10])["MRR@10"])),
        },
    )


def scorers(groups: Groups, texts: Sequence[Group]) -> dict[str, Rows]:
    """The quickstart reranker's logits, and the scorers beside it."""
    model = Reranker(MODEL)
    found = Rows.of(model.score(g.query, [doc.text for doc in g.candidates]) for g in texts)
    beside = {**groups.scorers, "reversed": found.like(-found.flat)}
    return {"quickstart": found} | {name: beside[name] for name in ("bm25", "source_order", "oracle", *SENTINELS)}


def cells(scores: list[Any], gains: list[Any], *, scored: bool = True) -> list[str]:
    """The cells of one row; those of the peers are empty when our values are an expectation and not of ``scores``."""
    ours, theirs = spreads(scores, gains, [10]), peers(scores, gains) if scored else None
    made = []
    for name in HEADLINE:
        expected, best, worst = (float(np.mean(side)) for side in ours[name])
        spread = f" ({worst:.4f} to {best:.4f})" if best - worst > 5e-5 else ""
        made.append("no value" if np.isnan(expected) else f"{expected:.4f}{spread}")
        made += ["", ""] if theirs is None else [f"{theirs.pytrec_eval[name]:.4f}", f"{theirs.mteb[name]:.4f}"]
    return made


def main() -> None:
    """Score and print, a table a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    for path in parser.parse_args().files:
        raw = path.read_bytes()
        groups = read_groups(raw)
        gains = [groups.gains[place] for place in groups.judged]
        sizes = [len(row) for row in gains]
        print(f"\n{path.name}: {len(gains)} judged groups of {len(groups)}, {min(sizes)} to {max(sizes)} candidates\n")
        heads = ["scorer"]
        for name in ("nDCG@10", "MRR@10", "MAP"):
            heads += [name, "pytrec_eval", "mteb"]
        print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
        for name, rows in scorers(groups, read_texts(raw, path.name)).items():
            made = cells([rows[place] for place in groups.judged], gains, scored=name != "random")
            print(f"| {' | '.join([name, *made])} |")


if __name__ == "__main__":
    main()
