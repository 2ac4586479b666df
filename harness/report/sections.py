"""The HTML of one target: its tiers from L0 up, each with findings, plots and every measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from harness.metrics import catalogue
from harness.metrics.rerank_names import HEADLINE, is_ranking
from harness.raw import BuildRaw
from harness.records import Finding, PlannedTarget, Tier, Verdict
from harness.report import escape, plots, ranking, section_perf, view, view_figures, wording
from harness.report.markup import Html, code, details, el, facts, join, table, text
from harness.report.section_perf import plotted
from harness.report.source import Source
from harness.root import RootRecords

_OWN_TABLE = frozenset(
    {"operator_count", "initializer_count", "initializer_bytes", *(f"row_{name}" for name in HEADLINE), "sentinel"}
)


def target(records: RootRecords, source: Source, planned: PlannedTarget, place: int) -> Html:
    """The section of one target; ``place`` makes its ids its own."""
    claim = view.claims(records).get(planned.name)
    head = el("h2", code(planned.name), id=f"target-{place}-name")
    parts: list[Html] = [head, el("p", view.target_line(planned), class_="muted")]
    if planned.deferred is not None:
        parts.append(el("p", el("b", "Deferred: "), planned.deferred))
    for tier in view.tiers(records.plan):
        if (planned.name, tier) in records.steps:
            parts += _tier(records, source, planned, tier, place)
        elif claim is not None and planned.deferred is None:
            parts.append(_tier_head(tier, claim.tiers.get(tier, "NOT_RUN")))
    return el("section", *parts, class_="target", id=f"target-{place}", aria_labelledby=f"target-{place}-name")


def verdict(found: Verdict) -> Html:
    """A verdict as sign and word; the colour repeats them."""
    return el("span", wording.sign(found), class_=f"v {found}", title=wording.MEANINGS[found])


def findings(found: Sequence[Finding], caption: str, *, smoke: bool = False) -> Html:
    """Findings with limit, value and margin, worst first.

    Of a smoke test a limit on the ranking that was met is shown without its figure, which would be read as a claim; one that was not
    met has its figure, since that says why.
    """
    rows = [
        (
            join([code(finding.metric), el("span", _meaning(finding.metric), class_="why")]),
            verdict(finding.verdict),
            wording.limit(finding.limit, wording.unit_of(finding.metric)),
            *((_WITHHELD, "–") if smoke and _claims(finding) else (_found(finding), _margin(finding))),
        )
        for finding in sorted(found, key=lambda finding: view.severity(finding.verdict))
    ]
    return table(caption, ("Metric", "Verdict", "Limit", "Found", "Margin"), rows, "stack")


_WITHHELD = f"not shown: {view.SMOKE}"


def _claims(finding: Finding) -> bool:
    """Whether the figure of an L3 finding would be read as accuracy: the artifact's, or that of a scorer beside it."""
    return finding.verdict == "PASS" and (is_ranking(finding.metric) or "." in finding.metric)


def _found(finding: Finding) -> Html:
    if finding.value is None:
        return text(finding.text)
    why = wording.why(finding)
    return join([text(wording.found(finding)), *([el("span", why, class_="why")] if why else [])])


def _margin(finding: Finding) -> Html:
    """The margin in words; for an upper limit a bar whose tick at two thirds is the limit."""
    share = wording.share_used(finding)
    words = text(wording.margin(finding))
    if share is None:
        return words
    width = min(share, 1.5) / 1.5
    fill = el("i", style=f"width:{width:.1%}")
    return join([words, el("span", fill, class_=f"bar {finding.verdict}", aria_hidden="true")])


def _meaning(metric: str) -> str:
    known = catalogue.find(metric)
    return known.meaning if known else "not in the catalogue"


def _tier_head(tier: Tier, found: Verdict) -> Html:
    return el("h3", el("span", view.tier_name(tier)), verdict(found))


def _tier(records: RootRecords, source: Source, planned: PlannedTarget, tier: Tier, place: int) -> Iterator[Html]:
    outcome = records.steps[planned.name, tier].outcome
    yield _tier_head(tier, outcome.verdict)
    bounds = view.bounds(records, planned.name) if tier == "L3" else None
    smoke = tier == "L3" and bool(view.smoke(records, planned.name))
    if bounds is not None:
        said = f" {bounds.smoke}. {view.NOT_SHOWN}" if bounds.smoke else ""
        yield el("p", f"On {bounds}; {view.time_limit(records.plan)}.", said, class_="note" if bounds.smoke else None)
    figures = view_figures.key_figures(records, planned.name, tier)
    figures += view_figures.comparisons(records, planned.name) if tier == "L1" else []
    if figures:
        yield facts(figures)
    if outcome.findings:
        open_ = sum(finding.verdict != "PASS" for finding in outcome.findings)
        summary = f"{len(outcome.findings)} findings, {f'{open_} not PASS' if open_ else 'all PASS'}"
        caption = f"Findings of {view.tier_name(tier)} on {planned.name}, worst first"
        yield details(summary, findings(outcome.findings, caption, smoke=smoke), open_=bool(open_))
    elif outcome.reason:
        yield el("p", escape.shorten(outcome.reason, 2000))
    yield from _DRAWN[tier](records, source, planned.name, f"{place}")
    yield from _log(source, planned.name, tier, outcome.verdict)
    yield from _measurements(records, planned.name, tier)


