"""Exports that are optimised, repeated, split into files; and the published figures of the L4 shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from harness import derive
from harness.raw import BuildRaw
from harness.records import BuildOptions, TierOptions, from_json, to_json
from harness.stages import export, onnx_file
from tests.support import graphs
from tests.support.models import make_l4
from tests.support.steps import OPTIONS, Bench, Ran, bench


def built(where: Bench, name: str = "cpu-fp32", **options: Any) -> Ran:
    asked = msgspec.structs.replace(OPTIONS, L0=BuildOptions(**options))
    ran = where.run(where.request("L0", name, options=asked))
    assert not ran.reason, ran.reason
    return ran


def files_of(where: Bench, name: str = "cpu-fp32") -> list[str]:
    return sorted(path.name for path in (where.root / "artifacts" / name).iterdir())


def test_exporting_twice_gives_the_same_bytes_optimised_or_not(empty_bench: Bench) -> None:
    ran = built(empty_bench, repeat_export=True, optimize="fused")
    repeat = ran.raw("build.json")["export"]["repeat"]
    assert repeat["first"] == repeat["second"]
    assert ran.value("export_repeat_equal") is True


def test_a_repeat_that_was_not_asked_for_is_null(climbed: Bench) -> None:
    found = climbed.earlier("L0").measured()["export_repeat_equal"]
    assert (found.value, found.note) == (None, "it was not asked for: repeat_export")


def test_an_exporter_that_gives_other_bytes_every_time_is_found_with_the_tensor(
    climbed: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnx
    import torch

    whole, calls = torch.onnx.export, iter(range(1, 9))

    def counted(module: Any, given: Any, path: str, **options: Any) -> None:
        whole(module, given, path, **options)
        model = onnx.load(path)
        bias = next(item for item in model.graph.initializer if item.name == "classifier.bias")
        values = onnx.numpy_helper.to_array(bias) + np.float32(next(calls))
        bias.CopyFrom(onnx.numpy_helper.from_array(values, bias.name))
        onnx.save(model, path)

    monkeypatch.setattr(torch.onnx, "export", counted)
    names = ("input_ids", "attention_mask", "token_type_ids")
    made = export.export(climbed.model, climbed.candidate, BuildOptions(repeat_export=True), names, 1, tmp_path)
    step = f"{climbed.request('L0').step}/build.json"
    raw = from_json((climbed.root / step).read_bytes(), BuildRaw, step)
    changed = {step: to_json(msgspec.structs.replace(raw, export=made.facts))}
    measured = derive.measure(
        climbed.request("L0"), lambda path: changed.get(path) or (climbed.root / path).read_bytes()
    )
    found = next(item for item in measured.measurements if item.metric == "export_repeat_equal")
    assert found.value is False
    assert "1 initializer differ, the first 'classifier.bias'" in found.note


def test_what_the_exporter_warns_of_is_sealed(climbed: Bench) -> None:
    warned = climbed.earlier("L0").raw("build.json")["warnings"]
    assert sum(text.startswith("TracerWarning: Converting a tensor to a Python boolean ") for text in warned) == 1


def test_logits_after_optimisation_are_those_of_the_optimised_session(climbed: Bench) -> None:
    """A fused Gelu rounds otherwise than its parts do: two sessions of one kind would give the same bits."""
    ran = climbed.earlier("L0")
    export_, optimise = np.frombuffer(ran.file("stages.f32"), "<f4").reshape(2, -1)
    assert ran.raw("stages.json")["steps"] == ["export", "optimise"]
    assert (export_ != optimise).any()


def test_two_exports_that_differ_are_explained_by_the_first_tensor(climbed: Bench, tmp_path: Path) -> None:
    first = climbed.root / "artifacts/cpu-fp32/model.onnx"
    other = graphs.with_head(first, tmp_path / "model.onnx", graphs.HEADS["inverted"])
    assert onnx_file.differences(first, other) == "1 initializer differ, the first 'classifier.weight'"
    assert onnx_file.differences(first, first) == ""


def test_weights_beside_the_graph_lie_in_one_file_of_its_folder_in_every_precision(empty_bench: Bench) -> None:
    for name in ("cpu-fp32", "cpu-fp16", "cpu-int8"):
        ran = built(empty_bench, name, external_data=True)
        assert files_of(empty_bench, name) == ["model.onnx", "model.onnx.data"]
        assert ran.value("external_files") == 1
        assert ran.value("realised_precision") == name.removeprefix("cpu-")
        assert (ran.value("probe_faults"), ran.value("checker_faults")) == (0, 0)


@pytest.mark.parametrize("level", ["basic", "fused"])
def test_optimisation_is_recorded_with_nodes_before_and_after(empty_bench: Bench, level: str) -> None:
    ran = built(empty_bench, optimize=level)
    done = ran.raw("build.json")["export"]["optimisation"]
    assert done["level"] == level
    assert done["by"].startswith("onnxruntime ")
    assert done["nodes_after"] == ran.value("nodes") < done["nodes_before"]
    assert (ran.value("head_gap_ratio"), ran.raw("build.json")["head_note"]) == (0.0, "")
    assert ("operator_count.Gelu" in ran.measured()) == (level == "fused")
    assert (ran.value("opset"), ran.value("ir_version")) == (17, 8)
    assert ran.value("inputs") == ", ".join(
        f"{name}:INT64[batch,sequence]" for name in ("attention_mask", "input_ids", "token_type_ids")
    )
    assert f"{done['nodes_before']} before {level} optimisation" in ran.measured()["nodes"].note


def test_a_checkpoint_too_large_for_one_file_is_blocked_with_the_option_that_helps(empty_bench: Bench) -> None:
    large = msgspec.structs.replace(empty_bench.candidate, parameters=600_000_000)
    request = msgspec.structs.replace(empty_bench.request("L0"), candidate=large)
    assert empty_bench.run(request).reason == (
        "tiers.L0.external_data: expected true, since 600,000,000 parameters in fp32 are more than one file of"
        " 2,000,000,000 bytes holds, got false; set it in the ladder"
    )


@pytest.mark.slow
def test_the_published_figures_of_the_l4_shape_are_reproduced(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    there = bench(tmp_path / "root", make_l4(model))
    options = TierOptions(L0=BuildOptions(shape=(1, 512), integers="int32", optimize="fused"))
    published = {"fp32": ("FLOAT", 76_710_324, 136), "fp16": ("FLOAT16", 38_381_076, 137)}
    for precision, (dtype, size, nodes) in published.items():
        ran = there.run(there.request("L0", f"cpu-{precision}", options=options))
        assert (ran.value("opset"), ran.value("ir_version")) == (17, 8)
        ports = (f"{name}:INT32[1,512]" for name in ("attention_mask", "input_ids", "token_type_ids"))
        assert (ran.value("inputs"), ran.value("outputs")) == (", ".join(ports), "logits:FLOAT[1,1]")
        assert (ran.value(f"initializer_count.{dtype}"), ran.value("initializer_count.BOOL")) == (76, 1)
        assert abs(int(str(ran.value("payload_bytes"))) / size - 1) < 0.005
        # Of the mask one operator, its type and its shape fewer than published (24 INT64, 16 types).
        assert (ran.value("nodes"), ran.value("operator_types")) == (nodes - 1, 15)
        assert ran.value("initializer_count.INT64") == 23
    assert ran.value("initializer_bytes.FLOAT16") == 38_329_352
    assert float(str(ran.value("payload_over_export"))) == pytest.approx(0.50034, abs=2e-4)
