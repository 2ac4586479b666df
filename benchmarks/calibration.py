"""Does the paired comparison tell a regression of 2% from none? Writes docs/calibration.md. Resumes: what WORK has is not run again.

    python -m benchmarks.calibration WORK [RUNS]       about half an hour for 20 runs of each kind, on a machine with nothing else to do

At 1 and at 2 threads, RUNS times each: `qualify run LADDER --baseline ROOT` of the baseline's own artifact (*same*), and of that
artifact with extra nodes that take 2% of its median (*slowed*). The quickstart's model, 8 pairs a call. The nodes are sized in place, by
what many of them cost; they are timed in a graph of their own as well, and what they cost in place is checked by all slowed runs together.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from benchmarks.planted import link_ms, slowed
from evidence.verify import open_root
from harness import leftovers
from harness.derive_raw import raw_record
from harness.metrics.latency import bootstrap_median_interval
from harness.metrics.paired import Ratio, log_median_ratio, ratio
from harness.raw import PairedRaw, PerfRaw
from harness.records import Measurements

REPO = Path(__file__).parent.parent
MODEL = REPO / "ladders" / "quickstart" / "model"
TARGET = "cpu-fp32"
THREADS = (1, 2)
PLANTED = 0.02
LADDER = """format: 1
name: calibration
candidate: {{model: {model}}}
goal: L1
seed: {seed}
tiers:
  L0: {{limits: {{opset: {{at_least: 11}}}}}}
  L1:
    candidates: 8
    batch_size: 8
    max_length: 64
    warm_up: 3
    calls: 100
    min_calls: 100
    growth_calls: 0
    limits: {{{limit}}}
targets: [{{precision: fp32, threads: {threads}{artifact}}}]
"""


# --- runs -------------------------------------------------------------------------------------------------------------


def climb(work: Path, name: str, threads: int, artifact: Path | None, beside: Path | None, seed: int) -> Path:
    """Run a ladder to L1; its root. A root that is there is taken."""
    root = work / name
    if root.exists():
        return root
    limit = "ratio_p50: {at_most: 1.01}" if beside else "p50_ms: {at_most: 1e6}"
    given = f", artifact: {artifact}" if artifact else ""
    text = LADDER.format(model=MODEL, seed=seed, limit=limit, threads=threads, artifact=given)
    ladder = work / f"{name}.yaml"
    ladder.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "harness.cli", "run", str(ladder), "--out", str(root)]
    command += ["--baseline", str(beside)] if beside else []
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPO, check=False)
    if not root.exists():
        raise SystemExit(f"{name}: no root\n{done.stdout}{done.stderr}")
    ladder.unlink()
    return root


def read(root: Path) -> dict[str, Any]:
    """What a run gave: its ratios, the call pairs by the clock and by the processors, the steady calls of its own session, seconds."""
    opened = open_root(root)
    step = f"steps/L1-perf.{TARGET}"
    measured = raw_record(opened.read, f"{step}/measurements.json", Measurements)
    ratios = {m.metric: m for m in measured.measurements if m.metric in {"ratio_p50", "ratio_cpu"}}
    wall, cpu = ratios["ratio_p50"], ratios["ratio_cpu"]
    if wall.value is None or cpu.value is None:
        raise SystemExit(f"{root}: no ratio: {wall.note or cpu.note}")
    raw = raw_record(opened.read, f"{step}/paired.json", PairedRaw)
    outcome = json.loads(opened.read(f"{step}/outcome.json"))
    return {
        "ratio": wall.value,
        "interval": wall.interval,
        "cpu_interval": cpu.interval,
        "call_pairs": [[list(pair.candidate_ms), list(pair.other_ms)] for pair in raw.sessions],
        "steady_ms": list(raw_record(opened.read, f"{step}/samples.json", PerfRaw).steady_ms),
        "seconds": outcome["exit"]["seconds"],
    }


def prepare(work: Path, threads: int) -> dict[str, Any]:
    """The baseline's root, and the slowed artifact ``slow-<threads>/model.onnx``, sized in place; how it was sized."""
    stated = work / f"planted-{threads}.json"
    base = climb(work, f"base-{threads}", threads, None, None, 0)
    if not stated.exists():
        source = base / "artifacts" / TARGET / "model.onnx"
        count = 150  # about a fifth: enough to be measured well
        trial = graph(work, f"trial-{threads}", source, count)
        root = climb(work, f"size-{threads}", threads, trial, base, 0)
        found = read(root)
        leftovers.remove(root)  # so that the next try measures again
        share = (found["ratio"] - 1) / count
        if found["interval"][0] < 1.05:
            raise SystemExit(
                f"{count} links: expected to see that they take at least 5%, got {found['interval']}; wait for a quiet machine"
            )
        median_ms = statistics.median(ms for _, other in found["call_pairs"] for ms in other)
        chosen = max(1, round(PLANTED / share))
        graph(work, f"slow-{threads}", source, chosen)
        facts = {"links": chosen, "median_ms": median_ms, "in_place": share * chosen, "link_ms": link_ms(threads)}
        stated.write_text(json.dumps(facts), encoding="utf-8")
    found = json.loads(stated.read_text("utf-8"))
    return dict(found)


