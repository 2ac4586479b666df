"""Which calls L1 makes: its stages driven with scorers that note who was called, with what, in which order."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pytest

from evidence.manifest import digest_of
from evidence.seal import write_new
from harness import derive_load, derive_notes
from harness.files import hash_file
from harness.metrics.cells import cells_of
from harness.metrics.paired import turns
from harness.metrics.sampling import arrivals_ms, mixed_order, sweep_orders
from harness.raw import (
    GrowthRaw,
    Level,
    LoadRaw,
    MemoryRaw,
    PairedRaw,
    PerfRaw,
    RerankCallsRaw,
    SessionFacts,
    Stated,
    SweepRaw,
)
from harness.records import (
    BASELINE,
    DataFact,
    LoadOptions,
    Measurement,
    PairedOptions,
    PerfOptions,
    Record,
    SweepOptions,
    from_json,
)
from harness.runtimes import RUNTIMES, tokens
from harness.runtimes.batching import Batch
from harness.stages import load, paired
from harness.stages.job import Job
from harness.stages.perf import perf
from tests.support.logged import Answer, Logged
from tests.support.logged import job as job_of
from tests.support.steps import OPTIONS, PAIRS, bench

PLAIN = PerfOptions(candidates=6, batch_size=4, max_length=48, warm_up=2, calls=7, min_calls=7, growth_calls=0)
SEED = 7
"""That of every request of a bench."""
replace = msgspec.structs.replace


@pytest.fixture(autouse=True)
def old_objects_left_alone() -> Iterator[None]:
    """The stages collect garbage again and again; what other tests imported before is not searched each time."""
    gc.freeze()
    yield
    gc.unfreeze()


def ready(model: Path, folder: Path, options: PerfOptions) -> Job:
    return job_of(bench(folder / "root", model), replace(OPTIONS, L1=options))


def ran(
    monkeypatch: pytest.MonkeyPatch, model: Path, folder: Path, options: PerfOptions, answer: Answer | None = None
) -> tuple[Job, Logged]:
    """All of L1 on the runtime that notes its calls."""
    runtime = Logged(answer) if answer is not None else Logged()
    monkeypatch.setitem(RUNTIMES, "cpu", runtime)
    job = ready(model, folder, options)
    perf(job)
    return job, runtime


T = TypeVar("T", bound=Record)


def raw(job: Job, name: str, kind: type[T]) -> T:
    return from_json((job.root / job.request.step / name).read_bytes(), kind, name)


def lengths(job: Job, count: int, max_length: int) -> list[int]:
    """Tokens of the first pairs, each encoded by itself."""
    given = [PAIRS[index % len(PAIRS)] for index in range(count)]
    return [tokens.encode(job.model, job.request.candidate, [pair], max_length).longest for pair in given]


def call(job: Job, count: int, max_length: int, batch_size: int) -> list[tuple[int, int]]:
    """The shapes of one call: pairs sorted by length, longest first, padded to the longest of each micro-batch."""
    found = sorted(lengths(job, count, max_length), reverse=True)
    return [(len(part), part[0]) for part in (found[at : at + batch_size] for at in range(0, count, batch_size))]


# --- steady calls and growth ------------------------------------------------------------------------------------------


def test_first_warm_up_and_steady_calls_are_the_same_call_on_one_session(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path
) -> None:
    job, runtime = ran(monkeypatch, tiny_model, tmp_path, PLAIN)
    one = call(job, 6, 48, 4)
    assert runtime.shapes(0) == one * (1 + 2 + 7)
    assert len(runtime.loaded) == 1
    found = raw(job, "samples.json", PerfRaw)
    assert (len(found.warm_up_ms), len(found.steady_ms), list(found.shapes)) == (2, 7, one)


def test_memory_grows_over_calls_of_the_recorded_shapes_in_the_recorded_order(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path
) -> None:
    job, runtime = ran(monkeypatch, tiny_model, tmp_path, replace(PLAIN, growth_calls=30))
    growth = raw(job, "samples.json", PerfRaw).growth
    assert isinstance(growth, GrowthRaw)
    mixed = runtime.shapes(0)[len(call(job, 6, 48, 4)) * 10 :]
    kinds = list(growth.shapes)
    assert mixed == [*kinds, *(kinds[place] for place in mixed_order(len(kinds), 30, SEED))]
    assert {rows for rows, _ in kinds} == {1, 2, 4}
    shortest, longest = min(lengths(job, 6, 48)), max(lengths(job, 6, 48))
    assert {tokens_ for rows, tokens_ in kinds if rows == 1} >= {shortest, longest}


# --- whole requests ---------------------------------------------------------------------------------------------------


def by_content(ids: np.ndarray[Any, Any]) -> list[float]:
    """Few different logits, so that many documents tie."""
    return [float(int(row.sum()) % 3) for row in ids]


def test_each_request_has_a_query_and_documents_of_its_own_and_equal_logits_keep_the_order_given(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path
) -> None:
    job, runtime = ran(monkeypatch, tiny_model, tmp_path, replace(PLAIN, end_to_end_calls=24), by_content)
    requests = raw(job, "end_to_end.json", RerankCallsRaw).calls
    assert len(requests) == 24
    assert len({PAIRS[number % len(PAIRS)][0] for number in range(2, 26)}) > 1
    for number, request in enumerate(requests, start=2):  # after two that are not counted
        documents = [PAIRS[(number + step) % len(PAIRS)][1] for step in range(6)]
        pairs = [(PAIRS[number % len(PAIRS)][0], document) for document in documents]
        encoded = tokens.encode(job.model, job.request.candidate, pairs, 48)
        wanted = [by_content(ids[None])[0] for ids in encoded.ids]
        assert list(request.logits) == wanted
        assert list(request.ranked) == sorted(range(6), key=lambda place: (-wanted[place], place))
    assert all(len(set(request.logits)) < 6 for request in requests)
    rows = [rows for rows, _ in runtime.shapes(0)[len(call(job, 6, 48, 4)) * 10 :]]
    assert rows == [4, 2] * 26


# --- sweep ------------------------------------------------------------------------------------------------------------

SWEEP = SweepOptions(candidates=(2, 9), max_length=(12, 48), batch_size=(2, 4), threads=(1, 2), calls=3)


def test_a_sweep_calls_every_cell_with_its_own_pairs_in_the_order_of_each_round(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path
) -> None:
    job, runtime = ran(monkeypatch, tiny_model, tmp_path, replace(PLAIN, sweep=SWEEP))
    found = raw(job, "sweep.json", SweepRaw)
    session = 1  # the first was that of the steady calls
    for number, group in enumerate(cells_of(SWEEP, 1)):
        calls = [call(job, cell.candidates, cell.max_length, cell.batch_size) for cell in group]
        recorded = found.cells[number * len(group) : (number + 1) * len(group)]
        assert [list(cell.shapes) for cell in recorded] == calls
        for one, cell in zip(calls, recorded, strict=True):  # a session each, for what the parent samples of memory
            assert runtime.shapes(session) == one
            begin, end = cell.memory_ms
            assert all(begin <= made.at_ms <= end for made in runtime.called if made.session == session)
            session += 1
        rounds = [place for order in sweep_orders(len(group), 3, SEED, number) for place in order]
        assert runtime.shapes(session) == [shape for place in [*range(len(group)), *rounds] for shape in calls[place]]
        assert {made.threads for made in runtime.loaded[session - len(group) : session + 1]} == {group[0].threads}
        session += 1
    assert len(runtime.loaded) == session
    assert len({tuple(map(tuple, cell.shapes)) for cell in found.cells}) == 6  # two candidates fill no batch of four


# --- callers at once --------------------------------------------------------------------------------------------------

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
    found = derive_load.measurements(job.request, replace(PLAIN, load=options), memory, job.read)
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
    ("calls", "value", "note"),
    [(60, 30.0, "by caller 10, 30 ms"), (58, None, "needs at least 59 samples, has 58")],
    ids=["enough", "too-few"],
)
def test_each_callers_95th_percentile_is_derived_where_its_calls_are_enough(
    tiny_model: Path, tmp_path: Path, calls: int, value: float | None, note: str
) -> None:
    job = ready(tiny_model, tmp_path, PLAIN)
    options = LoadOptions(concurrency=(2,), calls=calls)
    begin = tuple(tuple(each * number for number in range(calls)) for each in (10.0, 30.0))
    end = tuple(tuple(each * (number + 1) for number in range(calls)) for each in (10.0, 30.0))
    level = Level(callers=2, begin_ms=begin, end_ms=end, error="")
    job.write_record("load.json", LoadRaw(format=1, pairs=1, levels=(level,), arrivals=None))
    job.write_floats("load.f32", np.zeros(1 + 2 * calls, dtype=np.float32))
    slowest = derived(job, options)["load_slowest_p95_ms.2"]
    assert (slowest.value, slowest.note) == (value, note)


def test_the_note_of_a_cell_says_what_its_calls_really_are() -> None:
    shapes = ((8, 512), (8, 512), (8, 31), (1, 9))
    assert derive_notes.cell(shapes) == (
        "in batches of 8 x 512 (2 times), 8 x 31, 1 x 9 tokens; no pair is longer than 512"
    )


# --- in turn with something else --------------------------------------------------------------------------------------


class Sides:
    """Opens sides whose calls note themselves and take as many ms as calls were made: so each sample tells which call it is of."""

    def __init__(self) -> None:
        self.log: list[tuple[str, int]] = []
        self.opened: list[str] = []
        self.took: dict[int, tuple[str, int]] = {}

    def opener(self, name: str) -> paired.Open:
        def open_() -> paired.Side:
            session = len(self.opened)
            self.opened.append(name)

            def call_ms() -> tuple[float, float]:
                self.log.append((name, session))
                return float(len(self.log)), float(len(self.log)) / 2

            facts = SessionFacts(load_ms=1.0, providers=(name,), options={})
            return paired.Side(Stated(facts=facts, shapes=((4, 4),)), call_ms)

        return open_


def test_each_pair_of_sessions_is_fresh_and_its_calls_go_in_the_drawn_order(tiny_model: Path, tmp_path: Path) -> None:
    asked = PairedOptions(sessions=8, calls=6)
    options = replace(PLAIN, warm_up=2, paired=asked)
    sides = Sides()
    found = paired.measured(
        ready(tiny_model, tmp_path, options), options, sides.opener("own"), sides.opener("other"), None
    )
    at = 0
    for place, loaded_first in enumerate(turns(SEED, 0, 8)):
        pair, names = found.sessions[place], ("own", "other") if loaded_first else ("other", "own")
        assert tuple(sides.opened[2 * place : 2 * place + 2]) == names
        sessions = {name: 2 * place + names.index(name) for name in names}
        first = turns(SEED, 1 + place, 6)
        order = ["own", "other"] * 2 + [
            name for own in first for name in (("own", "other") if own else ("other", "own"))
        ]
        assert sides.log[at : at + len(order)] == [(name, sessions[name]) for name in order]
        steady = list(enumerate(order, start=1))[4:]
        assert pair.candidate_ms == tuple(float(at + number) for number, name in steady if name == "own")
        assert pair.other_ms == tuple(float(at + number) for number, name in steady if name == "other")
        assert pair.candidate_cpu_ms == tuple(ms / 2 for ms in pair.candidate_ms)
        assert pair.other_cpu_ms == tuple(ms / 2 for ms in pair.other_ms)
        assert (pair.candidate_loaded_first, pair.candidate_first) == (loaded_first, first)
        at += len(order)
    assert len(sides.opened) == 16
    assert at == len(sides.log)
    assert {pair.candidate_loaded_first for pair in found.sessions} == {True, False}
    assert {first for pair in found.sessions for first in pair.candidate_first} == {True, False}
    assert found.candidate is not None
    assert found.candidate.facts.providers == ("own",)


def test_the_baselines_own_file_is_called_with_the_same_pairs_and_two_sessions_are_there_at_most(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path
) -> None:
    runtime = Logged()
    monkeypatch.setitem(RUNTIMES, "cpu", runtime)
    options = replace(PLAIN, paired=PairedOptions(sessions=6, calls=2))
    before = tmp_path / "baseline"
    before.mkdir()
    (before / "model.onnx").write_bytes(b"an earlier graph")
    job = ready(tiny_model, tmp_path, options)._replace(baseline=before)
    manifest = f"{hash_file(before / 'model.onnx')}  artifacts/cpu-fp32/model.onnx\n".encode()
    write_new(job.root, BASELINE, manifest)
    fact = DataFact(path=BASELINE, digest=digest_of(manifest), rows=1, source="test")
    inputs = replace(job.request.inputs, baseline=fact)
    job = job._replace(request=replace(job.request, inputs=inputs))
    encoded = tokens.encode(job.model, job.request.candidate, job.pairs_of_call(6), 48)
    paired.compare(job, encoded, options)
    found = raw(job, "paired.json", PairedRaw)
    assert found.fault == ""
    files = [made.artifact for made in runtime.loaded]
    assert files == [
        path
        for own in turns(SEED, 0, 6)
        for path in ((job.graph, before / "model.onnx") if own else (before / "model.onnx", job.graph))
    ]
    assert all(made.options.spinning is False for made in runtime.loaded)
    assert runtime.resident == 2
    one = call(job, 6, 48, 4)
    assert [runtime.shapes(session) for session in range(12)] == [one * (2 + 2)] * 12
