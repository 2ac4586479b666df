"""Warnings of the moment, callers at once and the sweep, in every output."""

from __future__ import annotations

import io

import msgspec
from rich.console import Console

from harness.records import Measurement
from harness.report import html, markdown, terminal, view_perf
from harness.report.plots_load import sweep
from harness.root import RootRecords
from tests.support.roots import DIGEST, Example

CELLS = [(10, 128, 8, 1), (10, 512, 8, 1), (100, 128, 8, 1), (100, 512, 8, 1)]


def made(metric: str, value: float | None, unit: str, note: str = "") -> Measurement:
    return Measurement(metric=metric, value=value, unit=unit, note=note)


def loaded(records: RootRecords) -> RootRecords:
    """The records with a busy machine, a drift, two levels of callers and a sweep of four cells on cpu-fp32."""
    more = [
        made("busy_share", 0.42, "share", "a busy machine"),
        made("stolen_share", 0.001, "share"),
        Measurement(metric="drift_ratio", value=1.3, unit="ratio", interval=(1.2, 1.4)),
    ]
    for callers in (1, 8):
        more.append(made(f"load_p50_ms.{callers}", 10.0 * callers, "ms"))
        more.append(made(f"load_pairs_per_s.{callers}", 1600.0, "pairs/s"))
    for candidates, tokens, batch, threads in CELLS:
        name = f"c{candidates}-l{tokens}-b{batch}-t{threads}"
        more.append(made(f"sweep_longest_tokens.{name}", tokens - candidates, "tokens"))
        more.append(made(f"sweep_p50_ms.{name}", candidates * tokens / 100, "ms"))
        more.append(made(f"sweep_p95_ms.{name}", None, "ms", "needs at least 59 samples, has 10"))
        more.append(made(f"sweep_peak_rss_bytes.{name}", 300_000_000 + candidates, "bytes"))
    step = records.steps["cpu-fp32", "L1"]
    assert step.measurements is not None
    kept = tuple(m for m in step.measurements.measurements if m.metric != "drift_ratio")
    measured = msgspec.structs.replace(step.measurements, measurements=(*kept, *more))
    steps = records.steps | {("cpu-fp32", "L1"): msgspec.structs.replace(step, measurements=measured)}
    return msgspec.structs.replace(records, steps=steps)


def test_a_busy_machine_and_a_drift_are_said_in_one_sentence_each(root: Example) -> None:
    assert view_perf.warnings(loaded(root.records), "cpu-fp32") == [
        "The machine was busy; other processes took 42% of its time while L1 was measured.",
        "The figure drifts; the last third of the calls took 1.30 times what the first third took.",
    ]
    assert view_perf.warnings(root.records, "cpu-fp32") == []


def test_the_terminal_warns(root: Example) -> None:
    out = io.StringIO()
    Console(file=out, width=200).print(terminal.render(loaded(root.records), digest=DIGEST, path="root"))
    assert (
        "warning    The machine was busy; other processes took 42% of its time while L1 was measured." in out.getvalue()
    )


def test_markdown_has_a_table_of_the_sweep_and_one_of_the_callers(root: Example) -> None:
    text = markdown.render(loaded(root.records), DIGEST)
    assert "> <code>cpu-fp32</code>: The machine was busy; other processes took 42% of its time" in text
    assert "| 100 | 512 | 8 | 1 | 412 tokens | 512 ms | – | – | 300.0 MB |" in text
    assert "| 8 | 80 ms | – | – | 1,600 pairs/s |" in text


def test_the_page_has_a_picture_and_a_table_of_the_sweep(root: Example) -> None:
    page = html.render(loaded(root.records), root.read, root.files, root.digest)
    assert "4 cells, medians from 12.8 to 512 ms" in page
    assert "Sweep: 4 rows" in page
    assert "The session that was timed" in page
    assert "Callers at once: 2 rows" in page
    assert "The machine was busy; other processes took 42%" in page


def test_a_sweep_without_a_median_has_no_picture(root: Example) -> None:
    assert sweep([view_perf.Cell(1, 8, 1, 1, {})], "x") is None
    odd = made("sweep_p50_ms.not-a-cell", 1.0, "ms")
    step = root.records.steps["cpu-fp32", "L1"]
    assert step.measurements is not None
    measured = msgspec.structs.replace(step.measurements, measurements=(odd,))
    steps = {("cpu-fp32", "L1"): msgspec.structs.replace(step, measurements=measured)}
    assert view_perf.sweep_cells(msgspec.structs.replace(root.records, steps=steps), "cpu-fp32") == []
