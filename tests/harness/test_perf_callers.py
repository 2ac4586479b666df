"""Callers at once and calls that arrive: that they really call, together, and that waiting counts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
import pytest

from harness import derive_load, derive_notes
from harness.metrics.sampling import arrivals_ms
from harness.raw import (
    Level,
    LoadRaw,
    MemoryRaw,
)
from harness.records import (
    LoadOptions,
    Measurement,
)
from harness.runtimes import RUNTIMES
from harness.runtimes.batching import Batch
from harness.stages import load
from harness.stages.job import Job
from harness.stages.perf import perf
from tests.support.logged import PLAIN, SEED, Answer, Logged, call, raw, ready

replace = msgspec.structs.replace


CALL_MS = 20.0


class Clock:
    """Stands in for the stage's clock and its sleep: time passes when somebody sleeps or a call is made."""

    def __init__(self) -> None:
        self.ms = 1000.0

    def now_ms(self) -> float:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.ms += 1000 * seconds


def served(monkeypatch: pytest.MonkeyPatch, job: Job, options: LoadOptions) -> tuple[LoadRaw, dict[str, Measurement]]:
    """``load`` on a session whose every call takes 20 ms of a clock of its own, and what is derived of it."""
    clock = Clock()
    monkeypatch.setattr(load, "now_ms", clock.now_ms)
    monkeypatch.setattr(load, "sleep", clock.sleep)

    def answer(ids: Any) -> list[float]:
        clock.sleep(CALL_MS / 1000)
        return [1.0] * len(ids)

    session = Logged(answer).load(job.graph, 1)
    load.load(job, session, [batch(3)], options)
    return raw(job, "load.json", LoadRaw), derived(job, options)


def derived(job: Job, options: LoadOptions) -> dict[str, Measurement]:
    memory = MemoryRaw(format=1, interval_ms=10.0, at_ms=(), rss_bytes=(), high_water_bytes=None)
    with patch.dict(RUNTIMES, {"cpu": Logged()}):  # whose sessions the records state
        found = tuple(derive_load.measurements(job.request, replace(PLAIN, load=options), memory, job.read))
    return {item.metric: item for item in found}


def batch(rows: int) -> Batch:
    return Batch(rows=np.arange(rows), tensors={"input_ids": np.ones((rows, 5), dtype=np.int64)})


def test_a_call_that_arrives_while_another_is_served_counts_its_waiting(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path
) -> None:
    options = LoadOptions(concurrency=(1,), calls=2, arrival_per_s=200.0, arrivals=80)
    found, measured = served(monkeypatch, ready(tiny_model, tmp_path, PLAIN), options)
    due = arrivals_ms(200.0, 80, SEED)  # 5 ms apart on average, each served in 20 ms by one thread: the queue grows
    free, took = 0.0, []
    for at in due:
        free = max(free, at) + CALL_MS
        took.append(free - at)
    assert found.arrivals is not None
    start = found.arrivals.scheduled_ms[0]
    assert np.allclose([at - start for at in found.arrivals.scheduled_ms], due)
    latencies = np.quantile(took, [0.5, 0.95])
    assert latencies[1] > 40 * CALL_MS
    got = [measured[name].value for name in ("arrival_p50_ms", "arrival_p95_ms")]
    assert np.allclose(np.array(got, dtype=float), latencies)
    wait = measured["arrival_wait_p50_ms"].value
    assert isinstance(wait, float)
    assert np.isclose(wait, np.quantile(took, 0.5) - CALL_MS)


def test_a_call_that_finds_a_free_server_begins_when_it_is_due_and_no_sooner(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path
) -> None:
    options = LoadOptions(concurrency=(1,), calls=2, arrival_per_s=0.1, arrivals=12)
    found, measured = served(monkeypatch, ready(tiny_model, tmp_path, PLAIN), options)
    assert found.arrivals is not None
    assert np.allclose(np.array(found.arrivals.begin_ms, dtype=float), found.arrivals.scheduled_ms)
    assert measured["arrival_p50_ms"].value == pytest.approx(CALL_MS)


def test_every_caller_and_every_arrival_really_calls_the_session(tiny_model: Path, tmp_path: Path) -> None:
    job = ready(tiny_model, tmp_path, PLAIN)
    runtime = Logged()
    options = LoadOptions(concurrency=(1, 3), calls=4, arrival_per_s=1e5, arrivals=9)
    load.load(job, runtime.load(job.graph, 1), [batch(3), batch(2)], options)
    alone, closed = 1, 4 + 3 * 4
    assert sorted(runtime.shapes(0)) == sorted([(3, 5), (2, 5)] * (alone + closed + 9))


