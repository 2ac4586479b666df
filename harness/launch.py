"""One step = one child process: request in, raw samples, measurements and scrubbed logs out.

The child's output is first written outside the root and enters it only without secrets, machine paths and excess length, so
a token never touches the root. Places (the root, the model's folder) are given on the command line, never in a sealed file.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from evidence.seal import write_new
from harness import ending, process
from harness.bounds import Bounds, Selected
from harness.data import read_groups
from harness.errors import Blocked, LadderError, RecordError, Unavailable
from harness.raw import ArtifactRef, BlockedRaw
from harness.records import MEMORY_LIMIT_BYTES, DataSource, Exit, Request, from_json, to_json
from harness.redact import REDACTED, is_secret_name, parted, scrub
from harness.sampler import Sampler
from harness.sealed_files import LOG_BYTES

BORDER_BYTES = 1 << 16
"""How far beyond a cut a secret that it would part is looked for: longer than any key, even a PGP one with many subkeys."""

STREAMS = ("stdout", "stderr")

DATASET_LIMIT_S = 1800.0
TREE_LIMIT_S = 300.0

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Places:
    """Where things are on this machine: the staging folder, the candidate's and its adapter's, the ONNX file of a prebuilt artifact.

    ``baseline`` is the folder of the artifact that L1 is compared with.
    """

    root: Path
    model: Path
    prebuilt: Path | None = None
    adapter: Path | None = None
    baseline: Path | None = None


def run_step(request: Request, places: Places, on_progress: Progress) -> tuple[Exit, int]:
    """Run one tier on one target in a child, within its planned time and memory; returns how it ended and how many secrets its logs held.

    Makes ``<root>/<request.step>/`` with ``request.json``, ``stdout.log``, ``stderr.log`` and what the stage writes. Raises
    ``FileExistsError`` when the step was run before; ``KeyboardInterrupt`` after the child is dead and its logs are written.
    """
    write_new(places.root, f"{request.step}/request.json", to_json(request))
    with tempfile.TemporaryDirectory(prefix="qualify-") as scratch:
        folder = Path(scratch).resolve()
        given = (places.root, places.model, places.adapter, places.prebuilt, places.baseline)
        paths = [str(path.resolve()) if path else "" for path in given]
        command = [sys.executable, "-P", "-m", "harness.worker", "step", request.step, *paths, str(folder)]
        parent = _Parent(request, places.root, on_progress)
        redactions = 0
        try:
            ended = process.run(
                command,
                environment=stage_environment(os.environ, request.target.threads, folder),
                folder=folder,
                time_limit_s=request.planned.time_limit_s,
                started=parent.started,
                on_line=parent.on_line,
                memory_limit_bytes=request.planned.memory_limit_bytes,
            )
        finally:
            parent.finish()
            words = machine_paths(
                root=places.root,
                model=places.model,
                adapter=places.adapter,
                scratch=folder,
                baseline=places.baseline,
            )
            for stream in STREAMS:
                redactions += seal_log(folder / stream, places.root, f"{request.step}/{stream}.log", words)
    return ended, redactions


def why_blocked(root: Path, request: Request, ended: Exit) -> str:
    """One sentence on why the step has no measurements; empty when it ended well and left them."""
    path = f"{request.step}/blocked.json"
    said: str | None = None
    with suppress(OSError, RecordError):
        said = from_json((root / path).read_bytes(), BlockedRaw, path).reason
    return ending.why_blocked(request, ended, said, (root / request.step / "measurements.json").is_file())


def artifact_digest_of(root: Path, request: Request) -> str | None:
    """The digest of the artifact that the step ran, as its worker recorded it; None when it did not come so far."""
    path = f"{request.step}/artifact.json"
    try:
        return from_json((root / path).read_bytes(), ArtifactRef, path).digest
    except (OSError, RecordError):
        return None


def load_dataset(
    source: DataSource, bounds: Bounds, named: str, on_progress: Progress | None = None, *, file: Path | None = None
) -> Selected:
    """The bounded groups of a pinned hub dataset, an mteb task or a parquet ``file``, read in a child; ``named`` is for messages.

    Raises ``LadderError`` for what is wrong with the request or the rows, ``Unavailable`` for what could not be had.
    """
    with tempfile.TemporaryDirectory(prefix="qualify-") as scratch:
        folder = Path(scratch).resolve()
        asked = {
            "source": msgspec.to_builtins(source),
            "file": None if file is None else str(file.resolve()),
            "bounds": msgspec.to_builtins(bounds),
            "named": named,
        }
        (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
        ended = process.run(
            [sys.executable, "-P", "-m", "harness.worker", "dataset", str(folder)],
            environment=_common(os.environ),
            folder=folder,
            time_limit_s=DATASET_LIMIT_S,
            started=lambda _pid: None,
            on_line=lambda line: tell(line, on_progress),
            memory_limit_bytes=MEMORY_LIMIT_BYTES,
        )
        if ended.code == 0:
            about = msgspec.json.decode((folder / "read.json").read_bytes(), type=Selected)
            groups = read_groups((folder / "groups.jsonl").read_bytes(), named)
            return msgspec.structs.replace(about, groups=groups)
        for name, kind in (("refused.txt", LadderError), ("unavailable.txt", Unavailable)):
            if (folder / name).is_file():
                text = (folder / name).read_text(encoding="utf-8")
                raise kind(scrub(text, machine_paths(scratch=folder), _secrets())[0])
        how = "the time limit was reached" if ended.timed_out else f"the loader ended with {ended.signal or ended.code}"
        raise Unavailable(f"{named}: expected its rows, got none: {how}; try again, or name a local JSONL file")


def module_tree(model: Path) -> str:
    """The module tree of a checkpoint's class, built in a child, since only a child imports torch. Raises ``Blocked``."""
    with tempfile.TemporaryDirectory(prefix="qualify-") as scratch:
        folder = Path(scratch).resolve()
        ended = process.run(
            [sys.executable, "-P", "-m", "harness.worker", "tree", str(model.resolve()), str(folder)],
            environment=stage_environment(os.environ, 1, folder),
            folder=folder,
            time_limit_s=TREE_LIMIT_S,
            started=lambda _pid: None,
            on_line=lambda _line: b"",
        )
        if ended.code == 0:
            return (folder / "tree.txt").read_text(encoding="utf-8")
        told = folder / "unavailable.txt"
        how = (
            told.read_text(encoding="utf-8") if told.is_file() else f"the child ended with {ended.signal or ended.code}"
        )
        raise Blocked(
            f"module tree: expected a class that transformers builds, got {scrub(how, machine_paths(model=model))[0]}"
        )


