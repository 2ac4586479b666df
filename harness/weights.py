"""What a model folder's weights are, from their headers alone: no tensor is read, nothing is unpickled.

safetensors format: 8 bytes little-endian length N, N bytes of JSON (``name -> {dtype, shape, data_offsets}``), then the tensors'
bytes, which must fill the file without gap or overlap (huggingface/safetensors, README, "Format").
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

from harness.errors import CandidateError
from harness.records import Record

LFS_FIRST_BYTES = b"version https://git-lfs.github.com/spec/"
HEADER_LIMIT_BYTES = 100_000_000
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"

_PICKLES = ("*.bin", "*.pkl", "*.pt", "*.pth", "*.ckpt")
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64, "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip


class Weights(Record, frozen=True):
    """The weight files by name, and elements by safetensors dtype (``F32``)."""

    files: tuple[str, ...]
    elements: dict[str, int]


def read_weights(folder: Path) -> Weights:
    """The weights that the model class will load from ``folder``. Raises ``CandidateError``: missing, pickled, pointers, cut off."""
    if (folder / SINGLE).is_file():
        elements: Counter[str] = Counter()
        for dtype, count in read_header(folder / SINGLE).values():
            elements[dtype] += count
        return Weights(files=(SINGLE,), elements=dict(sorted(elements.items())))
    if (folder / INDEX).is_file():
        return _sharded(folder)
    pickles = sorted({path.name for pattern in _PICKLES for path in folder.glob(pattern)})
    if pickles:
        do = "a pickle can run code when it is loaded; convert it once with safetensors.torch.save_file or take a revision that has it"
        raise CandidateError(f"weights: expected {SINGLE}, got only the pickle {pickles[0]}; {do}")
    raise CandidateError(f"weights: expected {SINGLE} or {INDEX}, got neither; save the model with save_pretrained")


def read_header(path: Path) -> dict[str, tuple[str, int]]:
    """The tensors of a safetensors file: name to dtype and number of elements. Raises ``CandidateError`` with the fault."""
    return {key: (dtype, math.prod(shape)) for key, (dtype, shape) in read_shapes(path).items()}


def shapes_of(folder: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Dtype and shape of every tensor in the weights that ``read_weights`` takes. Raises ``CandidateError``."""
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for name in read_weights(folder).files:
        if name != INDEX:
            found |= read_shapes(folder / name)
    return found


def read_shapes(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The tensors of a safetensors file: name to dtype and shape. Raises ``CandidateError`` with the fault."""
    name, size = path.name, path.stat().st_size
    with path.open("rb") as file:
        first = file.read(8)
        refuse_pointer(name, first + file.read(len(LFS_FIRST_BYTES) - 8))
        length = int.from_bytes(first, "little")
        if size < 8 or length > min(HEADER_LIMIT_BYTES, size - 8):
            got = f"{size} bytes" if size < 8 else f"a header of {length} bytes in a file of {size}"
            raise CandidateError(f"{name}: expected a safetensors file, got {got}; fetch it again")
        file.seek(8)
        header = file.read(length)
    try:
        table = json.loads(header.decode("utf-8"))
        tensors = [(key, entry) for key, entry in table.items() if key != "__metadata__"]
        spans = sorted(_span(key, entry) for key, entry in tensors)
    except (ValueError, AttributeError, RecursionError) as error:
        raise CandidateError(f"{name}: expected a safetensors header, got {_short(error)}; fetch it again") from error
    end = 0
    for begin, stop, key in spans:
        if begin != end:
            raise CandidateError(
                f"{name}: expected tensors without gap or overlap, got {key!r:.80} at {begin} after {end}"
            )
        end = stop
    expected = 8 + length + end
    if size != expected:
        what = "cut off; fetch it again" if size < expected else "more than its header says"
        raise CandidateError(f"{name}: expected {expected} bytes by its header, got {size}; the file is {what}")
    return {key: (entry["dtype"], tuple(entry["shape"])) for key, entry in tensors}


def refuse_pointer(name: str, first_bytes: bytes) -> None:
    """Raise ``CandidateError`` when a file is the pointer that Git LFS leaves where the content was not fetched."""
    if first_bytes.startswith(LFS_FIRST_BYTES):
        raise CandidateError(
            f"{name}: expected the file itself, got a Git LFS pointer; run `git lfs pull` in its repository"
        )


def _sharded(folder: Path) -> Weights:
    """Weights in shards: every tensor of the index in the shard it names, and no tensor beside."""
    try:
        places = json.loads((folder / INDEX).read_bytes().decode("utf-8"))["weight_map"]
        shards = sorted(set(places.values()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CandidateError(f"{INDEX}: expected a table weight_map of tensor to file, got {_short(error)}") from error
    elements: Counter[str] = Counter()
    for shard in shards:
        if not isinstance(shard, str) or "/" in shard or "\\" in shard or not shard.endswith(".safetensors"):
            raise CandidateError(f"{INDEX}: expected the names of safetensors files beside it, got {shard!r:.80}")
        if not (folder / shard).is_file():
            raise CandidateError(f"weights: expected {shard}, which {INDEX} names, got no such file; fetch it")
        tensors = read_header(folder / shard)
        listed = {tensor for tensor, place in places.items() if place == shard}
        if odd := sorted(listed ^ set(tensors)):
            raise CandidateError(
                f"{shard}: expected the tensors that {INDEX} lists, got a difference in {odd[0]!r:.80}"
            )
        for dtype, count in tensors.values():
            elements[dtype] += count
    if not shards:
        raise CandidateError(f"{INDEX}: expected at least one tensor, got none")
    return Weights(files=(INDEX, *shards), elements=dict(sorted(elements.items())))


def _span(key: str, entry: Any) -> tuple[int, int, str]:
    """Begin, end and name of one tensor. Raises ``ValueError`` when dtype, shape and offsets do not agree."""
    try:
        dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        whole = all(type(number) is int and number >= 0 for number in (*shape, begin, end))
        bits = _BITS[dtype] * math.prod(shape) if whole else -1
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"a faulty entry for {key!r:.80}") from error
    if bits < 0 or (end - begin) * 8 != bits:
        raise ValueError(f"an entry for {key!r:.80} whose shape and bytes disagree")
    return begin, end, key


def _short(error: Exception) -> str:
    return " ".join(f"{error}".split())[:120] or type(error).__name__
