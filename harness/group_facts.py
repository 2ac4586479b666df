"""What a plan says of the groups that are scored, and the same counted again by a verifier: source, bounds, and all that is odd. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from evidence.manifest import digest_of
from harness.bounds import Bounds, Selected, bounds_of
from harness.data import Group, render_groups
from harness.records import GROUPS, DataFact, DataSource, RerankOptions, Value

FEW = 10
"""With fewer candidates than the cut-off of the metrics, recall and hit rate at it are 1 by construction."""


_RULES = {
    "without_positive": "without a positive candidate: scored, left out of the means",
    "positives_only": "with positive candidates only: scored, left out of the means",
    "graded": "with graded gains: nDCG uses the gains, the other metrics any gain above 0",
    "same_text_twice": "with the same text twice: kept as the source has them, each a tie",
    "same_text_two_gains": "with one text under two gains: kept, though no scorer can rank both right",
    "few_candidates": f"with fewer than {FEW} candidates: recall and hit rate at {FEW} say nothing of them",
    "positives_first": "with all positives first, so source order alone ranks them perfectly",
    "same_query_again": "with the query of an earlier group: scored as one more; not independent, so intervals are too narrow",
}
"""What is counted of groups by kind, and what is done with them."""

_SOURCE_RULES = {
    "left_out": "groups without both a positive and a negative dropped before the bound",
    "relevant_elsewhere": "relevant documents are in no candidate list: no ranking can find them",
    "queries_without_candidates": "judged queries have no candidates: not ranked, so no figure says anything of them",
    "queries_without_judgement": "queries with candidates have no judgement: not ranked, as mteb does not rank them",
    "candidates_repeated": "candidates were named again in their list: ranked once, at the first place",
}
"""What only the source can tell, and what is done with it."""


class Counted(NamedTuple):
    """What is counted of groups: ``digest`` of their one spelling; by group id, query, candidates, positives; how many are of each kind."""

    digest: str
    ids: Sequence[str]
    queries: Sequence[str]
    sizes: Sequence[int]
    positives: Sequence[int]
    kinds: Mapping[str, int]

    def joined(self, other: Counted) -> Counted:
        """Both counted together."""
        queries = [*self.queries, *other.queries]
        kinds = {kind: count + other.kinds[kind] for kind, count in self.kinds.items()}
        return Counted(
            self.digest,
            [*self.ids, *other.ids],
            queries,
            [*self.sizes, *other.sizes],
            [*self.positives, *other.positives],
            kinds | {"same_query_again": _again(queries)},
        )


def counted(groups: Sequence[Group], digest: str | None = None) -> Counted:
    """Count groups; ``digest`` where it is known."""
    positives: list[int] = []
    kinds = dict.fromkeys(_RULES, 0)
    for group in groups:
        gains = [doc.gain for doc in group.candidates]
        positives.append(len(gains) - gains.count(0))
        for kind in _kinds(group, gains, positives[-1]):
            kinds[kind] += 1
    queries = [group.query for group in groups]
    kinds["same_query_again"] = _again(queries)
    return Counted(
        digest=digest_of(render_groups(groups)) if digest is None else digest,
        ids=[group.query_id for group in groups],
        queries=queries,
        sizes=[len(group.candidates) for group in groups],
        positives=positives,
        kinds=kinds,
    )


def facts(selected: Selected, *, source: str, bounds: Bounds) -> DataFact:
    """What a plan says of bounded groups: digest of the rendered bytes, rows, bounds, and what was counted, with the rule for it."""
    beyond = {
        "read": selected.read,
        "source_read_to_its_end": int(selected.whole),
        "left_out": selected.left_out,
        "relevant_elsewhere": selected.elsewhere,
        "queries_without_candidates": selected.without_candidates,
        "queries_without_judgement": selected.without_judgement,
        "candidates_repeated": selected.repeated,
    }
    return msgspec.structs.replace(_fact(counted(selected.groups), beyond, source, bounds), task=selected.task)


def _fact(groups: Counted, beyond: Mapping[str, int], source: str, bounds: Bounds) -> DataFact:
    """``beyond`` is what only the source can tell."""
    sizes = {"candidates": sum(groups.sizes), "most_candidates": max(groups.sizes, default=0)}
    counts = {**beyond, **sizes, **groups.kinds}
    return DataFact(
        path=GROUPS,
        digest=groups.digest,
        source=source,
        rows=len(groups.ids),
        bounds=stated(bounds),
        counts=counts,
        notes=tuple(_notes(groups.sizes, bounds, counts)),
    )


def disagreements(fact: DataFact, groups: Counted, options: RerankOptions, seed: int) -> list[str]:
    """Every way in which sealed groups differ from what the plan says of them, or break a bound; empty when they agree.

    What only the source can tell (how much of it was read, how much left out, what mteb says of a task) is taken as claimed; all
    else is counted again.
    """
    bounds = bounds_of(options, seed)
    claimed = fact.counts
    beyond = {
        "read": claimed.get("read", 0),
        "source_read_to_its_end": int(claimed.get("source_read_to_its_end") == 1),
        **{name: claimed.get(name, 0) if name in _tells(options.data) else 0 for name in _SOURCE_RULES},
    }
    again = _fact(groups, beyond, source_of(options.data), bounds)
    if isinstance(options.data, DataSource) and options.data.mteb is not None:
        again = msgspec.structs.replace(again, task=fact.task)
    was, now = msgspec.to_builtins(fact), msgspec.to_builtins(again)
    found = [f"{name}: expected {now[name]!r}, got {was[name]!r}" for name in now if was[name] != now[name]]
    return found + list(_broken(groups, bounds, again))


def source_of(data: str | DataSource) -> str:
    """What the source is called in records and messages: a pure function of what the ladder says."""
    if isinstance(data, str):
        return data
    if data.file is not None:
        return data.file
    if data.trec is not None:
        files = data.trec
        return f"{files.run} over {files.queries}, {files.docs} and {files.qrels}"
    config = f":{data.config}" if data.config is not None else ""
    name = f"mteb:{data.mteb}" if data.mteb is not None else f"{data.dataset}"
    return f"{name}@{data.revision}{config}:{data.split}"


def _tells(data: str | DataSource) -> tuple[str, ...]:
    """What of ``_SOURCE_RULES`` such a source can tell; a list of groups has nothing beside its groups."""
    if isinstance(data, DataSource) and data.mteb is not None:
        return tuple(_SOURCE_RULES)
    of_run = ("relevant_elsewhere", "queries_without_candidates")
    return ("left_out", *of_run) if isinstance(data, DataSource) and data.trec is not None else ("left_out",)


def stated(bounds: Bounds) -> dict[str, Value]:
    """The bounds as a record states them: those that bind, the seed where it decides something."""
    asked = msgspec.to_builtins(bounds)
    seeded = bounds.select != "first" or bounds.negatives != "first"
    quiet = {"select": "first", "negatives": "first", "unjudged": "keep"}
    return {
        name: value
        for name, value in asked.items()
        if value is not None and value != quiet.get(name) and (name != "seed" or seeded)
    }


def _broken(groups: Counted, bounds: Bounds, fact: DataFact) -> Iterator[str]:
    if bounds.groups is not None and fact.rows > bounds.groups:
        yield f"groups: expected at most {bounds.groups}, got {fact.rows}"
    if bounds.pairs is not None and fact.counts["candidates"] > bounds.pairs:
        yield f"pairs: expected at most {bounds.pairs}, got {fact.counts['candidates']}"
    for query_id, size, positives in zip(groups.ids, groups.sizes, groups.positives, strict=True):
        if bounds.candidates is not None and size > bounds.candidates:
            yield f"candidates: expected at most {bounds.candidates}, got {size} in the group {query_id!r:.60}"
        if bounds.unjudged == "drop" and not 0 < positives < size:
            yield f"unjudged: expected a positive and a negative in each group, got {query_id!r:.60} without"
    if fact.counts["read"] < fact.rows + fact.counts["left_out"]:
        yield f"read: expected at least the {fact.rows} groups that were kept, got {fact.counts['read']}"


def _kinds(group: Group, gains: Sequence[float], positives: int) -> Iterator[str]:
    """The kinds, of those of ``_RULES``, that a group is of."""
    size = len(gains)
    if positives == 0:
        yield "without_positive"
    if positives == size:
        yield "positives_only"
    if positives > 1 and len({*gains} - {0.0}) > 1:
        yield "graded"
    texts = [doc.text for doc in group.candidates]
    distinct = len({*texts})
    if distinct < size:
        yield "same_text_twice"
        if len({*zip(texts, gains, strict=True)}) > distinct:
            yield "same_text_two_gains"
    if size < FEW:
        yield "few_candidates"
    if 0 < positives < size and gains == sorted(gains, reverse=True):
        yield "positives_first"


def _again(queries: Sequence[str]) -> int:
    """How many queries are that of an earlier group."""
    return len(queries) - len({*queries})


def _notes(sizes: Sequence[int], bounds: Bounds, counts: Mapping[str, int]) -> Iterator[str]:
    groups = len(sizes)
    of = f"of {counts['read']} groups" if counts["source_read_to_its_end"] else "groups; the source was read no further"
    if not counts["source_read_to_its_end"] or groups < counts["read"]:
        how = {"first": "first ", "seeded": "a seeded sample: ", "stratified": "a sample stratified by positives: "}
        yield f"{how[bounds.select]}{groups} {of}"
    if bounds.groups is not None and groups < bounds.groups and counts["source_read_to_its_end"]:
        yield f"{bounds.groups} groups were asked for and {groups} are there"
    for name, rule in _SOURCE_RULES.items():
        if counts[name]:
            yield f"{counts[name]} {rule}"
    yield f"{sum(sizes)} candidates, {min(sizes, default=0)} to {max(sizes, default=0)} a group"
    for kind, rule in _RULES.items():
        if counts[kind]:
            yield f"{counts[kind]} of {groups} groups {rule}"
