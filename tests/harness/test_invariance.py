from __future__ import annotations

import threading
import time
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from harness.errors import RecordError
from harness.raw import InvarianceRaw
from harness.stages.invariance import from_threads
from tests.support.parity import STEP, derived, failed, floats, judged, record
from tests.support.steps import Bench

Tensors = dict[str, NDArray[Any]]


def batches(count: int) -> list[Tensors]:
    return [{"input_ids": np.full((2, 3), place)} for place in range(count)]


def first_ids(tensors: Tensors) -> NDArray[np.float32]:
    return tensors["input_ids"][:, 0].astype(np.float32)


def test_threads_call_at_once_and_their_logits_come_back_in_order() -> None:
    at_once: set[str] = set()
    together = threading.Barrier(8, timeout=60)

    def logits(tensors: Tensors) -> NDArray[np.float32]:
        together.wait()
        at_once.add(threading.current_thread().name)
        return first_ids(tensors)

    found, unfinished, error = from_threads(logits, batches(8), 10, 60.0)
    assert (unfinished, error, len(at_once)) == (0, "", 8)
    assert [part.tolist() for part in found] == [[float(place)] * 2 for place in range(8) for _ in range(10)]


def test_a_scorer_that_shares_a_buffer_between_threads_is_seen_in_the_logits() -> None:
    buffer = np.zeros(2, dtype=np.float32)
    together = threading.Barrier(8, timeout=60)

    def logits(tensors: Tensors) -> NDArray[np.float32]:
        buffer[:] = first_ids(tensors)
        together.wait()
        return buffer.copy()

    found, _, _ = from_threads(logits, batches(8), 10, 60.0)
    assert any(part[0] != place for place in range(8) for part in found[10 * place : 10 * place + 10])


def test_a_deadlock_ends_at_the_limit_and_its_calls_are_counted() -> None:
    never = threading.Event()

    def logits(tensors: Tensors) -> NDArray[np.float32]:
        if tensors["input_ids"][0, 0] == 3:
            never.wait()
        return first_ids(tensors)

    begin = time.monotonic()
    found, unfinished, error = from_threads(logits, batches(8), 10, 0.5)
    assert time.monotonic() - begin < 30
    assert (unfinished, error) == (10, "")
    assert all(np.isnan(part).all() for part in found[30:40])
    never.set()


def test_what_a_thread_raises_is_told() -> None:
    def logits(tensors: Tensors) -> NDArray[np.float32]:
        if tensors["input_ids"][0, 0] == 3:
            message = "not\nshared"
            raise RuntimeError(message)
        return first_ids(tensors)

    _, unfinished, error = from_threads(logits, batches(8), 10, 60.0)
    assert (unfinished, error) == (10, "RuntimeError: not shared")


def test_a_deadlock_is_a_finding_and_leaves_the_rest_judged(climbed: Bench) -> None:
    path = f"{STEP}/invariance_artifact"
    logits = floats(climbed, f"{path}.f32")
    logits[-160:] = np.nan
    changed = record(climbed, f"{path}.json", InvarianceRaw, unfinished=80)
    found = judged(derived(climbed, changed | {f"{path}.f32": logits.tobytes()}))
    assert found["threads_deadlocked"].text == (
        "threads_deadlocked: expected exactly 0, got 80 calls: 8 threads, 10 calls each, 60 s"
    )
    assert found["threads_gap"].text == "threads_gap: expected at most 0.0, got unknown: 80 calls did not come back"
    assert {name for name, one in found.items() if one.verdict == "FAIL"} == {"threads_deadlocked"}
    assert found["non_finite_count"].verdict == "PASS"


def test_a_logit_that_another_thread_changed_is_a_finding(climbed: Bench) -> None:
    path = f"{STEP}/invariance_artifact.f32"
    logits = floats(climbed, path)
    logits[-1] += np.float32(0.25)
    found = failed(derived(climbed, {path: logits.tobytes()}))
    assert found == {
        "threads_gap": "threads_gap: expected at most 0.0, got 0.25 logit: 8 threads, 10 calls each:"
        " 1 of 160 logits differ from a single thread's"
    }


def test_the_order_of_a_batch_that_moves_a_logit_is_a_finding(climbed: Bench) -> None:
    raw = msgspec.json.decode((climbed.root / f"{STEP}/invariance_artifact.json").read_bytes(), type=InvarianceRaw)
    begin = 0
    for variant in raw.variants:
        if variant.kind == "order":
            break
        begin += variant.calls * sum(map(len, variant.rows))
    path = f"{STEP}/invariance_artifact.f32"
    logits = floats(climbed, path)
    logits[begin] += np.float32(0.5)
    found = failed(derived(climbed, {path: logits.tobytes()}))
    assert found == {
        "order_gap_runtime": "order_gap_runtime: expected at most 0.001, got 0.5 logit: a batch of 16, reversed"
    }


def test_a_batch_that_was_left_out_is_refused(climbed: Bench) -> None:
    path = f"{STEP}/invariance_artifact.json"
    raw = msgspec.json.decode((climbed.root / path).read_bytes(), type=InvarianceRaw)
    fewer = record(climbed, path, InvarianceRaw, variants=raw.variants[:2] + raw.variants[3:])
    with pytest.raises(RecordError) as caught:
        derived(climbed, fewer)
    assert str(caught.value) == f"{path}: expected the pairs and batches that plan and seed give, got others"


def test_other_pairs_than_the_seed_draws_are_refused(climbed: Bench) -> None:
    path = f"{STEP}/invariance_reference.json"
    with pytest.raises(RecordError, match="expected the pairs and batches that plan and seed give"):
        derived(climbed, record(climbed, path, InvarianceRaw, pairs=tuple(range(24))))


def test_int8_has_no_fixed_limit_on_what_its_batch_does_to_a_logit(climbed: Bench) -> None:
    measured = climbed.earlier("L2", "cpu-int8").measured()
    assert "batch_gap_runtime" not in judged(measured, "int8")
    assert judged(measured, "int8")["batch_gap_reference"].verdict == "PASS"
    assert measured["batch_gap_runtime"].value is not None
