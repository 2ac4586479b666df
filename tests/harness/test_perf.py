from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from evidence.seal import write_new
from harness import derive, derive_perf
from harness.errors import RecordError
from harness.raw import PerfRaw
from harness.records import PerfOptions, Request, SessionOptions, from_json, to_json
from tests.support.steps import OPTIONS, Bench

# The worker in a process of its own, with a parent's half that answers at once; prints which libraries it has loaded.
WORKER = """
import socket, sys, threading
from harness.machine import Machine
from harness.records import to_json
ours, theirs = socket.socketpair()
def answer():
    for line in ours.makefile("rb"):
        if line == b"machine\\n":
            open(sys.argv[3] + "/steps/L1-perf.cpu-fp32/machine.json", "xb").write(to_json(Machine(None).end([])))
            ours.sendall(b"written\\n")
        if line == b"memory\\n":
            open(sys.argv[3] + "/steps/L1-perf.cpu-fp32/memory.json", "x").write(
                '{\\n  "at_ms": [],\\n  "format": 1,\\n  "high_water_bytes": null,\\n  "interval_ms": 10.0,\\n  "rss_bytes": []\\n}\\n')
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
    arguments = ["step", request.step, str(there.root), str(there.model), "", "", "", str(tmp_path)]
    ran = subprocess.run([sys.executable, "-c", WORKER, *arguments], capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["0", "onnxruntime", "tokenizers"], ran.stderr


def test_load_first_call_warm_up_and_steady_calls_are_kept_apart(climbed: Bench) -> None:
    raw = climbed.earlier("L1").raw("samples.json")
    assert len(raw["warm_up_ms"]) == 2
    assert len(raw["steady_ms"]) == 60
    assert raw["load_ms"] > 0
    assert raw["first_call_ms"] > 0
    assert sorted(raw["events_ms"], key=raw["events_ms"].get) == [
        "start",
        "loaded",
        "first_call",
        "warm_up",
        "steady",
        "end",
        "grown",
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


def with_session(bench: Bench, session: SessionOptions) -> Request:
    calls = PerfOptions(candidates=4, batch_size=4, max_length=48, warm_up=1, calls=6, growth_calls=0)
    asked = bench.request("L1", options=msgspec.structs.replace(OPTIONS, L1=calls))
    return msgspec.structs.replace(asked, target=msgspec.structs.replace(asked.target, session=session))


def test_a_session_is_made_as_its_target_says_and_another_is_refused(climbed: Bench, tmp_path: Path) -> None:
    there = climbed.copy(tmp_path / "root")
    cpu = min(os.sched_getaffinity(0))
    session = SessionOptions(
        spinning=False, memory_arena=False, graph_optimization="basic", inter_op_threads=2, cpus=(cpu,)
    )
    asked = with_session(there, session)
    (there.root / asked.step).rename(tmp_path / "before")
    ran = there.run(asked)
    assert ran.value("calls") == 6
    stated = ran.raw("samples.json")["session"]["options"]
    assert {
        "allow_spinning": False,
        "memory_arena": False,
        "graph_optimization": "basic",
        "inter_op_threads": 2,
        "execution_mode": "parallel",
        "cpus": str(cpu),
    }.items() <= stated.items()
    assert ran.measured()["growth_bytes_per_1000_calls"].note == "the ladder asks for none"
    with pytest.raises(RecordError) as caught:
        derive.measure(with_session(there, SessionOptions()), lambda path: (there.root / path).read_bytes())
    assert str(caught.value) == (
        f"{asked.step}/samples.json: expected a session with allow_spinning True, as planned, got False"
    )


def test_processors_that_are_not_there_block_the_step(climbed: Bench, tmp_path: Path) -> None:
    there = climbed.copy(tmp_path / "root")
    asked = with_session(there, SessionOptions(cpus=(4095,)))
    (there.root / asked.step).rename(tmp_path / "before")
    allowed = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
    assert there.run(asked).reason == (
        f"session.cpus: expected some of the processors {allowed}, got 4095; correct the ladder"
    )


def test_the_condition_of_the_machine_is_read_from_outside_meanwhile(climbed: Bench) -> None:
    ran = climbed.earlier("L1")
    machine, events = ran.raw("machine.json"), ran.raw("samples.json")["events_ms"]
    assert machine["at_ms"][0] < events["start"]
    assert machine["at_ms"][-1] > events["end"]
    shares = [ran.value(name) for name in ("busy_share", "stolen_share")]
    assert all(isinstance(share, float) and 0 <= share <= 1 for share in shares)


def test_a_forged_sweep_ranking_or_load_is_refused(climbed: Bench) -> None:
    request = climbed.request("L1")

    def refused(name: str, old: bytes, new: bytes) -> str:
        path = f"{request.step}/{name}"
        changed = (climbed.root / path).read_bytes()
        assert old in changed, name
        forged = {path: changed.replace(old, new, 1)}
        with pytest.raises(RecordError) as caught:
            derive.measure(request, lambda asked: forged.get(asked) or (climbed.root / asked).read_bytes())
        return str(caught.value)

    assert "expected the cells and the order of the plan" in refused("sweep.json", b'"threads": 1', b'"threads": 4')
    assert "expected levels of (1, 2) callers" in refused("load.json", b'"callers": 2', b'"callers": 3')
    assert "expected 8 documents ranked by their logits" in refused(
        "end_to_end.json", b'"documents": 8', b'"documents": 9'
    )


def test_logits_of_callers_that_differ_are_counted(climbed: Bench) -> None:
    request = climbed.request("L1")
    path = f"{request.step}/load.f32"
    logits = np.frombuffer((climbed.root / path).read_bytes(), "<f4").copy()
    logits[8:11] += 1.0
    changed = {path: logits.tobytes()}
    found = derive.measure(request, lambda asked: changed.get(asked) or (climbed.root / asked).read_bytes())
    assert {item.metric: item.value for item in found.measurements}["load_differing_logits"] == 3


def test_every_cell_of_a_sweep_has_its_time_and_its_memory_on_a_session_of_its_threads(climbed: Bench) -> None:
    ran = climbed.earlier("L1")
    cells = [
        f"c{candidates}-l{length}-b4-t{threads}" for threads in (1, 2) for candidates in (2, 8) for length in (16, 48)
    ]
    measured = ran.measured()
    for name in ("sweep_p50_ms", "sweep_pairs_per_s", "sweep_peak_rss_bytes"):
        values = [measured[f"{name}.{cell}"].value for cell in cells]
        assert all(isinstance(value, int | float) and value > 0 for value in values), name
    raw = ran.raw("sweep.json")
    for cell in raw["cells"]:
        name = f"c{cell['candidates']}-l{cell['max_length']}-b{cell['batch_size']}-t{cell['threads']}"
        longest = max(length for _, length in cell["shapes"])
        assert measured[f"sweep_longest_tokens.{name}"].value == longest
        for metric in ("sweep_p50_ms", "sweep_pairs_per_s", "sweep_peak_rss_bytes"):
            note, _, _ = measured[f"{metric}.{name}"].note.partition("; on a busy machine: ")  # which this one may be
            assert note.endswith(f" tokens; no pair is longer than {longest}")
    assert [session["options"]["intra_op_threads"] for session in raw["sessions"]] == [1, 2]
    assert len(raw["rounds"]) == 6
    assert all(sorted(order) == [0, 1, 2, 3] for order in raw["rounds"])


def raw_of(climbed: Bench) -> PerfRaw:
    return from_json(climbed.earlier("L1").file("samples.json"), PerfRaw, "samples.json")


def test_a_99th_percentile_that_drifts_holds_both_thirds(climbed: Bench) -> None:
    rising = tuple(1.0 + number / 900 for number in range(900))
    raw = msgspec.structs.replace(raw_of(climbed), steady_ms=rising)
    found = {one.metric: one for one in derive_perf._latency(climbed.request("L1"), raw, "")}["p99_ms"]
    assert found.interval is not None
    assert found.interval[0] == pytest.approx(1.33, abs=0.01)
    assert found.interval[1] == pytest.approx(2.0, abs=0.01)
    assert found.note.startswith("drifts: the last third took ")


def test_a_provider_that_fell_back_in_part_is_named_with_its_share(climbed: Bench) -> None:
    raw = raw_of(climbed)
    assert raw.session.placement is not None
    assert climbed.earlier("L1").value("own_node_share") == 1.0
    placement = {"CPUExecutionProvider": {"MatMul": 90, "Shape": 9}, "OtherProvider": {"Softmax": 11, "Shape": 5}}
    facts = msgspec.structs.replace(raw.session, placement=placement)
    found = derive_perf._placed(facts)
    assert (found.value, found.note) == (0.9, "OtherProvider took 11 Softmax")


def test_logits_of_calls_that_arrive_are_sealed_and_those_that_differ_counted(climbed: Bench) -> None:
    ran = climbed.earlier("L1")
    logits = np.frombuffer(ran.file("load.f32"), "<f4").reshape(-1, 8).copy()
    assert len(logits) == 1 + 4 + 8 + 10
    assert np.array_equal(logits[-10:], np.repeat(logits[:1], 10, axis=0))
    logits[-1, 2:5] += 1.0
    changed = {f"{ran.request.step}/load.f32": logits.tobytes()}
    found = derive.measure(ran.request, lambda asked: changed.get(asked) or (climbed.root / asked).read_bytes())
    assert {item.metric: item.value for item in found.measurements}["load_differing_logits"] == 3


def forged(climbed: Bench, name: str, change: Callable[[Any], object]) -> str:
    """Why numbers are not derived from a file that somebody changed."""
    ran = climbed.earlier("L1")
    raw = ran.raw(name)
    change(raw)
    changed = {f"{ran.request.step}/{name}": to_json(raw)}
    with pytest.raises(RecordError) as caught:
        derive.measure(ran.request, lambda asked: changed.get(asked) or (climbed.root / asked).read_bytes())
    return str(caught.value)


def test_an_arrival_that_ends_before_it_is_due_is_refused(climbed: Bench) -> None:
    def early(raw: Any) -> None:
        raw["arrivals"]["begin_ms"][3] = raw["arrivals"]["scheduled_ms"][3] - 8.0
        raw["arrivals"]["end_ms"][3] = raw["arrivals"]["scheduled_ms"][3] - 4.0

    assert "expected arrivals that begin when they are due or later" in forged(climbed, "load.json", early)


def test_sessions_of_a_sweep_and_of_callers_are_those_that_were_planned(climbed: Bench) -> None:
    def threads(raw: Any) -> None:
        raw["sessions"][1]["options"]["intra_op_threads"] = 64

    def provider(raw: Any) -> None:
        raw["session"]["providers"] = ["CUDAExecutionProvider"]

    assert "expected a session of 2 threads on CPUExecutionProvider, as planned" in forged(
        climbed, "sweep.json", threads
    )
    assert "expected a session of 1 threads on CPUExecutionProvider, as planned" in forged(
        climbed, "load.json", provider
    )
