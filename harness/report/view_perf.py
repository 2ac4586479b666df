"""What outputs say of L1 beyond its key figures: warnings of the moment, callers at once, and the sweep. Pure."""

from __future__ import annotations

from typing import NamedTuple

from harness.derive_machine import BUSY
from harness.metrics import catalogue
from harness.records import Measurement, PlannedTarget
from harness.report import wording
from harness.report.view import measurement, measurements
from harness.root import RootRecords


def warnings(records: RootRecords, target: str) -> list[str]:
    """What a reader of a target's latencies must know of the moment they were taken in; one sentence each. Not escaped."""
    found = []
    for metric, words in _BUSY.items():
        m = measurement(records, target, "L1", metric)
        if m is not None and m.note.startswith(BUSY) and isinstance(m.value, float):
            where = m.note.removeprefix(BUSY) or " while L1 was measured"
            found.append(f"The machine was busy; {words} {m.value:.0%} of its time{where}.")
    placed = measurement(records, target, "L1", "own_node_share")
    if placed is not None and isinstance(placed.value, float) and placed.value < 1:
        found.append(f"The provider fell back; it ran {placed.value:.0%} of the graph's nodes ({placed.note}).")
    drift = measurement(records, target, "L1", "drift_ratio")
    if drift is not None and isinstance(drift.value, float) and drift.interval is not None:
        low, high = drift.interval
        if (low > DRIFTS or high < 1 / DRIFTS) and not low <= 1 <= high:
            found.append(
                f"The figure drifts; the last third of the calls took {drift.value:.2f} times what the first third took."
            )
    return found


def placement(records: RootRecords, target: PlannedTarget) -> str:
    """Why a graph in another precision than fp32 is as fast as it is: its Casts, and where its nodes ran. Empty without those numbers.

    E.g. ``14 Casts after optimisation, storage only; 61 of 61 nodes on its own provider``.
    """
    if target.precision == "fp32" or not measurements(records, target.name, "L1"):
        return ""
    said = []
    casts = measurement(records, target.name, "L0", "optimised_casts")
    if casts is not None and isinstance(casts.value, int):
        why = casts.note.partition(":")[0]
        count = f"{casts.value:,} Cast{'' if casts.value == 1 else 's'}"
        said.append(f"{count} after optimisation{f', {why}' if why else ''}")
    own = measurement(records, target.name, "L0", "own_provider_nodes")
    if own is not None and isinstance(own.value, int):
        said.append(f"{own.value:,}{f' {own.note}' if own.note else ''} nodes on its own provider")
    return "; ".join(said)


DRIFTS = 1.05
"""Below this ratio a drift is not worth a warning, though its interval may leave 1 out: calls are not independent."""

_OTHERS, _STOLEN = "other processes took", "the hypervisor gave to others"
_BUSY = {
    "busy_share_before": _OTHERS,
    "stolen_share_before": _STOLEN,
    "busy_share": _OTHERS,
    "stolen_share": _STOLEN,
}


class Cell(NamedTuple):
    """A row of a sweep: what was asked, and the metrics that were derived, by their name without the parameter."""

    candidates: int
    max_length: int
    batch_size: int
    threads: int
    found: dict[str, Measurement]


def sweep_cells(records: RootRecords, target: str) -> list[Cell]:
    """The cells of a target's sweep in the order of the plan; none without one."""
    by_cell: dict[str, dict[str, Measurement]] = {}
    for m in measurements(records, target, "L1"):
        base, _, cell = m.metric.partition(".")
        if base.startswith("sweep_") and catalogue.find(m.metric) is not None:
            by_cell.setdefault(cell, {})[base] = m
    cells = []
    for cell, found in by_cell.items():
        candidates, max_length, batch_size, threads = (int(part[1:]) for part in cell.split("-"))
        cells.append(Cell(candidates, max_length, batch_size, threads, found))
    return cells


Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
"""Caption, head and rows."""


def load_tables(records: RootRecords, target: str) -> list[Table]:
    """The tables of callers at once and of the sweep, those that there are."""

    def shown(found: dict[str, Measurement], metric: str) -> str:
        m = found.get(metric)
        return "–" if m is None or m.value is None else wording.measured(m, interval=False)

    tables: list[Table] = []
    levels: dict[str, dict[str, Measurement]] = {}
    for m in measurements(records, target, "L1"):
        base, _, callers = m.metric.partition(".")
        if base.startswith("load_") and callers and catalogue.find(m.metric) is not None:
            levels.setdefault(callers, {})[base] = m
    if levels:
        names = ("load_p50_ms", "load_p95_ms", "load_slowest_p95_ms", "load_pairs_per_s")
        rows = [(callers, *(shown(found, name) for name in names)) for callers, found in levels.items()]
        tables.append(("Callers at once", ("Callers", "p50", "p95", "p95 of the slowest", "Throughput"), rows))
    cells = sweep_cells(records, target)
    if cells:
        metrics = ("sweep_longest_tokens", "sweep_p50_ms", "sweep_p95_ms", "sweep_pairs_per_s", "sweep_peak_rss_bytes")
        rows = [(*map(str, cell[:4]), *(shown(cell.found, name) for name in metrics)) for cell in cells]
        head = ("Candidates", "Cut at", "Micro-batch", "Threads", "Longest", "p50", "p95", "Throughput", "Peak RSS")
        tables.append(("Sweep", head, rows))
    return tables
