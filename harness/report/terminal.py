"""A root and a plan on a terminal: the worst thing first, 80 columns, the root digest last."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from harness.records import TIERS, DataFact, Finding, Plan, PlannedTarget, TargetClaim, Tier
from harness.report import escape, view, view_figures, view_perf, wording
from harness.report.live import STYLES, duration
from harness.root import RootRecords

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.text import Text

WIDTH = 80
_SHOWN: dict[Tier, int] = {"L0": 3, "L1": 3, "L2": 3, "L3": 2}
_PLAIN = frozenset({"precision", "throughput"})  # figures that say themselves what they are


def print_root(*, found: RootRecords, digest: str, path: str) -> None:
    """Print ``render`` to stdout, at most 80 columns wide, in colour on a terminal only."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.print(render(found, digest=digest, path=path), width=min(WIDTH, console.width))


def render(records: RootRecords, *, digest: str, path: str) -> Group:
    """The whole answer as a rich renderable, for ``Console(highlight=False, width=min(80, ...))``.

    ``digest`` is the root digest (``blake3:`` and 64 hex), ``path`` where the root is; both come last.
    """
    from rich.console import Group
    from rich.text import Text

    claim, plan = records.claim, records.plan
    head = Text(wording.sign(claim.verdict), STYLES[claim.verdict])
    head.append(f"  {escape.terminal(plan.ladder)}", "bold").append(f": {view.headline(records)}", "default")
    parts: list[RenderableType] = [head, Text()]
    beside = view.beside(records)
    parts += [_beside(item) for item in beside if item.verdict != "PASS"]
    for problem in view.problems(records):
        parts += [_problem(problem), Text()]
    parts += [_ladder(records), Text()]
    passed = [_beside(item) for item in beside if item.verdict == "PASS"]
    parts += [*passed, Text()] if passed else []
    for target in plan.targets:
        parts += _figures(records, target)
    parts += [Text(), *_facts(records), Text()]
    parts += [_field("root", path), Text.assemble(("digest  ", "dim"), escape.terminal(digest))]
    return Group(*parts)


def _beside(item: view.Beside) -> RenderableType:
    """A gate or the lock, on one line where it passed; the packages that differ, or why it did not pass, below."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    head = Text(wording.sign(item.verdict), STYLES[item.verdict])
    head.append(f"  {escape.terminal(item.name)}", "bold")
    lines = [Text(_clean(finding.text)) for finding in item.findings]
    if not lines and item.verdict != "PASS":
        lines = [Text(_clean(item.reason))]
    return Group(head, *(Padding(line, (0, 0, 0, 4), expand=False) for line in lines), *([Text()] if lines else []))


def _problem(problem: view.Problem) -> RenderableType:
    """A step that is not PASS with every finding that is not, or its reason when nothing was judged."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    head = Text(wording.sign(problem.verdict), STYLES[problem.verdict])
    head.append(f"  {escape.terminal(problem.target)}", "bold").append(f" at {view.tier_name(problem.tier)}", "default")
    lines = [_finding(finding) for finding in problem.findings]
    if not lines:
        lines = [Text(_clean(problem.reason) or "no reason was recorded")]
    return Group(head, *(Padding(line, (0, 0, 0, 4), expand=False) for line in lines))


def _finding(finding: Finding) -> Text:
    from rich.text import Text

    unit = wording.unit_of(finding.metric)
    line = Text(f"{escape.terminal(finding.metric)} ", "bold")
    line.append(f"limit {_clean(wording.limit(finding.limit, unit))}", "default")
    if finding.value is None:
        return line.append(f", no number: {_clean(finding.text)}", "default")
    line.append(f", found {_clean(wording.found(finding))}", "default")
    line.append(f", {wording.margin(finding)}", "dim")
    if finding.verdict != "FAIL":
        line.append(f" {wording.sign(finding.verdict)}", STYLES[finding.verdict])
    why = wording.why(finding)
    return line.append(f": {_clean(why)}", "default") if why else line


def _ladder(records: RootRecords) -> RenderableType:
    """Targets by tiers."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("target", overflow="fold", max_width=24)
    for tier in view.tiers(records.plan):
        table.add_column(view.tier_name(tier))
    for target in records.plan.targets:
        claim = view.claims(records).get(target.name)
        cells = [_cell(records, claim, target, tier) for tier in view.tiers(records.plan)]
        table.add_row(Text(escape.terminal(target.name)), *cells)
    return table


def _cell(records: RootRecords, claim: TargetClaim | None, target: PlannedTarget, tier: Tier) -> Text:
    from rich.text import Text

    if target.deferred is not None:
        return Text("deferred", "dim")
    verdict = claim.tiers.get(tier, "NOT_RUN") if claim else "NOT_RUN"
    took = view.seconds(records, target.name, tier)
    cell = Text(wording.sign(verdict), STYLES[verdict])
    if (target.name, tier) in records.preserved:
        return cell.append(" preserved", "dim")
    return cell if took is None else cell.append(f" {duration(took)}", "dim")


def _figures(records: RootRecords, target: PlannedTarget) -> list[RenderableType]:
    """The key figures of a target, a line a tier; the bounds stand beside every L3 figure."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for tier in TIERS:
        figures = view_figures.key_figures(records, target.name, tier, most=_SHOWN[tier])
        if figures:
            text = ", ".join(
                escape.terminal(value) if label in _PLAIN else f"{label} {escape.terminal(value)}"
                for label, value in figures
            )
            limits = view.bounds(records, target.name) if tier == "L3" else None
            table.add_row(f"  {view.tier_name(tier)}", Text(text + (f" [{limits}]" if limits else "")))
        for label, value in view_figures.comparisons(records, target.name) if tier == "L1" else ():
            table.add_row("", Text(f"{label} {escape.terminal(value)}"))
    for warning in view_perf.warnings(records, target.name):
        table.add_row("  warning", Text(_clean(warning), "yellow"))
    if view.smoke(records, target.name):
        table.add_row(f"  {view.tier_name('L3')}", Text(str(view.bounds(records, target.name) or view.SMOKE)))
    if target.deferred is not None:
        table.add_row("  deferred", Text(_clean(target.deferred)))
    head = Text(escape.terminal(target.name), "bold")
    head.append(f"  {escape.terminal(view.target_line(target))}", "dim")
    return [head, table] if table.row_count else [head]


