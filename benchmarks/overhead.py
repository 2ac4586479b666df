"""What the harness itself costs, and whether its memory figures agree with the system's own. Prints a line for each figure and its bar.

    python benchmarks/overhead.py ROOT [ROUNDS]

``ROOT`` is a root of the quickstart. On a machine that others use only the ratios mean something.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime as ort

from harness import data
from harness.metrics.sampling import Rule, Stopping
from harness.raw import SessionFacts
from harness.records import GROUPS, PAIRS, Plan, from_json
from harness.runtimes import RUNTIMES, tokens
from harness.runtimes.batching import Layout, batches, score, score_or_refuse
from harness.runtimes.onnxruntime import Session
from harness.sampler import Sampler, descendants
from harness.stages.timing import timed_ms

REPO = Path(__file__).parent.parent
QUICKSTART = REPO / "ladders" / "quickstart"
TIME = Path("/usr/bin/time")
CHILD = """
import sys
import numpy as np, onnxruntime as ort
print("imported", flush=True)
input()
session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
names = [item.name for item in session.get_inputs()]
for rows in (1, 16, 64, 8):
    for _ in range(3):
        session.run(None, {name: np.ones((rows, 128), np.int64) for name in names})
print("done", flush=True)
sys.stdin.read()
"""
REFERENCE = "/usr/bin/time -v, or wait4"


class Nothing:
    """In place of onnxruntime's session: answers at once, so that all the time there is is the harness's."""

    def __init__(self, rows: int) -> None:
        self._answer = [np.zeros((rows, 1), np.float32)]

    def get_outputs(self) -> list[SimpleNamespace]:
        """One, of the name that a reranker's has."""
        return [SimpleNamespace(name="logits")]

    def get_inputs(self) -> list[SimpleNamespace]:
        """The one that every graph has."""
        return [SimpleNamespace(name="input_ids", type="tensor(int64)", shape=["batch", "sequence"])]

    def run(self, _names: list[str], _tensors: Any) -> list[Any]:
        """Nothing is done."""
        return self._answer


MICRO_BATCHES = (1, 7, 25)
"""The last is 100 candidates at a micro-batch of 4."""


def overhead_per_call_us(micro_batches: int, calls: int = 20_000) -> tuple[float, float]:
    """Microseconds that a sample holds beside the runtime's own work, and those between one timed call and the next.

    The session is the real one, with all that it checks in every micro-batch, over a runtime that does nothing.
    """
    rows = 4
    session = Session(Nothing(rows), SessionFacts(load_ms=0.0, providers=(), options={}))
    call = [{"input_ids": np.zeros((rows, 1), np.int64)} for _ in range(micro_batches)]
    stopping = Stopping(Rule(10 * calls, 72, 1e-9, 1e9))
    samples = []
    begin = time.perf_counter()
    for _ in range(calls):
        samples.append(timed_ms(session, call))
        stopping.after(samples[-1])
    whole = 1e6 * (time.perf_counter() - begin) / calls
    inside = 1000 * statistics.median(samples)
    return inside, whole - 1000 * statistics.fmean(samples)


