"""The rows of L3 on both sides of a comparison, as columns. Pure.

They were derived again from the scores when the roots were judged, so what is read here is what the scores give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from harness.derive_raw import raw_bytes
from harness.diff_values import Side
from harness.metrics.rerank_names import HEADLINE
from harness.records import step_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Columns = dict[str, NDArray[np.float64]]

_Means = msgspec.defstruct("_Means", [(name, float, math.nan) for name in HEADLINE], frozen=True, gc=False)


class _Scores(msgspec.Struct, frozen=True, gc=False):
    expected: _Means  # type: ignore[valid-type]


class _Row(msgspec.Struct, frozen=True, gc=False):
    """Of a ``QueryRow`` what is compared: the rest of it is passed over, which is most of the file."""

    query_id: str
    candidates: int
    judged: bool
    artifact: _Scores | None
    reference: _Scores | None


class _PerQuery(msgspec.Struct, frozen=True, gc=False):
    rows: tuple[_Row, ...]


class Queries(NamedTuple):
    """The queries of one step. Each array has the shape (queries,); a metric that a query does not have is NaN."""

    ids: list[str]
    candidates: NDArray[np.int64]
    judged: NDArray[np.bool_]
    artifact: Columns
    reference: Columns


def queries(baseline: Side, candidate: Side, before: str, after: str) -> tuple[Queries, Queries] | None:
    """The queries of both sides, None unless they are the same."""
    if not all(side.measured(name, "L3") for side, name in ((baseline, before), (candidate, after))):
        return None
    one, other = (
        _columns(raw_bytes(side.read, f"{step_folder('L3', name)}/per_query.json"))
        for side, name in ((baseline, before), (candidate, after))
    )
    return (one, other) if one.ids == other.ids else None


def _columns(raw: bytes) -> Queries:
    import numpy as np

    rows = msgspec.json.decode(raw, type=_PerQuery).rows
    return Queries(
        ids=[row.query_id for row in rows],
        candidates=np.array([row.candidates for row in rows], dtype=np.int64),
        judged=np.array([row.judged for row in rows], dtype=np.bool_),
        artifact=_means([row.artifact for row in rows]),
        reference=_means([row.reference for row in rows]),
    )


def _means(scores: Sequence[_Scores | None]) -> Columns:
    import numpy as np

    nothing = _Means()
    found: list[Any] = [nothing if one is None else one.expected for one in scores]
    return {name: np.array([getattr(one, name) for one in found], dtype=np.float64) for name in HEADLINE}
