"""Runtimes: code that scores pairs. One line of the table for each provider that a ladder can name."""

from __future__ import annotations

from harness.runtimes.onnxruntime import Provider
from harness.runtimes.openvino import OpenVino
from harness.runtimes.session import Runtime

RUNTIMES: dict[str, Runtime] = {
    "cpu": Provider("CPUExecutionProvider"),
    "cuda": Provider("CUDAExecutionProvider"),
    "tensorrt": Provider("TensorrtExecutionProvider"),
    "directml": Provider("DmlExecutionProvider"),
    "qnn": Provider("QNNExecutionProvider"),
    "migraphx": Provider("MIGraphXExecutionProvider"),
    "openvino": OpenVino("CPU"),
}
"""``torch_eager`` is not in it: it is the reference, never a target."""
