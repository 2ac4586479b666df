"""ONNX Runtime: an artifact on one execution provider. No silent fallback, and the options that change a figure are recorded."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from harness.errors import Blocked
from harness.raw import SessionFacts
from harness.records import SessionOptions, Value
from harness.runtimes.session import DEFAULT, LoadError, allowed_cpus, no_logits, one_column

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LOGITS = ["logits"]
_INTEGERS = {"tensor(int64)": "int64", "tensor(int32)": "int32"}
_TOO_NEW = (
    (re.compile(r"Unsupported model IR version: (\d+), max supported IR version: (\d+)"), "IR version"),
    (re.compile(r"Opset (\d+) is under development.*?till opset (\d+)", re.DOTALL), "opset"),
)


class Session:
    """A loaded artifact."""

    def __init__(self, session: Any, facts: SessionFacts) -> None:
        self._run = session.run
        self._outputs = [output.name for output in session.get_outputs()]
        self._whole = "logits" in self._outputs
        taken = session.get_inputs()
        self.inputs = {item.name: _INTEGERS.get(item.type, item.type) for item in taken}
        batch, length = next((item.shape for item in taken if len(item.shape) == 2), (None, None))
        self.fixed = (batch if isinstance(batch, int) else None, length if isinstance(length, int) else None)
        self.facts = facts

    def logits(self, tensors: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Logits of one batch, float32 of shape (batch,). Raises ``Blocked`` when there is no output of one logit a row."""
        if not self._whole:
            raise no_logits(self._outputs)
        return one_column(self._run(_LOGITS, tensors)[0], len(next(iter(tensors.values()))))


class Provider(NamedTuple):
    """ONNX Runtime on one execution provider, by the runtime's own name for it (``CPUExecutionProvider``).

    ``optimised`` is false only to look at a graph as it is, before the runtime fuses its nodes.
    """

    name: str
    optimised: bool = True

    def require(self) -> None:
        """Raise ``Blocked`` when the installed build of the runtime has no such provider."""
        import onnxruntime as ort

        available = ort.get_available_providers()
        if self.name not in available:
            raise Blocked(f"{self.name} is not in this build of onnxruntime (has: {', '.join(available)})")

    def load(self, artifact: Path, threads: int, session: SessionOptions = DEFAULT) -> Session:
        """Load ``artifact`` with ``threads`` intra-op threads and the options of ``session``.

        Raises ``Blocked`` when this build has no such provider, does not use it, or the file is newer than the runtime;
        ``LoadError`` when the runtime does not take the file.
        """
        import onnxruntime as ort

        self.require()
        if not self.optimised:
            session = msgspec.structs.replace(session, graph_optimization="none")
        options = _made(threads, session)
        begin = time.perf_counter()
        try:
            loaded = ort.InferenceSession(str(artifact), options, providers=[self.name])
        except Exception as error:  # the runtime's own classes have no common base but Exception
            _refuse_newer(str(error))
            raise LoadError(first_line(error)) from error
        load_ms = (time.perf_counter() - begin) * 1000
        used = loaded.get_providers()
        if not used or used[0] != self.name:
            raise Blocked(f"provider: expected {self.name}, got a session on {', '.join(used) or 'none'}")
        facts = SessionFacts(
            load_ms=load_ms, providers=tuple(used), options=_stated(threads, session), placement=_placement(loaded)
        )
        return Session(loaded, facts)


def first_line(error: BaseException) -> str:
    """An error of the runtime on one line, without the source positions of its C++."""
    text = " ".join(str(error).split())
    return re.sub(r"/onnxruntime_src/\S+ .*?(?=[A-Z][a-z]+ [a-z])", "", text)[:500]


def _placement(session: Any) -> dict[str, dict[str, int]] | None:
    """Nodes by the provider they were assigned to and operator type; None where this version of the runtime does not tell."""
    told = getattr(session, "get_provider_graph_assignment_info", None)
    if told is None:
        return None
    found: dict[str, Counter[str]] = {}
    for part in told():
        found.setdefault(part.ep_name, Counter()).update(node.op_type for node in part.get_nodes())
    return {name: dict(sorted(counts.items())) for name, counts in sorted(found.items())}


def _made(threads: int, asked: SessionOptions) -> Any:
    """The runtime's own options. More than one inter-op thread is of use only in its parallel mode."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = asked.inter_op_threads
    options.execution_mode = (
        ort.ExecutionMode.ORT_PARALLEL if asked.inter_op_threads > 1 else ort.ExecutionMode.ORT_SEQUENTIAL
    )
    options.enable_cpu_mem_arena = asked.memory_arena
    options.graph_optimization_level = {
        "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
        "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
        "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
        "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    }[asked.graph_optimization]
    options.log_severity_level = 3
    spinning = "1" if asked.spinning else "0"
    options.add_session_config_entry("session.intra_op.allow_spinning", spinning)
    options.add_session_config_entry("session.inter_op.allow_spinning", spinning)
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    return options


def _stated(threads: int, asked: SessionOptions) -> dict[str, Value]:
    """The options that change speed or results, as they were set."""
    import onnxruntime as ort

    return {
        "onnxruntime": ort.__version__,
        "intra_op_threads": threads,
        "inter_op_threads": asked.inter_op_threads,
        "execution_mode": "parallel" if asked.inter_op_threads > 1 else "sequential",
        "graph_optimization": asked.graph_optimization,
        "allow_spinning": asked.spinning,
        "memory_arena": asked.memory_arena,
        "cpus": allowed_cpus(),
    }


def _refuse_newer(message: str) -> None:
    for pattern, what in _TOO_NEW:
        if match := pattern.search(message):
            raise Blocked(
                f"artifact: expected {what} at most {match[2]}, the newest that onnxruntime here takes, got {match[1]};"
                " export for an older one or upgrade onnxruntime"
            )
