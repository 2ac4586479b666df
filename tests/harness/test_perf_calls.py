"""Which calls L1 makes: its stages driven with scorers that note who was called, with what, in which order."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from harness.metrics.cells import cells_of
from harness.metrics.sampling import mixed_order, sweep_orders
from harness.raw import (
    GrowthRaw,
    PerfRaw,
    RerankCallsRaw,
    SweepRaw,
)
from harness.records import (
    PerfOptions,
    SweepOptions,
)
from harness.runtimes import RUNTIMES, tokens
from harness.stages.job import Job
from harness.stages.perf import perf
from tests.support.logged import PLAIN, SEED, Answer, Logged, call, lengths, raw, ready
from tests.support.steps import PAIRS

replace = msgspec.structs.replace


@pytest.fixture(autouse=True)
def old_objects_left_alone() -> Iterator[None]:
    """The stages collect garbage again and again; what other tests imported before is not searched each time."""
    gc.freeze()
    yield
    gc.unfreeze()


def ran(
    monkeypatch: pytest.MonkeyPatch, model: Path, folder: Path, options: PerfOptions, answer: Answer | None = None
) -> tuple[Job, Logged]:
    """All of L1 on the runtime that notes its calls."""
    runtime = Logged(answer) if answer is not None else Logged()
    monkeypatch.setitem(RUNTIMES, "cpu", runtime)
    job = ready(model, folder, options)
    perf(job)
    return job, runtime


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
