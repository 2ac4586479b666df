"""A worker whose runtime has one fault: the real ONNX Runtime behind a wrapper that leaks, slows down, hangs, or is not what was asked for.

    python -m tests.support.faults FAULT step STEP ROOT MODEL ADAPTER PREBUILT SCRATCH DESCRIPTOR

``run`` starts it as ``launch.run_step`` starts the worker, with the parent's own half.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evidence.seal import write_new
from harness import judge, launch, process, worker
from harness.records import Finding, Limits, Request, to_json
from harness.runtimes import RUNTIMES
from harness.runtimes.onnxruntime import Provider
from tests.support.steps import Bench, Ran

REPO = Path(__file__).parent.parent.parent


class Faulty:
    """The CPU provider, each call of whose sessions goes through ``fault(number of the call)`` first."""

    name = "CPUExecutionProvider"

    def __init__(self, fault: Callable[[int], None]) -> None:
        self._fault = fault

    def require(self) -> None:
        Provider(self.name).require()

    def load(self, artifact: Path, threads: int, *options: Any) -> Any:
        session = Provider(self.name).load(artifact, threads, *options)
        whole, calls = session.logits, iter(range(10**9))

        def logits(tensors: Any) -> Any:
            self._fault(next(calls))
            return whole(tensors)

        session.logits = logits  # type: ignore[method-assign]
        return session


def leak() -> Callable[[int], None]:
    kept: list[bytes] = []
    return lambda _number: kept.append(os.urandom(10_486))  # a megabyte in a hundred calls, no two pages alike


def slowing() -> Callable[[int], None]:
    return lambda number: time.sleep(1e-3 * number)


def deadlock() -> Callable[[int], None]:
    """Two locks, taken in one order by one caller and in the other by the next."""
    locks = threading.Lock(), threading.Lock()

    def take(number: int) -> None:
        first, second = locks if number % 2 else locks[::-1]
        with first:
            time.sleep(0.005)
            with second:
                pass

    return take


def slow_first() -> Callable[[int], None]:
    return lambda number: time.sleep(0.2) if number == 0 else None


FAULTS: dict[str, Callable[[], Callable[[int], None]]] = {
    "leak": leak,
    "slowing": slowing,
    "deadlock": deadlock,
    "slow-first": slow_first,
}


def run(there: Bench, request: Request, fault: str, prebuilt: Path | None = None) -> Ran:
    """One step in a child with the fault ``fault``; ``other-provider`` asks for one that takes no node of the graph.

    ``broken-export`` leaves the runtime as it is; the exporter of PyTorch raises.
    """
    write_new(there.root, f"{request.step}/request.json", to_json(request))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        parent = launch._Parent(request, there.root, lambda _done, _total, _what: None)
        places = [str(there.root), str(there.model), "", str(prebuilt or ""), "", scratch]
        ended = process.run(
            [sys.executable, "-m", "tests.support.faults", fault, "step", request.step, *places],
            environment=launch.stage_environment(os.environ | {"PYTHONPATH": str(REPO)}, 1, folder),
            folder=folder,
            time_limit_s=120.0,
            started=parent.started,
            on_line=parent.on_line,
        )
        parent.finish()
        for stream in ("stdout", "stderr"):
            launch.seal_log(folder / stream, there.root, f"{request.step}/{stream}.log", {})
    return Ran(there.root, request, ended, 0)


def judged(ran: Ran, limits: Limits) -> dict[str, Finding]:
    """The findings of a step by metric."""
    return {finding.metric: finding for finding in judge.judge(limits, ran.measured().values())}


def break_exporter() -> None:
    """The exporter raises, as it does when a release of transformers traces what it does not know."""
    import torch
    from torch.onnx.errors import OnnxExporterError

    def export(*_arguments: Any, **_options: Any) -> None:
        message = "Could not translate node aten.planted"
        raise OnnxExporterError(message)

    torch.onnx.export = export


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    if name == "broken-export":
        break_exporter()
    else:
        RUNTIMES["cpu"] = Provider("AzureExecutionProvider") if name == "other-provider" else Faulty(FAULTS[name]())
    sys.exit(worker.main(arguments))
