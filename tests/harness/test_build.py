from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness import derive, judge
from harness.errors import Blocked
from harness.files import hash_file
from harness.metrics.catalogue import fixed_limits
from harness.prebuilt import pin
from harness.records import BuildOptions, FileFact, Limit, PrebuiltArtifact, Precision, to_json
from harness.runtimes import RUNTIMES, torch_eager
from harness.runtimes.batching import Layout
from harness.runtimes.onnxruntime import Provider
from harness.stages import graph_checks
from tests.support import faults, graphs
from tests.support.models import POSITIONS
from tests.support.parity import changed_model
from tests.support.steps import OPTIONS, Bench, Ran, bench


def failed(ran: Ran, precision: Precision = "fp32") -> dict[str, str]:
    """The findings that are FAIL, by metric."""
    findings = judge.judge(fixed_limits("L0", precision), ran.measured().values())
    return {found.metric: found.text for found in findings if found.verdict == "FAIL"}


def judged(ran: Ran, metric: str, limit: Limit) -> str:
    (found,) = judge.judge({metric: limit}, ran.measured().values())
    return found.verdict


def test_an_exported_fp32_graph_is_what_it_says(climbed: Bench) -> None:
    ran = climbed.earlier("L0")
    ids = ", ".join(f"{name}:INT64[batch,sequence]" for name in ("attention_mask", "input_ids", "token_type_ids"))
    assert ran.value("inputs") == ids
    assert ran.value("outputs") == "logits:FLOAT[batch,1]"
    assert (ran.value("opset"), ran.value("ir_version")) == (17, 8)
    assert (ran.value("realised_precision"), ran.value("head_gap_ratio")) == ("fp32", 0.0)
    assert ran.value("payload_bytes") == climbed.graph().stat().st_size
    assert failed(ran) == {}


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_precision_is_measured_in_a_converted_graph(climbed: Bench, precision: Precision) -> None:
    ran = climbed.earlier("L0", f"cpu-{precision}")
    assert ran.value("realised_precision") == precision
    assert failed(ran, precision) == {}


def test_every_batch_and_length_was_probed_with_rows_that_are_almost_all_padding(climbed: Bench) -> None:
    probes = climbed.earlier("L0").raw("build.json")["probes"]
    assert [(item["batch"], item["length"]) for item in probes] == [
        (batch, length) for length in (1, 8, 13, 48) for batch in (1, 2, 3, 7)
    ]


def test_the_mask_constant_beyond_half_precision_is_counted_before_it_is_clipped(climbed: Bench) -> None:
    ran = climbed.earlier("L0", "cpu-fp16")
    conversion = ran.raw("build.json")["conversion"]
    assert ran.value("half_range_constants") == 1
    assert conversion["clipped_high"] == 1
    assert conversion["name"] == "onnxruntime.transformers.float16.convert_float_to_float16"
    assert conversion["kept_nodes"]  # operators that the converter leaves in fp32, by name


def test_later_targets_convert_the_export_of_the_first(climbed: Bench) -> None:
    came_from = {
        name: climbed.earlier("L0", f"cpu-{name}").raw("build.json")["export_from"] for name in ("fp32", "fp16", "int8")
    }
    assert came_from == {"fp32": None, "fp16": "artifacts/cpu-fp32", "int8": "artifacts/cpu-fp32"}


def test_an_exported_graph_names_no_file_of_this_machine(climbed: Bench) -> None:
    import torch

    data = climbed.graph().read_bytes()
    assert str(Path(torch.__file__).parent).encode() not in data
    assert b".py" not in data


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("perturbed", {"head_gap_ratio"}),
        ("inverted", {"head_gap_ratio"}),
        ("constant", {"head_gap_ratio"}),
        ("nan", {"probe_faults"}),
    ],
)
def test_a_prebuilt_graph_with_another_head_fails(
    climbed: Bench, empty_bench: Bench, tmp_path: Path, head: str, expected: set[str]
) -> None:
    graph = graphs.with_head(climbed.graph(), tmp_path / "given" / "reranker.onnx", graphs.HEADS[head])
    assert set(failed(empty_bench.check(graph))) == expected


def test_a_prebuilt_graph_is_copied_and_not_exported(climbed: Bench, empty_bench: Bench, tmp_path: Path) -> None:
    graph = tmp_path / "given.onnx"
    shutil.copy(climbed.graph(), graph)
    ran = empty_bench.check(graph)
    assert failed(ran) == {}
    assert ran.value("build_seconds") == 0
    assert ran.raw("build.json")["source"] == "prebuilt"
    assert empty_bench.graph().read_bytes() == graph.read_bytes()


