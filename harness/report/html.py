"""A root as one HTML file that needs nothing else: no network, no script, no font and no image beside it.

``sections`` draws the targets; ``about`` says what else the root holds; here stand the page, the answer and the ladder.
"""

from __future__ import annotations

from collections.abc import Collection

from harness.derive_raw import Read
from harness.records import PlannedTarget, Tier
from harness.report import about, escape, sections, view, view_figures, wording
from harness.report.live import duration
from harness.report.markup import Html, code, el, facts, head, join, table, text
from harness.report.sections import verdict
from harness.report.source import Source
from harness.root import RootRecords, merged

FOOT = (
    "Drawn from the records and raw samples of the root alone. MB is a million bytes, MiB is 1,048,576 bytes; intervals are 95%."
    " Percentiles are Hyndman and Fan's type 7: linear between the closest ranks."
)

_BARE = frozenset({"payload"})
"""Labels of key figures that a reader of the ladder does not need."""


def render(records: RootRecords, read: Read, paths: Collection[str], digest: str) -> str:
    """The page. ``read`` gives verified bytes of ``paths``, the root-relative paths there are; ``digest`` is the root digest.

    Raises AskedWrongly when matplotlib is not installed (``pip install 'qualify[report]'``).
    """
    source = Source(*merged(records.lineage, read, paths))
    targets = [
        sections.target(records, source, planned, place) for place, planned in enumerate(records.plan.targets, start=1)
    ]
    body = el(
        "body",
        el("a", "Skip to the findings", class_="skip", href="#findings"),
        _mast(records, digest),
        el("main", _ladder(records), _problems(records), *targets, *about.parts(records, digest)),
        el("footer", el("p", FOOT)),
    )
    title = f"{wording.WORDS[records.claim.verdict]}: {records.plan.ladder} - qualification report"
    return f"<!DOCTYPE html>\n{el('html', head(title), body, lang='en')}\n"


def _mast(records: RootRecords, digest: str) -> Html:
    plan, claim = records.plan, records.claim
    pinned = code(plan.candidate.revision) if plan.candidate.revision else text("none: a folder, pinned by digest")
    rows: list[tuple[str, str]] = [
        ("Candidate", code(plan.candidate.model)),
        ("Revision", pinned),
        *([("Adapter", text(view.adapter_line(plan.candidate.adapter)))] if plan.candidate.adapter is not None else ()),
        ("Model", f"{plan.candidate.architecture}, {plan.candidate.parameters:,} parameters"),
        ("Climbed", f"{_moment(claim.started_at)} to {_moment(claim.ended_at)}"),
        *([("Logs", text(view.redacted_line(records)))] if view.redacted_line(records) else ()),
        ("Authenticity", view.NOT_VOUCHED),
    ]
    links = [("#ladder", "Ladder"), ("#findings", "What stands in the way")]
    links += [(f"#target-{place}", target.name) for place, target in enumerate(plan.targets, start=1)]
    links += [("#gates", "Gates and lock")] * bool(claim.gates or claim.lock is not None)
    links += [
        ("#plan", "Plan"),
        ("#environment", "Environment"),
        ("#lineage", "Lineage"),
        ("#verify", "Verify it yourself"),
    ]
    return el(
        "header",
        el("p", "Qualification report", class_="eyebrow"),
        el("h1", plan.ladder),
        el("p", verdict(claim.verdict), el("span", f"{view.headline(records)}."), class_="answer"),
        facts(rows, ("Root digest", code(digest))),
        el("nav", el("ul", *(el("li", el("a", name, href=href)) for href, name in links)), aria_label="Parts of this report"),
        class_="mast",
    )  # fmt: skip


def _ladder(records: RootRecords) -> Html:
    """Targets by tiers with one telling figure each, and the coverage."""
    tiers = view.tiers(records.plan)
    rows = [
        (
            join([el("a", target.name, href=f"#target-{place}"), el("span", view.target_line(target), class_="what")]),
            *(_rung(records, target, tier) for tier in tiers),
        )
        for place, target in enumerate(records.plan.targets, start=1)
    ]
    coverage = records.claim.coverage
    named = [
        (word, join((code(name) for name in names), ", ") if names else text("none"))
        for word, names in (("Reached", coverage.reached), ("Missed", coverage.missed), ("Deferred", coverage.deferred))
    ]
    state = "complete" if coverage.complete else "partial"
    return el(
        "section",
        el("h2", "The ladder", id="ladder-name"),
        table("Verdict of each tier on each target", ("Target", *map(view.tier_name, tiers)), rows, "ladder stack"),
        facts([("Coverage", f"{state} at {view.tier_name(coverage.goal)}"), *named]),
        id="ladder",
        aria_labelledby="ladder-name",
    )


def _rung(records: RootRecords, target: PlannedTarget, tier: Tier) -> Html:
    if target.deferred is not None:
        return el("span", "deferred", class_="muted")
    claim = view.claims(records).get(target.name)
    found = claim.tiers.get(tier, "NOT_RUN") if claim else "NOT_RUN"
    smoke = tier == "L3" and view.smoke(records, target.name)
    label, metric = view_figures.figures(tier, [target]).shown[0]
    key = None if smoke else view.measurement(records, target.name, tier, metric)
    took = view.seconds(records, target.name, tier)
    word = "" if label in _BARE else f"{label} "
    lines = [f"{word}{wording.measured(key, interval=False)}"] if key else []
    bounds = view.bounds(records, target.name) if tier == "L3" else None
    lines += [f"on {bounds}"] if bounds else []
    lines += [f"in {duration(took)}"] if took is not None else []
    lines += ["preserved"] if (target.name, tier) in records.preserved else []
    return join([verdict(found), *(el("span", line, class_="key") for line in lines)])


def _problems(records: RootRecords) -> Html:
    """Every step that is not PASS, worst first, with its findings that are not."""
    items = []
    for problem in view.problems(records):
        head = el("p", verdict(problem.verdict), el("b", code(problem.target)), f" at {view.tier_name(problem.tier)}")
        caption = f"Findings of {problem.target} at {view.tier_name(problem.tier)} that are not PASS"
        why = (
            sections.findings(problem.findings, caption)
            if problem.findings
            else el("p", escape.shorten(problem.reason, 2000))
        )
        items.append(el("li", head, why, class_=f"problem {problem.verdict}"))
    for item in view.beside(records):
        if item.verdict != "PASS":
            said = [el("p", finding.text) for finding in item.findings] or [el("p", escape.shorten(item.reason, 2000))]
            items.insert(
                0,
                el(
                    "li",
                    el("p", verdict(item.verdict), el("b", code(item.name))),
                    *said,
                    class_=f"problem {item.verdict}",
                ),
            )
    body = el("ul", *items, class_="problems") if items else el("p", "Nothing: every step that ran met every limit.")
    return el(
        "section",
        el("h2", "What stands in the way", id="findings-name"),
        body,
        id="findings",
        aria_labelledby="findings-name",
    )


def _moment(at: str) -> str:
    return at.replace("T", " ").partition(".")[0] + " UTC" if at.endswith("Z") else at
