"""L1 in turn with something else: which side is loaded and called when, driven with sides that note it."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from evidence.manifest import digest_of
from evidence.seal import write_new
from harness.files import hash_file
from harness.metrics.paired import turns
from harness.raw import (
    PairedRaw,
    SessionFacts,
    Stated,
)
from harness.records import (
    BASELINE,
    DataFact,
    PairedOptions,
)
from harness.runtimes import RUNTIMES, tokens
from harness.stages import eager, paired
from harness.stages.job import Job
from tests.support.logged import PLAIN, SEED, Logged, call, raw, ready

replace = msgspec.structs.replace


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
    assert {(pair.candidate.facts.providers, pair.other.facts.providers) for pair in found.sessions} == {
        (("own",), ("other",))
    }


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


def test_pytorch_is_loaded_anew_for_each_pair_of_sessions_and_scores_the_same_shapes(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path
) -> None:
    made: list[list[tuple[int, int]]] = []

    class Reference:
        """Notes the shapes of its micro-batches."""

        def __init__(self) -> None:
            made.append([])

        def logits(self, tensors: dict[str, Any]) -> Any:
            made[-1].append(tensors["input_ids"].shape)
            return np.zeros(len(tensors["input_ids"]), dtype=np.float32)

    monkeypatch.setattr(Job, "reference", lambda _job: Reference())
    job = ready(tiny_model, tmp_path, PLAIN)
    ours, theirs = socket.socketpair()
    server = threading.Thread(target=eager.serve, args=(job, theirs), daemon=True)
    server.start()
    one = call(job, 6, 48, 4)
    with theirs, ours, ours.makefile("rb") as answers:
        for _ in range(3):
            ours.sendall(b"load\n")
            stated = msgspec.json.decode(answers.readline(), type=Stated)
            assert list(stated.shapes) == one
            for _ in range(2):
                ours.sendall(b"call\n")
                wall, cpu = map(float, answers.readline().split())
                assert wall > 0
                assert cpu >= 0
        ours.shutdown(socket.SHUT_RDWR)
        server.join(30)
    assert made == [one * 2] * 3


def test_each_pair_beside_pytorch_asks_for_a_fresh_load(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Path, tmp_path: Path
) -> None:
    asked: list[str] = []

    class Child:
        """PyTorch's process, as far as it is asked."""

        def __init__(self, _job: Job) -> None:
            asked.append("begin")

        def load(self) -> Stated:
            asked.append("load")
            return Stated(facts=SessionFacts(load_ms=1.0, providers=("PyTorch",), options={}), shapes=((4, 4),))

        def call_ms(self) -> tuple[float, float]:
            asked.append("call")
            return 1.0, 1.0

        def close(self) -> None:
            asked.append("end")

    monkeypatch.setattr(eager, "Child", Child)
    monkeypatch.setitem(RUNTIMES, "cpu", Logged())
    options = replace(PLAIN, warm_up=1, eager=True, paired=PairedOptions(sessions=6, calls=2))
    job = ready(tiny_model, tmp_path, options)
    paired.compare(job, tokens.encode(job.model, job.request.candidate, job.pairs_of_call(6), 48), options)
    assert raw(job, "eager.json", PairedRaw).fault == ""
    assert asked == ["begin", *["load", "call", "call", "call"] * 6, "end"]