def graph(work: Path, name: str, source: Path, count: int) -> Path:
    """The slowed graph in a folder of its own."""
    place = work / name / "model.onnx"
    place.parent.mkdir(exist_ok=True)
    slowed(source, place, count)
    return place


def run_all(work: Path, runs: int) -> list[dict[str, Any]]:
    """Every run, one kind after another in turn, so that what the machine does meanwhile is in all of them alike."""
    found = []
    for number in range(runs):
        for threads in THREADS:
            base = work / f"base-{threads}"
            for kind in ("same", "slowed"):
                name = f"{kind}-{threads}-{number:02}"
                place = work / "results" / f"{name}.json"
                if not place.exists():
                    source = base / "artifacts" / TARGET if kind == "same" else work / f"slow-{threads}"
                    root = climb(work, name, threads, source / "model.onnx", base, 1 + number)
                    place.write_text(json.dumps(read(root)), encoding="utf-8")
                    leftovers.remove(root)
                result = json.loads(place.read_text("utf-8"))
                print(f"{name}  {result['ratio']:.4f}  {result['interval']}  {result['seconds']:.1f} s", flush=True)
                found.append(result | {"kind": kind, "threads": threads, "number": number})
    return found


# --- what else could have been asked of the same samples -------------------------------------------------------------


Interval = tuple[float, float]


def over_sessions(result: dict[str, Any]) -> list[float]:
    """The logarithm of each pair of sessions: the median over call pairs."""
    return [log_median_ratio(own, other) for own, other in result["call_pairs"]]


