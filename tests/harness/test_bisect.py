from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from harness import candidate
from harness.bisect import TOLERANCE, BisectAsked, BisectFound
from harness.errors import Blocked
from harness.records import BuildOptions, from_json, to_json
from harness.stages import bisect, export
from tests.support import graphs
from tests.support.ladders import qualify, writable_copy
from tests.support.models import make_bert
from tests.support.once import once

IDS = (2, *range(5, 40), 3)
NO_OTHER = (
    "--target cpu-fp32: expected the graph of another fp32 target in the root to compare with, got none;"
    " give the model with --model and it is exported again"
)
SCALED = "bert/encoder/layer.6/intermediate/dense"
OVERFLOWING = "bert/encoder/layer.8/attention/self/value"


def asked(**changes: Any) -> BisectAsked:
    question = BisectAsked(
        format=1,
        ids=IDS,
        segments=(0,) * 20 + (1,) * 17,
        first_position=0,
        pad_token_id=0,
        padding_side="right",
        tolerance=1e-3,
        threads=1,
    )
    return msgspec.structs.replace(question, **changes)


@dataclass(frozen=True)
class Deep:
    """A BERT of 12 layers, exported in fp32 and converted to fp16."""

    fp32: Path
    fp16: Path

    def search(self, folder: Path, changed: Path, tolerance: float) -> BisectFound:
        for side, graph in (("reference", self.fp32), ("candidate", changed)):
            (folder / side).mkdir(parents=True)
            shutil.copyfile(graph, folder / side / "model.onnx")
        (folder / "asked.json").write_bytes(to_json(asked(tolerance=tolerance)))
        bisect.search(folder, lambda _done, _total, _what: None)
        return from_json((folder / "found.json").read_bytes(), BisectFound, "found.json")


@pytest.fixture(scope="session")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Deep:
    return _deep(tmp_path_factory, BuildOptions())


@pytest.fixture(scope="session")
def deep_by_torch_export(tmp_path_factory: pytest.TempPathFactory) -> Deep:
    return _deep(tmp_path_factory, BuildOptions(exporter="torch_export", opset=20))


def _deep(tmp_path_factory: pytest.TempPathFactory, options: BuildOptions) -> Deep:
    def make(folder: Path) -> None:
        import onnx
        from onnxruntime.transformers import float16

        make_bert(folder / "model", layers=12)
        found = candidate.resolve("./model", None, folder)
        names = ("input_ids", "attention_mask", "token_type_ids")
        graph = export.export(found.folder, found.candidate, options, names, 1, folder).graph
        graph.rename(folder / "fp32.onnx")
        half = float16.convert_float_to_float16(onnx.load(str(folder / "fp32.onnx")), keep_io_types=True)
        onnx.save(half, str(folder / "fp16.onnx"))

    folder = once(tmp_path_factory, f"deep_{options.exporter}", make)
    return Deep(folder / "fp32.onnx", folder / "fp16.onnx")


def test_a_sound_graph_in_half_precision_has_no_first_node(deep: Deep, tmp_path: Path) -> None:
    found = deep.search(tmp_path, deep.fp16, TOLERANCE["fp16"])
    assert found.first is None
    assert found.nodes > 900
    assert found.compared >= found.nodes - 1
    assert 0 < found.largest_gap < TOLERANCE["fp16"]


@pytest.mark.parametrize(("precision", "by"), [("fp16", 1.5), ("fp32", 1.01)])
def test_one_scaled_weight_among_twelve_layers_is_found_at_its_node(
    deep: Deep, tmp_path: Path, precision: Any, by: float
) -> None:
    graph = deep.fp16 if precision == "fp16" else deep.fp32
    changed = graphs.edited(graph, tmp_path / "changed.onnx", graphs.weight_scaled(SCALED, by))
    first = deep.search(tmp_path / "search", changed, TOLERANCE[precision]).first
    assert first is not None
    assert (first.node, first.operator) == (f"/{SCALED}/MatMul", "MatMul")
    assert first.module == "bert.encoder.layer.6.intermediate.dense"
    assert first.gap == pytest.approx(by - 1, abs=0.01)


def test_an_overflow_among_twelve_layers_is_found_at_its_node(deep: Deep, tmp_path: Path) -> None:
    changed = graphs.edited(deep.fp16, tmp_path / "changed.onnx", graphs.weight_scaled(OVERFLOWING, 30_000))
    first = deep.search(tmp_path / "search", changed, 1e9).first
    assert first is not None
    assert (first.node, first.gap) == (f"/{OVERFLOWING}/MatMul", None)
    assert first.module == "bert.encoder.layer.8.attention.self.value"
    assert first.why.endswith(" values are not finite, and are in the fp32 graph")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "by", "tolerance"),
    [(SCALED, 1.5, TOLERANCE["fp16"]), (OVERFLOWING, 30_000, 1e9)],
    ids=["scaled", "overflow"],
)
def test_a_fault_in_a_graph_of_torch_export_is_found_at_its_node_and_module(
    deep_by_torch_export: Deep, tmp_path: Path, module: str, by: float, tolerance: float
) -> None:
    changed = graphs.edited(deep_by_torch_export.fp16, tmp_path / "changed.onnx", graphs.weight_scaled(module, by))
    first = deep_by_torch_export.search(tmp_path / "search", changed, tolerance).first
    assert first is not None
    assert first.node.startswith(f"/{module}/node_MatMul")
    assert (first.operator, first.module) == ("MatMul", module.replace("/", "."))


