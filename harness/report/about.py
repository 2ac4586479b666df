"""The HTML of what a root says of itself: plan, environment, lineage, and how to check all of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from harness.records import DataFact, Plan, PlannedTarget, Tier
from harness.report import reproduce, view, wording
from harness.report.markup import Html, code, details, el, facts, join, table
from harness.root import RootRecords


def parts(records: RootRecords, digest: str) -> Iterator[Html]:
    """The last sections of a report."""
    yield _part("plan", "Plan", *_plan(records.plan))
    if records.claim.gates or records.claim.lock is not None:
        yield _part("gates", "Gates and lock", *_gates(records))
    environment = records.environment
    yield _part(
        "environment",
        "Environment",
        facts([(name.replace("_", " "), _fact(name, value)) for name, value in sorted(environment.facts.items())]),
        details(f"{len(environment.packages)} packages", facts([(name, code(v)) for name, v in sorted(environment.packages.items())])),
    )  # fmt: skip
    yield _part("lineage", "Lineage", *_lineage(records))
    yield _part("verify", "Verify it yourself", *_verify(records, digest))


def _part(name: str, title: str, *children: Html) -> Html:
    return el("section", el("h2", title, id=f"{name}-name"), *children, id=name, aria_labelledby=f"{name}-name")


def _gates(records: RootRecords) -> Iterator[Html]:
    """Every gate with its command and how it ended; every package that differs from the lock."""
    commands = {gate.name: gate for gate in records.plan.gates}
    rows = []
    for claim in records.claim.gates:
        gate, left = commands[claim.name], records.gates.get(claim.name)
        took = f"{left.exit.seconds:.1f} s" if left is not None and left.exit is not None else "–"
        sign = wording.sign(claim.verdict)
        rows.append(
            (code(claim.name), code(" ".join(gate.command)), code(gate.folder), sign, took, claim.reason or "–")
        )
    if rows:
        yield table(
            "Gates, run before the first step", ("Gate", "Command", "In", "Verdict", "Took", "Why"), rows, "stack"
        )
    lock = records.claim.lock
    if lock is not None:
        yield facts([("Lock", code(lock.file)), ("Asked", lock.parity), ("Verdict", wording.sign(lock.verdict))])
        found = [
            (code(f.metric.removeprefix("package.")), wording.limit(f.limit, ""), wording.number(f.value))
            for f in lock.differences
        ]
        if found:
            yield table("Packages that differ from the lock", ("Package", "Pinned", "Installed"), found, "stack")


def _plan(plan: Plan) -> Iterator[Html]:
    yield el(
        "p",
        "Fixed before the first step ran; its digest stands in every step. What the ladder did not give is a default.",
    )
    yield facts(
        [("Goal", view.tier_name(plan.goal)), ("Seed", f"{plan.seed}")],
        ("Ladder digest", code(plan.ladder_digest)),
        ("Candidate digest", code(plan.candidate.digest)),
    )
    rows = [
        (code(metric), *(_limit(target, tier, metric) for target in plan.targets))
        for tier in view.tiers(plan)
        for metric in sorted({m for t in plan.targets for s in t.steps if s.tier == tier for m in s.limits})
    ]
    yield details("Limits", table("Limits by target", ("Metric", *(t.name for t in plan.targets)), rows))
    options = msgspec.to_builtins(plan.options)
    asked = [
        (f"{tier} {name}", _option(value) + (" (default)" if f"/tiers/{tier}/{name}" in plan.defaults else ""))
        for tier in view.tiers(plan)
        for name, value in (options[tier] or {}).items()
    ]
    defaults = el(
        "p", "Not given by the ladder: ", join(map(code, plan.defaults), ", ") if plan.defaults else "nothing"
    )
    yield details("Options and defaults", facts(asked), defaults)
    yield from _data("Pairs of L2", plan.inputs.pairs)
    yield from _data("Groups of L3", plan.inputs.groups)
    yield from _data("Baseline of L1", plan.inputs.baseline, "files")
    if plan.inputs.groups_blocked:
        yield el("p", el("b", "Groups of L3: "), plan.inputs.groups_blocked)
    files = [(code(f.path), wording.size(f.bytes), code(f.blake3)) for f in plan.candidate.files]
    yield details(f"Candidate: {len(files)} files", table("Files of the candidate", ("File", "Size", "BLAKE3"), files))


def _data(title: str, fact: DataFact | None, unit: str = "rows") -> Iterator[Html]:
    """Data that was scored, or compared with: where from, how bounded, what is odd about it."""
    if fact is not None:
        yield details(
            f"{title}: {fact.rows:,} {unit}",
            facts(
                [("source", code(fact.source)), ("bounds", wording.bounds(fact.bounds))],
                ("digest", code(fact.digest)),
                *([("notes", "; ".join(fact.notes))] if fact.notes else []),
            ),
        )


def _limit(target: PlannedTarget, tier: Tier, metric: str) -> str:
    step = next((step for step in target.steps if step.tier == tier), None)
    bound = step.limits.get(metric) if step else None
    return wording.limit(bound, wording.unit_of(metric)) if bound else "–"


def _option(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_option(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_option, value))
    return "none" if value is None else wording.number(value)


def _fact(name: str, value: Any) -> str:
    if value is None and name in {"host", "user"}:
        return "not recorded"
    return wording.quantity(value, "bytes", binary=True) if name.endswith("_bytes") else wording.number(value)


def _lineage(records: RootRecords) -> Iterator[Html]:
    lineage = records.lineage
    if not lineage.supersedes and not lineage.preserved:
        yield el("p", "This root stands alone: it replaces none and relies on none.")
    for old in lineage.supersedes:
        yield el("h3", "Replaces")
        yield facts([("Root digest", code(old.digest)), ("Reason", code(old.reason))])
    for entry in view.carried(records):
        yield el("h3", "Relies on")
        yield el(
            "p",
            "These steps did not run here: their samples were sealed in an earlier root, and are judged again here.",
        )
        steps = (("Steps", entry.steps), ("Judged by other limits than there", entry.limits))
        rows = [(name, join((code(step) for step in named), ", ")) for name, named in steps if named]
        yield facts([("Root digest", code(entry.origin)), *rows])


def _verify(records: RootRecords, digest: str) -> Iterator[Html]:
    yield el(
        "p",
        "This page is a reading of the root, not the evidence. With the root at hand, ",
        "check that it is the one and judge it again from its raw samples:",
    )
    yield el("pre", _lines(f"qualify verify ROOT --expect {digest}"))
    yield el("p", "Any BLAKE3 tool can check the files, and a verifier without the harness can check the seal:")
    yield el("pre", _lines("(cd ROOT && b3sum --check MANIFEST.b3)\npython -m evidence.verify ROOT"))
    found = reproduce.reproduce(records)
    origin = (" (", code(found.origin), ")") if found.origin else ()
    yield el("p", found.where, *origin, ", climb it again:")
    yield el("pre", _lines("\n".join(found.commands)))
    yield el("ul", *(el("li", line) for line in found.placeholders))
    if found.warning:
        yield el("p", found.warning, class_="note")
    yield el(
        "p",
        "Without a digest kept elsewhere, or a signature, a root is only shown to agree with itself.",
        class_="note",
    )


def _lines(lines: str) -> Html:
    """Lines of a command, each made inert."""
    return el("code", join(lines.split("\n"), Html("\n")), tabindex=0)