def t_interval(logs: list[float]) -> Interval:
    """Student's t over pairs of sessions."""
    half = stats.t.ppf(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(statistics.mean(logs) - half), math.exp(statistics.mean(logs) + half)


def one_session(result: dict[str, Any]) -> Interval:
    """As many benchmarks do it: the calls of the first pair of sessions alone, taken for independent, bootstrap of the median ratio."""
    own, other = map(np.asarray, result["call_pairs"][0])
    low, high = bootstrap_median_interval(own / other, 0) or (math.nan, math.nan)
    return low, high


def unpaired(own: dict[str, Any], other: dict[str, Any]) -> Interval:
    """Two runs of L1 apart: the ratio of the medians of their steady calls, each resampled."""
    generator = np.random.default_rng(0)
    sides = [np.asarray(side["steady_ms"]) for side in (own, other)]
    first, second = (np.median(generator.choice(side, (4000, len(side))), axis=1) for side in sides)
    low, high = np.quantile(first / second, [0.025, 0.975])
    return float(low), float(high)


def ways(runs: list[dict[str, Any]], threads: int) -> dict[str, dict[str, list[Interval]]]:
    """By way and kind, the interval of every run. An unpaired *same* is a run against the next one of its kind."""
    mine = {kind: [r for r in runs if r["threads"] == threads and r["kind"] == kind] for kind in ("same", "slowed")}
    before = [mine["same"][-1], *mine["same"][:-1]]
    return {
        CHOSEN: {kind: [tuple(r["interval"]) for r in of] for kind, of in mine.items()},
        "the same samples, Student's t over pairs of sessions": {
            kind: [t_interval(over_sessions(r)) for r in of] for kind, of in mine.items()
        },
        "the same calls by processor time (`ratio_cpu`)": {
            kind: [tuple(r["cpu_interval"]) for r in of] for kind, of in mine.items()
        },
        "the same samples, one pair of sessions, bootstrap over its calls": {
            kind: [one_session(r) for r in of] for kind, of in mine.items()
        },
        "unpaired: two runs of L1, bootstrap of their medians": {
            "same": [unpaired(r, other) for r, other in zip(mine["same"], before, strict=True)],
            "slowed": [unpaired(r, other) for r, other in zip(mine["slowed"], mine["same"], strict=True)],
        },
    }


SHIFTED = "| the first row, each interval times 1.02 over the measured slowdown of {took} | | exactly 2%: {found} of {count} | the same |"
CHOSEN = "**paired, as `qualify run --baseline` does it**"


# --- the page ---------------------------------------------------------------------------------------------------------


def page(runs: list[dict[str, Any]], planted: dict[int, dict[str, Any]]) -> str:
    """docs/calibration.md."""
    count = max(r["number"] for r in runs) + 1
    lines = [INTRODUCTION.format(count=count, seconds=max(r["seconds"] for r in runs))]
    for threads in THREADS:
        slower_by = slowdown(runs, threads)
        lines += [f"\n## {threads} thread{'s' if threads > 1 else ''}\n", *_planted(planted[threads], slower_by)]
        took = f"{slower_by.measured.value - 1:.2%}"
        lines += [f"| how | same: called different | slowed by {took}: found | width of the interval, median |"]
        lines += ["| --- | --- | --- | --- |"]
        by_way = ways(runs, threads)
        for way, found in by_way.items():
            different = sum(not low <= 1 <= high for low, high in found["same"])
            slower = sum(low > 1 for low, _ in found["slowed"])
            width = statistics.median(high - low for kind in found.values() for low, high in kind)
            lines.append(f"| {way} | {different} of {count} | {slower} of {count} | {width:.1%} |")
        exact = shifted(by_way[CHOSEN]["slowed"], slower_by.measured.value)
        lines.append(SHIFTED.format(took=took, found=sum(low > 1 for low, _ in exact), count=count))
        lines += ["", *_each(runs, threads)]
    return "\n".join(lines) + "\n"


class Slowdown(NamedTuple):
    """What the planted nodes took in place: their ratio over so many pairs of sessions of all slowed runs together."""

    measured: Ratio
    pairs: int


def slowdown(runs: list[dict[str, Any]], threads: int) -> Slowdown:
    """Of all slowed runs of so many threads."""
    pooled = [log for r in runs if (r["threads"], r["kind"]) == (threads, "slowed") for log in over_sessions(r)]
    found = ratio(pooled)
    assert found is not None
    return Slowdown(found, len(pooled))


def shifted(intervals: list[Interval], measured: float) -> list[Interval]:
    """The intervals as they would stand if the nodes took exactly ``PLANTED``: each as wide as it was, in logarithms.

    Not scaled towards 1, which would move no interval over it and find as many whatever the slowdown.
    """
    factor = (1 + PLANTED) / measured
    return [(low * factor, high * factor) for low, high in intervals]


def _planted(facts: dict[str, Any], slower_by: Slowdown) -> list[str]:
    found = slower_by.measured
    alone = facts["links"] * facts["link_ms"]
    return [
        f"Planted: {facts['links']} links before the head. In a graph of their own they take {alone:.3f} ms,",
        f"{alone / facts['median_ms']:.1%} of the median call of {facts['median_ms']:.2f} ms. In place, over all {slower_by.pairs} pairs",
        f"of sessions of the slowed runs, {found.value - 1:.2%} (95% {(found.low or 0) - 1:.2%} to {(found.high or 0) - 1:.2%}).\n",
    ]


def _each(runs: list[dict[str, Any]], threads: int) -> list[str]:
    lines = ["<details><summary>Every run</summary>\n", "| run | same | slowed |", "| --- | --- | --- |"]
    kinds = ("same", "slowed")
    by = {(r["kind"], r["number"]): r for r in runs if r["threads"] == threads}
    for number in range(max(r["number"] for r in runs) + 1):
        both = [by[kind, number] for kind in kinds]
        cells = [f"{r['ratio']:.4f} ({r['interval'][0]:.4f} to {r['interval'][1]:.4f})" for r in both]
        lines.append(f"| {number + 1} | {cells[0]} | {cells[1]} |")
    return [*lines, "\n</details>"]


INTRODUCTION = """# Calibration of the paired comparison

<!-- made by benchmarks/calibration.py -->
Does the comparison with a baseline call a regression what is none, and does it find one of 2%? At 1 and at 2 threads, {count} runs
compared an artifact with itself (*same*), and {count} an artifact with extra nodes, meant to take 2%, with the one without (*slowed*).
Each run is a `qualify run LADDER --baseline ROOT` of its own, with its own seed; its L1 took at most {seconds:.0f} s. The runs took
turns, on a machine of two cores. *Different* means that the 95% interval does not hold 1, *found* that it lies above 1. In place
the nodes took not quite 2%, so the last row of each table says what would have been found at exactly that: every interval is shifted,
in logarithms, from what they took to 2%, and keeps its width.

A 95% interval may call 1 of 20 equal artifacts different. The one in use, between two order statistics of 22 pairs of sessions, covers
at least 98.3% by its theory, whatever the distribution, so it should call fewer."""


def main() -> None:
    """Prepare, run what is not there yet, write the page."""
    work = Path(sys.argv[1]).absolute()
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    (work / "results").mkdir(parents=True, exist_ok=True)
    planted = {threads: prepare(work, threads) for threads in THREADS}
    found = run_all(work, runs)
    (REPO / "docs" / "calibration.md").write_text(page(found, planted), encoding="utf-8")


if __name__ == "__main__":
    main()
