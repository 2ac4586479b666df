"""The HTML of L3 on one target: the scorers on its groups, how queries moved, and the queries, worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.metrics.rerank_names import HEADLINE
from harness.raw import QueryRow
from harness.report import escape, plots, view, view_figures, wording
from harness.report.markup import Html, code, details, el, join, table
from harness.report.section_perf import plotted
from harness.report.source import Source
from harness.root import RootRecords

MOST_QUERIES = 100
"""Rows of the per-query table. The root holds all of them; a page with fifty thousand would not open."""


def section(records: RootRecords, source: Source, name: str, mark: str) -> Iterator[Html]:
    """What is shown of L3 on one target; nothing of a smoke test, whose figures claim nothing."""
    if view.smoke(records, name):
        return
    rows, queries = view_figures.scorer_rows(records, name), source.queries(name)
    drawn: list[Html] = []
    bounds = str(view.bounds(records, name) or "groups that were not counted")
    if rows:
        own = next(m for scorer, m in rows if scorer == view_figures.OWN)
        values = [(scorer, m.value) for scorer, m in rows if isinstance(m.value, float)]
        drawn.append(plots.scorers(values, own.interval, bounds, mark))
    scored = [] if isinstance(queries, str) else sorted(filter(_paired, queries), key=_drop, reverse=True)
    if scored:
        drawn.append(plots.moves([_drop(row) for row in scored], bounds, mark))
    yield from plotted(drawn, queries)
    if rows:
        yield _scorers(records, name, bounds)
    if not isinstance(queries, str):
        yield _queries(queries, scored, source.query_texts(), name)


def _scorers(records: RootRecords, name: str, bounds: str) -> Html:
    """The scorers beside the model: nDCG, MRR and MAP with their intervals, best nDCG first."""
    found = [dict(view_figures.scorer_rows(records, name, metric)) for metric in HEADLINE]
    rows = [
        (scorer, *(wording.measured(column[scorer]) if scorer in column else "–" for column in found))
        for scorer in found[0]
    ]
    caption = f"Scorers on the groups of {name}: {bounds}"
    return details(f"{len(rows)} scorers", table(caption, ("Scorer", "nDCG@10", "MRR@10", "MAP"), rows, "stack"))


def _queries(queries: Sequence[QueryRow], scored: Sequence[QueryRow], texts: dict[str, str], name: str) -> Html:
    """The queries that lost most, then the rest in order of loss; those without a value first, since nobody can judge them."""
    without = [row for row in queries if not _paired(row)]
    ordered = [*without, *scored]
    rows = [
        (
            join([code(row.query_id), el("span", escape.shorten(texts.get(row.query_id, ""), 160), class_="why")]),
            f"{row.positives} of {row.candidates}",
            *(wording.number(value) for value in _sides(row)),
            _change(row),
        )
        for row in ordered[:MOST_QUERIES]
    ]
    left_out = len(ordered) - len(rows)
    caption = f"Queries of {name}, largest loss of nDCG@10 first" + (
        f"; {left_out:,} more are in the root" if left_out else ""
    )
    heads = ("Query", "Relevant", "nDCG@10", "in PyTorch", "MRR@10", "in PyTorch", "nDCG@10 change")
    return details(f"Per-query ranking: {len(queries):,} queries, worst first", table(caption, heads, rows, "stack"))


def _sides(row: QueryRow) -> tuple[float | None, ...]:
    own, other = row.artifact, row.reference
    names = ("ndcg_at_10", "mrr_at_10")
    return tuple(side.expected.get(name) if side else None for name in names for side in (own, other))


def _paired(row: QueryRow) -> bool:
    return all(side is not None and "ndcg_at_10" in side.expected for side in (row.artifact, row.reference))


def _drop(row: QueryRow) -> float:
    """PyTorch's nDCG@10 less the artifact's; 0 without both."""
    if row.artifact is None or row.reference is None:
        return 0.0
    return row.reference.expected["ndcg_at_10"] - row.artifact.expected["ndcg_at_10"]


def _change(row: QueryRow) -> str:
    if not _paired(row):
        return "no value"
    return f"{-_drop(row):+.4f}" if _drop(row) else "0"
