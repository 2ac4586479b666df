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
from typing import Any

import numpy as np
import onnxruntime as ort

from harness import data
from harness.metrics.sampling import Rule, Stopping
from harness.records import GROUPS, Plan, from_json
from harness.runtimes import RUNTIMES, tokens
from harness.runtimes.batching import Layout, batches, score
from harness.sampler import Sampler
from harness.stages.timing import timed_ms

REPO = Path(__file__).parent.parent
MODEL = REPO / "ladders" / "quickstart" / "model"
TIME = Path("/usr/bin/time")
CHILD = """
import sys
import numpy as np, onnxruntime as ort
session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
names = [item.name for item in session.get_inputs()]
for rows in (1, 16, 64, 8):
    for _ in range(3):
        session.run(None, {name: np.ones((rows, 128), np.int64) for name in names})
"""


class Nothing:
    """A session that does nothing, so that all the time there is is the harness's."""

    def __init__(self) -> None:
        self.inputs: dict[str, str] = {}
        self.fixed: tuple[int | None, int | None] = (None, None)
        self.facts: Any = None

    def logits(self, tensors: Any) -> Any:
        """Nothing is done with ``tensors``."""
        return tensors


def overhead_per_call_us(calls: int = 20_000) -> tuple[float, float]:
    """Microseconds that a sample holds beside the runtime's own work, and those between one timed call and the next."""
    session, call = Nothing(), [{"input_ids": np.zeros((1, 1), np.int64)}]
    stopping = Stopping(Rule(10 * calls, 72, 1e-9, 1e9))
    samples = []
    begin = time.perf_counter()
    for _ in range(calls):
        samples.append(timed_ms(session, call))
        stopping.after(samples[-1])
    whole = 1e6 * (time.perf_counter() - begin) / calls
    inside = 1000 * statistics.median(samples)
    return inside, whole - inside


def sampler_share(seconds: float = 5.0) -> float:
    """Share of one core that the parent's samples of memory and machine take."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        sampler = Sampler(child.pid)
        time.sleep(0.2)
        spent, begin = time.process_time(), time.monotonic()
        time.sleep(seconds)
        share = (time.process_time() - spent) / (time.monotonic() - begin)
        sampler.stop()
        child.communicate(b"\n")
    return share


def start_seconds() -> float:
    """Wall seconds until a child that needs no torch has imported all it needs for L1."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-P", "-c", "import harness.worker, onnxruntime, tokenizers"], check=True)
    return time.perf_counter() - begin


def against_a_bare_loop(root: Path, rounds: int) -> tuple[float, list[float]]:
    """Seconds of L3's way of scoring over those of the best bare loop: sorted by length, padded to the batch, fed ready-made tensors."""
    plan = from_json((root / "plan.json").read_bytes(), Plan, "plan.json")
    groups = data.read_groups((root / GROUPS).read_bytes(), GROUPS)
    pairs = [(group.query, document.text) for group in groups for document in group.candidates][:800]
    encoded = tokens.encode(MODEL, plan.candidate, pairs, 128)
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
        score(ours.logits, batches(encoded, layout), len(pairs), lambda _done: None)

    def seconds(work: Callable[[], None]) -> float:
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    loop()
    harness()
    found = []
    for number in range(rounds):
        turns = [(0, loop), (1, harness)] if number % 2 else [(1, harness), (0, loop)]
        took = {side: seconds(work) for side, work in turns}
        found.append(took[1] / took[0])
    return statistics.median(found), found


def memory(graph: Path) -> dict[str, int]:
    """The most memory of one child by four ways of looking: samples, the kernel's mark, wait4, and ``/usr/bin/time -v`` where it is."""
    with subprocess.Popen([sys.executable, "-c", CHILD + "input()", str(graph)], stdin=subprocess.PIPE) as child:
        sampler = Sampler(child.pid)
        time.sleep(3.0)
        sampled = sampler.stop()
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.close()
        _, _, used = os.wait4(child.pid, 0)
        child.returncode = 0
    found = {"sampled peak": max(sampled.rss_bytes), "wait4": 1024 * used.ru_maxrss}
    if sampled.high_water_bytes is not None:
        found["high-water mark"] = sampled.high_water_bytes
    if TIME.exists():
        said = subprocess.run(
            [TIME, "-v", sys.executable, "-c", CHILD, graph], capture_output=True, text=True, check=True
        )
        line = next(line for line in said.stderr.splitlines() if "Maximum resident set size" in line)
        found["/usr/bin/time -v"] = 1024 * int(line.rpartition(":")[2])
    return found


def main() -> None:
    """Print every figure."""
    root = Path(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    inside, between = overhead_per_call_us()
    print(f"overhead in a sample {inside:.2f} us, between calls {between:.2f} us (bar 20 us)")
    print(f"sampler {sampler_share():.2%} of one core (bar 2%)")
    print(f"start of a child without torch {min(start_seconds() for _ in range(5)):.2f} s (bar 1 s)")
    middle, found = against_a_bare_loop(root, rounds)
    print(f"L3's scoring over the best bare loop {middle:.3f} (bar 1.05):", " ".join(f"{ratio:.3f}" for ratio in found))
    sizes = memory(root / "artifacts/cpu-fp32/model.onnx")
    base = sizes.get("/usr/bin/time -v", sizes["wait4"])
    for name, size in sizes.items():
        print(f"{name}: {size / 1e6:.1f} MB, {size / base - 1:+.1%}")


if __name__ == "__main__":
    main()
