"""The raw samples of an adapter, sealed only where the candidate has one; as ``raw``."""

from __future__ import annotations

from typing import Literal

from harness.records import Record


class HeadHash(Record, frozen=True):
    """A tensor of the head: BLAKE3 of its fp32 bytes in the file that it was trained into, and in the merged model."""

    tensor: str
    source: Literal["adapter", "base"]
    expected: str
    merged: str


class MergeRaw(Record, frozen=True):
    """``adapter.json`` of L0, with an adapter only: how many layers took it, and the head of the merged model that was exported.

    ``left_out`` are tensors of a base of another class that the classifier has no place for: its own head, a pooler.
    """

    format: Literal[1]
    layers: int
    heads: tuple[HeadHash, ...]
    left_out: tuple[str, ...]


class AdapterRaw(Record, frozen=True):
    """``adapter.json`` of L2, with an adapter only: the pairs whose logits in PyTorch, each alone, are way by way in ``adapter.f32``.

    ``base``: before the adapter is put on; ``off``: with it on and switched off; ``merged``: merged into the base. Unmerged and switched on
    is ``reference.f32``.
    """

    format: Literal[1]
    pairs: tuple[int, ...]
    ways: tuple[Literal["base", "off", "merged"], ...]
