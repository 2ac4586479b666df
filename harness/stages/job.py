"""What a stage is given: its request, where things are, and a way to say how far it is."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from evidence.manifest import Entry, tree_digest
from evidence.seal import write_new
from harness import data
from harness.files import hash_file
from harness.raw import ArtifactRef
from harness.records import PAIRS, Record, Request, to_json
from harness.runtimes import load, tokens
from harness.runtimes.batching import Layout, layout_of
from harness.runtimes.session import Session
from harness.runtimes.torch_eager import Reference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TELL_EVERY_S = 0.1
_SOCKET_TIMEOUT_S = 60.0


class Channel:
    """The worker's end of the socket to the parent, over the descriptor it was given."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.settimeout(_SOCKET_TIMEOUT_S)
        self._socket.set_inheritable(False)
        self._told = 0.0

    def progress(self, done: int, total: int, what: str) -> None:
        """Say that ``done`` of ``total`` units of ``what`` are done; at most ten times a second, the last always."""
        now = time.monotonic()
        if done >= total or now - self._told >= _TELL_EVERY_S:
            self._told = now
            self._socket.sendall(json.dumps([done, total, what]).encode("ascii") + b"\n")

    def written(self, what: Literal["memory", "machine"]) -> None:
        """Ask the parent to end its samples of memory, or its readings of the machine, and to write them; returns when it has."""
        self._socket.sendall(what.encode("ascii") + b"\n")
        while not self._socket.recv(64).endswith(b"\n"):
            pass


class Job(NamedTuple):
    """One step as the worker sees it. ``scratch`` is a folder outside the root that the parent removes.

    ``baseline`` is the folder of the artifact that L1 is compared with.
    """

    request: Request
    root: Path
    model: Path
    prebuilt: Path | None
    scratch: Path
    progress: Callable[[int, int, str], None]
    written: Callable[[Literal["memory", "machine"]], None]
    clean: Callable[[str], str]
    adapter: Path | None = None
    baseline: Path | None = None

    @property
    def graph(self) -> Path:
        """The artifact's ONNX file."""
        return self.root / self.request.artifact / "model.onnx"

    def read(self, path: str) -> bytes:
        """Bytes of a file of the root, by root-relative path; of a step that is carried, by the path it would have had it run here."""
        own = self.root / path
        place = own if own.is_file() else next(self.root.glob(f"preserved/*/{path}"), own)
        return place.read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Create a file in the step's folder; never replaces one."""
        write_new(self.root, f"{self.request.step}/{name}", content)

    def write_record(self, name: str, record: Record) -> None:
        """Create a JSON record in the step's folder."""
        self.write(name, to_json(record))

    def write_floats(self, name: str, values: NDArray[np.float32]) -> None:
        """Create a flat little-endian float32 file in the step's folder."""
        self.write(name, values.astype("<f4").tobytes())

    def pairs(self) -> list[tuple[str, str]]:
        """The (query, document) pairs of L1 and L2, in order."""
        return [(pair.query, pair.document) for pair in data.read_pairs(self.read(PAIRS), PAIRS)]

    def pairs_of_call(self, candidates: int) -> list[tuple[str, str]]:
        """What one call of L1 scores: the pairs, again from the first where there are fewer."""
        given = self.pairs()
        return [given[index % len(given)] for index in range(candidates)]

    def counter(self, before: int, total: int, what: str) -> Callable[[int], None]:
        """A callback that reports ``before + done`` of ``total``."""
        return lambda done: self.progress(before + done, total, what)

    def state_artifact(self) -> None:
        """Hash the artifact's files and write ``artifact.json``: the very bytes that this step is about to load."""
        self.write_record("artifact.json", ArtifactRef(format=1, digest=folder_digest(self.graph.parent)))

    def session(self, threads: int | None = None) -> Session:
        """Load the artifact on the target's provider, with its number of threads or another. Raises ``Blocked``."""
        target = self.request.target
        return load(target.provider, self.graph, threads or target.threads, target.session)

    def reference(self) -> Reference:
        """PyTorch in fp32: the candidate as it was trained, its adapter on and unmerged. Raises ``Blocked``."""
        candidate = self.request.candidate
        names = tokens.inputs_of(candidate, self.model)
        return Reference(self.model, self.request.target.threads, names, self.adapter)

    def layout(self, inputs: Mapping[str, str], batch_size: int, fixed: tuple[int | None, int | None]) -> Layout:
        """How batches are laid out for a scorer that takes ``inputs``."""
        return layout_of(self.request.candidate, inputs, batch_size, fixed)


def folder_digest(folder: Path) -> str:
    """Tree digest of all files under ``folder``, by path relative to it. Raises OSError."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return tree_digest(Entry(name, hash_file(folder / name)) for name in names)
