"""What stands between the runtime and a timed call: the session's own checks, over a runtime that answers what the test says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.errors import Blocked
from harness.raw import SessionFacts
from harness.runtimes.onnxruntime import Session

CALL = {"input_ids": np.zeros((3, 5), dtype=np.int64)}


class Answering:
    """onnxruntime's session as far as it is used; ``asked`` are the outputs that each run names."""

    def __init__(self, answer: np.ndarray[Any, Any], output: str = "logits") -> None:
        self.asked: list[list[str]] = []
        self._answer, self._output = answer, output

    def get_inputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name="input_ids", type="tensor(int64)", shape=["batch", 5])]

    def get_outputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=self._output)]

    def run(self, names: list[str], _tensors: Any) -> list[Any]:
        self.asked.append(list(names))
        return [self._answer]


def session(runtime: Answering) -> Session:
    return Session(runtime, SessionFacts(load_ms=0.0, providers=(), options={}))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_logits_are_float32_whatever_the_graph_gives_and_only_they_are_asked_for(dtype: str) -> None:
    runtime = Answering(np.array([[1.5], [-2.0], [0.25]], dtype=dtype))
    made = session(runtime)
    found = [made.logits(CALL) for _ in range(2)]
    assert [(each.dtype, each.tolist()) for each in found] == [(np.dtype("float32"), [1.5, -2.0, 0.25])] * 2
    assert runtime.asked == [["logits"]] * 2
    assert made.fixed == (None, 5)


@pytest.mark.parametrize("shape", [(3,), (3, 2), (2, 1), (1, 3)])
def test_every_call_is_refused_that_gives_no_logit_a_row(shape: tuple[int, ...]) -> None:
    with pytest.raises(Blocked) as refused:
        session(Answering(np.zeros(shape, dtype=np.float32))).logits(CALL)
    assert str(refused.value) == f"logits: expected shape (3, 1), got {shape}"


def test_a_graph_without_an_output_of_that_name_loads_and_no_call_of_it_is_run() -> None:
    runtime = Answering(np.zeros((3, 1), dtype=np.float32), "score")
    made = session(runtime)
    for _ in range(2):
        with pytest.raises(Blocked) as refused:
            made.logits(CALL)
        assert str(refused.value) == "graph outputs: expected one named logits, got score"
    assert runtime.asked == []
