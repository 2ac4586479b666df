"""The queries whose ranking moved most between two sides, with the candidates that moved. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from harness.derive_raw import raw_bytes
from harness.diff_values import MovedQuery, Reranked, Rows, Side
from harness.records import GROUPS, step_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MOVED_SHOWN, CANDIDATES_SHOWN = 5, 4


class _Doc(msgspec.Struct, frozen=True):
    id: str
    gain: float


class _Group(msgspec.Struct, frozen=True):
    query_id: str
    query: str
    candidates: tuple[_Doc, ...]


def moved_queries(
    baseline: Side, candidate: Side, before: str, after: str, rows: Rows
) -> tuple[tuple[MovedQuery, ...], int]:
    """The queries whose nDCG@10 moved most, the largest change first, and how many moved at all."""
    import numpy as np

    one, other = (side.artifact["ndcg_at_10"] for side in rows)
    change = np.nan_to_num(np.abs(other - one))
    order = np.argsort(-change, kind="stable")[:MOVED_SHOWN]
    starts = np.concatenate(([0], np.cumsum(rows.candidate.candidates)))
    lines = raw_bytes(candidate.read, GROUPS).split(b"\n") if change.any() else []
    scores = [
        np.frombuffer(raw_bytes(side.read, f"{step_folder('L3', name)}/artifact.f32"), dtype="<f4")
        for side, name in ((baseline, before), (candidate, after))
    ]
    found = []
    for place in order[change[order] > 0].tolist():
        group = msgspec.json.decode(lines[place], type=_Group)
        its = slice(int(starts[place]), int(starts[place + 1]))
        moved = _reranked(group, scores[0][its], scores[1][its])
        found.append(
            MovedQuery(
                query_id=group.query_id,
                query=group.query,
                baseline=float(one[place]),
                candidate=float(other[place]),
                candidates=moved,
            )
        )
    return tuple(found), int(np.count_nonzero(change))


def _reranked(group: _Group, was: NDArray[np.float32], now: NDArray[np.float32]) -> tuple[Reranked, ...]:
    """The candidates whose rank changed, relevant ones first, then by how far they went."""
    before, after = _ranks(was), _ranks(now)
    found = [
        Reranked(
            id=doc.id,
            gain=doc.gain,
            baseline_rank=before[place],
            candidate_rank=after[place],
            baseline_score=float(was[place]),
            candidate_score=float(now[place]),
        )
        for place, doc in enumerate(group.candidates)
        if before[place] != after[place]
    ]
    found.sort(key=lambda doc: (doc.gain <= 0, -abs(doc.candidate_rank - doc.baseline_rank)))
    return tuple(found[:CANDIDATES_SHOWN])


def _ranks(scores: NDArray[np.float32]) -> list[float]:
    """The rank of each score, 1 for the highest; equal scores share the mean of their ranks."""
    import numpy as np

    higher = (scores[None, :] > scores[:, None]).sum(axis=1)
    equal = (scores[None, :] == scores[:, None]).sum(axis=1)
    ranks: list[float] = (higher + (equal + 1) / 2).astype(np.float64).tolist()
    return ranks
