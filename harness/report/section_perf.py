"""The HTML of one target's L1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.raw import MemoryRaw, PerfRaw
from harness.report import plots, plots_load, view, view_perf, wording
from harness.report.markup import Html, details, el, facts, table
from harness.report.source import Source
from harness.root import RootRecords


def perf(records: RootRecords, source: Source, name: str, mark: str) -> Iterator[Html]:
    """Warnings, plots, tables and the session of a target's L1."""
    drawn: list[Html | None] = []
    samples, memory = source.samples(name), source.memory(name)
    if isinstance(samples, PerfRaw):
        middle = view.measurement(records, name, "L1", "p50_ms")
        drawn.append(plots.latency(samples.steady_ms, middle.interval if middle else None, mark))
        drawn.append(plots.phases(samples.load_ms, samples.first_call_ms, samples.warm_up_ms, samples.steady_ms, mark))
        drawn.append(plots.drift(samples.warm_up_ms, samples.steady_ms, mark))
    cells = view_perf.sweep_cells(records, name)
    if cells:
        drawn.append(plots_load.sweep(cells, mark))
    if isinstance(memory, MemoryRaw):
        events = samples.events_ms if isinstance(samples, PerfRaw) else {}
        drawn.append(plots.memory(memory.at_ms, memory.rss_bytes, events, mark))
    placed = view_perf.placement(records, next(planned for planned in records.plan.targets if planned.name == name))
    if placed:
        yield el("p", f"The graph that was timed: {placed}.")
    for warning in view_perf.warnings(records, name):
        yield el("p", warning, class_="note")
    yield from plotted(drawn, samples, memory)
    for caption, head, rows in view_perf.load_tables(records, name):
        yield details(f"{caption}: {len(rows)} rows", table(f"{caption}, {name}", head, rows))
    if isinstance(samples, PerfRaw):
        options = [(option, wording.number(value)) for option, value in sorted(samples.session.options.items())]
        yield details(
            "The session that was timed", facts([("providers", ", ".join(samples.session.providers)), *options])
        )


def plotted(drawn: Sequence[Html | None], *sources: object) -> Iterator[Html]:
    """The plots that there are, and what a source says that has nothing to draw."""
    shown = [figure for figure in drawn if figure is not None]
    if shown:
        yield el("div", *shown, class_="plots")
    for missing in dict.fromkeys(source for source in sources if isinstance(source, str)):
        yield el("p", missing, class_="small")
