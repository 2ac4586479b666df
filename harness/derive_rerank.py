"""The measurements of L3 from the sealed scores and groups, with the rows of other scorers on the same groups. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from harness import derive_notes
from harness.derive_raw import Read, make, raw_bytes, raw_floats, raw_record
from harness.errors import RecordError
from harness.metrics import rerank_names
from harness.metrics.rerank_names import HEADLINE, SENTINELS, cut
from harness.raw import PerQuery, QueryRow, QueryScores, ScoresRaw
from harness.records import GROUPS, Limits, Measurement, Request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.metrics.ranked import Spread
    from harness.metrics.rows import Rows
    from harness.metrics.scored import Bench
    from harness.rerank_groups import Groups

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class _Scored:
    """The groups and the logits of both sides; what is derived from them for the means and for the rows is derived once."""

    raw: ScoresRaw
    groups: Groups
    artifact: Rows
    reference: Rows
    cuts: tuple[int, ...]

    @cached_property
    def spreads(self) -> tuple[dict[str, Spread], dict[str, Spread]]:
        """The metrics of artifact and reference in every group."""
        from harness.metrics.ranking import spreads

        one, other = (spreads(side, self.groups.gains, self.cuts) for side in (self.artifact, self.reference))
        return one, other

    @cached_property
    def alike(self) -> dict[str, NDArray[np.float64]]:
        """How alike artifact and reference rank each group."""
        from harness.metrics.scored import agreements

        return agreements(self.reference, self.artifact, self.cuts)


@dataclass(frozen=True, eq=False)
class Queries:
    """The groups of one step by column, for whoever compares two. Each array has the shape (queries,); what a query does not have is NaN.

    ``artifact`` and ``reference`` are by metric, expected over ties.
    """

    ids: Sequence[str]
    candidates: NDArray[np.int64]
    judged: NDArray[np.int64]
    artifact: dict[str, NDArray[np.float64]]
    reference: dict[str, NDArray[np.float64]]


class _Column(NamedTuple):
    """One measurement to be: its name and a value a judged group, NaN where a score is not finite."""

    name: str
    values: NDArray[np.float64]


def measurements(request: Request, read: Read) -> list[Measurement]:
    """All metrics of L3, over the judged groups: those with a positive and a negative. Raises ``RecordError``."""
    from harness.metrics.logits import non_finite_count

    scored = _load(request, read)
    pairs, seconds = scored.raw.shape[0], scored.raw.artifact_seconds
    return [
        make("groups", len(scored.groups)),
        make("judged_groups", len(scored.groups.judged)),
        make("scored_pairs", pairs, note=derive_notes.lengths(scored.raw)),
        make("non_finite_scores", non_finite_count(scored.artifact.flat, scored.reference.flat)),
        make(
            "rerank_pairs_per_s",
            pairs / seconds if seconds > 0 else None,
            samples=pairs,
            note=derive_notes.reference_speed(scored.raw),
        ),
        *_ranking(request, scored),
    ]


def per_query(request: Request, read: Read) -> PerQuery:
    """One row a group: the metrics of artifact and reference, and how alike they rank. Raises ``RecordError``."""
    import numpy as np

    scored = _load(request, read)
    gains, alike = scored.groups.gains, {n: its for n, its in scored.alike.items() if not np.isnan(its).all()}
    sides = [_query_scores(found) for found in scored.spreads]
    said = _each(alike, lambda values: {name: one for name, one in values.items() if not math.isnan(one)})
    agreement = said if alike else [{}] * len(scored.groups)
    columns = (gains.sizes.tolist(), gains.count(gains.flat > 0).tolist(), *sides, agreement)
    rows = tuple(
        QueryRow(
            query_id=query_id,
            candidates=size,
            positives=positives,
            judged=0 < positives < size,
            artifact=artifact,
            reference=reference,
            agreement=agrees,
        )
        for query_id, size, positives, artifact, reference, agrees in zip(
            scored.groups.counted.ids, *columns, strict=True
        )
    )
    return PerQuery(format=1, rows=rows)


def queries(request: Request, read: Read) -> Queries:
    """The headline metrics of every query, as ``per_query`` has them. Raises ``RecordError``."""
    scored = _load(request, read)
    one, other = ({name: found[name].expected for name in HEADLINE} for found in scored.spreads)
    groups = scored.groups
    return Queries(groups.counted.ids, groups.gains.sizes, groups.judged, one, other)


def limits(request: Request) -> Limits:
    """The limits of L3 that the step is planned with: they say which cut-offs and which rows are measured."""
    return next((step.limits for step in request.target.steps if step.tier == "L3"), {})


def _load(request: Request, read: Read) -> _Scored:
    from harness.rerank_groups import read_groups

    raw = raw_record(read, f"{request.step}/scores.json", ScoresRaw)
    groups = read_groups(raw_bytes(read, GROUPS))
    count, pairs = len(groups), groups.gains.flat.size
    if raw.shape[0] != pairs or raw.groups != count:
        raise RecordError(
            f"{request.step}/scores.json: expected {count} groups of {pairs} pairs, as in {GROUPS},"
            f" got {raw.groups} of {raw.shape[0]}; the root is not whole"
        )
    sides = (raw_floats(read, f"{request.step}/{side}.f32", pairs).tobytes() for side in ("artifact", "reference"))
    return _scored(raw, groups, *sides, rerank_names.cuts(limits(request)))


@lru_cache(maxsize=1)
def _scored(raw: ScoresRaw, groups: Groups, artifact: bytes, reference: bytes, cuts: tuple[int, ...]) -> _Scored:
    import numpy as np

    one, other = (groups.gains.like(np.frombuffer(side, dtype="<f4")) for side in (artifact, reference))
    return _Scored(raw, groups, one, other, cuts)


def _query_scores(found: dict[str, Spread]) -> list[QueryScores | None]:
    """By group; ``worst`` and ``best`` only where the ties leave something open."""
    import numpy as np

    means = {name: its.expected for name, its in found.items()}
    rows = _each(means, lambda values: QueryScores(expected=values, worst={}, best={}))
    differ = np.array([its.best > its.worst for its in found.values()])
    for place in np.flatnonzero(differ.any(axis=0)).tolist():
        open_ = [its for its, open_ in zip(found.items(), differ[:, place].tolist(), strict=True) if open_]
        rows[place] = msgspec.structs.replace(
            rows[place],
            worst={name: float(its.worst[place]) for name, its in open_},
            best={name: float(its.best[place]) for name, its in open_},
        )
    without = np.isnan(found["map"].expected).tolist()  # all are NaN, or none is
    return [None if missing else row for row, missing in zip(rows, without, strict=True)]


def _each(columns: Mapping[str, NDArray[np.float64]], make: Callable[[dict[str, float]], T]) -> list[T]:
    """What ``make`` gives for the values of each group by name. Few candidates can be ranked in few ways: groups share what is made."""
    known: dict[tuple[float, ...], T] = {}
    found: list[T] = []
    for values in zip(*(column.tolist() for column in columns.values()), strict=True):
        one = known.get(values)
        if one is None:
            one = known[values] = make(dict(zip(columns, values, strict=True)))
        found.append(one)
    return found


# --- the ranking metrics of the artifact and of the scorers beside it ---------------------------------------------------


def _ranking(request: Request, scored: _Scored) -> list[Measurement]:
    """Means with intervals, the rows of other scorers, and the chance that ranking at random passes."""
    from harness import derive_chance
    from harness.metrics.ranking import spreads
    from harness.metrics.scored import Bench

    asked, groups, cuts = limits(request), scored.groups, scored.cuts
    if not len(groups.judged):
        return _nothing(cuts, asked)
    resamples = request.options.L3.resamples if request.options.L3 is not None else 10_000
    artifact, reference, gains = map(groups.of_judged, (scored.artifact, scored.reference, groups.gains))
    scorers = {
        **groups.scorers,
        "reversed": scored.reference.like(-scored.reference.flat),
        "reference": scored.reference,
    }
    of_judged = {name: groups.of_judged(scores) for name, scores in scorers.items()}
    own, theirs = (
        scored.spreads
        if reference is scored.reference
        else (spreads(side, gains, cuts) for side in (artifact, reference))
    )
    known = {
        **groups.spreads(cuts),
        "reversed": spreads(of_judged["reversed"], gains, cuts),
        "reference": theirs,
    }
    bench = Bench.of(gains, reference, known, cuts)
    alike = {name: values[groups.judged] for name, values in scored.alike.items()}
    found = bench.columns(artifact, rerank_names.names(cuts), own, alike)
    columns = [_Column(name, values) for name, values in found.items()]
    columns += _rows(bench, of_judged, known, asked)
    means = _means(bench, columns, request.seed, resamples)
    passed = derive_chance.random_passes(bench, asked, request.seed, resamples)
    return [
        *means,
        make("random_pass_chance", passed.value, interval=passed.interval, samples=passed.draws, note=passed.note),
    ]


def _nothing(cuts: Sequence[int], asked: Limits) -> list[Measurement]:
    """The measurements where no group can be judged."""
    names = [*rerank_names.names(cuts), *(f"row_{name}.{scorer}" for name, scorer in _row_names(cuts))]
    names += [f"sentinel.{scorer}.{name}" for scorer in SENTINELS for name in rerank_names.asked(asked)]
    return [make(name, None, samples=0, note="no group can be judged") for name in (*names, "random_pass_chance")]


def _row_names(cuts: Sequence[int]) -> list[tuple[str, str]]:
    names = [name for name in rerank_names.names(cuts) if cut(name).base in HEADLINE]
    return [(name, scorer) for name in names for scorer in rerank_names.SCORERS]


def _rows(bench: Bench, scorers: dict[str, Rows], known: dict[str, dict[str, Spread]], asked: Limits) -> list[_Column]:
    """The headline metrics of every scorer, and for the sentinels whatever the limits look at."""
    rows, in_place = _row_names(bench.cuts), rerank_names.asked(asked)
    headline = list(dict.fromkeys(name for name, _ in rows))
    values = {
        scorer: bench.columns(scores, [*headline, *(in_place if scorer in SENTINELS else ())], known[scorer])
        for scorer, scores in scorers.items()
    }
    found = [_Column(f"row_{name}.{scorer}", values[scorer][name]) for name, scorer in rows]
    return found + [
        _Column(f"sentinel.{scorer}.{name}", values[scorer][name]) for scorer in SENTINELS for name in in_place
    ]


def _means(bench: Bench, columns: Sequence[_Column], seed: int, resamples: int) -> list[Measurement]:
    """Each column's mean with its interval. Columns that count the same groups share their resamples."""
    import numpy as np

    from harness.metrics.bootstrap import bootstrap

    counted = [bench.counted(column.name) for column in columns]
    found: dict[int, Measurement] = {}
    for mask in {rows.tobytes(): rows for rows in counted}.values():
        places = [place for place, rows in enumerate(counted) if (rows == mask).all()]
        values = np.stack([columns[place].values[mask] for place in places], axis=1)
        for place, interval in zip(places, bootstrap(values, seed, resamples), strict=True):
            name, column = columns[place].name, columns[place].values[mask]
            left = len(mask) - len(column)
            note = f"{left} of {len(mask)} judged groups are left out: every order gives the same there" if left else ""
            if interval is not None:
                ends = (interval.low, interval.high)
                found[place] = make(name, interval.mean, interval=ends, samples=len(column), note=note)
                continue
            missing = int(np.isnan(column).sum())
            if missing:
                note = f"{missing} groups have a score that is not finite"
            elif len(column) == 0:
                note = "in every judged group every order of the candidates gives the same, so it says nothing of the ranking"
            elif len(column) == 1:
                note = "one group gives no interval"
            found[place] = make(name, None, samples=len(column), note=note)
    return [found[place] for place in range(len(columns))]