def test_a_graph_without_an_output_named_logits_fails(climbed: Bench, empty_bench: Bench, tmp_path: Path) -> None:
    ran = empty_bench.check(graphs.edited(climbed.graph(), tmp_path / "given.onnx", graphs.output_renamed))
    found = failed(ran)
    assert set(found) == {"logits_width", "probe_faults"}
    assert found["logits_width"] == "logits_width: expected exactly 1, got 0 columns: outputs: scores"
    assert ran.raw("build.json")["probes"][0]["fault"] == "graph outputs: expected one named logits, got scores"


def test_an_input_that_the_tokenizer_does_not_give_is_named(climbed: Bench, empty_bench: Bench, tmp_path: Path) -> None:
    ran = empty_bench.check(graphs.edited(climbed.graph(), tmp_path / "given.onnx", graphs.input_added))
    assert failed(ran)["unfed_inputs"] == "unfed_inputs: expected exactly 0, got 1 inputs: past_length"


@pytest.mark.parametrize("label", ["fp16", "int8"])
def test_a_mislabelled_fp32_file_fails_by_its_realised_precision(
    climbed: Bench, empty_bench: Bench, tmp_path: Path, label: Precision
) -> None:
    graph = tmp_path / f"model-{label}.onnx"
    shutil.copy(climbed.graph(), graph)
    ran = empty_bench.check(graph, f"cpu-{label}")
    assert ran.value("realised_precision") == "fp32"
    assert failed(ran, label) == {
        "realised_precision": f"realised_precision: expected exactly '{label}', got 'fp32' precision"
    }
    ratio = ran.value("payload_ratio")
    assert isinstance(ratio, float)
    assert ratio > 1, "a fp16 file of this model would be about half"


def test_a_fixed_shape_with_int32_inputs_goes_on_to_parity(climbed: Bench, tmp_path: Path) -> None:
    there = climbed.copy(tmp_path / "root")
    options = msgspec.structs.replace(OPTIONS, L0=BuildOptions(shape=(3, 48), integers="int32"))
    request = there.request("L0", "fixed-fp32", options=options)
    ran = there.run(msgspec.structs.replace(request, plan_digest="blake3:" + "1" * 64))  # so that nothing is taken over
    assert "input_ids:INT32[3,48]" in str(ran.value("inputs"))
    assert [(item["batch"], item["length"]) for item in ran.raw("build.json")["probes"]] == [(3, 48)]
    assert failed(ran) == {}
    assert judged(there.run(there.request("L2", "fixed-fp32")), "max_abs_gap", Limit(at_most=1e-5)) == "PASS"


def test_a_graph_that_works_only_at_the_shape_of_its_export_fails(
    climbed: Bench, empty_bench: Bench, tmp_path: Path
) -> None:
    ran = empty_bench.check(graphs.edited(climbed.graph(), tmp_path / "given.onnx", graphs.batch_frozen))
    assert set(failed(ran)) == {"probe_faults"}
    faults = [item["fault"] for item in ran.raw("build.json")["probes"] if item["batch"] != 2]
    assert all(faults)
    assert failed(ran)["probe_faults"].startswith("probe_faults: expected exactly 0, got 12 probes: batch 1 length 1: ")


def test_a_graph_that_works_only_at_the_length_of_its_export_fails_at_the_others(
    climbed: Bench, empty_bench: Bench, tmp_path: Path
) -> None:
    ran = empty_bench.check(graphs.edited(climbed.graph(), tmp_path / "given.onnx", graphs.length_frozen))
    assert set(failed(ran)) == {"probe_faults"}
    faulty = {item["length"] for item in ran.raw("build.json")["probes"] if item["fault"]}
    assert faulty == {1, 13, 48}
    assert failed(ran)["probe_faults"].startswith("probe_faults: expected exactly 0, got 12 probes: batch 1 length 1: ")


