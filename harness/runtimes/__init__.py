"""Runtimes: code that scores pairs. One line of the table for each provider that a ladder can name."""

from __future__ import annotations

from pathlib import Path

from harness.errors import Blocked
from harness.records import SessionOptions
from harness.runtimes.onnxruntime import Provider
from harness.runtimes.openvino import OpenVino
from harness.runtimes.session import DEFAULT, LoadError, Runtime, Session

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


def load(
    provider: str, graph: Path, threads: int, session: SessionOptions = DEFAULT, named: str = "artifact"
) -> Session:
    """Load ``graph`` on a provider. Raises ``Blocked``, also when the runtime does not take the file."""
    try:
        return RUNTIMES[provider].load(graph, threads, session)
    except LoadError as error:
        raise Blocked(f"{named}: expected a graph that {provider} loads, got {error}") from error
