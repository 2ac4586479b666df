"""A sweep of candidates, tokens and micro-batch on the quickstart and on a model of the published 4-layer shape, as Markdown tables.

    python -m benchmarks.sweep FOLDER [small]          `small`: a grid of a few seconds, to try this script

Climbs both in FOLDER, so the tables, made to be pasted into docs/performance.md, come from sealed samples. Every pair fills the
tokens of its cell: a query of the quickstart with so many of its documents, one after another, that any tokenizer cuts them. The large
model is called too seldom for a p95, which needs 59 calls. On a machine that others use, times are only comparable within a table.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from evidence.verify import open_root
from harness import data
from harness.metrics.catalogue import cell_name
from harness.report import view, view_perf, wording
from harness.root import load
from tests.support.models import make_l4

QUICKSTART = Path(__file__).parent.parent / "ladders/quickstart"
LIMIT = 3 * 2**30
WORDS = 512
"""Each of which is a token at least."""


class Grid(NamedTuple):
    """The cells of a model, and how often each is called."""

    candidates: tuple[int, ...]
    max_length: tuple[int, ...]
    batch_size: tuple[int, ...]
    calls: int


GRIDS = {
    "quickstart": Grid((10, 25, 50, 100), (128, 256), (8, 16, 32), 60),
    "l4-shape": Grid((10, 25, 50, 100), (128, 256, 512), (8, 16, 32), 5),
}
SMALL = {"quickstart": Grid((2, 4), (32, 256), (4,), 3), "l4-shape": Grid((2, 4), (32, 512), (4,), 3)}


def pairs() -> tuple[data.Pair, ...]:
    """One for each group of the quickstart: its query, and the documents of it and of the groups after it up to ``WORDS`` words."""
    groups = data.read_groups((QUICKSTART / "groups.jsonl").read_bytes(), "groups.jsonl")
    made = []
    for place, group in enumerate(groups):
        words: list[str] = []
        for after in (*groups[place:], *groups[:place]):
            words += " ".join(document.text for document in after.candidates).split()
            if len(words) >= WORDS:
                break
        made.append(data.Pair(query=group.query, document=" ".join(words[:WORDS])))
    return tuple(made)


def ladder(name: str, model: Path, grid: Grid) -> str:
    """A ladder with the sweep, its limits on the largest cell: that its pairs are as long as it says, and the memory it needs.

    Its goal is L2, since pairs of one's own are named there and L1 scores the same ones; L2 itself is kept short.
    """
    cell = cell_name(grid.candidates[-1], grid.max_length[-1], grid.batch_size[-1], 2)
    limits = f"sweep_longest_tokens.{cell}: {{exactly: {grid.max_length[-1]}}}, sweep_peak_rss_bytes.{cell}: {{at_most: {LIMIT}}}"
    cells = (
        f"candidates: {list(grid.candidates)}, max_length: {list(grid.max_length)}, batch_size: {list(grid.batch_size)}"
    )
    return f"""format: 1
name: {name}
candidate: {{model: {model}}}
goal: L2
tiers:
  L0: {{limits: {{opset: {{at_least: 11}}}}}}
  L1:
    candidates: 10
    warm_up: 1
    calls: 10
    growth_calls: 0
    max_length: {grid.max_length[0]}
    time_limit_s: 7200
    sweep: {{{cells}, calls: {grid.calls}}}
    limits: {{{limits}}}
  L2: {{pairs: pairs.jsonl, max_length: 32, limits: {{max_abs_gap: {{at_most: 1}}}}}}
targets: [{{precision: fp32, threads: 2}}]
"""


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """In Markdown, without the threads, which are the same everywhere, and without a column that has no figure."""
    kept = [place for place, name in enumerate(head) if name != "Threads" and any(row[place] != "–" for row in rows)]
    lines = [[row[place] for place in kept] for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Climb both and print a table for each."""
    folder = Path(sys.argv[1])
    grids = SMALL if sys.argv[2:] == ["small"] else GRIDS
    model = folder / "l4-model"
    if not model.exists():
        model.mkdir(parents=True)
        make_l4(model)
    (folder / "pairs.jsonl").write_bytes(data.render_pairs(pairs()))
    for name, place in (("quickstart", QUICKSTART / "model"), ("l4-shape", model)):
        path, root = folder / f"{name}.yaml", folder / name
        path.write_text(ladder(name, place.resolve(), grids[name]), encoding="utf-8")
        subprocess.run([sys.executable, "-m", "harness.cli", "run", path, "--out", root], check=False)
        opened = open_root(root)
        records = load(opened.read, opened.paths)
        print(f"\n{name}: {view.headline(records)}")
        for warning in view_perf.warnings(records, "cpu-fp32"):
            print(warning)
        for finding in records.steps["cpu-fp32", "L1"].outcome.findings:
            print(f"{wording.sign(finding.verdict)} {finding.text}")
        for _, head, rows in view_perf.load_tables(records, "cpu-fp32"):
            print("\n" + table(head, rows), flush=True)


if __name__ == "__main__":
    main()