def test_weights_are_not_written_again_for_every_chunk(deep: Deep, tmp_path: Path) -> None:
    deep.search(tmp_path, deep.fp32, 1e-3)
    part, whole = tmp_path / "candidate/spilled/part.onnx", tmp_path / "candidate/model.onnx"
    assert part.stat().st_size < whole.stat().st_size / 2


def renamed(model: Any, begin: str) -> None:
    """Every tensor that a node gives and whose name begins so gets another name."""
    names = {name: f"x{name}" for node in model.graph.node for name in node.output if name.startswith(begin)}
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for item in model.graph.output:
        item.name = names.get(item.name, item.name)


def test_tensors_of_other_names_are_passed_over_and_counted(deep: Deep, tmp_path: Path) -> None:
    changed = graphs.edited(deep.fp32, tmp_path / "changed.onnx", lambda model: renamed(model, "/bert/encoder"))
    found = deep.search(tmp_path / "search", changed, 1e-3)
    assert found.first is None
    assert 0 < found.compared < found.nodes / 2


def test_graphs_of_different_exports_are_refused(deep: Deep, tmp_path: Path) -> None:
    changed = graphs.edited(deep.fp32, tmp_path / "changed.onnx", lambda model: renamed(model, ""))
    with pytest.raises(Blocked) as caught:
        deep.search(tmp_path / "search", changed, 1e-3)
    assert str(caught.value) == (
        "bisect: expected tensors of one name in both graphs, got none; they are not from one export"
    )


