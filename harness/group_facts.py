"""What a plan says of the groups that are scored, and the same counted again by a verifier: source, bounds, and all that is odd. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from evidence.manifest import digest_of
from harness.bounds import Bounds, Selected, bounds_of, judgeable
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
}
"""What is counted of groups by kind, and what is done with them."""


def facts(selected: Selected, *, source: str, bounds: Bounds) -> DataFact:
    """What a plan says of bounded groups: digest of the rendered bytes, rows, bounds, and what was counted, with the rule for it."""
    groups = selected.groups
    counts = {
        "read": selected.read,
        "source_read_to_its_end": int(selected.whole),
        "left_out": selected.left_out,
        "relevant_elsewhere": selected.elsewhere,
        "candidates": sum(len(group.candidates) for group in groups),
        **_kinds(groups),
    }
    return DataFact(
        path=GROUPS,
        digest=digest_of(render_groups(groups)),
        source=source,
        rows=len(groups),
        bounds=stated(bounds),
        counts=counts,
        notes=tuple(_notes(groups, bounds, counts)),
    )


def disagreements(fact: DataFact, groups: Sequence[Group], options: RerankOptions, seed: int) -> list[str]:
    """Every way in which sealed groups differ from what the plan says of them, or break a bound; empty when they agree.

    What only the source can tell (how much of it was read, how much left out) is taken as claimed; all else is counted again.
    """
    bounds = bounds_of(options, seed)
    claimed = fact.counts
    again = facts(
        Selected(
            groups=tuple(groups),
            read=claimed.get("read", 0),
            whole=claimed.get("source_read_to_its_end") == 1,
            left_out=claimed.get("left_out", 0),
            elsewhere=claimed.get("relevant_elsewhere", 0),
        ),
        source=source_of(options.data),
        bounds=bounds,
    )
    was, now = msgspec.to_builtins(fact), msgspec.to_builtins(again)
    found = [f"{name}: expected {now[name]!r}, got {was[name]!r}" for name in now if was[name] != now[name]]
    return found + list(_broken(groups, bounds, again))


def source_of(data: str | DataSource) -> str:
    """What the source is called in records and messages: a pure function of what the ladder says."""
    if isinstance(data, str):
        return data
    if data.trec is not None:
        files = data.trec
        return f"{files.run} over {files.queries}, {files.docs} and {files.qrels}"
    config = f":{data.config}" if data.config is not None else ""
    name = f"mteb:{data.mteb}" if data.mteb is not None else f"{data.dataset}"
    return f"{name}@{data.revision}{config}:{data.split}"


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


def _broken(groups: Sequence[Group], bounds: Bounds, fact: DataFact) -> Iterator[str]:
    if bounds.groups is not None and len(groups) > bounds.groups:
        yield f"groups: expected at most {bounds.groups}, got {len(groups)}"
    if bounds.pairs is not None and fact.counts["candidates"] > bounds.pairs:
        yield f"pairs: expected at most {bounds.pairs}, got {fact.counts['candidates']}"
    for group in groups:
        if bounds.candidates is not None and len(group.candidates) > bounds.candidates:
            got = f"{len(group.candidates)} in the group {group.query_id!r:.60}"
            yield f"candidates: expected at most {bounds.candidates}, got {got}"
        if bounds.unjudged == "drop" and not judgeable(group):
            yield f"unjudged: expected a positive and a negative in each group, got {group.query_id!r:.60} without"
    if fact.counts["read"] < len(groups) + fact.counts["left_out"]:
        yield f"read: expected at least the {len(groups)} groups that were kept, got {fact.counts['read']}"


def _kinds(groups: Sequence[Group]) -> dict[str, int]:
    def count(kind: Iterable[bool]) -> int:
        return sum(kind)

    positives = [sum(doc.gain > 0 for doc in group.candidates) for group in groups]
    sizes = [len(group.candidates) for group in groups]
    texts = [len({doc.text for doc in group.candidates}) for group in groups]
    labels = [len({(doc.text, doc.gain) for doc in group.candidates}) for group in groups]
    return {
        "without_positive": count(number == 0 for number in positives),
        "positives_only": count(number == size for number, size in zip(positives, sizes, strict=True)),
        "graded": count(len({doc.gain for doc in group.candidates} - {0.0}) > 1 for group in groups),
        "same_text_twice": count(one < size for one, size in zip(texts, sizes, strict=True)),
        "same_text_two_gains": count(both > one for both, one in zip(labels, texts, strict=True)),
        "few_candidates": count(size < FEW for size in sizes),
        "positives_first": count(map(_positives_first, groups)),
    }


def _notes(groups: Sequence[Group], bounds: Bounds, counts: dict[str, int]) -> Iterator[str]:
    of = f"of {counts['read']} groups" if counts["source_read_to_its_end"] else "groups; the source was read no further"
    if not counts["source_read_to_its_end"] or len(groups) < counts["read"]:
        how = {"first": "first ", "seeded": "a seeded sample: ", "stratified": "a sample stratified by positives: "}
        yield f"{how[bounds.select]}{len(groups)} {of}"
    if bounds.groups is not None and len(groups) < bounds.groups and counts["source_read_to_its_end"]:
        yield f"{bounds.groups} groups were asked for and {len(groups)} are there"
    if counts["left_out"]:
        yield f"{counts['left_out']} groups without both a positive and a negative dropped before the bound"
    if counts["relevant_elsewhere"]:
        yield f"{counts['relevant_elsewhere']} relevant documents are in no candidate list: no ranking can find them"
    sizes = [len(group.candidates) for group in groups]
    yield f"{sum(sizes)} candidates, {min(sizes, default=0)} to {max(sizes, default=0)} a group"
    for kind, rule in _RULES.items():
        if counts[kind]:
            yield f"{counts[kind]} of {len(groups)} groups {rule}"


def _positives_first(group: Group) -> bool:
    gains = [doc.gain for doc in group.candidates]
    return judgeable(group) and gains == sorted(gains, reverse=True)
