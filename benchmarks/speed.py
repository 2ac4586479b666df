"""How fast the harness is, as ratios in one run (absolute times drift on a shared machine). Prints three lines:

1. L1's median over a bare onnxruntime loop's, same artifact and pairs, at 1 and at 2 threads (bar: 0.97 to 1.03);
2. L3's pairs/s over sentence-transformers' CrossEncoder's on the same pairs, tokenisation included on both sides (bar: 1.3);
3. the wall time of `qualify run` on the quickstart over the sum of its stages' own work (bar: 1.3), by two counts: the whole time of the
   stages' processes, and only what their records say they spent (see ``recorded_seconds``), which leaves out starting them, imports,
   all of L2, tokenising, L0's checks and the statistics: a lower bound of their work, so the ratio to it is an upper one.

    python benchmarks/speed.py [ROUNDS]
"""

from __future__ import annotations

import json
import math
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from evidence.verify import open_root
from harness import data, launch
from harness.raw import BuildRaw, PerfRaw, ScoresRaw
from harness.records import GROUPS, PAIRS, Plan, Request, from_json, step_folder
from harness.root import RootRecords, load
from harness.runtimes import RUNTIMES, tokens
from harness.runtimes.batching import Layout, batches, score

REPO = Path(__file__).parent.parent
QUICKSTART = REPO / "ladders" / "quickstart"
TARGET = "cpu-fp32"
STEP = step_folder("L1", TARGET)


def qualify(out: Path, ladder: Path = QUICKSTART / "ladder.yaml") -> tuple[RootRecords, float]:
    """Run the ladder; the records of its root and the wall seconds it took."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "harness.cli", "run", str(ladder), "--out", str(out)]
    subprocess.run(command, check=False, capture_output=True)
    seconds = time.perf_counter() - begin
    root = open_root(out)
    return load(root.read, root.paths), seconds


def l1_against_a_bare_loop(folder: Path, quickstart: Path, threads: int, rounds: int) -> None:
    """Print the median over rounds of (L1's p50) / (the bare loop's median): each a fresh process, who goes first drawn by lot.

    A session is the independent sample, not a call: the memory that a session happens to get moves its median by several per cent.
    """
    begun = from_json((quickstart / STEP / "request.json").read_bytes(), Request, "request.json")
    request = msgspec.structs.replace(begun, target=msgspec.structs.replace(begun.target, threads=threads))
    lot = random.Random(0)
    logs: list[float] = []
    for number in range(rounds):
        scratch = folder / f"l1-{threads}-{number}"
        bare_first = lot.random() < 0.5
        bare = _bare_median(quickstart, request) if bare_first else 0.0
        ours = _l1_median(scratch, quickstart, request)
        logs.append(math.log(ours / (bare if bare_first else _bare_median(quickstart, request))))
    print("  rounds:", " ".join(f"{math.exp(log):.3f}" for log in sorted(logs)))
    middle, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(rounds)
    low, high = (math.exp(middle + side * 2 * error) for side in (-1, 1))
    ratio = math.exp(statistics.median(logs))
    print(f"  {threads} thread(s): median ratio {ratio:.3f}; geometric mean within {low:.3f} to {high:.3f}", flush=True)


def _l1_median(scratch: Path, quickstart: Path, request: Request) -> float:
    """One L1 step as the climb starts it: its child, and the parent that samples memory and shows progress."""
    for name in ("inputs", "artifacts"):
        shutil.copytree(quickstart / name, scratch / name)
    launch.run_step(request, launch.Places(scratch, QUICKSTART / "model"), lambda _done, _total, _what: None)
    samples = from_json((scratch / STEP / "samples.json").read_bytes(), PerfRaw, "samples.json")
    return statistics.median(samples.steady_ms)


def _bare_median(quickstart: Path, request: Request) -> float:
    options = request.options.L1
    if options is None:
        raise SystemExit("the quickstart has no L1")
    numbers = (options.candidates, options.batch_size, options.max_length, request.target.threads)
    command = [sys.executable, str(REPO / "benchmarks" / "bare_loop.py"), str(QUICKSTART / "model")]
    command += [str(quickstart / "artifacts" / TARGET / "model.onnx"), str(quickstart / PAIRS)]
    command += [*map(str, numbers), str(options.warm_up), str(options.calls)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(statistics.median(json.loads(done.stdout)))


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


def process_seconds(records: RootRecords) -> float:
    """Sum of the children's own wall seconds, as the parent recorded them: interpreter and imports are in it."""
    return sum(step.outcome.exit.seconds for step in records.steps.values() if step.outcome.exit is not None)


def recorded_seconds(root: Path, records: RootRecords) -> float:
    """What the raw records say was spent: L0's phases and load, L1's load and calls, L3's scoring; L2 records no seconds.

    Calls are counted with what stands between them, up to the end of those of mixed shapes. A reference that was taken from an earlier
    step counts there alone.
    """
    total = 0.0
    for target, tier in records.steps:
        folder = root / step_folder(tier, target)
        match tier:
            case "L0":
                built = from_json((folder / "build.json").read_bytes(), BuildRaw, "build.json")
                total += sum(built.phases_s.values()) + (built.session.load_ms / 1000 if built.session else 0.0)
            case "L1":
                perf = from_json((folder / "samples.json").read_bytes(), PerfRaw, "samples.json")
                total += (perf.load_ms + perf.events_ms["grown"] - perf.events_ms["first_call"]) / 1000
            case "L3":
                scores = from_json((folder / "scores.json").read_bytes(), ScoresRaw, "scores.json")
                total += scores.artifact_seconds + (0.0 if scores.reference_from else scores.reference_seconds)
    return total


def demo(root: Path) -> RootRecords:
    """Run the quickstart into ``root`` and print its wall time over its stages' own work."""
    records, seconds = qualify(root)
    print("demo wall time / its stages' own work (bar 1.3)")
    for what, work in (
        ("their processes", process_seconds(records)),
        ("their records", recorded_seconds(root, records)),
    ):
        print(f"  by {what}: {seconds:.1f} s / {work:.1f} s = {seconds / work:.2f}", flush=True)
    return records


def main() -> None:
    """Print the three ratios."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory(prefix="qualify-speed-") as name:
        folder = Path(name)
        root = folder / "quickstart"
        records = demo(root)
        print("L1 median / bare onnxruntime loop (bar 0.97 to 1.03)")
        for threads in (1, 2):
            l1_against_a_bare_loop(folder, root, threads, rounds)
        print("L3 pairs/s / CrossEncoder pairs/s, tokenisation included (bar 1.3)")
        print(f"  median ratio: {l3_against_a_cross_encoder(root, records.plan, min(rounds, 5)):.2f}")
        for path in sorted(folder.rglob("*"), reverse=True):
            path.chmod(0o755 if path.is_dir() else 0o644)


if __name__ == "__main__":
    main()
