"""Weights are known from their headers, and what is no safetensors file is refused with what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.errors import CandidateError
from harness.weights import Weights, read_weights
from tests.support.checkpoints import SHAPES, as_json, safetensors, with_header, write

INDEX = "model.safetensors.index.json"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def refusal(folder: Path) -> str:
    with pytest.raises(CandidateError) as caught:
        read_weights(folder)
    return str(caught.value)


def test_one_file_gives_its_elements_by_dtype(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", {"model.safetensors": safetensors(SHAPES)})
    assert read_weights(folder) == Weights(files=("model.safetensors",), elements={"F32": 37})


def test_shards_give_the_sum_of_their_elements(tmp_path: Path) -> None:
    content = {
        "a.safetensors": safetensors({"x": [2, 3]}, "F16"),
        "b.safetensors": safetensors({"y": [4], "z": []}),
        INDEX: as_json(
            {"metadata": {}, "weight_map": {"x": "a.safetensors", "y": "b.safetensors", "z": "b.safetensors"}}
        ),
    }
    found = read_weights(write(tmp_path / "m", content))
    assert found == Weights(files=(INDEX, "a.safetensors", "b.safetensors"), elements={"F16": 6, "F32": 5})


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "model.ckpt", "model.pkl"])
def test_a_pickle_alone_is_refused_by_name(tmp_path: Path, name: str) -> None:
    assert refusal(write(tmp_path / "m", {name: b"\x80\x04"})) == (
        f"weights: expected model.safetensors, got only the pickle {name}; a pickle can run code when it is loaded;"
        " convert it once with safetensors.torch.save_file or take a revision that has it"
    )


def test_a_pickle_beside_safetensors_is_never_read(tmp_path: Path) -> None:
    content = {"model.safetensors": safetensors(SHAPES), "pytorch_model.bin": b"\x80\x04 never opened"}
    assert read_weights(write(tmp_path / "m", content)).files == ("model.safetensors",)


ZIP = b"PK\x03\x04" + b"\xff" * 100
WHOLE = safetensors(SHAPES)
BROKEN: dict[str, tuple[bytes, str]] = {
    "lfs-pointer": (
        POINTER,
        "expected the file itself, got a Git LFS pointer; run `git lfs pull` in its repository",
    ),
    "empty": (b"", "expected a safetensors file, got 0 bytes; fetch it again"),
    "cut-off": (
        WHOLE[:-5],
        f"expected {len(WHOLE)} bytes by its header, got {len(WHOLE) - 5}; the file is cut off; fetch it again",
    ),
    "cut-off-in-the-header": (
        WHOLE[:20],
        f"expected a safetensors file, got a header of {int.from_bytes(WHOLE[:8], 'little')} bytes in a file of 20; fetch it again",
    ),
    "too-long": (
        WHOLE + b"xyz",
        f"expected {len(WHOLE)} bytes by its header, got {len(WHOLE) + 3}; the file is more than its header says",
    ),
    "zip": (
        ZIP,
        f"expected a safetensors file, got a header of {int.from_bytes(ZIP[:8], 'little')} bytes in a file of 104; fetch it again",
    ),
    "no-json": (
        with_header(b"{not json", b""),
        "expected a safetensors header, got Expecting property name enclosed in double quotes: line 1 column 2 (char 1); fetch it again",
    ),
    "list": (
        with_header([], b""),
        "expected a safetensors header, got 'list' object has no attribute 'items'; fetch it again",
    ),
    "no-dtype": (
        with_header({"x": {"shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
        "expected a safetensors header, got a faulty entry for 'x'; fetch it again",
    ),
    "unknown-dtype": (
        with_header({"x": ENTRY | {"dtype": "F1"}}, bytes(8)),
        "expected a safetensors header, got a faulty entry for 'x'; fetch it again",
    ),
    "shape-and-bytes": (
        with_header({"x": ENTRY | {"shape": [3]}}, bytes(8)),
        "expected a safetensors header, got an entry for 'x' whose shape and bytes disagree; fetch it again",
    ),
    "negative-shape": (
        with_header({"x": ENTRY | {"shape": [-1, -2]}}, bytes(8)),
        "expected a safetensors header, got an entry for 'x' whose shape and bytes disagree; fetch it again",
    ),
    "gap": (
        with_header({"x": ENTRY | {"data_offsets": [4, 12]}}, bytes(12)),
        "expected tensors without gap or overlap, got 'x' at 4 after 0",
    ),
    "overlap": (
        with_header({"x": ENTRY, "y": ENTRY | {"data_offsets": [4, 12]}}, bytes(12)),
        "expected tensors without gap or overlap, got 'y' at 4 after 8",
    ),
}


@pytest.mark.parametrize(("data", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_refused_with_what_it_is(tmp_path: Path, data: bytes, message: str) -> None:
    assert refusal(write(tmp_path / "m", {"model.safetensors": data})) == f"model.safetensors: {message}"


SHARD = {"a.safetensors": safetensors({"x": [2]})}
SHARDED: dict[str, tuple[Any, str]] = {
    "no-map": ({}, f"{INDEX}: expected a table weight_map of tensor to file, got 'weight_map'"),
    "empty-map": ({"weight_map": {}}, f"{INDEX}: expected at least one tensor, got none"),
    "missing": (
        {"weight_map": {"x": "b.safetensors"}},
        f"weights: expected b.safetensors, which {INDEX} names, got no such file; fetch it",
    ),
    "outside": (
        {"weight_map": {"x": "../a.safetensors"}},
        f"{INDEX}: expected the names of safetensors files beside it, got '../a.safetensors'",
    ),
    "pickle": (
        {"weight_map": {"x": "pytorch_model-00001.bin"}},
        f"{INDEX}: expected the names of safetensors files beside it, got 'pytorch_model-00001.bin'",
    ),
    "other-tensor": (
        {"weight_map": {"y": "a.safetensors"}},
        f"a.safetensors: expected the tensors that {INDEX} lists, got a difference in 'x'",
    ),
    "tensor-not-in-shard": (
        {"weight_map": {"x": "a.safetensors", "z": "a.safetensors"}},
        f"a.safetensors: expected the tensors that {INDEX} lists, got a difference in 'z'",
    ),
}


@pytest.mark.parametrize(("index", "message"), SHARDED.values(), ids=SHARDED.keys())
def test_an_index_that_does_not_fit_its_shards_is_refused(tmp_path: Path, index: Any, message: str) -> None:
    assert refusal(write(tmp_path / "m", SHARD | {INDEX: as_json(index)})) == message


def test_no_weights_at_all_are_refused(tmp_path: Path) -> None:
    assert refusal(write(tmp_path / "m", {})) == (
        f"weights: expected model.safetensors or {INDEX}, got neither; save the model with save_pretrained"
    )
