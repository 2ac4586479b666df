"""Which groups, and which candidates of each, are scored: selection and the cut of a group. Pure.

The rules, all deterministic, so that one source and one seed give one set:

- ``select: first`` takes groups in source order and reads no further than it must. ``seeded`` takes those whose BLAKE3 of seed and
  query id is smallest: a sample without replacement that does not depend on the source's order. ``stratified`` takes a share of
  each stratum (by number of positives), the largest remainders rounded up, and inside a stratum does as ``seeded``.
- A group is cut to ``candidates``: positives first, in source order, but one place stays for a negative where the group has one,
  since without a negative nothing can be ranked; then negatives, in source order or by the smallest BLAKE3.
- ``pairs`` ends the selection before the first group that would go beyond it; a group is never split by it.
- What is kept stands in source order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from evidence.manifest import digest_of
from harness.data import Group
from harness.errors import LadderError
from harness.records import Record, RerankOptions, TaskFact


class Bounds(Record, frozen=True):
    """What was asked for, as ``RerankOptions`` says it, with the ladder's seed."""

    groups: int | None = None
    candidates: int | None = None
    pairs: int | None = None
    select: Literal["first", "seeded", "stratified"] = "first"
    negatives: Literal["first", "seeded"] = "first"
    unjudged: Literal["keep", "drop"] = "keep"
    seed: int = 0


class Selected(Record, frozen=True):
    """The bounded groups. ``read`` groups of the source were looked at, which is all there are when ``whole``.

    ``left_out`` of them could not be judged and were dropped by rule. The rest is of the whole source, bounded or not: ``elsewhere``
    counts relevant documents that are no candidate, ``without_candidates`` queries with a judgement and no candidates,
    ``without_judgement`` those with candidates and no judgement that the source itself passes over, ``repeated`` candidates that
    a list names again. ``task`` is what mteb says of its task.
    """

    groups: tuple[Group, ...]
    read: int
    whole: bool
    left_out: int = 0
    elsewhere: int = 0
    without_candidates: int = 0
    without_judgement: int = 0
    repeated: int = 0
    task: TaskFact | None = None


def bounds_of(options: RerankOptions, seed: int) -> Bounds:
    """The bounds that a ladder asks for."""
    names = [name for name in Bounds.__struct_fields__ if name != "seed"]
    return Bounds(seed=seed, **{name: getattr(options, name) for name in names})


def judgeable(group: Group) -> bool:
    """Whether a ranking of the group can be right or wrong: it has a positive and a candidate that is none."""
    return 0 < sum(doc.gain > 0 for doc in group.candidates) < len(group.candidates)


def select(groups: Iterable[Group], bounds: Bounds, where: str) -> Selected:
    """Bound the groups of a source. With ``first`` nothing is taken from ``groups`` that the result does not need.

    Raises ``LadderError`` when nothing is left; ``where`` is the source's name in messages.
    """
    found = _first(iter(groups), bounds) if bounds.select == "first" else _sample(groups, bounds)
    if not found.groups:
        got = f"none of {found.read} ({found.left_out} without both a positive and a negative)"
        raise LadderError(f"{where}: expected at least one group within the bounds, got {got}; widen them")
    return found


def cut(group: Group, bounds: Bounds) -> Group:
    """The group with at most ``bounds.candidates`` candidates, by the rule at the top of this module."""
    most, docs = bounds.candidates, group.candidates
    if most is None or len(docs) <= most:
        return group
    positives = [place for place, doc in enumerate(docs) if doc.gain > 0]
    negatives = [place for place, doc in enumerate(docs) if doc.gain <= 0]
    if bounds.negatives == "seeded":
        negatives.sort(key=lambda place: _order(bounds.seed, group.query_id, docs[place].id))
    kept = positives[: most - 1] if negatives else positives[:most]
    kept += negatives[: most - len(kept)]
    return msgspec.structs.replace(group, candidates=tuple(docs[place] for place in sorted(kept)))


def stratum(group: Group) -> str:
    """The stratum of a group, by its number of positives."""
    positives = sum(doc.gain > 0 for doc in group.candidates)
    if not judgeable(group):
        return "not judged"
    return "1 positive" if positives == 1 else "2 to 4 positives" if positives < 5 else "5 positives or more"


def whole(groups: Sequence[Group]) -> Selected:
    """All groups of a source, without a bound."""
    return Selected(groups=tuple(groups), read=len(groups), whole=True)


def _first(groups: Iterator[Group], bounds: Bounds) -> Selected:
    kept: list[Group] = []
    read = left_out = pairs = 0
    while bounds.groups is None or len(kept) < bounds.groups:
        group = next(groups, None)
        if group is None:
            return Selected(groups=tuple(kept), read=read, whole=True, left_out=left_out)
        read += 1
        if bounds.unjudged == "drop" and not judgeable(group):
            left_out += 1
            continue
        group = cut(group, bounds)
        pairs += len(group.candidates)
        if bounds.pairs is not None and pairs > bounds.pairs:
            break
        kept.append(group)
        if pairs == bounds.pairs:
            break
    return Selected(groups=tuple(kept), read=read, whole=False, left_out=left_out)


def _sample(groups: Iterable[Group], bounds: Bounds) -> Selected:
    everything = list(groups)
    fit = [group for group in everything if bounds.unjudged == "keep" or judgeable(group)]
    order = sorted(range(len(fit)), key=lambda place: _order(bounds.seed, fit[place].query_id))
    if bounds.select == "stratified" and bounds.groups is not None:
        order = _shares(fit, order, bounds.groups)
    kept: list[tuple[int, Group]] = []
    pairs = 0
    for place in order[: bounds.groups]:
        group = cut(fit[place], bounds)
        pairs += len(group.candidates)
        if bounds.pairs is not None and pairs > bounds.pairs:
            break
        kept.append((place, group))
    return Selected(
        groups=tuple(group for _, group in sorted(kept, key=lambda item: item[0])),
        read=len(everything),
        whole=True,
        left_out=len(everything) - len(fit),
    )


def _shares(groups: Sequence[Group], order: Sequence[int], wanted: int) -> list[int]:
    """The first ``wanted`` of ``order``, as many of each stratum as its share of all, by largest remainder; in the order given."""
    sizes = Counter(stratum(group) for group in groups)
    wanted = min(wanted, len(groups))
    exact = {name: wanted * size / len(groups) for name, size in sizes.items()}
    shares = {name: int(value) for name, value in exact.items()}
    rest = sorted(sizes, key=lambda name: (shares[name] - exact[name], name))
    for name in rest[: wanted - sum(shares.values())]:
        shares[name] += 1
    kept = []
    for place in order:
        name = stratum(groups[place])
        if shares[name] > 0:
            shares[name] -= 1
            kept.append(place)
    return kept


def _order(seed: int, *names: str) -> str:
    return digest_of("\n".join((str(seed), *names)).encode("utf-8"))