def _facts(records: RootRecords) -> list[RenderableType]:
    plan = records.plan
    revision = f" at {plan.candidate.revision}" if plan.candidate.revision else ""
    lines = [
        _field("model", f"{plan.candidate.model}{revision}"),
        *([_field("lora", view.adapter_line(plan.candidate.adapter))] if plan.candidate.adapter is not None else ()),
        _field("covers", view.coverage_line(records)),
    ]
    lines += [_field("kept", view.carried_line(entry)) for entry in view.carried(records)]
    lines += [_field("past", f"replaces {old.digest}: {old.reason}") for old in records.lineage.supersedes]
    data = plan.inputs.groups
    beside = plan.inputs.baseline
    if beside is not None:
        lines.append(_field("beside", f"{beside.source}, {beside.digest}"))
    if data is not None:
        lines.append(_field("ranked", f"{data.source}, {wording.bounds(data.bounds)}, {data.digest}"))
        lines += [_field("", note) for note in data.notes]
    lines += [_field("smoke", label) for label in view.smoke_labels(records)]
    lines += [_field("logs", line) for line in (view.redacted_line(records),) if line]
    return [*lines, _field("trust", view.NOT_VOUCHED)]


def _field(label: str, value: str) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    row = Table.grid(padding=(0, 2, 0, 0))
    row.add_column(style="dim", width=6)
    row.add_column(overflow="fold")
    row.add_row(label, Text(_clean(value)))
    return row


def _clean(text: str) -> str:
    return escape.terminal(escape.shorten(text, 600))


# --- a plan -----------------------------------------------------------------------------------------------------------


def plan_text(plan: Plan) -> str:
    """The whole plan as text; a star marks an option that the ladder did not give."""
    candidate = plan.candidate
    count = len(plan.targets)
    goal = f"{count} target{'' if count == 1 else 's'} to {view.tier_name(plan.goal)}, seed {plan.seed}"
    lines = [
        *textwrap.wrap(escape.terminal(f"{plan.ladder}: {goal}"), WIDTH),
        "",
        *wrapped("model", candidate.model + (f" at {candidate.revision}" if candidate.revision else "")),
        *(wrapped("adapter", view.adapter_line(candidate.adapter)) if candidate.adapter is not None else ()),
        *wrapped("", f"{candidate.architecture}, {candidate.parameters:,} parameters, {len(candidate.files)} files"),
        *wrapped("", candidate.digest),
        *_data("pairs", plan.inputs.pairs),
        *_data("groups", plan.inputs.groups),
        *_data("baseline", plan.inputs.baseline, "files of "),
        *(wrapped("groups", f"BLOCKED: {plan.inputs.groups_blocked}") if plan.inputs.groups_blocked else ()),
        "",
        *_options(plan),
    ]
    for target in plan.targets:
        lines += ["", *wrapped(target.name, view.target_line(target))]
        lines += wrapped("", f"deferred: {target.deferred}") if target.deferred is not None else ()
        for step in target.steps:
            limits = (
                f"{metric} {wording.limit(bound, wording.unit_of(metric))}"
                for metric, bound in sorted(step.limits.items())
            )
            bounds = f"within {duration(step.time_limit_s)} and {wording.size(step.memory_limit_bytes, binary=True)}"
            lines += wrapped(f"  {step.tier}", f"{bounds}: {', '.join(limits)}")
    lines += ["", *wrapped("defaults", ", ".join(plan.defaults) or "none: the ladder gave every value")]
    return "\n".join(lines) + "\n"


def _options(plan: Plan) -> Iterator[str]:
    for tier, options in msgspec.to_builtins(plan.options).items():
        if options is not None:
            given = (
                f"{name} {_value(value)}{'*' if f'/tiers/{tier}/{name}' in plan.defaults else ''}"
                for name, value in options.items()
            )
            yield from wrapped(tier, ", ".join(given))
    yield from wrapped("", "* the default: the ladder does not give it")


def _data(label: str, fact: DataFact | None, of: str = "from ") -> Iterator[str]:
    if fact is not None:
        bounds = f", {wording.bounds(fact.bounds)}" if fact.bounds else ""
        yield from wrapped(label, f"{fact.rows:,} {of}{fact.source}{bounds}")
        yield from wrapped("", fact.digest)
        for note in fact.notes:
            yield from wrapped("", note)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_value(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return " x ".join(map(_value, value))
    return "none" if value is None else str(value)


def wrapped(label: str, text: str) -> list[str]:
    """A label and its text wrapped beside it, 71 columns wide: a digest just fits. A longer label has its own line."""
    name = escape.terminal(label)
    wrapped = textwrap.wrap(escape.terminal(escape.shorten(text, 4000)), WIDTH - 9, break_on_hyphens=False) or [""]
    if len(name) > 8:
        return [name, *(" " * 9 + line for line in wrapped)]
    return [f"{name if place == 0 else '':<9}{line}".rstrip() for place, line in enumerate(wrapped)]
