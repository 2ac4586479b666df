from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from evidence.seal import write_new
from harness.records import to_json
from tests.support.steps import Bench

# The worker in a process of its own, with a parent's half that answers at once; prints which libraries it has loaded.
WORKER = """
import socket, sys, threading
ours, theirs = socket.socketpair()
def answer():
    for line in ours.makefile("rb"):
        if line == b"memory\\n":
            open(sys.argv[3] + "/steps/L1-perf.cpu-fp32/memory.json", "x").write(
                '{\\n  "at_ms": [],\\n  "format": 1,\\n  "interval_ms": 10.0,\\n  "rss_bytes": []\\n}\\n')
            ours.sendall(b"written\\n")
threading.Thread(target=answer, daemon=True).start()
from harness.worker import main
code = main([*sys.argv[1:], str(theirs.detach())])
print(code, *sorted({"torch", "transformers", "onnx", "onnxruntime", "tokenizers"} & set(sys.modules)))
"""


def test_l1_loads_the_runtime_and_the_tokenizer_and_nothing_heavier(climbed: Bench, tmp_path: Path) -> None:
    there = climbed.copy(tmp_path / "root")
    request = there.request("L1")
    (there.root / request.step).rename(tmp_path / "before")
    write_new(there.root, f"{request.step}/request.json", to_json(request))
    arguments = ["step", request.step, str(there.root), str(there.model), "", "", str(tmp_path)]
    ran = subprocess.run([sys.executable, "-c", WORKER, *arguments], capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["0", "onnxruntime", "tokenizers"], ran.stderr


def test_load_first_call_warm_up_and_steady_calls_are_kept_apart(climbed: Bench) -> None:
    raw = climbed.earlier("L1").raw("samples.json")
    assert len(raw["warm_up_ms"]) == 2
    assert len(raw["steady_ms"]) == 20
    assert raw["load_ms"] > 0
    assert raw["first_call_ms"] > 0
    assert sorted(raw["events_ms"], key=raw["events_ms"].get) == [
        "start",
        "loaded",
        "first_call",
        "warm_up",
        "steady",
        "end",
    ]


def test_a_call_scores_the_candidates_in_micro_batches_sorted_by_length(climbed: Bench) -> None:
    raw = climbed.earlier("L1").raw("samples.json")
    assert raw["pairs_per_call"] == 8
    assert [batch for batch, _ in raw["shapes"]] == [4, 4]
    lengths = [length for _, length in raw["shapes"]]
    assert lengths == sorted(lengths, reverse=True)


def test_what_changes_a_figure_is_stated(climbed: Bench) -> None:
    session = climbed.earlier("L1").raw("samples.json")["session"]
    assert session["providers"] == ["CPUExecutionProvider"]
    assert {"intra_op_threads": 1, "allow_spinning": True, "graph_optimization": "all"}.items() <= session[
        "options"
    ].items()


def test_memory_is_sampled_from_outside_over_load_and_calls(climbed: Bench) -> None:
    ran = climbed.earlier("L1")
    memory, events = ran.raw("memory.json"), ran.raw("samples.json")["events_ms"]
    assert memory["at_ms"] == sorted(memory["at_ms"])
    assert memory["at_ms"][0] < events["start"]
    assert memory["at_ms"][-1] > events["loaded"]
    values = [ran.value(f"{name}_rss_bytes") for name in ("baseline", "peak")]
    assert all(isinstance(value, int) and value > 10_000_000 for value in values)
