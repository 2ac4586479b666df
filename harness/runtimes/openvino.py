"""OpenVINO's own runtime on the CPU: the ONNX file is read and compiled by it, and there is nothing it could fall back to.

Products of fp32 graphs are kept in fp32: on processors with bf16 units the runtime would otherwise take those.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.errors import Blocked
from harness.raw import SessionFacts
from harness.records import SessionOptions
from harness.runtimes.session import DEFAULT, LoadError, allowed_cpus, no_logits, one_column

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Session:
    """A compiled model. Every thread has its own request, since one request serves one call at a time."""

    def __init__(self, compiled: Any, facts: SessionFacts) -> None:
        self._compiled = compiled
        self._outputs = [name for output in compiled.outputs for name in output.names]
        self._local = threading.local()
        shapes = {item.any_name: item.partial_shape for item in compiled.inputs}
        self.inputs = {item.any_name: _dtype(item.element_type) for item in compiled.inputs}
        two = next((shape for shape in shapes.values() if len(shape) == 2), (None, None))
        self.fixed = (_length(two[0]), _length(two[1]))
        self.facts = facts

    def logits(self, tensors: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        """As ``session.Session.logits``."""
        if "logits" not in self._outputs:
            raise no_logits(self._outputs)
        if not hasattr(self._local, "request"):
            self._local.request = self._compiled.create_infer_request()
        found = self._local.request.infer(tensors)["logits"]
        return one_column(
            found, len(next(iter(tensors.values())))
        ).copy()  # the request writes over it at the next call


class OpenVino(NamedTuple):
    """OpenVINO on one of its devices, by its own name (``CPU``)."""

    device: str

    @property
    def name(self) -> str:
        """As the facts of its sessions state it."""
        return f"OpenVINO {self.device}"

    def require(self) -> None:
        """Raise ``Blocked`` when the package is not installed or has no such device."""
        try:
            import openvino
        except ImportError as error:
            raise Blocked("openvino: expected the package, got none; pip install '.[openvino]'") from error
        available = openvino.Core().available_devices
        if self.device not in available:
            raise Blocked(f"{self.device} is not a device of this openvino (has: {', '.join(available) or 'none'})")

    def load(self, artifact: Path, threads: int, session: SessionOptions = DEFAULT) -> Session:  # noqa: ARG002 - has none
        """Compile ``artifact`` for ``threads`` threads; a ladder can ask for no option of ``session`` here.

        Raises ``Blocked`` or ``LoadError``.
        """
        self.require()
        import openvino

        options = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
        begin = time.perf_counter()
        try:
            compiled = openvino.Core().compile_model(str(artifact), self.device, options)
        except Exception as error:  # the binding raises bare RuntimeError
            raise LoadError(_last_line(error)) from error
        load_ms = (time.perf_counter() - begin) * 1000
        devices = tuple(map(str, compiled.get_property("EXECUTION_DEVICES")))
        if devices != (self.device,):
            raise Blocked(f"provider: expected {self.device}, got a model on {', '.join(devices) or 'none'}")
        stated = {"openvino": openvino.__version__, "threads": threads, "inference_precision": "f32", "hint": "latency"}
        stated["cpus"] = allowed_cpus()
        operators = Counter(
            str(node.get_rt_info()["layerType"].value) for node in compiled.get_runtime_model().get_ops()
        )
        facts = SessionFacts(
            load_ms=load_ms,
            providers=(self.name,),
            options=stated,
            placement={self.name: dict(sorted(operators.items()))},
        )
        return Session(compiled, facts)


def _dtype(element: Any) -> str:
    name = str(element.get_type_name())
    return {"i64": "int64", "i32": "int32"}.get(name, name)


def _length(dimension: Any) -> int | None:
    return dimension.get_length() if dimension is not None and dimension.is_static else None


def _last_line(error: BaseException) -> str:
    """What the runtime says of a file, on one line, without the source positions of its C++."""
    text = " ".join(str(error).split())
    return re.sub(r"(Exception from|Check '[^']*' failed at) \S+:\d+:?", "", text)[-500:].strip()
