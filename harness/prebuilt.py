"""An ONNX file that is checked instead of built: pinned with its external data, every name looked at. No tensor is read."""

from __future__ import annotations

from pathlib import Path

from evidence.manifest import check_path
from harness.errors import CandidateError
from harness.files import hash_file
from harness.records import FileFact, PrebuiltArtifact
from harness.weights import LFS_FIRST_BYTES, refuse_pointer


def pin(path: Path) -> PrebuiltArtifact:
    """The digests of an ONNX file and of its external data, which lies beside it. Raises ``CandidateError``.

    Every name is checked here too, since the files will lie in a root: ``FORMAT.md`` says which names it takes.
    """
    from harness.metrics.onnx_graph import GraphError, census  # brings numpy

    _check_artifact_file(path, path.name)
    data = path.read_bytes()
    try:
        locations = sorted({external.location for external in census(data).external})
        for location in locations:
            _check_artifact_file(path.parent / location, location)
        census(data, {location: (path.parent / location).stat().st_size for location in locations})
    except GraphError as error:
        raise CandidateError(f"{path.name}: {error}; export it again") from error
    for location in locations:
        fault = check_path(f"artifacts/target/{location}")
        if fault is not None or location.lower() == "model.onnx":
            do = "export it again with another name for the external data"
            raise CandidateError(
                f"{path.name}: expected external data in a file that a root takes, got {location!r:.80}; {do}"
            )
    files = ((name, path.parent / name) for name in (path.name, *locations))
    return PrebuiltArtifact(
        name=path.name,
        files=tuple(FileFact(path=name, bytes=at.stat().st_size, blake3=hash_file(at)) for name, at in files),
    )


def _check_artifact_file(path: Path, named: str) -> None:
    """A regular file whose content is here, reached through no link below the artifact's folder."""
    if any(part.is_symlink() for part in (path, *path.parents[: named.count("/")])):
        raise CandidateError(f"{named}: expected a file of the artifact's folder, got a link; copy the file there")
    if not path.is_file():
        got = "a folder" if path.is_dir() else "a pipe, socket or device" if path.exists() else "no such file"
        raise CandidateError(f"{named}: expected a file, got {got}; correct the path or export it again")
    with path.open("rb") as file:
        refuse_pointer(named, file.read(len(LFS_FIRST_BYTES)))