def test_an_export_with_the_wrong_task_has_no_head_and_fails_with_what_there_is(
    climbed: Bench, empty_bench: Bench, tmp_path: Path
) -> None:
    ran = empty_bench.check(graphs.edited(climbed.graph(), tmp_path / "given.onnx", graphs.headless))
    found = failed(ran)
    assert {"logits_width", "probe_faults"} <= set(found)
    assert found["logits_width"].startswith("logits_width: expected exactly 1, got 0 columns: outputs: ")
    head = ran.measured()["head_gap_ratio"]
    assert (head.value, head.note) == (None, "no tensor of the graph has the shape (1, 32) of the checkpoint's head")
    assert judged(ran, "head_gap_ratio", Limit(at_most=0.0)) == "BLOCKED"


def test_a_graph_that_does_not_take_the_segments_of_the_tokenizer_fails_and_names_them(
    climbed: Bench, empty_bench: Bench, tmp_path: Path
) -> None:
    ran = empty_bench.check(graphs.edited(climbed.graph(), tmp_path / "given.onnx", graphs.segments_dropped))
    found = failed(ran)
    assert set(found) == {"unused_tokenizer_inputs"}
    assert (
        found["unused_tokenizer_inputs"] == "unused_tokenizer_inputs: expected exactly 0, got 1 inputs: token_type_ids"
    )
    assert ran.measured()["unused_tokenizer_inputs"].note == "token_type_ids"


def test_a_mask_that_is_minus_infinity_makes_padded_rows_nan_and_the_probe_says_which(
    climbed: Bench, empty_bench: Bench, tmp_path: Path
) -> None:
    ran = empty_bench.check(graphs.edited(climbed.graph(), tmp_path / "given.onnx", graphs.mask_overflows))
    faults = [item["fault"] for item in ran.raw("build.json")["probes"] if item["fault"]]
    assert failed(ran)["probe_faults"].startswith("probe_faults: expected exactly 0, got ")
    assert any("row 0 with 13 of 13 tokens not padding: logit nan" in fault for fault in faults)


def test_a_row_that_is_nan_only_when_almost_all_of_it_is_padding_is_found_and_named(
    climbed: Bench, tmp_path: Path
) -> None:
    graph = graphs.edited(climbed.graph(), tmp_path / "given.onnx", graphs.nan_of_one_token)
    session = RUNTIMES["cpu"].load(graph, 1)
    layout = Layout(session.inputs, climbed.candidate.pad_token_id, climbed.candidate.padding_side, 1)
    probes = graph_checks.probe(session, climbed.model, layout, (1, 2, 7), (8,), climbed.candidate)
    assert [item.fault for item in probes] == [
        "",
        "row 1 with 1 of 8 tokens not padding: logit nan",
        "row 6 with 1 of 8 tokens not padding: logit nan",
    ]


def test_a_sigmoid_in_the_graph_fails_by_name(climbed: Bench, empty_bench: Bench, tmp_path: Path) -> None:
    ran = empty_bench.check(graphs.edited(climbed.graph(), tmp_path / "given.onnx", graphs.activated("Sigmoid")))
    found = failed(ran)
    assert set(found) == {"raw_logits"}
    assert found["raw_logits"] == (
        "raw_logits: expected exactly true, got false boolean:"
        " Sigmoid between the last matrix product and the output; PyTorch's logits are raw"
    )


def test_every_node_is_counted_by_the_provider_that_took_it(climbed: Bench) -> None:
    ran = climbed.earlier("L0")
    assert ran.value("own_provider_nodes") == ran.value("provider_nodes.CPUExecutionProvider")
    assert int(str(ran.value("optimised_nodes"))) < int(str(ran.value("nodes")))


