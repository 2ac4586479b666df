"""What every runtime offers: load an artifact, and a session that gives logits. One file of this folder carries each out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harness.errors import Blocked
from harness.raw import SessionFacts
from harness.records import SessionOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


DEFAULT = SessionOptions()


class LoadError(Exception):
    """The runtime did not take the file; the message is the runtime's own, on one line."""


class Session(Protocol):
    """A loaded artifact that several threads may call at once.

    ``inputs`` is the dtype by name, ``fixed`` the (batch, sequence) that the graph demands, each None where it takes any;
    ``facts`` is what is recorded about the session.
    """

    inputs: dict[str, str]
    fixed: tuple[int | None, int | None]
    facts: SessionFacts

    def logits(self, tensors: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Logits of one batch, float32 of shape (batch,). Raises ``Blocked`` when there is no output of one logit a row."""


class Runtime(Protocol):
    """A way to run artifacts, by the name that a ladder gives its provider."""

    @property
    def name(self) -> str:
        """The provider as the facts of its sessions state it."""

    def require(self) -> None:
        """Import the library. Raises ``Blocked`` when it, or the provider in it, is not there."""

    def load(self, artifact: Path, threads: int, session: SessionOptions = DEFAULT) -> Session:
        """Load ``artifact`` with ``threads`` threads and the options of ``session``, as far as the runtime has them.

        Raises ``Blocked``, or ``LoadError`` when the runtime does not take the file.
        """


def allowed_cpus() -> str | None:
    """The processors that this process may use, by number, e.g. ``0,1``; None where the system does not tell."""
    return ",".join(map(str, sorted(os.sched_getaffinity(0)))) if hasattr(os, "sched_getaffinity") else None


def one_column(found: NDArray[Any], rows: int) -> NDArray[np.float32]:
    """The logits of shape (rows, 1) as float32 of shape (rows,). Raises ``Blocked`` for any other shape.

    It stands in every timed micro-batch: a conversion is only asked for where there is something to convert.
    """
    if found.shape != (rows, 1):
        raise Blocked(f"logits: expected shape ({rows}, 1), got {tuple(found.shape)}")
    column: NDArray[Any] = found[:, 0]
    return column if column.dtype.char == "f" else column.astype("float32")


def no_logits(outputs: list[str]) -> Blocked:
    """The refusal of a graph that has no output named ``logits``."""
    return Blocked(f"graph outputs: expected one named logits, got {', '.join(outputs) or 'none'}")
