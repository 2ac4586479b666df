"""A root as GitHub Markdown, for a pull request or a job summary. The same root gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.records import PlannedTarget, Tier
from harness.report import escape, reproduce, view, view_figures, view_perf, wording
from harness.report.live import duration
from harness.root import RootRecords

_HEADS: dict[Tier, str] = {"L0": "Build", "L1": "Perf", "L2": "Parity", "L3": "Rerank"}
_code = escape.markdown
MOST_PACKAGES = 50
"""Rows of packages that differ from a lock; the root holds all of them."""


def render(records: RootRecords, digest: str, delta: str = "") -> str:
    """The whole report. ``digest`` is the root digest, ``blake3:`` and 64 hex; ``delta`` a comparison as Markdown, if there is one."""
    parts = [
        *_summary(records, digest),
        *_problems(records),
        *_beside(records),
        "### Tiers",
        _tiers(records),
    ]
    for tier in view.tiers(records.plan):
        parts += _figures(records, tier)
    parts += [delta.rstrip()] if delta else []
    parts += ["### Reproduce", *_reproduce(records, digest)]
    return "\n\n".join(parts) + "\n"


def _summary(records: RootRecords, digest: str) -> Iterator[str]:
    claim, plan = records.claim, records.plan
    yield f"## {wording.sign(claim.verdict)}: {_code(plan.ladder)}"
    revision = f" at {_code(plan.candidate.revision)}" if plan.candidate.revision else ""
    lines = [
        f"**{view.headline(records)}.** {wording.MEANINGS[claim.verdict].capitalize()}."
        if claim.verdict != "PASS"
        else f"**{view.headline(records)}.**",
        "",
        f"- Candidate: {_code(plan.candidate.model)}{revision}, {plan.candidate.parameters:,} parameters",
        *(
            [f"- Adapter: {_code(view.adapter_line(plan.candidate.adapter))}"]
            if plan.candidate.adapter is not None
            else ()
        ),
        f"- Candidate digest: {_code(plan.candidate.digest)}",
        f"- Coverage: {_coverage(records)}",
    ]
    if plan.inputs.groups is not None:
        data = plan.inputs.groups
        bounds = f"bounds: {_code(wording.bounds(data.bounds))}; {view.time_limit(plan)}"
        lines.append(f"- Ranked data: {_code(data.source)}, {bounds}, digest {_code(data.digest)}")
        lines += [f"  - {_code(note)}" for note in data.notes]
    if plan.inputs.baseline is not None:
        beside = plan.inputs.baseline
        lines.append(f"- Baseline of L1: {_code(beside.source)}, root digest {_code(beside.digest)}")
    for entry in view.carried(records):
        lines.append(f"- Preserved from {_code(entry.origin)}: {', '.join(map(_code, entry.steps))}")
        if entry.limits:
            lines.append(f"- Judged by other limits than there: {', '.join(map(_code, entry.limits))}")
    lines += [f"- Replaces {_code(old.digest)}: {_code(old.reason)}" for old in records.lineage.supersedes]
    lines += [f"- {_plain(line)}" for line in (view.redacted_line(records),) if line]
    lines.append(f"- Root digest: {_code(digest)}")
    lines.append(f"- Authenticity: {view.NOT_VOUCHED}")
    yield "\n".join(lines)
    yield from (f"> {label}" for label in view.smoke_labels(records))  # own words and names of metrics only


def _coverage(records: RootRecords) -> str:
    coverage = records.claim.coverage
    parts = [
        f"{word} {', '.join(map(_code, names))}"
        for word, names in (("reached", coverage.reached), ("missed", coverage.missed), ("deferred", coverage.deferred))
        if names
    ]
    return f"{'complete' if coverage.complete else 'partial'} at {view.tier_name(coverage.goal)}: " + "; ".join(parts)


def _problems(records: RootRecords) -> Iterator[str]:
    """Every finding that is not PASS, and every step that ended without one, worst first."""
    found = view.problems(records)
    if not found:
        return
    yield "### What stands in the way"
    rows = []
    for problem in found:
        start = (_code(problem.target), view.tier_name(problem.tier))
        for finding in problem.findings:
            unit = wording.unit_of(finding.metric)
            value = wording.found(finding) if finding.value is not None else escape.shorten(finding.text, 300)
            value += f": {why}" if finding.value is not None and (why := wording.why(finding)) else ""
            rows.append(
                (
                    *start,
                    wording.sign(finding.verdict),
                    _code(finding.metric),
                    _plain(wording.limit(finding.limit, unit)),
                    _plain(value),
                    wording.margin(finding),
                )
            )
        if not problem.findings:
            reason = _code(escape.shorten(problem.reason, 300)) if problem.reason else "no reason was recorded"
            rows.append((*start, wording.sign(problem.verdict), "–", "–", reason, "–"))
    yield _table(("Target", "Tier", "Verdict", "Metric", "Limit", "Found", "Margin"), rows)


def _beside(records: RootRecords) -> Iterator[str]:
    """Gates, and packages that differ from the lock."""
    found = view.beside(records)
    if not found:
        return
    yield "### Gates and lock"
    rows = [
        (_code(item.name), wording.sign(item.verdict), _code(item.reason) if item.reason else "–") for item in found
    ]
    rows += [("", wording.sign(f.verdict), _code(f.text)) for item in found for f in item.findings[:MOST_PACKAGES]]
    yield _table(("What", "Verdict", "Why"), rows)


def _tiers(records: RootRecords) -> str:
    tiers = view.tiers(records.plan)
    rows = []
    for target in records.plan.targets:
        cells = [_tier_cell(records, target, tier) for tier in tiers]
        rows.append((_code(target.name), _plain(view.target_line(target)), *cells))
    return _table(("Target", "What", *map(view.tier_name, tiers)), rows)


def _tier_cell(records: RootRecords, target: PlannedTarget, tier: Tier) -> str:
    if target.deferred is not None:
        return "deferred"
    claim = view.claims(records).get(target.name)
    verdict = claim.tiers.get(tier, "NOT_RUN") if claim else "NOT_RUN"
    if (target.name, tier) in records.preserved:
        return f"{wording.sign(verdict)} (preserved)"
    took = view.seconds(records, target.name, tier)
    return wording.sign(verdict) + (f" ({duration(took)})" if took is not None else "")


def _figures(records: RootRecords, tier: Tier) -> Iterator[str]:
    """One table a tier, one row a target that was measured; bounds beside every L3 figure."""
    rows, shown = [], view_figures.figures(tier, records.plan.targets).shown
    for target in records.plan.targets:
        smoke = view.smoke(records, target.name) if tier == "L3" else ""
        found = {} if smoke else {m.metric: m for m in view.measurements(records, target.name, tier)}
        if smoke or any(metric in found for _, metric in shown):
            cells = [_plain(wording.measured(found[metric])) if metric in found else "–" for _, metric in shown]
            limits = [str(view.bounds(records, target.name) or "unknown")] if tier == "L3" else []
            rows.append((_code(target.name), *cells, *limits))
    if rows:
        labels = [label for label, _ in shown]
        yield f"### {_HEADS[tier]} ({tier})"
        yield _table(("Target", *labels, *(["On"] if tier == "L3" else [])), rows)
        if tier == "L1":
            yield from _placement(records)
            yield from _comparisons(records)
            yield from _load(records)
        if tier == "L3":
            yield from _scorers(records)


def _placement(records: RootRecords) -> Iterator[str]:
    """What the runtime made of each graph that stores numbers of another precision, which is why it is as fast as it is."""
    found = [(target.name, view_perf.placement(records, target)) for target in records.plan.targets]
    rows = [(_code(name), _plain(said)) for name, said in found if said]
    if rows:
        yield "The graph that was timed:"
        yield _table(("Target", "Casts and placement"), rows)


def _comparisons(records: RootRecords) -> Iterator[str]:
    """What each target was timed in turn with."""
    rows = [
        (_code(target.name), label, _plain(text))
        for target in records.plan.targets
        for label, text in view_figures.comparisons(records, target.name)
    ]
    if rows:
        yield "Timed in turn, over fresh pairs of sessions:"
        yield _table(("Target", "Compared", "Call"), rows)


def _load(records: RootRecords) -> Iterator[str]:
    """Warnings of the moment, and the tables of callers at once and of the sweep, a table a target."""
    for target in records.plan.targets:
        for warning in view_perf.warnings(records, target.name):
            yield f"> {_code(target.name)}: {_plain(warning)}"
        for caption, head, rows in view_perf.load_tables(records, target.name):
            yield f"{caption}, {_code(target.name)}:"
            yield _table(head, [[_plain(cell) for cell in row] for row in rows])


def _scorers(records: RootRecords) -> Iterator[str]:
    """nDCG@10 of the scorers beside the model, a row a target, in one order for all."""
    found = {
        t.name: {name: m.value for name, m in view_figures.scorer_rows(records, t.name)} for t in records.plan.targets
    }
    names = list(view_figures.ROW_NAMES.values())
    rows = [
        (
            _code(target),
            *(f"{scores[name]:.3f}" if name in scores else "–" for name in names),
            str(view.bounds(records, target)),
        )
        for target, scores in found.items()
        if scores
    ]
    if rows:
        yield "nDCG@10 of other scorers on the same groups:"
        yield _table(("Target", *names, "On"), rows)


def _reproduce(records: RootRecords, digest: str) -> Iterator[str]:
    yield "Inside a copy of the root, check the evidence and judge it again:"
    yield f"```sh\nqualify verify . --expect {_hex_only(digest)}\nb3sum --check MANIFEST.b3\n```"
    found = reproduce.reproduce(records)
    yield f"{found.where}{f' ({_code(found.origin)})' if found.origin else ''}, climb it again:"
    yield "\n".join(("```sh", *found.commands, "```"))
    yield "\n".join(f"- {line}" for line in found.placeholders)
    if found.warning:
        yield f"> {found.warning}"


def _hex_only(digest: str) -> str:
    """The digest as it may stand in a command."""
    return "".join(char for char in digest if char.isascii() and (char.isalnum() or char == ":"))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _plain(text: str) -> str:
    """Own wording stays plain. Anything that could be a link, a mention, a reference or structure becomes code."""
    inert = all(char.isalnum() or char in " .,;()%/–-≤≥=" for char in text) and "www." not in text.casefold()
    return text if inert and all(len(word) < 30 for word in text.split()) else _code(text)