def _log(source: Source, name: str, tier: Tier, found: Verdict) -> Iterator[Html]:
    """The end of the log of a step that has no number."""
    lines = source.log_end(name, tier) if found == "BLOCKED" else []
    if lines:
        log = el("pre", el("code", join(lines, Html("\n"))), tabindex=0)
        yield details(f"Last {len(lines)} lines of stderr.log", log, open_=True)


def _measurements(records: RootRecords, name: str, tier: Tier) -> Iterator[Html]:
    """Every measurement of a step but those that have tables of their own, and but what a smoke test cannot claim."""
    smoke = tier == "L3" and bool(view.smoke(records, name))
    found = [
        m
        for m in view.measurements(records, name, tier)
        if m.metric.partition(".")[0] not in _OWN_TABLE and not (smoke and is_ranking(m.metric))
    ]
    if found:
        rows = [
            (
                code(m.metric),
                wording.quantity(m.value, m.unit),
                wording.between(m.interval).strip(" ()").removeprefix("95% ") or "–",
                "–" if m.samples is None else f"{m.samples:,}",
                m.note or _meaning(m.metric),
            )
            for m in found
        ]
        heads = ("Metric", "Value", "95% interval", "Samples", "Note")
        yield details(
            f"{len(rows)} measurements", table(f"Measurements of {view.tier_name(tier)} on {name}", heads, rows)
        )


# --- what each tier draws ---------------------------------------------------------------------------------------------


def _build(records: RootRecords, source: Source, name: str, _mark: str) -> Iterator[Html]:
    counts = {m.metric: m.value for m in view.measurements(records, name, "L0")}
    operators = _parametrised(counts, "operator_count")
    if operators:
        most = max(operators.values())
        rows = [
            (code(kind), _count_bar(count, most))
            for kind, count in sorted(operators.items(), key=lambda kv: (-kv[1], kv[0]))
        ]
        sizes = _parametrised(counts, "initializer_bytes")
        tensors = _parametrised(counts, "initializer_count")
        dtypes = [
            (code(kind), f"{tensors.get(kind, 0):,}", wording.size(sizes.get(kind, 0)))
            for kind in sorted({*sizes, *tensors}, key=lambda kind: -sizes.get(kind, 0))
        ]
        signature = [
            (side, join(map(code, str(counts.get(side, "unknown")).split(", ")), ", "))
            for side in ("inputs", "outputs")
        ]
        yield details(
            "Structure census: inputs, initializers, operators",
            facts((), *signature),
            table(f"Initializers of {name} by dtype", ("Dtype", "Tensors", "Bytes"), dtypes),
            table(f"Operators of {name} by type", ("Type", "Nodes"), rows),
        )
    made = source.build(name)
    if isinstance(made, BuildRaw):
        warnings = [("warning", escape.shorten(warning, 300)) for warning in made.warnings]
        yield details("How it was made", facts(_made(made), *warnings))


def _made(made: BuildRaw) -> Iterator[tuple[str, str]]:
    yield "source", made.source + (f" by {made.exporter}" if made.exporter else "")
    if made.export_from:
        yield "fp32 export from", made.export_from
    for phase, seconds in made.phases_s.items():
        yield f"{phase}", f"{seconds:.2f} s"
    if made.conversion is not None:
        yield "conversion", made.conversion.name
        yield "clipped constants", f"{made.conversion.clipped_high} high, {made.conversion.clipped_low} low"
        yield "nodes kept in fp32", ", ".join(made.conversion.kept_nodes) or "none"
    yield "probes", f"{len(made.probes)}, of which {sum(1 for probe in made.probes if probe.fault)} faulty"
    yield "tokenizer gives", ", ".join(made.tokenizer_inputs)
    if made.session is not None:
        yield "providers", ", ".join(made.session.providers)
        for option, value in sorted(made.session.options.items()):
            yield option, wording.number(value)


def _parity(records: RootRecords, source: Source, name: str, mark: str) -> Iterator[Html]:
    logits = source.logits(name)
    drawn: list[Html | None] = []
    if not isinstance(logits, str):
        step = next(s for t in records.plan.targets if t.name == name for s in t.steps if s.tier == "L2")
        limit = step.limits.get("max_abs_gap")
        drawn = [plots.parity(*logits, mark), plots.gaps(*logits, limit.at_most if limit else None, mark)]
    yield from plotted(drawn, logits)


def _parametrised(values: Mapping[str, object], base: str) -> dict[str, int]:
    """The integer values of a metric with a parameter, by parameter."""
    return {
        metric.removeprefix(f"{base}."): value
        for metric, value in values.items()
        if metric.startswith(f"{base}.") and isinstance(value, int)
    }


def _count_bar(count: int, most: int) -> Html:
    width = 12 * count / most if most else 0
    return join([f"{count:,} ", el("span", class_="count", style=f"width:{width:.2f}rem", aria_hidden="true")])


_DRAWN: dict[Tier, Callable[[RootRecords, Source, str, str], Iterator[Html]]] = {
    "L0": _build,
    "L1": section_perf.perf,
    "L2": _parity,
    "L3": ranking.section,
}
