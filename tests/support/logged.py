"""A runtime that computes nothing and notes what it is asked: which session, of which file, was called with which tensors, and when.

What a stage times is only worth its name when these are the calls that the plan asks for; the times themselves do not tell.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.raw import SessionFacts
from harness.records import PerfOptions, Record, SessionOptions, from_json
from harness.runtimes import tokens
from harness.runtimes.session import DEFAULT
from harness.stages.job import Job
from harness.stages.timing import now_ms
from tests.support.steps import OPTIONS, PAIRS, bench

PLAIN = PerfOptions(candidates=6, batch_size=4, max_length=48, warm_up=2, calls=7, min_calls=7, growth_calls=0)
SEED = 7
"""That of every request of a bench."""
Ids = NDArray[np.int64]
Answer = Callable[[Ids], list[float]]


class Loaded(NamedTuple):
    """A session: its file, and how it was made."""

    artifact: Path
    threads: int
    options: SessionOptions


class Called(NamedTuple):
    """A micro-batch: the number of its session, its token ids of shape (pairs, tokens), and when, in monotonic ms."""

    session: int
    ids: Ids
    at_ms: float

    @property
    def shape(self) -> tuple[int, int]:
        """Pairs and tokens."""
        return self.ids.shape[0], self.ids.shape[1]


class Session:
    """Answers every row with what ``answer`` makes of the ids, float32 of shape (batch,)."""

    def __init__(self, number: int, runtime: Logged, threads: int) -> None:
        self.inputs = {"input_ids": "int64", "attention_mask": "int64"}
        self.fixed: tuple[int | None, int | None] = (None, None)
        self.facts = SessionFacts(load_ms=1.0, providers=(runtime.name,), options={"intra_op_threads": threads})
        self._number, self._runtime = number, runtime

    def logits(self, tensors: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Note the call."""
        ids = tensors["input_ids"]
        self._runtime.called.append(Called(self._number, ids, now_ms()))
        return np.array(self._runtime.answer(ids), dtype=np.float32)


class Logged:
    """The runtime. ``resident`` is how many of its sessions were there at most, at a load, that one counted."""

    name = "Logged"

    def __init__(self, answer: Answer = lambda ids: [0.0] * len(ids)) -> None:
        self.answer = answer
        self.loaded: list[Loaded] = []
        self.called: list[Called] = []
        self.resident = 0
        self._alive: weakref.WeakSet[Session] = weakref.WeakSet()

    def require(self) -> None:
        """It is there."""

    def load(self, artifact: Path, threads: int, session: SessionOptions = DEFAULT) -> Session:
        """A session of its own number."""
        made = Session(len(self.loaded), self, threads)
        self._alive.add(made)
        self.loaded.append(Loaded(artifact, threads, session))
        self.resident = max(self.resident, len(self._alive))
        return made

    def shapes(self, session: int) -> list[tuple[int, int]]:
        """Of all micro-batches of one session, in order."""
        return [call.shape for call in self.called if call.session == session]


def ready(model: Path, folder: Path, options: PerfOptions) -> Job:
    """What ``worker`` gives the stage L1 of a bench, whose artifact is a file that nobody reads."""
    there = bench(folder / "root", model)
    request = there.request("L1", options=msgspec.structs.replace(OPTIONS, L1=options))
    artifact = there.root / request.artifact
    artifact.mkdir(parents=True)
    (artifact / "model.onnx").write_bytes(b"a graph")
    return Job(
        request=request,
        root=there.root,
        model=there.model,
        prebuilt=None,
        scratch=there.root,
        progress=lambda _done, _total, _what: None,
        written=lambda _what: None,
        clean=lambda text: text,
    )


T = TypeVar("T", bound=Record)


def raw(job: Job, name: str, kind: type[T]) -> T:
    """A record that the stage wrote."""
    return from_json((job.root / job.request.step / name).read_bytes(), kind, name)


def lengths(job: Job, count: int, max_length: int) -> list[int]:
    """Tokens of the first pairs, each encoded by itself."""
    given = [PAIRS[index % len(PAIRS)] for index in range(count)]
    return [tokens.encode(job.model, job.request.candidate, [pair], max_length).longest for pair in given]


def call(job: Job, count: int, max_length: int, batch_size: int) -> list[tuple[int, int]]:
    """The shapes of one call: pairs sorted by length, longest first, padded to the longest of each micro-batch."""
    found = sorted(lengths(job, count, max_length), reverse=True)
    return [(len(part), part[0]) for part in (found[at : at + batch_size] for at in range(0, count, batch_size))]
