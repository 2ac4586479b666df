"""A sweep of candidates, tokens and micro-batch on the quickstart and on a model of the published 4-layer shape, as Markdown tables.

    python -m benchmarks.sweep FOLDER

Climbs both to L1 in FOLDER, so the tables come from sealed samples. The large one is called too seldom for a p95, which needs 59 calls.
On a machine that others use, times are only comparable within a table.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from evidence.verify import open_root
from harness.report import view, view_perf, wording
from harness.root import load
from tests.support.models import make_l4

QUICKSTART = Path(__file__).parent.parent / "ladders/quickstart/model"
LIMIT = 3 * 2**30
LENGTHS = {"quickstart": (128, 256), "l4-shape": (128, 256, 512)}
CALLS = {"quickstart": 60, "l4-shape": 5}


def ladder(name: str, model: Path) -> str:
    """A ladder to L1 with the sweep, and the memory limit on the largest cell."""
    lengths = LENGTHS[name]
    largest = f"sweep_peak_rss_bytes.c100-l{lengths[-1]}-b32-t2"
    return f"""format: 1
name: {name}
candidate: {{model: {model}}}
goal: L1
tiers:
  L0: {{limits: {{opset: {{at_least: 11}}}}}}
  L1:
    candidates: 10
    calls: 10
    time_limit_s: 7200
    sweep: {{candidates: [10, 25, 50, 100], max_length: {list(lengths)}, batch_size: [8, 16, 32], calls: {CALLS[name]}}}
    limits: {{{largest}: {{at_most: {LIMIT}}}}}
targets: [{{precision: fp32, threads: 2}}]
"""


def main() -> None:
    """Climb both and print a table for each."""
    folder = Path(sys.argv[1])
    model = folder / "l4-model"
    if not model.exists():
        model.mkdir(parents=True)
        make_l4(model)
    for name, place in (("quickstart", QUICKSTART), ("l4-shape", model)):
        path, root = folder / f"{name}.yaml", folder / name
        path.write_text(ladder(name, place.resolve()), encoding="utf-8")
        subprocess.run([sys.executable, "-m", "harness.cli", "run", path, "--out", root], check=False)
        opened = open_root(root)
        records = load(opened.read, opened.paths)
        print(f"\n{name}: {view.headline(records)}")
        for warning in view_perf.warnings(records, "cpu-fp32"):
            print(warning)
        for finding in records.steps["cpu-fp32", "L1"].outcome.findings:
            print(f"{wording.sign(finding.verdict)} {finding.text}")
        for _, head, rows in view_perf.load_tables(records, "cpu-fp32"):
            print("\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)), flush=True)


if __name__ == "__main__":
    main()
