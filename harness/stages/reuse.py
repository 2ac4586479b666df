"""What an earlier target of the same plan has already worked out, so that PyTorch runs once a plan and not once a target.

The reference logits and the fp32 export depend on the candidate, the data and the options, which one plan fixes for all targets, and
on the number of threads. What is taken is copied, and the record says from where. Only steps that left measurements are taken from.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from harness.derive_raw import raw_record
from harness.errors import RecordError
from harness.raw import ArtifactRef, ParityRaw, ScoresRaw
from harness.records import Request, from_json
from harness.stages.job import Job, folder_digest

Scored = TypeVar("Scored", ParityRaw, ScoresRaw)


def earlier_reference(job: Job, name: str, kind: type[Scored]) -> tuple[str, Scored] | None:
    """The step of this tier on another target that ran the reference, and its raw record ``name``; None when there is none yet."""
    for other in _earlier(job):
        raw = raw_record(job.read, f"{other.step}/{name}", kind)
        if raw.reference_from is None:
            return other.step, raw
    return None


def earlier_export(job: Job) -> str | None:
    """The artifact folder of another target that is the fp32 export, unchanged since it was recorded; None when there is none."""
    for other in _earlier(job):
        if other.target.precision == "fp32" and other.target.artifact is None:
            stated = raw_record(job.read, f"{other.step}/artifact.json", ArtifactRef).digest
            if stated == folder_digest(job.root / other.artifact):
                return other.artifact
    return None


def _earlier(job: Job) -> list[Request]:
    found = []
    for folder in sorted((job.root / job.request.step).parent.glob(f"{job.request.tier}-*")):
        request = _request(folder, job.root)
        if (
            request is not None
            and request.step != job.request.step
            and request.plan_digest == job.request.plan_digest
            and request.target.threads == job.request.target.threads
            and (folder / "measurements.json").is_file()
        ):
            found.append(request)
    return found


def _request(folder: Path, root: Path) -> Request | None:
    path = folder / "request.json"
    try:
        return from_json(path.read_bytes(), Request, path.relative_to(root).as_posix())
    except (OSError, RecordError):
        return None
