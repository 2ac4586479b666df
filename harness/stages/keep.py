"""The fewest nodes that must stay in fp32 for an fp16 graph to load and to give finite logits. Pure but for the trials.

First the nodes that are suspected. Then whole operator types, one at a time and the rarest first: what a runtime has not in half
precision is of one type. Where no single type mends it, types are added up until it is mended. Then nodes of the set are left out
by halves, quarters and so on, as long as the graph stays mended (delta debugging: A. Zeller, R. Hildebrandt, "Simplifying and
Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.raw import Search

MOST_TRIALS = 60
"""Conversions that are tried before the search ends with the best set so far."""

Faulty = Callable[[tuple[str, ...]], str]


def search(
    nodes: Sequence[tuple[str, str]],
    fault: str,
    faulty: Faulty,
    suspected: Sequence[str] = (),
    most: int = MOST_TRIALS,
) -> Search:
    """Search for the smallest set. ``nodes`` are name and operator type; ``faulty`` says what is wrong with a set of names kept."""
    trials = 0

    def mended(names: Sequence[str]) -> bool:
        nonlocal trials
        trials += 1
        return not faulty(tuple(names))

    there = dict(nodes)
    found = [name for name in suspected if name in there]
    if not found or not mended(found):
        found = _by_type(nodes, mended, lambda: trials < most)
    minimal = False
    if found:
        found, minimal = _smaller(found, mended, lambda: trials < most)
    return Search(
        fault=fault,
        kept=tuple(found),
        operators=tuple(sorted({there[name] for name in found})),
        trials=trials,
        repaired=bool(found),
        minimal=minimal,
    )


def _by_type(
    nodes: Sequence[tuple[str, str]], mended: Callable[[Sequence[str]], bool], more: Callable[[], bool]
) -> list[str]:
    """All nodes of the first operator type that mends it alone, or of as many as it takes; empty when none do."""
    by_type: dict[str, list[str]] = {}
    for name, kind in nodes:
        by_type.setdefault(kind, []).append(name)
    rarest_first = sorted(by_type.values(), key=len)
    for names in rarest_first:
        if more() and mended(names):
            return names
    together: list[str] = []
    for names in rarest_first:
        together += names
        if more() and mended(together):
            return together
    return []


def _smaller(
    found: list[str], mended: Callable[[Sequence[str]], bool], more: Callable[[], bool]
) -> tuple[list[str], bool]:
    """The set without the parts that it can do without, and whether no single node of it can be left out."""
    parts = 2
    while len(found) > 1:
        size = -(-len(found) // parts)
        for begin in range(0, len(found), size):
            rest = found[:begin] + found[begin + size :]
            if not more():
                return found, False
            if mended(rest):
                found, parts = rest, max(parts - 1, 2)
                break
        else:
            if size == 1:
                return found, True
            parts = min(2 * parts, len(found))
    return found, True
