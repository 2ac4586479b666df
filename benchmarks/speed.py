"""How fast the harness is, as ratios in one run (absolute times drift on a shared machine). Prints three lines:

1. L1's median over a bare onnxruntime loop's, same artifact and pairs, fresh processes that take turns (bar: 0.97 to 1.03);
2. L3's pairs/s over sentence-transformers' CrossEncoder's on the same pairs, tokenisation included on both sides (bar: 1.3);
3. the wall time of `qualify run` on the quickstart over the sum of its stages' own work (bar: 1.5).

    python benchmarks/speed.py [ROUNDS]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evidence.verify import open_root
from harness import data
from harness.records import GROUPS, PAIRS, Measurements, Plan
from harness.root import RootRecords, load
from harness.runtimes import RUNTIMES, tokens
from harness.runtimes.batching import Layout, batches, score

REPO = Path(__file__).parent.parent
QUICKSTART = REPO / "ladders" / "quickstart"
TARGET = "cpu-fp32"


def qualify(out: Path, ladder: Path = QUICKSTART / "ladder.yaml") -> tuple[RootRecords, float]:
    """Run the ladder; the records of its root and the wall seconds it took."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "harness.cli", "run", str(ladder), "--out", str(out)]
    subprocess.run(command, check=False, capture_output=True)
    seconds = time.perf_counter() - begin
    root = open_root(out)
    return load(root.read, root.paths), seconds


def perf_only(folder: Path) -> Path:
    """A ladder that climbs only to L1, on one target, with the quickstart's own options."""
    text = f"""format: 1
name: bench
candidate: {{model: {QUICKSTART / "model"}}}
goal: L1
tiers:
  L0: {{limits: {{opset: {{at_least: 11}}}}}}
  L1: {{candidates: 32, batch_size: 16, warm_up: 10, calls: 100, limits: {{p50_ms: {{at_most: 1e6}}}}}}
targets: [{{precision: fp32, threads: 2}}]
"""
    path = folder / "perf.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def l1_against_a_bare_loop(folder: Path, rounds: int) -> float:
    """Median over rounds of (L1's p50) / (the bare loop's median), each a fresh process, turns taken."""
    ladder = perf_only(folder)
    ratios: list[float] = []
    for number in range(rounds):
        root = folder / f"l1-{number}"
        found, _ = qualify(root, ladder)
        measured = found.steps[TARGET, "L1"].measurements
        ours = _value(measured, "p50_ms")
        options = found.plan.options.L1
        if options is None or ours is None:
            raise SystemExit("L1 gave no median")
        numbers = (options.candidates, options.batch_size, options.max_length, 2, options.warm_up, options.calls)
        command = [sys.executable, str(REPO / "benchmarks" / "bare_loop.py"), str(QUICKSTART / "model")]
        command += [str(root / "artifacts" / TARGET / "model.onnx"), str(root / PAIRS), *map(str, numbers)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        ratios.append(ours / float(statistics.median(json.loads(done.stdout))))
    print("  rounds:", " ".join(f"{ratio:.3f}" for ratio in ratios))
    return float(statistics.median(ratios))


def l3_against_a_cross_encoder(root: Path, plan: Plan, rounds: int) -> float:
    """Median over rounds of CrossEncoder seconds / our seconds on the quickstart's groups, tokenisation included."""
    from sentence_transformers import CrossEncoder

    options = plan.options.L3
    if options is None:
        raise SystemExit("the quickstart has no L3")
    groups = data.read_groups((root / GROUPS).read_bytes(), GROUPS)
    pairs = [(group.query, doc.text) for group in groups for doc in group.candidates]
    session = RUNTIMES["cpu"].load(root / "artifacts" / TARGET / "model.onnx", 2)
    peer = CrossEncoder(str(QUICKSTART / "model"), device="cpu", max_length=options.max_length)
    ratios = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        encoded = tokens.encode(QUICKSTART / "model", plan.candidate, pairs, options.max_length)
        layout = Layout(session.inputs, plan.candidate.pad_token_id, plan.candidate.padding_side, options.batch_size)
        score(session.logits, batches(encoded, layout), len(pairs), lambda _done: None)
        ours = time.perf_counter() - begin
        begin = time.perf_counter()
        peer.predict(pairs, batch_size=32, show_progress_bar=False)
        ratios.append((time.perf_counter() - begin) / ours)
    print("  rounds:", " ".join(f"{ratio:.2f}" for ratio in ratios[1:]), "(first dropped)")
    return statistics.median(ratios[1:])


def own_work_seconds(records: RootRecords) -> float:
    """Sum of the children's own wall seconds, as the parent recorded them."""
    return sum(step.outcome.exit.seconds for step in records.steps.values() if step.outcome.exit is not None)


def _value(measured: Measurements | None, name: str) -> float | None:
    found = next((m.value for m in measured.measurements if m.metric == name), None) if measured else None
    return float(found) if isinstance(found, int | float) else None


def main() -> None:
    """Print the three ratios."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory(prefix="qualify-speed-") as name:
        folder = Path(name)
        print("L1 median / bare onnxruntime loop (bar 0.97 to 1.03)")
        print(f"  median ratio: {l1_against_a_bare_loop(folder, rounds):.3f}")
        root = folder / "quickstart"
        records, seconds = qualify(root)
        work = own_work_seconds(records)
        print("L3 pairs/s / CrossEncoder pairs/s, tokenisation included (bar 1.3)")
        print(f"  median ratio: {l3_against_a_cross_encoder(root, records.plan, rounds):.2f}")
        print("demo wall time / its stages' own work (bar 1.5)")
        print(f"  {seconds:.1f} s / {work:.1f} s = {seconds / work:.2f}")
        for path in sorted(folder.rglob("*"), reverse=True):
            path.chmod(0o755 if path.is_dir() else 0o644)


if __name__ == "__main__":
    main()