def chain(path: Path, nodes: int, *, faulty: int = -1) -> None:
    """A graph of so many nodes in a row; that of number ``faulty`` multiplies by 2 where the others do by 1."""
    import onnx
    from onnx import TensorProto, helper

    made = [helper.make_node("Cast", ["input_ids"], ["t0"], to=TensorProto.FLOAT)]
    for n in range(1, nodes):
        by = "two" if n == faulty else "one"
        made.append(
            helper.make_node("Mul", [f"t{n - 1}", by], ["logits" if n == nodes - 1 else f"t{n}"], name=f"node{n}")
        )
    graph = helper.make_graph(
        made,
        "chain",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "sequence"])],
        [helper.make_tensor(name, TensorProto.FLOAT, [], [by]) for name, by in (("one", 1.0), ("two", 2.0))],
    )
    path.parent.mkdir(parents=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


def test_a_graph_of_two_thousand_nodes_is_searched_with_the_tensors_of_one_chunk(tmp_path: Path) -> None:
    question = asked(segments=(0,) * len(IDS))
    chain(tmp_path / "reference/model.onnx", 2100)
    chain(tmp_path / "candidate/model.onnx", 2100, faulty=2050)
    reference, candidate = (bisect._side(tmp_path / name, question) for name in ("reference", "candidate"))
    held: list[int] = []
    passed = [
        node.name
        for _, node, verdicts in bisect._compared(
            reference, candidate, lambda _done: held.append(max(len(reference.live), len(candidate.live)))
        )
        if all(not verdict.why and (verdict.gap or 0) <= question.tolerance for _, verdict in verdicts)
    ]
    assert passed[-1] == "node2049"
    assert len(held) == 2100 // bisect.CHUNK + 1
    assert max(held) <= bisect.CHUNK
    (tmp_path / "asked.json").write_bytes(to_json(question))
    bisect.search(tmp_path, lambda _done, _total, _what: None)
    found = from_json((tmp_path / "found.json").read_bytes(), BisectFound, "found.json")
    assert found.first is not None
    assert (found.first.node, found.first.place, found.nodes) == ("node2050", 2050, 2100)


@pytest.mark.parametrize(
    ("side", "ids", "mask"),
    [("right", [5, 6, 7, 1, 1], [1, 1, 1, 0, 0]), ("left", [1, 1, 5, 6, 7], [0, 0, 1, 1, 1])],
)
def test_a_pair_is_padded_to_a_fixed_length_as_the_candidates_tokenizer_pads(
    side: str, ids: list[int], mask: list[int]
) -> None:
    from onnx import ModelProto, TensorProto, helper

    taken = [
        helper.make_tensor_value_info(name, TensorProto.INT32, [2, 5])
        for name in ("input_ids", "attention_mask", "token_type_ids", "position_ids")
    ]
    model = ModelProto(graph=helper.make_graph([], "fixed", taken, []))
    question = asked(ids=(5, 6, 7), segments=(0, 0, 1), first_position=2, pad_token_id=1, padding_side=side)
    feed = bisect._feed(model, question)
    assert (feed["input_ids"].tolist(), feed["attention_mask"].tolist()) == ([ids] * 2, [mask] * 2)
    assert feed["token_type_ids"][0, mask.index(1) : mask.index(1) + 3].tolist() == [0, 0, 1]
    assert feed["position_ids"][0, mask.index(1) : mask.index(1) + 3].tolist() == [2, 3, 4]
    assert {str(tensor.dtype) for tensor in feed.values()} == {"int32"}


def test_minus_infinity_with_another_sign_and_nan_without_a_namesake_are_faults() -> None:
    least = float(np.finfo(np.float32).min)
    mask = np.array([0.0, least], dtype=np.float32)
    half = np.array([0.0, -65504.0], dtype=np.float16)
    assert bisect._verdict(mask, half) == (0.0, "")
    assert bisect._verdict(mask, -half) == (None, "a value that stands for minus infinity has another sign")
    assert bisect._verdict(None, np.array([1.0, np.inf], dtype=np.float32)) == (None, "")
    assert bisect._verdict(None, np.array([1.0, np.nan], dtype=np.float32)) == (None, "1 of 2 values are NaN")


def test_the_command_finds_nothing_in_a_sound_target(tiny_root: Path) -> None:
    said = qualify("bisect", tiny_root, "--target", "cpu-fp16")
    assert said.code == 0, said.err
    first, second = said.out.splitlines()
    assert first.startswith("cpu-fp16 against cpu-fp32, pair ")
    assert second.startswith("no node leaves its tolerance of 0.05; the largest gap is ")


def test_the_command_names_node_and_module_and_ends_with_10(tiny_root: Path) -> None:
    said = qualify("bisect", tiny_root, "--target", "cpu-int8", "--pair", "3", "--tolerance", "0.001", "--json")
    assert said.code == 10, said.err
    answer = said.json
    assert (answer["target"], answer["reference"], answer["pair"], answer["exit_code"]) == (
        "cpu-int8",
        "cpu-fp32",
        3,
        10,
    )
    assert answer["found"]["first"]["module"].startswith("bert.")
    shown = qualify("bisect", tiny_root, "--target", "cpu-int8", "--pair", "3", "--tolerance", "0.001")
    assert answer["found"]["first"]["node"] in shown.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "cuda-fp16"], "--target: expected one of cpu-fp32, cpu-fp16, cpu-int8, got cuda-fp16"),
        (
            ["--target", "cpu-fp32"],
            NO_OTHER,
        ),
        (["--target", "cpu-fp16", "--pair", "99"], "--pair: expected a number from 0 to 75, got 99"),
        (
            ["--target", "cpu-fp16", "--tolerance", "nan"],
            "--tolerance: expected a finite number of at least 0, got nan; write 1e-3, say",
        ),
        (
            ["--target", "cpu-fp16", "--tolerance", "-1"],
            "--tolerance: expected a finite number of at least 0, got -1; write 1e-3, say",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused(tiny_root: Path, arguments: list[str], message: str) -> None:
    said = qualify("bisect", tiny_root, *arguments)
    assert (said.code, said.err) == (64, f"qualify: {message}\n")


def test_a_root_that_is_not_intact_is_not_searched(tiny_root: Path, tmp_path: Path) -> None:
    changed = writable_copy(tiny_root, tmp_path / "root")
    graph = changed / "artifacts/cpu-fp16/model.onnx"
    graph.write_bytes(graph.read_bytes() + b"\0")
    said = qualify("bisect", changed, "--target", "cpu-fp16")
    assert said.code == 20
    assert "expected an intact root" in said.err


def test_a_root_without_another_fp32_target_is_searched_with_the_model(
    tiny_root: Path, tiny_model: Path, tmp_path: Path
) -> None:
    said = qualify("bisect", tiny_root, "--target", "cpu-fp32", "--model", tiny_model)
    assert said.code == 0, said.err
    first, second = said.out.splitlines()
    assert first.startswith("cpu-fp32 against a new export of the model, pair ")
    assert second == "no node leaves its tolerance of 0.001; the largest gap is 0 of a tensor's largest value"


def test_another_model_than_the_roots_is_refused(tiny_root: Path, tmp_path: Path) -> None:
    other = tmp_path / "model"
    other.mkdir()
    given = candidate.resolve(str(make_bert(other, seed=1)), None, tmp_path).candidate.digest
    said = qualify("bisect", tiny_root, "--target", "cpu-fp16", "--model", other)
    assert said.code == 64
    assert said.err.startswith("qualify: --model: expected the candidate of the root, blake3:")
    assert said.err.endswith(f", got {given}; give the files that it was made from\n")


def test_an_adapter_without_its_model_is_refused(tiny_root: Path) -> None:
    said = qualify("bisect", tiny_root, "--target", "cpu-fp16", "--adapter", "./law")
    message = "--adapter: expected --model beside it, got none; name the model that it is loaded onto"
    assert (said.code, said.err) == (64, f"qualify: {message}\n")