def test_callers_share_one_session_of_the_targets_threads_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path
) -> None:
    runtime = Logged()
    monkeypatch.setitem(RUNTIMES, "cpu", runtime)
    job = ready(tiny_model, tmp_path, replace(PLAIN, load=LoadOptions(concurrency=(2,), calls=3)))
    target = replace(job.request.target, threads=3)
    job = job._replace(request=replace(job.request, target=target))
    perf(job)
    assert [(made.artifact, made.threads) for made in runtime.loaded] == [(job.graph, 3)] * 2
    assert sorted(runtime.shapes(1)) == sorted(call(job, 6, 48, 4) * (1 + 2 * 3))


def test_callers_of_a_level_are_in_their_calls_at_once(tiny_model: Path, tmp_path: Path) -> None:
    job = ready(tiny_model, tmp_path, PLAIN)
    together, main = threading.Barrier(3), threading.current_thread()

    def answer(ids: Any) -> list[float]:
        if threading.current_thread() is not main:  # none comes back before all three are in it
            together.wait(30)
        return [1.0] * len(ids)

    options = LoadOptions(concurrency=(3,), calls=4, arrival_per_s=1e5, arrivals=9, deadlock_s=60.0)
    load.load(job, Logged(answer).load(job.graph, 1), [batch(3)], options)
    found = raw(job, "load.json", LoadRaw)
    (level,) = found.levels
    assert level.error == ""
    assert [len(ends) for ends in level.end_ms] == [4, 4, 4]
    assert found.arrivals is not None
    assert found.arrivals.error == ""
    assert None not in found.arrivals.end_ms


def test_what_a_caller_gets_is_sealed_as_it_came(tiny_model: Path, tmp_path: Path) -> None:
    job = ready(tiny_model, tmp_path, PLAIN)
    numbers: Iterator[int] = iter(range(10**6))
    options = LoadOptions(concurrency=(1, 2), calls=3)
    answer: Answer = lambda ids: [float(next(numbers))] + [0.5] * (len(ids) - 1)  # noqa: E731 - a scorer of one line
    load.load(job, Logged(answer).load(job.graph, 1), [batch(3)], options)
    logits = np.frombuffer((job.root / job.request.step / "load.f32").read_bytes(), "<f4").reshape(-1, 3)
    assert logits[:4, 0].tolist() == [0.0, 1.0, 2.0, 3.0]
    first, second = logits[4:7, 0].tolist(), logits[7:, 0].tolist()
    assert sorted([*first, *second]) == [4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    assert (first, second) == (sorted(first), sorted(second))
    assert set(logits[:, 1:].ravel().tolist()) == {0.5}


@pytest.mark.parametrize(
    ("calls", "back", "value", "note"),
    [
        (60, 60, 30.0, "by caller 10, 30 ms"),
        (60, 58, 30.0, "by caller unknown, 30 ms"),
        (58, 58, None, "needs at least 59 samples, has 58"),
    ],
    ids=["enough", "too-few-of-one", "too-few"],
)
def test_each_callers_95th_percentile_is_derived_where_its_calls_are_enough(
    tiny_model: Path, tmp_path: Path, calls: int, back: int, value: float | None, note: str
) -> None:
    job = ready(tiny_model, tmp_path, PLAIN)
    options = LoadOptions(concurrency=(2,), calls=calls)
    begin = tuple(tuple(each * number for number in range(calls)) for each in (10.0, 30.0))
    end = tuple(tuple(each * (number + 1) for number in range(calls)) for each in (10.0, 30.0))
    first = (*end[0][:back], *[None] * (calls - back))  # what the first caller did not get back
    session = Logged().load(job.graph, 1).facts
    level = Level(callers=2, begin_ms=begin, end_ms=(first, end[1]), error="")
    job.write_record("load.json", LoadRaw(format=1, session=session, pairs=1, levels=(level,), arrivals=None))
    job.write_floats("load.f32", np.zeros(1 + 2 * calls, dtype=np.float32))
    slowest = derived(job, options)["load_slowest_p95_ms.2"]
    assert (slowest.value, slowest.note) == (value, note)


def test_the_note_of_a_cell_says_what_its_calls_really_are() -> None:
    shapes = ((8, 512), (8, 512), (8, 31), (1, 9))
    assert derive_notes.cell(shapes) == (
        "in batches of 8 x 512 (2 times), 8 x 31, 1 x 9 tokens; no pair is longer than 512"
    )
