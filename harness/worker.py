"""The child of one step: ``request.json`` -> stage -> raw samples -> ``measurements.json``. Started by ``launch`` only.

    python -m harness.worker step STEP ROOT MODEL ADAPTER PREBUILT BASELINE SCRATCH DESCRIPTOR
    python -m harness.worker eager STEP ROOT MODEL ADAPTER DESCRIPTOR
    python -m harness.worker dataset FOLDER DESCRIPTOR
    python -m harness.worker bisect FOLDER MODEL ADAPTER DESCRIPTOR
    python -m harness.worker tree MODEL FOLDER DESCRIPTOR

Exit codes: 0 done; 30 no number, with the reason in ``blocked.json`` (or ``unavailable.txt``). An exception that is not a
``Blocked`` is a fault of something below the stage (a new transformers that breaks the export): its traceback goes to the log,
and it is BLOCKED with its class and the versions, never FAIL.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import traceback
from importlib import metadata
from pathlib import Path

from harness import derive, derive_rerank, ending, process
from harness.errors import AskedWrongly, Blocked, QualifyError, Unavailable
from harness.launch import machine_paths
from harness.raw import BlockedRaw
from harness.records import TIER_NAMES, Request, from_json, to_json
from harness.redact import scrub
from harness.stages import STAGES, bisect, eager, module_tree
from harness.stages.dataset import fetch
from harness.stages.job import Channel, Job

BLOCKED = 30
_COLLECT = 50_000, 20, 100
"""When garbage is looked for where nothing is timed: torch and transformers make a million objects that stay, and with Python's own
thresholds looking at them again and again is a sixth of the processor time that importing them takes."""
LIBRARIES = ("torch", "transformers", "tokenizers", "onnx", "onnxruntime")


def main(arguments: list[str]) -> int:
    """Run one child; the exit code."""
    kind, *places, descriptor = arguments
    process.die_with_parent()
    if kind == "eager":
        step, root, model, adapter = places
        parent = socket.socket(fileno=int(descriptor))
        return _eager(step, Path(root), Path(model), Path(adapter) if adapter else None, parent)
    channel = Channel(int(descriptor))
    if kind == "dataset":
        return _dataset(Path(places[0]), channel)
    if kind == "tree":
        return _tree(Path(places[0]), Path(places[1]))
    if kind == "bisect":
        return _bisect(Path(places[0]), places[1], places[2], channel)
    step, root, model, adapter, prebuilt, baseline, scratch = places
    folders = Path(root), Path(model), Path(prebuilt) if prebuilt else None, Path(scratch)
    return _step(step, folders, tuple(Path(place) if place else None for place in (adapter, baseline)), channel)


def _dataset(folder: Path, channel: Channel) -> int:
    try:
        fetch(folder, channel.progress)
    except AskedWrongly as error:
        (folder / "refused.txt").write_text(str(error), encoding="utf-8")
        return BLOCKED
    except Unavailable as error:
        (folder / "unavailable.txt").write_text(str(error), encoding="utf-8")
        return BLOCKED
    return 0


def _tree(model: Path, folder: Path) -> int:
    try:
        (folder / "tree.txt").write_text(module_tree.module_tree(model), encoding="utf-8")
    except Exception as error:  # noqa: BLE001 - what transformers raises for a model it does not know is the answer
        reason = f"{type(error).__name__}: {_one_line(str(error))}"
        (folder / "unavailable.txt").write_text(reason, encoding="utf-8")
        return BLOCKED
    return 0


def _bisect(folder: Path, model: str, adapter: str, channel: Channel) -> int:
    try:
        if model:
            bisect.export_reference(folder, Path(model), Path(adapter) if adapter else None)
        bisect.search(folder, channel.progress)
    except Exception as error:  # noqa: BLE001 - as for a step: a library's exception is no fault of the graph
        traceback.print_exc()
        reason = str(error) if isinstance(error, QualifyError) else f"bisect: {type(error).__name__}: {error}"
        words = machine_paths(model=Path(model) if model else None, scratch=folder)
        record = BlockedRaw(format=1, reason=scrub(_one_line(reason), words)[0])
        (folder / "blocked.json").write_bytes(to_json(record))
        return BLOCKED
    return 0


def _eager(step: str, root: Path, model: Path, adapter: Path | None, parent: socket.socket) -> int:
    path = f"{step}/request.json"
    request = from_json((root / path).read_bytes(), Request, path)
    eager.serve(Job(request, root, model, None, root, lambda *_: None, lambda _: None, str, adapter), parent)
    return 0


def _step(
    step: str,
    folders: tuple[Path, Path, Path | None, Path],
    beside: tuple[Path | None, ...],
    channel: Channel,
) -> int:
    root, model, _, scratch = folders
    adapter, baseline = beside
    words = machine_paths(root=root, model=model, adapter=adapter, scratch=scratch, baseline=baseline)

    def clean(text: str) -> str:
        return scrub(text, words)[0]

    path = f"{step}/request.json"
    request = from_json((root / path).read_bytes(), Request, path)
    job = Job(request, *folders, channel.progress, channel.written, clean, adapter, baseline)
    if request.tier != "L1":
        gc.set_threshold(*_COLLECT)
    try:
        _stay_on(request.target.session.cpus)
        STAGES[request.tier](job)
        job.write_record("measurements.json", derive.measure(request, job.read))
        if request.tier == "L3":
            job.write_record("per_query.json", derive_rerank.per_query(request, job.read))
    except QualifyError as error:
        job.write_record("blocked.json", BlockedRaw(format=1, reason=clean(_one_line(_named(request, error)))))
        return BLOCKED
    except Exception as error:  # noqa: BLE001 - the one place that turns a library's exception into BLOCKED
        traceback.print_exc()
        job.write_record("blocked.json", BlockedRaw(format=1, reason=clean(_broke(request, error))))
        return BLOCKED
    return 0


def _stay_on(cpus: tuple[int, ...] | None) -> None:
    """Use only these processors, also in every thread that is started from here on. Raises ``Blocked``."""
    if cpus is None:
        return
    if not hasattr(os, "sched_setaffinity"):
        raise Blocked("session.cpus: expected a system that binds a process to processors, got one that does not")
    may = os.sched_getaffinity(0)
    if not set(cpus) <= may:
        words = [", ".join(map(str, sorted(side))) for side in (may, set(cpus))]
        raise Blocked(f"session.cpus: expected some of the processors {words[0]}, got {words[1]}; correct the ladder")
    os.sched_setaffinity(0, cpus)


def _named(request: Request, error: QualifyError) -> str:
    """The error, and of which model of a hub at which revision, where it does not say so itself."""
    of = ending.of(request)
    return f"{error}" if request.candidate.revision is None or of in str(error) else f"{of}: {error}"


def _broke(request: Request, error: Exception) -> str:
    """One sentence: what broke, the exception's class and last line, and the versions it broke with."""
    versions = ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)
    lines = str(error).strip().splitlines()
    said = f": {_one_line(lines[-1])}" if lines else ""
    do = "; pip install '.[run]' brings what is missing" if isinstance(error, ModuleNotFoundError) else ""
    named = f"{type(error).__module__}.{type(error).__name__}"
    return f"{TIER_NAMES[request.tier]} of {ending.of(request)} ended with {named}{said} ({versions}){do}"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:1000]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