def stage_environment(outer: Mapping[str, str], threads: int, scratch: Path) -> dict[str, str]:
    """The environment of a stage: the outer one without secrets; offline, seeded hashing, ``threads`` OpenMP threads."""
    kept = {name: value for name, value in outer.items() if not is_secret_name(name)}
    return {
        **_common(kept),
        "OMP_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "TMPDIR": str(scratch),
    }


def machine_paths(
    *,
    root: Path | None = None,
    model: Path | None = None,
    adapter: Path | None = None,
    scratch: Path | None = None,
    baseline: Path | None = None,
) -> dict[str, str]:
    """Absolute paths of this machine and the words that stand for them in sealed text."""
    named = {
        "ROOT": root,
        "MODEL": model,
        "ADAPTER": adapter,
        "SCRATCH": scratch,
        "BASELINE": baseline,
        "PREFIX": Path(sys.prefix),
        "~": Path.home(),
    }
    found = {str(path): word for word, path in named.items() if path is not None}
    return found | {str(path.resolve()): word for word, path in named.items() if path is not None}


class _Parent:
    """The parent's half of the talk with a worker: shows progress and, in L1, samples memory and machine until each is asked for."""

    def __init__(self, request: Request, root: Path, on_progress: Progress) -> None:
        self._request = request
        self._root = root
        self._on_progress = on_progress
        self._sampler: Sampler | None = None
        self._unwritten = {"memory", "machine"}

    def started(self, pid: int) -> None:
        if self._request.tier == "L1":
            self._sampler = Sampler(pid, self._request.target.session.cpus)

    def on_line(self, line: bytes) -> bytes:
        if line in (b"memory", b"machine"):
            self._write(line.decode("ascii"))
            return b"written\n"
        return tell(line, self._on_progress)

    def finish(self) -> None:
        """Stop sampling and write what of ``memory.json`` and ``machine.json`` is not written; a second call does nothing."""
        self._write("memory")
        self._write("machine")

    def _write(self, what: str) -> None:
        if self._sampler is not None and what in self._unwritten:
            self._unwritten.discard(what)
            record = self._sampler.memory() if what == "memory" else self._sampler.machine()
            write_new(self._root, f"{self._request.step}/{what}.json", to_json(record))


def tell(line: bytes, on_progress: Progress | None) -> bytes:
    """Hand on one line of progress that a child wrote; nothing is answered."""
    done, total, what = json.loads(line)
    if on_progress is not None:
        on_progress(done, total, what)
    return b""


def _common(outer: Mapping[str, str]) -> dict[str, str]:
    return {
        **outer,
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
        "PYTHONFAULTHANDLER": "1",
    }


def _secrets() -> list[str]:
    return [value for name, value in os.environ.items() if is_secret_name(name)]


def seal_log(raw: Path, root: Path, path: str, words: Mapping[str, str]) -> int:
    """Write a child's output into the root, scrubbed, about ``LOG_BYTES`` of it; returns how often it says [REDACTED].

    That is once for each secret that was taken out, and it can be counted again by whoever has only the root.
    """
    known = _secrets()
    text = scrub(_bounded(raw, words, known), words, known)[0]
    write_new(root, path, text.encode("utf-8", "backslashreplace"))
    return text.count(REDACTED)


def _bounded(raw: Path, words: Mapping[str, str], known: Sequence[str]) -> str:
    """The output, or the head and the tail of a long one. A cut is made where it leaves no half of a secret, which no shape would know."""
    half = LOG_BYTES // 2
    with raw.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= LOG_BYTES:
            return _text(file.read())
        head = file.read(half + BORDER_BYTES)
        file.seek(-half - BORDER_BYTES, os.SEEK_END)
        tail = file.read()
    first, second = _border(head, half), _border(tail, BORDER_BYTES)
    kept = parted(_text(head[:first]), _text(head[first:]), words, known)[0]
    last = parted(_text(tail[:second]), _text(tail[second:]), words, known)[1]
    return f"{kept}\n[qualify: {size - LOG_BYTES} bytes left out here]\n{last}"


def _border(data: bytes, at: int) -> int:
    """``at``, or the start of the next character of UTF-8."""
    return next((place for place in range(at, min(at + 4, len(data))) if data[place] & 0xC0 != 0x80), at)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
