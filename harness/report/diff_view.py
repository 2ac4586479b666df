"""What a comparison says, worst first, as plain lines and tables that every output draws. Pure; text that comes out is not escaped yet."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from evidence.report import AUTHENTICITY
from harness.diff_base import UNSEEN
from harness.diff_values import About, Compared, Diff, StepDiff
from harness.gate import Gates
from harness.records import TIER_NAMES, Tier, Value
from harness.report import view, wording
from harness.report.parts import Part

SIGNS = {"REGRESSION": "✗", "INCOMPARABLE": "≠", "INCONCLUSIVE": "?", "OK": "✓"}
NO_POLICY = "no policy, so nothing is judged: these are differences, not verdicts"
SHORT = 26
"""Characters of a digest that are shown in a table; the whole is in the JSON."""


_SIDES = ("Side", "Root", "Digest", "Ladder", "Model", "Verdict", "Coverage")


def headline(found: Diff, gates: Gates | None) -> str:
    """One sentence: the verdict of the gates, or what was lost and gained."""
    if gates is None:
        every = [one.state for one in found.beside] + [step.state for step in found.steps]
        lost, gained = every.count("lost"), every.count("gained")
        moved = (
            f"{lost} verdict{'' if lost == 1 else 's'} lost, {gained} gained"
            if lost or gained
            else "no verdict lost or gained"
        )
        return f"compared: {moved}; {NO_POLICY}"
    count = {verdict: sum(gate.verdict == verdict for gate in gates.gates) for verdict in SIGNS}
    said = ", ".join(f"{number} {verdict}" for verdict, number in count.items() if number)
    return f"{SIGNS[gates.verdict]} {gates.verdict}: {said or 'no gate'} under policy {gates.policy}"


def parts(found: Diff, gates: Gates | None) -> Iterator[Part]:
    """The whole answer in order; parts with nothing to say are left out."""
    if gates is not None:
        rows = tuple((f"{SIGNS[g.verdict]} {g.verdict}", g.what, g.target, g.rule, g.reason) for g in gates.gates)
        yield Part("Gates", _left_out(gates), head=("Verdict", "Of", "Target", "Rule", "Why"), rows=rows)
    yield Part("Sides", head=_SIDES, rows=tuple(_sides(found)))
    yield Part("Authenticity", tuple(_authenticity(found)))
    yield from _verdicts(found)
    yield from _identity(found)
    yield from _ladders(found)
    for tier in TIER_NAMES:
        yield from _figures(found, tier)
    yield from _moved(found)
    yield from _refresh(found)


def _left_out(gates: Gates) -> tuple[str, ...]:
    names = ", ".join(gates.left_out)
    return (f"not judged, since the candidate's climb left them to another: {names}",) if names else ()


def _sides(found: Diff) -> Iterator[tuple[str, ...]]:
    for name, side in (("baseline", found.baseline), ("candidate", found.candidate)):
        revision = f" at {side.revision}" if side.revision else ""
        yield name, side.root, side.digest, side.ladder, f"{side.model}{revision}", side.verdict, _coverage(side)


def _authenticity(found: Diff) -> Iterator[str]:
    sides = (("baseline", found.baseline), ("candidate", found.candidate))
    for word, means in AUTHENTICITY.items():
        named = [name for name, side in sides if side.authenticity == word]
        if named:
            yield f"{' and '.join(named)} {word}: {means}"


def _coverage(side: About) -> str:
    names = (("reached", side.reached), ("missed", side.missed), ("deferred", side.deferred))
    said = "; ".join(f"{word} {', '.join(its)}" for word, its in names if its)
    return f"{'complete' if side.complete else 'partial'}{': ' if said else ''}{said}"


def _verdicts(found: Diff) -> Iterator[Part]:
    order = ("lost", "gained", "changed")
    moved = [(one.state, "all", one.name, one.baseline, one.candidate) for one in found.beside if one.state != "same"]
    beside = len(moved)
    moved += [(s.state, named(s), _tier(s.tier), s.baseline, s.candidate) for s in found.steps if s.state != "same"]
    rows = tuple(sorted(moved, key=lambda row: order.index(row[0])))
    same = len(found.steps) - (len(moved) - beside)
    lines = (f"{same} of {len(found.steps)} steps have the same verdict",) if same or not rows else ()
    yield Part("Verdicts", lines, ("", "Target", "Of", "Baseline", "Candidate") if rows else (), rows)


def _identity(found: Diff) -> Iterator[Part]:
    rows = tuple(
        (change.part, change.target or "all", change.name, show(change.baseline), show(change.candidate))
        for change in found.identity
    )
    lines = [f"identical: {', '.join(found.same)}"] if found.same else []
    lines += [f"not told by both sides: {', '.join(found.unknown)}"] if found.unknown else []
    lines += found.notes
    yield Part("Identity", tuple(lines), ("Part", "Target", "What", "Baseline", "Candidate") if rows else (), rows)


def _ladders(found: Diff) -> Iterator[Part]:
    if not found.ladder:
        yield Part("Ladder", ("the ladders give the same values",))
        return
    rows = tuple(
        (item.pointer, _sourced(item.baseline, item.baseline_from), _sourced(item.candidate, item.candidate_from))
        for item in found.ladder
    )
    yield Part("Ladder", head=("Pointer", "Baseline", "Candidate"), rows=rows)


def _sourced(value: Value, origin: str) -> str:
    return "absent" if origin == "absent" else f"{show(value)} ({origin})"


def _figures(found: Diff, tier: Tier) -> Iterator[Part]:
    """A part for the tier that says what is identical or cannot be compared, and one for each target with the figures that differ."""
    steps = [step for step in found.steps if step.tier == tier]
    lines: list[str] = []
    tables: list[Part] = []
    for step in steps:
        if step.why_not:
            lines.append(f"{named(step)}: INCOMPARABLE: {step.why_not}")
        lines += _ranked(step)
        same = sum(item.same or (_unknown(item) and not item.smoke) for item in step.compared)
        if same:
            count = "all" if same == len(step.compared) else f"{same} of"
            lines.append(f"{named(step)}: {count} {len(step.compared)} figures identical")
        rows = tuple(
            (item.metric, _value(item.baseline, item), _value(item.candidate, item), change(item))
            for item in step.compared
            if not item.same and not _unknown(item) and not (step.why_not and None in (item.baseline, item.candidate))
        )
        if rows:
            tables.append(
                Part(f"{_tier(tier)}: {named(step)}", (), ("Metric", "Baseline", "Candidate", "Change"), rows)
            )
    if lines:
        yield Part(_tier(tier), tuple(lines))
    yield from tables


def _ranked(step: StepDiff) -> Iterator[str]:
    """What L3 ranked on either side, and why its figures are no claim, if so."""
    sides = (step.baseline_bounds, step.candidate_bounds)
    if any(sides):
        both = sides[0] if sides[0] == sides[1] else " and ".join(side or "nothing" for side in sides)
        yield f"{named(step)}: on {both}"
    if step.smoke:
        yield f"{named(step)}: {step.smoke}. {view.NOT_SHOWN}"


def _unknown(item: Compared) -> bool:
    """Neither side knows it, which is no difference."""
    return item.baseline is None and item.candidate is None


def _value(value: Value, item: Compared) -> str:
    return "none" if value is None else wording.quantity(value, item.unit)


def change(item: Compared) -> str:
    """By how much a figure differs, with its interval, and whether that is better or worse."""
    if item.why_not or item.smoke:
        return "INCOMPARABLE" if item.why_not else "not shown"
    if item.difference is None:
        return "changed"
    if item.ratio is not None and item.ratio_interval is not None:
        low, high = item.ratio_interval
        return f"x {item.ratio:.3g} (95% {low:.3g} to {high:.3g}){_word(item)}"
    if item.interval is not None:
        low, high = item.interval
        return f"{_signed(item.difference)} (95% {_signed(low)} to {_signed(high)}){_word(item)}"
    base = _number(item.baseline)
    share = item.difference / abs(base) if base else math.inf
    shown = (
        f" ({share:+.1%})"
        if 5e-4 <= abs(share) < 10
        else f" (x {_number(item.candidate) / base:.3g})"
        if 10 <= share < math.inf
        else ""
    )
    sign = "+" if item.difference > 0 else "-"
    return f"{sign}{wording.quantity(_whole(abs(item.difference)), item.unit)}{shown}{_word(item)}"


def _signed(value: float) -> str:
    return f"{value:+.3g}" if value else "0"


def _whole(value: float) -> float:
    """A count as a whole number, so that it is written as one."""
    return int(value) if value == int(value) and value >= 1 else value


_TIMES = frozenset({"ms", "s", "pairs/s"})


def _word(item: Compared) -> str:
    """Better or worse: where the whole interval says so; without one, not of times and memory, of which one value says little."""
    assert item.difference is not None
    low, high = item.interval or (item.difference, item.difference)
    once = item.interval is None and (item.unit in _TIMES or item.metric.endswith("rss_bytes"))
    if item.better == "neither" or low <= 0 <= high or once:
        return ""
    return " worse" if (low > 0) == (item.better == "less") else " better"


def _number(value: Value) -> float:
    return 0.0 if isinstance(value, bool | str) or value is None else value


def _moved(found: Diff) -> Iterator[Part]:
    """The queries that moved most, each with its candidates whose rank changed."""
    lines, rows = [], []
    for step in found.steps:
        if step.moved:
            lines.append(
                f"{named(step)}: nDCG@10 of {step.moved_queries:,} queries moved; the largest {len(step.moved)}"
            )
        for query in step.moved:
            docs = "; ".join(
                f"{doc.id} (gain {doc.gain:g}) {doc.baseline_rank:g} to {doc.candidate_rank:g}"
                for doc in query.candidates
            )
            scores = f"{query.baseline:.3f} to {query.candidate:.3f}"
            rows.append((named(step), f"{query.query_id}: {query.query}", scores, docs or "none changed its rank"))
    if rows:
        yield Part("Queries that moved", tuple(lines), ("Target", "Query", "nDCG@10", "Ranks"), tuple(rows))


def _refresh(found: Diff) -> Iterator[Part]:
    """Only where nothing but the base moved."""
    refresh = found.refresh
    if refresh is None:
        return
    lines = [f"only the base moved: {', '.join(refresh.moved)}"]
    if refresh.touched:
        lines.append(f"touches {', '.join(refresh.touched)}")
    lines.append(f"can be preserved: {', '.join(refresh.preserved) or 'nothing'}")
    if any(name.startswith("harness.") for name in refresh.moved):
        lines.append(f"the harness is another commit: {UNSEEN}, so it counts for no stage here")
    elif not refresh.touched:
        lines.append("nothing has to run again")
    commands = (shlex.join(refresh.command),) if refresh.command else ()
    yield Part("What the base touches", tuple(lines), commands=commands)


def named(step: StepDiff) -> str:
    """A target, with the baseline's name where that is another."""
    return step.target if step.target == step.baseline_target else f"{step.baseline_target} -> {step.target}"


def _tier(tier: Tier) -> str:
    return f"{tier} {TIER_NAMES[tier]}"


def show(value: Value) -> str:
    """A value of the identity; a digest cut short."""
    if value is None:
        return "none"
    text = wording.number(value)
    if text.startswith("blake3:") or (len(text) == 64 and set(text) <= set("0123456789abcdef")):
        return text[: SHORT if text.startswith("blake3:") else 19] + "…"
    return text
