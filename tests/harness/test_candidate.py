"""A folder becomes a pinned candidate with the facts that a plan needs, or one line says why it cannot."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from evidence.manifest import Entry, tree_digest
from harness import candidate
from harness.errors import CandidateError
from harness.prebuilt import pin
from harness.records import FileFact
from tests.support.checkpoints import as_json, files, safetensors, write

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def refusal(base: Path, model: str = "./m", revision: str | None = None) -> str:
    with pytest.raises(CandidateError) as caught:
        candidate.resolve(model, revision, base)
    return str(caught.value)


def test_a_folder_is_pinned_by_the_files_that_matter(tmp_path: Path) -> None:
    content = files()
    write(tmp_path / "m", content | {"README.md": b"words", "optimizer.pt": b"\x80", "onnx.bin": b"x"})
    resolved = candidate.resolve("./m", None, tmp_path)
    found = resolved.candidate
    assert resolved.folder == tmp_path / "m"
    assert (found.model, found.revision) == ("./m", None)
    facts = tuple(
        FileFact(path=name, bytes=len(content[name]), blake3=blake3(content[name]).hexdigest())
        for name in sorted(content)
    )
    assert found.files == facts
    assert found.digest == tree_digest(Entry(fact.path, fact.blake3) for fact in facts)
    assert (found.architecture, found.model_type, found.num_labels) == ("BertForSequenceClassification", "bert", 1)
    assert (found.parameters, found.weight_dtypes) == (37, {"F32": 37})
    assert (found.max_length, found.type_vocab_size, found.pad_token_id, found.padding_side) == (48, 2, 0, "right")


def test_a_checkpoint_that_the_library_wrote_is_read(tmp_path: Path, tiny_model: Path) -> None:
    shutil.copytree(tiny_model, tmp_path / "m")
    found = candidate.resolve("./m", None, tmp_path).candidate
    assert (found.architecture, found.num_labels, found.max_length) == ("BertForSequenceClassification", 1, 64)
    assert found.parameters == sum(found.weight_dtypes.values()) > 10_000


def test_an_absolute_folder_is_known_by_its_name_alone(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", files())
    assert candidate.resolve(str(folder), None, Path("elsewhere")).candidate.model == "m"


def test_a_folder_without_a_name_and_a_tokenizer_without_a_model_are_said(tmp_path: Path) -> None:
    assert refusal(tmp_path, "/").startswith("/: config.json: expected a file, got none")
    write(tmp_path / "m", files() | {"tokenizer.json": b"{}"})
    assert refusal(tmp_path) == (
        "./m: tokenizer.json: expected a tokenizer, with its model, got none; save the tokenizer as a fast one with save_pretrained"
    )


@pytest.mark.parametrize(
    ("config", "settings", "facts"),
    [
        ({}, {"model_max_length": None}, (64, 0, "right")),
        ({}, {"model_max_length": 1000000000000000019884624838656}, (64, 0, "right")),
        ({}, {"model_max_length": 512}, (64, 0, "right")),
        ({"max_position_embeddings": None}, {}, (48, 0, "right")),
        ({"model_type": "xlm-roberta", "max_position_embeddings": 514, "pad_token_id": 1}, {"model_max_length": 512}, (512, 1, "right")),
        ({"model_type": "roberta", "max_position_embeddings": 42, "pad_token_id": 1}, {}, (40, 1, "right")),
        ({"pad_token_id": None}, {"pad_token": "<pad>"}, (48, 3, "right")),
        ({"pad_token_id": None}, {"pad_token": {"content": "<pad>"}}, (48, 3, "right")),
        ({}, {"padding_side": "left"}, (48, 0, "left")),
    ],
)  # fmt: skip
def test_length_and_padding_follow_config_and_tokenizer(
    tmp_path: Path, config: dict[str, Any], settings: dict[str, Any], facts: tuple[int, int, str]
) -> None:
    write(tmp_path / "m", files(config=config, settings=settings))
    found = candidate.resolve("./m", None, tmp_path).candidate
    assert (found.max_length, found.pad_token_id, found.padding_side) == facts


@pytest.mark.parametrize(
    ("config", "segments"),
    [({}, 2), ({"type_vocab_size": None}, 2), ({"type_vocab_size": None, "model_type": "deberta-v2"}, 0)],
)
def test_segments_are_those_of_the_model_type_when_config_is_silent(
    tmp_path: Path, config: dict[str, Any], segments: int
) -> None:
    write(tmp_path / "m", files(config=config))
    assert candidate.resolve("./m", None, tmp_path).candidate.type_vocab_size == segments


def test_shards_and_every_tokenizer_file_count_for_the_digest(tmp_path: Path) -> None:
    content = files() | {
        "a.safetensors": safetensors({"x": [2]}),
        "model.safetensors.index.json": as_json({"weight_map": {"x": "a.safetensors"}}),
        "vocab.txt": b"[PAD]\n",
    }
    del content["model.safetensors"]
    write(tmp_path / "m", content)
    first = candidate.resolve("./m", None, tmp_path).candidate
    assert [file.path for file in first.files] == sorted(content)
    (tmp_path / "m" / "vocab.txt").write_bytes(b"[PAD]\nx\n")
    assert candidate.resolve("./m", None, tmp_path).candidate.digest != first.digest


HEAD = "config.json: architectures: expected a class ending in ForSequenceClassification, got"
REFUSED: dict[str, tuple[Mapping[str, bytes | None], str]] = {
    "no-config": ({"config.json": None}, "config.json: expected a file, got none; the folder that save_pretrained writes has it"),
    "no-tokenizer": (
        {"tokenizer.json": None},
        "tokenizer.json: expected a file, got none; save the tokenizer as a fast one with save_pretrained",
    ),
    "no-weights": (
        {"model.safetensors": None},
        "weights: expected model.safetensors or model.safetensors.index.json, got neither; save the model with save_pretrained",
    ),
    "broken-json": (
        {"config.json": b"{"},
        (
            "config.json: expected JSON, got Expecting property name enclosed in double quotes:"
            " line 1 column 2 (char 1); fetch or save it again"
        ),
    ),
    "json-list": ({"config.json": b"[]"}, "config.json: expected a JSON object, got a list; fetch or save it again"),
    "lfs-config": (
        {"config.json": POINTER},
        "config.json: expected the file itself, got a Git LFS pointer; run `git lfs pull` in its repository",
    ),
    "lfs-tokenizer": (
        {"tokenizer.json": POINTER},
        "tokenizer.json: expected the file itself, got a Git LFS pointer; run `git lfs pull` in its repository",
    ),
    "two-labels": (
        files(config={"id2label": {"0": "no", "1": "yes"}}),
        "config.json: id2label: expected one label, the relevance logit, got 2; this is a classifier, not a reranker",
    ),
    "labels-not-said": (
        files(config={"id2label": None}),
        "config.json: id2label: expected one label, the relevance logit, got 2; this is a classifier, not a reranker",
    ),
    "labels-disagree": (
        files(config={"num_labels": 3}),
        "config.json: id2label: expected one label, the relevance logit, got 3; this is a classifier, not a reranker",
    ),
    "decoder": (
        files(config={"architectures": ["Qwen3ForCausalLM"]}),
        f"{HEAD} the decoder Qwen3ForCausalLM; a decoder that answers yes or no is scored by other means, which are not supported yet",
    ),
    "no-head": (
        files(config={"architectures": ["BertModel"]}),
        f"{HEAD} BertModel; without that head there is no relevance logit",
    ),
    "two-classes": (
        files(config={"architectures": ["A", "B"]}),
        "config.json: architectures: expected a list of one class name, got ['A', 'B']; save the model with save_pretrained",
    ),
    "own-code": (
        files(config={"auto_map": {"AutoModel": "x.Y"}}),
        "config.json: auto_map: expected no code of the model's own, got auto_map; trust_remote_code is off; use a built-in class",
    ),
    "tokenizers-own-code": (
        files(settings={"auto_map": {"AutoTokenizer": "x.Y"}}),
        ("tokenizer_config.json: auto_map: expected no code of the model's own, got auto_map;"
        " trust_remote_code is off; use a built-in class"),
    ),
    "quantised": (
        files(config={"quantization_config": {}}),
        ("config.json: expected plain weights, got quantization_config;"
        " the reference is PyTorch fp32; take the checkpoint it was made from"),
    ),
    "no-model-type": (
        files(config={"model_type": None}),
        "config.json: model_type: expected text, got None; save the model with save_pretrained",
    ),
    "no-length": (
        files(config={"max_position_embeddings": None}, settings={"model_max_length": None}),
        ("config.json: expected max_position_embeddings, or model_max_length in tokenizer_config.json, got 0 positions;"
        " the longest input must be known"),
    ),
    "length-text": (
        files(config={"max_position_embeddings": "512"}),
        "config.json: max_position_embeddings: expected an integer of at least 0, got '512'; correct it",
    ),
    "no-padding": (
        files(config={"pad_token_id": None}),
        "config.json: pad_token_id: expected the id of the padding token, got nothing; add it; batches of unequal pairs need it",
    ),
    "padding-side": (
        files(settings={"padding_side": "top"}),
        "tokenizer_config.json: padding_side: expected left or right, got 'top'; correct it",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_qualified_is_refused_with_file_and_key(
    tmp_path: Path, changes: Mapping[str, bytes | None], message: str
) -> None:
    content: dict[str, bytes | None] = {**files(), **changes}
    write(tmp_path / "m", {name: data for name, data in content.items() if data is not None})
    assert refusal(tmp_path) == f"./m: {message}"


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    content = files() | {"vocab.txt": b"x"}
    write(tmp_path / "elsewhere", content)
    folder = write(tmp_path / "m", content)
    (folder / name).unlink()
    (folder / name).symlink_to(tmp_path / "elsewhere" / name)
    assert refusal(tmp_path) == (
        f"./m: {name}: expected a file of the model folder, got a link that leads out of it; copy the file into the folder"
    )


def test_a_link_within_the_folder_is_followed(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", files())
    (folder / "model.safetensors").rename(folder / "weights-v2")
    (folder / "model.safetensors").symlink_to("weights-v2")
    assert candidate.resolve("./m", None, tmp_path).candidate.parameters == 37


def test_a_model_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    do = "give the folder that holds config.json"
    assert refusal(tmp_path, "./none") == f"./none: expected a model folder, got no such folder; {do}"
    assert refusal(tmp_path, "./file") == f"./file: expected a model folder, got a file; {do}"
    assert refusal(tmp_path, "./file", "1" * 40) == (
        f"./file: expected no revision, since a folder is pinned by digest, got '{'1' * 40}'; remove it"
    )
    assert refusal(tmp_path, "a b") == (
        "'a b': expected a folder (./, ../ or /) or a hub id (org/name), got neither; for a folder write './a b'"
    )


# --- prebuilt artifacts -----------------------------------------------------------------------------------------------


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """An ONNX file with one weight in external data beside it."""
    return save_external(tmp_path / "built", "mine.onnx", "weights/mine.data")


def save_external(folder: Path, name: str, location: str) -> Path:
    """Save a graph of one Add whose weight lies in ``location``, as the onnx library writes it."""
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    (folder / location).parent.mkdir(parents=True, exist_ok=True)
    weight = numpy_helper.from_array(np.arange(300, dtype=np.float32), "w")
    port = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [300]) for n in ("x", "y")]
    made = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", port[:1], port[1:], [weight])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(model, str(folder / name), save_as_external_data=True, location=location, size_threshold=0)
    return folder / name


def prebuilt_refusal(path: Path) -> str:
    with pytest.raises(CandidateError) as caught:
        pin(path)
    return str(caught.value)


def test_a_prebuilt_artifact_is_pinned_with_its_external_data(graph: Path) -> None:
    found = pin(graph)
    assert found.name == "mine.onnx"
    assert [(file.path, file.bytes) for file in found.files] == [
        ("mine.onnx", graph.stat().st_size),
        ("weights/mine.data", 1200),
    ]
    assert found.files[1].blake3 == blake3((graph.parent / "weights/mine.data").read_bytes()).hexdigest()


def test_a_missing_artifact_or_external_file_is_refused(graph: Path) -> None:
    assert prebuilt_refusal(graph.parent / "other.onnx") == (
        "other.onnx: expected a file, got no such file; correct the path or export it again"
    )
    (graph.parent / "weights/mine.data").unlink()
    assert prebuilt_refusal(graph) == (
        "weights/mine.data: expected a file, got no such file; correct the path or export it again"
    )
    os.mkfifo(graph.parent / "weights/mine.data")
    assert prebuilt_refusal(graph) == (
        "weights/mine.data: expected a file, got a pipe, socket or device; correct the path or export it again"
    )


def test_pointers_and_links_in_an_artifact_are_refused(graph: Path) -> None:
    external = graph.parent / "weights/mine.data"
    content = external.read_bytes()
    external.write_bytes(POINTER)
    assert prebuilt_refusal(graph) == (
        "weights/mine.data: expected the file itself, got a Git LFS pointer; run `git lfs pull` in its repository"
    )
    external.unlink()
    (graph.parent / "real.data").write_bytes(content)
    external.symlink_to(graph.parent / "real.data")
    assert prebuilt_refusal(graph) == (
        "weights/mine.data: expected a file of the artifact's folder, got a link; copy the file there"
    )
    graph.write_bytes(POINTER)
    assert prebuilt_refusal(graph) == (
        "mine.onnx: expected the file itself, got a Git LFS pointer; run `git lfs pull` in its repository"
    )


def test_a_folder_of_external_data_that_is_a_link_is_refused(graph: Path, tmp_path: Path) -> None:
    (graph.parent / "weights").rename(tmp_path / "moved")
    (graph.parent / "weights").symlink_to(tmp_path / "moved")
    assert prebuilt_refusal(graph).startswith("weights/mine.data: expected a file of the artifact's folder, got a link")


def test_external_data_that_leaves_the_folder_is_refused(graph: Path) -> None:
    graph.write_bytes(graph.read_bytes().replace(b"weights/mine.data", b"../elsewhere.data"))
    message = prebuilt_refusal(graph)
    assert message.startswith("mine.onnx: ")
    assert "../elsewhere.data" in message


def test_external_data_that_is_cut_off_is_refused(graph: Path) -> None:
    (graph.parent / "weights/mine.data").write_bytes(bytes(100))
    assert prebuilt_refusal(graph).startswith("mine.onnx: ")


def test_external_data_with_a_name_that_no_root_takes_is_refused(tmp_path: Path) -> None:
    expected = "mine.onnx: expected external data in a file that a root takes, got 'w.bin.pt'; "
    assert prebuilt_refusal(save_external(tmp_path / "x", "mine.onnx", "w.bin.pt")) == (
        expected + "export it again with another name for the external data"
    )


def test_what_is_no_onnx_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"PK\x03\x04 not a graph")
    assert prebuilt_refusal(tmp_path / "a.onnx").startswith("a.onnx: ")