def test_a_checkpoint_without_its_head_blocks_the_build_and_names_the_tensors(climbed: Bench, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    model = tmp_path / "headless"
    shutil.copytree(climbed.model, model)
    tensors = load_file(model / "model.safetensors")
    kept = {name: values for name, values in tensors.items() if not name.startswith("classifier")}
    save_file(kept, model / "model.safetensors", metadata={"format": "pt"})
    headless = bench(tmp_path / "root", model)
    ran = headless.run(headless.request("L0"))
    assert ran.exit.code == 30
    assert "got 2 missing (classifier.bias, classifier.weight)" in ran.reason
    assert not (headless.root / "artifacts").exists()


@pytest.mark.slow
def test_the_export_based_exporter_names_its_dimensions_and_gives_the_same_bytes_twice(empty_bench: Bench) -> None:
    build = BuildOptions(exporter="torch_export", opset=20, repeat_export=True)
    ran = empty_bench.run(empty_bench.request("L0", options=msgspec.structs.replace(OPTIONS, L0=build)))
    assert failed(ran) == {}
    assert ran.value("export_repeat_equal") is True
    assert "input_ids:INT64[batch,sequence]" in str(ran.value("inputs"))
    assert ran.value("outputs") == "logits:FLOAT[batch,1]"
    assert ran.raw("build.json")["exporter"] == "torch_export"
    assert b".py" not in empty_bench.graph().read_bytes()


def test_a_file_that_is_no_graph_fails_with_words(empty_bench: Bench, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.onnx"
    garbage.write_bytes(b"no graph at all " * 64)
    fact = FileFact(path=garbage.name, bytes=garbage.stat().st_size, blake3=hash_file(garbage))
    request = empty_bench.request("L0", artifact=PrebuiltArtifact(name=garbage.name, files=(fact,)))
    ran = empty_bench.run(request, garbage)
    assert set(failed(ran)) == {"checker_faults"}
    assert "Traceback" not in ran.log()
    assert str(ran.measured()["opset"].note).startswith("not a readable ONNX file: ")


def _newer_ir(model: Any) -> None:
    model.ir_version = 99


def _newer_opset(model: Any) -> None:
    model.opset_import[0].version = 99


@pytest.mark.parametrize(("change", "what"), [(_newer_ir, "IR version"), (_newer_opset, "opset")])
def test_a_graph_newer_than_the_runtime_is_blocked_with_both_numbers(
    climbed: Bench, empty_bench: Bench, tmp_path: Path, change: Any, what: str
) -> None:
    ran = empty_bench.check(graphs.edited(climbed.graph(), tmp_path / "given.onnx", change))
    assert ran.exit.code == 30
    assert ran.reason.startswith(f"artifact: expected {what} at most ")
    assert "got 99;" in ran.reason
    assert not (ran.root / ran.request.step / "measurements.json").exists(), "before any inference"


def test_a_provider_that_this_build_does_not_have_is_blocked_before_the_export(empty_bench: Bench) -> None:
    ran = empty_bench.run(empty_bench.request("L0", "cuda-fp32", provider="cuda"))
    assert ran.reason.startswith("CUDAExecutionProvider is not in this build of onnxruntime (has: ")
    assert not (empty_bench.root / "artifacts").exists()


@pytest.mark.parametrize("provider", ["cuda", "tensorrt", "directml", "qnn", "migraphx"])
def test_every_provider_is_asked_for_before_it_is_used(climbed: Bench, provider: str) -> None:
    asked = RUNTIMES[provider]
    for attempt in (asked.require, lambda: asked.load(climbed.graph(), 1)):
        with pytest.raises(Blocked) as caught:
            attempt()
        message = f"{asked.name} is not in this build of onnxruntime (has: "
        assert str(caught.value).startswith(message)


def test_a_session_that_fell_back_to_another_provider_is_blocked(
    climbed: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As onnxruntime does when the library of a provider that it was built with does not load on this machine."""
    import onnxruntime as ort

    whole = ort.InferenceSession
    monkeypatch.setattr(
        ort,
        "InferenceSession",
        lambda path, options, providers: whole(path, options, providers=[SPARE][: len(providers)]),
    )
    with pytest.raises(Blocked) as caught:
        Provider("AzureExecutionProvider").load(climbed.graph(), 1)
    assert str(caught.value) == f"provider: expected AzureExecutionProvider, got a session on {SPARE}"


SPARE = "CPUExecutionProvider"


def test_a_prebuilt_file_that_became_a_link_after_the_plan_is_not_followed(
    climbed: Bench, empty_bench: Bench, tmp_path: Path
) -> None:
    graph = tmp_path / "given.onnx"
    shutil.copy(climbed.graph(), graph)
    request = empty_bench.request("L0", artifact=pin(graph))
    graph.rename(tmp_path / "elsewhere.onnx")
    graph.symlink_to(tmp_path / "elsewhere.onnx")
    assert empty_bench.run(request, graph).reason == "artifact given.onnx: expected a file, got a link"


def test_a_prebuilt_file_that_changed_after_the_plan_is_blocked(
    climbed: Bench, empty_bench: Bench, tmp_path: Path
) -> None:
    graph = tmp_path / "given.onnx"
    shutil.copy(climbed.graph(), graph)
    fact = FileFact(path=graph.name, bytes=graph.stat().st_size, blake3="0" * 64)
    ran = empty_bench.run(empty_bench.request("L0", artifact=PrebuiltArtifact(name=graph.name, files=(fact,))), graph)
    assert ran.reason == (
        f"artifact given.onnx: expected blake3:{'0' * 64}, as planned, got blake3:{hash_file(graph)};"
        " it changed since: run again"
    )


def test_a_checkpoint_without_its_head_is_blocked_and_no_head_is_made_up(tiny_model: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    model = tmp_path / "headless"
    shutil.copytree(tiny_model, model)
    tensors = load_file(model / "model.safetensors")
    kept = {name: values for name, values in tensors.items() if not name.startswith("classifier")}
    save_file(kept, model / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(Blocked) as caught:
        torch_eager.load_model(model, 1)
    assert str(caught.value) == (
        "model.safetensors: expected exactly the keys of BertForSequenceClassification, got"
        " 2 missing (classifier.bias, classifier.weight); use the checkpoint of the full classifier"
    )


def test_what_a_library_raises_is_blocked_with_its_class_and_versions(empty_bench: Bench, tmp_path: Path) -> None:
    model = tmp_path / "broken"
    shutil.copytree(empty_bench.model, model)
    (model / "tokenizer_config.json").write_text("{")
    broken = replace(empty_bench, model=model)
    ran = broken.run(broken.request("L0"))
    assert ran.exit.code == 30
    assert ran.reason.startswith(f"build of {broken.candidate.model} ended with json.decoder.JSONDecodeError: ")
    assert "(torch 2." in ran.reason
    assert "Traceback" in ran.log()


def test_an_exporter_that_raises_is_blocked_with_its_class_and_the_versions(empty_bench: Bench) -> None:
    ran = faults.run(empty_bench, empty_bench.request("L0"), "broken-export")
    assert ran.exit.code == 30
    assert ran.reason.startswith(
        f"build of {empty_bench.candidate.model} ended with torch.onnx.OnnxExporterError:"
        " Could not translate node aten.planted (torch 2."
    )
    assert ", transformers " in ran.reason
    assert not (ran.root / ran.request.step / "measurements.json").exists()


def test_segments_that_the_graph_requires_and_the_tokenizer_drops_are_named(climbed: Bench, tmp_path: Path) -> None:
    names = {"model_input_names": ["input_ids", "attention_mask"]}
    model = changed_model(climbed, tmp_path, {"tokenizer_config.json": lambda config: config.update(names)})
    found = failed(bench(tmp_path / "root", model).check(climbed.graph()))
    assert found["unfed_inputs"] == "unfed_inputs: expected exactly 0, got 1 inputs: token_type_ids"


def test_probes_use_the_longest_sequence_of_any_tier() -> None:
    from harness.probes import longest_tokens, probe_shapes

    assert longest_tokens(OPTIONS, POSITIONS) == 48
    assert longest_tokens(msgspec.structs.replace(OPTIONS, L1=None, L2=None, L3=None), POSITIONS) == POSITIONS
    assert probe_shapes(BuildOptions(), (None, None), prebuilt=True, longest=8) == ((1, 2, 3, 7), (1, 8))
    assert probe_shapes(BuildOptions(), (4, None), prebuilt=True, longest=8) == ((4,), (1, 8))
    assert probe_shapes(BuildOptions(), (4, 8), prebuilt=False, longest=8) == ((1, 2, 3, 7), (1, 8))


def test_a_prebuilt_graph_with_external_data_is_copied_whole(
    climbed: Bench, empty_bench: Bench, tmp_path: Path
) -> None:
    import onnx

    graph = tmp_path / "given" / "reranker.onnx"
    graph.parent.mkdir()
    model = onnx.load(str(climbed.graph()))
    onnx.save(model, str(graph), save_as_external_data=True, location="weights.bin", size_threshold=0)
    ran = empty_bench.check(graph)
    assert failed(ran) == {}
    copied = empty_bench.graph().parent
    assert sorted(path.name for path in copied.iterdir()) == ["model.onnx", "weights.bin"]
    assert ran.value("payload_bytes") == sum(path.stat().st_size for path in copied.iterdir())
    assert ran.value("half_range_constants") == 1
    assert ran.value("realised_precision") == "fp32"

    def read(path: str) -> bytes:
        assert not path.endswith("weights.bin")
        return (ran.root / path).read_bytes()

    found = derive.measure(ran.request, read, lambda path: (ran.root / path).stat().st_size)
    assert to_json(found) == ran.file("measurements.json")  # the weights were not read for their length
