"""The measurements of L3 from the sealed scores and groups, with the rows of other scorers on the same groups. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness import data, derive_notes
from harness.derive_raw import Read, make, raw_bytes, raw_floats, raw_record
from harness.errors import RecordError
from harness.raw import PerQuery, QueryRow, QueryScores, ScoresRaw
from harness.records import GROUPS, Measurement, Request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

K = 10
SENTINELS = ("constant", "length", "source_order")

Scorer = Callable[[data.Group], Sequence[float]]
_METRICS = {"ndcg_at_10": "ndcg_at_10", "mrr_at_10": "mrr_at_10", "map": "average_precision"}


class _Scored(NamedTuple):
    """The groups and the logits of both sides, each of shape (candidates,) by group."""

    raw: ScoresRaw
    groups: tuple[data.Group, ...]
    artifact: list[NDArray[np.float32]]
    reference: list[NDArray[np.float32]]


def measurements(request: Request, read: Read) -> list[Measurement]:
    """All metrics of L3, over the judged groups: those with a positive and a negative. Raises ``RecordError``."""
    from harness.metrics.logits import non_finite_count

    scored = _load(request, read)
    rows = [row for row in _rows(scored) if row.judged]
    found = [
        make("groups", len(scored.groups)),
        make("judged_groups", len(rows)),
        make("scored_pairs", scored.raw.shape[0], note=derive_notes.lengths(scored.raw)),
        make("non_finite_scores", non_finite_count(*scored.artifact, *scored.reference)),
        make(
            "rerank_pairs_per_s",
            scored.raw.shape[0] / scored.raw.artifact_seconds if scored.raw.artifact_seconds > 0 else None,
            samples=scored.raw.shape[0],
            note=derive_notes.reference_speed(scored.raw),
        ),
    ]
    for metric, field in _METRICS.items():
        found += _means(request, metric, field, rows)
    return found + _others(scored, rows)


def per_query(request: Request, read: Read) -> PerQuery:
    """One row a group: the metrics of artifact and reference. Raises ``RecordError``."""
    return PerQuery(format=1, rows=tuple(_rows(_load(request, read))))


def _load(request: Request, read: Read) -> _Scored:
    import numpy as np

    raw = raw_record(read, f"{request.step}/scores.json", ScoresRaw)
    groups = data.read_groups(raw_bytes(read, GROUPS), GROUPS)
    sizes = [len(group.candidates) for group in groups]
    if raw.shape[0] != sum(sizes) or raw.groups != len(groups):
        raise RecordError(
            f"{request.step}/scores.json: expected {len(groups)} groups of {sum(sizes)} pairs, as in {GROUPS},"
            f" got {raw.groups} of {raw.shape[0]}; the root is not whole"
        )
    ends = np.cumsum(sizes)[:-1]
    artifact, reference = (
        np.split(raw_floats(read, f"{request.step}/{side}.f32", raw.shape[0]), ends)
        for side in ("artifact", "reference")
    )
    return _Scored(raw, groups, artifact, reference)


def _rows(scored: _Scored) -> list[QueryRow]:
    found = []
    for group, artifact, reference in zip(scored.groups, scored.artifact, scored.reference, strict=True):
        gains = _gains(group)
        positives = sum(gain > 0 for gain in gains)
        found.append(
            QueryRow(
                query_id=group.query_id,
                candidates=len(gains),
                positives=positives,
                judged=0 < positives < len(gains),
                artifact=_query_scores(artifact, gains),
                reference=_query_scores(reference, gains),
            )
        )
    return found


def _query_scores(scores: NDArray[np.float32], gains: list[float]) -> QueryScores | None:
    from harness.metrics.ranking import group_metrics

    found = group_metrics(scores, gains, K)
    if found is None:
        return None
    return QueryScores(
        ndcg_at_10=found.ndcg.expected,
        mrr_at_10=found.mrr.expected,
        average_precision=found.average_precision.expected,
    )


def _gains(group: data.Group) -> list[float]:
    return [doc.gain for doc in group.candidates]


def _means(request: Request, metric: str, field: str, rows: list[QueryRow]) -> list[Measurement]:
    """The artifact's mean and its drop against the reference, paired by query."""
    from harness.metrics.ranking import paired_bootstrap

    pairs = [
        (getattr(row.reference, field), getattr(row.artifact, field))
        for row in rows
        if row.reference is not None and row.artifact is not None
    ]
    if not rows or len(pairs) < len(rows):
        note = f"{len(rows) - len(pairs)} groups have a score that is not finite" if rows else "no group can be judged"
        return [make(metric, None, note=note), make(f"{metric}_drop", None, note=note)]
    resamples = request.options.L3.resamples if request.options.L3 is not None else 10_000
    drops = [before - after for before, after in pairs]
    interval = paired_bootstrap(drops, request.seed, resamples)
    return [
        make(metric, _mean([after for _, after in pairs]), samples=len(rows)),
        make(
            f"{metric}_drop",
            _mean(drops) if interval is not None else None,
            samples=len(rows),
            interval=(interval.low, interval.high) if interval is not None else None,
            note="" if interval is not None else "one group gives no interval",
        ),
    ]


def _others(scored: _Scored, rows: list[QueryRow]) -> list[Measurement]:
    """The rows beside the model, and how far the model is above chance and above the sentinels."""
    judged = [group for group in scored.groups if 0 < sum(gain > 0 for gain in _gains(group)) < len(group.candidates)]
    artifacts, references = [row.artifact for row in rows], [row.reference for row in rows]
    values = {"reference": _mean([item.ndcg_at_10 for item in references if item]) if all(references) else None}
    values |= {name: _ndcg(judged, scorer) for name, scorer in _scorers().items()}
    model = _mean([item.ndcg_at_10 for item in artifacts if item]) if all(artifacts) else None
    note = "a score is not finite" if rows else "no group can be judged"
    best = max((value for name in SENTINELS if (value := values[name]) is not None), default=None)
    found = [
        make(f"row_ndcg_at_10.{name}", value, samples=len(rows), note="" if value is not None else note)
        for name, value in values.items()
    ]
    for metric, other in (("ndcg_at_10_over_random", values["random"]), ("ndcg_at_10_over_sentinels", best)):
        above = model - other if model is not None and other is not None else None
        found.append(make(metric, above, samples=len(rows), note="" if above is not None else note))
    return found


def _scorers() -> dict[str, Scorer]:
    """Scorers without a model. Random and constant are one tie over the whole group: the same expectation."""
    from harness.metrics import lexical

    def texts(group: data.Group) -> list[str]:
        return [doc.text for doc in group.candidates]

    return {
        "source_order": lambda group: [-place for place in range(len(group.candidates))],
        "random": lambda group: [0.0] * len(group.candidates),
        "oracle": _gains,
        "constant": lambda group: [0.0] * len(group.candidates),
        "length": lambda group: lexical.length_scores(texts(group)),
        "word_overlap": lambda group: lexical.overlap_scores(group.query, texts(group)),
        "bm25": lambda group: lexical.bm25_scores(group.query, texts(group)),
    }


def _ndcg(groups: list[data.Group], scorer: Scorer) -> float | None:
    from harness.metrics.ranking import ndcg

    found = [ndcg(scorer(group), _gains(group), K) for group in groups]
    return _mean([item.expected for item in found if item is not None])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
