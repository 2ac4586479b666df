"""The root that a step ran in, as whoever holds its statements against each other sees it. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from evidence.manifest import digest_of
from harness.derive_raw import Read, Size, raw_bytes
from harness.records import Exit, Plan, Request

Difference = tuple[str, str, object, object]
"""File, what of it, what is expected, what is there."""


class Where(NamedTuple):
    """The root that a step ran in: its plan, a reader of its files, and the BLAKE3 (64 hex) that it sealed a path with, or None.

    Of a step that is carried the reader has only what is carried, while the digests are those of the whole earlier root.
    ``foreign``: it was made by another version of qualify. ``size`` gives the bytes of a file that need not be read for it.
    """

    plan: Plan
    read: Read
    sealed: Callable[[str], str | None]
    foreign: bool = False
    size: Size | None = None

    def same(self, path: str) -> bytes | None:
        """The bytes that this root sealed at a path; None where they are not at hand."""
        try:
            data = self.read(path)
        except LookupError:
            return None
        return data if digest_of(data) == f"blake3:{self.sealed(path)}" else None


def spent(file: str, seconds: Iterable[float], ended: Exit) -> Difference:
    """Durations are not negative, and all that was done one after another took no longer than the child lived."""
    known = list(seconds)
    fit = all(math.isfinite(one) and one >= 0 for one in known) and sum(known) <= ended.seconds
    return file, f"durations within the {ended.seconds:.3f} s of the child", True, fit


def fixed(request: Request, where: Where) -> tuple[int | None, int | None]:
    """The batch and length that the artifact demands, by the plan, or by the graph's own inputs where it was given."""
    from harness.metrics.onnx_graph import census

    shape = request.options.L0.shape
    if request.target.artifact is None:
        return (None, None) if isinstance(shape, str) else shape
    inputs = census(raw_bytes(where.read, f"{request.artifact}/model.onnx")).inputs
    two = next((port.dims for port in inputs if port.dims is not None and len(port.dims) == 2), (None, None))
    batch, length = (dim if isinstance(dim, int) else None for dim in two)
    return batch, length
