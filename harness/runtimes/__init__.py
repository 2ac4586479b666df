"""Runtimes: code that scores pairs. One line of the table for each provider that a ladder can name."""

from __future__ import annotations

from harness.runtimes.onnxruntime import Provider

RUNTIMES: dict[str, Provider] = {
    "cpu": Provider("CPUExecutionProvider"),
    "cuda": Provider("CUDAExecutionProvider"),
    "tensorrt": Provider("TensorrtExecutionProvider"),
    "directml": Provider("DmlExecutionProvider"),
    "qnn": Provider("QNNExecutionProvider"),
    "migraphx": Provider("MIGraphXExecutionProvider"),
}
"""``torch_eager`` is not in it: it is the reference, never a target."""
