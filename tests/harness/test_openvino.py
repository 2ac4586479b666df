from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.errors import Blocked
from harness.runtimes import RUNTIMES
from harness.runtimes.openvino import OpenVino
from harness.runtimes.session import LoadError
from tests.support import graphs
from tests.support.parity import failed
from tests.support.steps import Bench


def test_the_graph_gives_the_logits_of_onnxruntime(climbed: Bench) -> None:
    graph = climbed.root / "artifacts/cpu-fp32/model.onnx"
    first, second = (RUNTIMES[name].load(graph, 1) for name in ("cpu", "openvino"))
    assert second.inputs == first.inputs
    assert second.fixed == (None, None)
    tensors = {name: np.ones((3, 9), dtype=dtype) for name, dtype in first.inputs.items()}
    assert second.logits(tensors) == pytest.approx(first.logits(tensors), abs=1e-5)


def test_every_node_is_on_the_runtime_and_what_changes_results_is_stated(climbed: Bench) -> None:
    facts = RUNTIMES["openvino"].load(climbed.root / "artifacts/cpu-fp32/model.onnx", 1).facts
    assert facts.providers == ("OpenVINO CPU",)
    assert facts.placement is not None
    assert list(facts.placement) == ["OpenVINO CPU"]
    assert facts.placement["OpenVINO CPU"]["FullyConnected"] > 0
    assert (facts.options["inference_precision"], facts.options["threads"]) == ("f32", 1)


def test_build_and_parity_climb_on_openvino(climbed: Bench, tmp_path: Path) -> None:
    there = climbed.copy(tmp_path / "root")
    built = there.run(there.request("L0", "openvino-fp32", provider="openvino"))
    assert built.measured()["probe_faults"].value == 0
    ran = there.run(there.request("L2", "openvino-fp32", provider="openvino"))
    measured = ran.measured()
    assert failed(measured) == {}
    assert measured["fallback_nodes"].value == 0
    assert ran.raw("logits.json")["session"]["providers"] == ["OpenVINO CPU"]


def test_a_file_that_is_no_graph_is_refused_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"not a graph")
    with pytest.raises(LoadError) as caught:
        RUNTIMES["openvino"].load(path, 1)
    assert "\n" not in str(caught.value)


def test_a_device_that_is_not_there_is_blocked_by_name() -> None:
    with pytest.raises(Blocked) as caught:
        OpenVino("NPU").require()
    assert str(caught.value) == "NPU is not a device of this openvino (has: CPU)"


def test_a_graph_without_logits_is_blocked(climbed: Bench, tmp_path: Path) -> None:
    good = climbed.root / "artifacts/cpu-fp32/model.onnx"
    session = RUNTIMES["openvino"].load(graphs.edited(good, tmp_path / "model.onnx", graphs.output_renamed), 1)
    with pytest.raises(Blocked, match="graph outputs: expected one named logits, got scores"):
        session.logits({name: np.ones((1, 4), dtype=dtype) for name, dtype in session.inputs.items()})