def sampler_share(seconds: float = 5.0) -> float:
    """Share of one core that the parent's samples of memory and machine take."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        sampler = Sampler(child.pid)
        time.sleep(0.2)
        spent, begin = time.process_time(), time.monotonic()
        time.sleep(seconds)
        share = (time.process_time() - spent) / (time.monotonic() - begin)
        sampler.machine()
        child.communicate(b"\n")
    return share


def start_seconds() -> tuple[float, float]:
    """Wall and processor seconds until a child that needs no torch has imported all it needs for L1; the least of five."""
    found = []
    for _ in range(5):
        begin, before = time.perf_counter(), os.times()
        subprocess.run([sys.executable, "-P", "-c", "import harness.worker, onnxruntime, tokenizers"], check=True)
        after = os.times()
        spent = after.children_user - before.children_user + after.children_system - before.children_system
        found.append((time.perf_counter() - begin, spent))
    return min(wall for wall, _ in found), min(spent for _, spent in found)


def against_a_bare_loop(root: Path, tier: str, rounds: int) -> tuple[float, list[float]]:
    """Processor time of a tier's way to score over that of the best bare loop: sorted by length, padded to the batch, tensors ready.

    ``tier`` is L2 (the pairs of the root) or L3 (pairs of its groups, to 400). Both on one thread, so that neighbours do not count.
    """
    plan = from_json((root / "plan.json").read_bytes(), Plan, "plan.json")
    pairs = [(pair.query, pair.document) for pair in data.read_pairs((root / PAIRS).read_bytes(), PAIRS)]
    if tier == "L3":
        groups = data.read_groups((root / GROUPS).read_bytes(), GROUPS)
        pairs = [(group.query, document.text) for group in groups for document in group.candidates][:400]
    encoded = tokens.encode(QUICKSTART / "model", plan.candidate, pairs, 128)
    graph = root / "artifacts/cpu-fp32/model.onnx"
    ours = RUNTIMES["cpu"].load(graph, 1)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    bare = ort.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    layout = Layout(ours.inputs, plan.candidate.pad_token_id, plan.candidate.padding_side, 32)
    feeds = [batch.tensors for batch in batches(encoded, layout)]

    def loop() -> None:
        for feed in feeds:
            bare.run(["logits"], feed)

    def harness() -> None:
        if tier == "L2":
            score_or_refuse(ours.logits, encoded, layout, lambda _done: None)
        else:
            score(ours.logits, batches(encoded, layout), len(pairs), lambda _done: None)

    def seconds(work: Callable[[], None]) -> float:
        begin = time.process_time()
        work()
        return time.process_time() - begin

    loop()
    harness()
    found = []
    for number in range(rounds):
        turns = [(0, loop), (1, harness)] if number % 2 else [(1, harness), (0, loop)]
        took = {side: seconds(work) for side, work in turns}
        found.append(took[1] / took[0])
    return statistics.median(found), found


def memory(graph: Path) -> dict[str, int]:
    """The most memory of one process by samples, by the kernel's mark, and by ``/usr/bin/time -v`` (wait4 where it is not there)."""
    timed = [str(TIME), "-v"] if TIME.exists() else []
    command = [*timed, sys.executable, "-c", CHILD, str(graph)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as outer:
        assert outer.stdin is not None
        assert outer.stdout is not None
        assert outer.stderr is not None
        outer.stdout.readline()  # it has imported, and waits
        sampler = Sampler(descendants(outer.pid)[0] if timed else outer.pid)
        outer.stdin.write(b"go\n")
        outer.stdin.flush()
        outer.stdout.readline()
        sampled = sampler.memory()
        sampler.machine()
        outer.stdin.close()
        said = outer.stderr.read().decode()
        _, _, used = os.wait4(outer.pid, 0)
        outer.returncode = 0
    found = {"sampled peak": max(sampled.rss_bytes)}
    if sampled.high_water_bytes is not None:
        found["high-water mark"] = sampled.high_water_bytes
    line = next((line for line in said.splitlines() if "Maximum resident set size" in line), None)
    found[REFERENCE] = 1024 * (int(line.rpartition(":")[2]) if line is not None else used.ru_maxrss)
    return found


def main() -> None:
    """Print every figure."""
    root = Path(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    for count in MICRO_BATCHES:
        inside, between = overhead_per_call_us(count)
        print(
            f"overhead in a sample of {count} micro-batches {inside:.2f} us, {inside / count:.2f} us each;"
            f" between calls {between:.2f} us (bar 20 us)"
        )
    print(f"sampler {sampler_share():.2%} of one core (bar 2%)")
    wall, spent = start_seconds()
    print(f"start of a child without torch {wall:.2f} s, of which processor time {spent:.2f} s (bar 1 s)")
    for tier in ("L2", "L3"):
        middle, found = against_a_bare_loop(root, tier, rounds)
        print(
            f"{tier}'s scoring over the best bare loop {middle:.3f} (bar 1.05):", *(f"{ratio:.3f}" for ratio in found)
        )
    sizes = memory(root / "artifacts/cpu-fp32/model.onnx")
    for name, size in sizes.items():
        print(f"{name}: {size / 1e6:.1f} MB, {size / sizes[REFERENCE] - 1:+.1%} (bar 5%)")


if __name__ == "__main__":
    main()
