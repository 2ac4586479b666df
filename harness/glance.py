"""A few records of a root, for a listing. This is NO verification: no other file is looked at, nor any rule of meaning.

`SEAL` names `MANIFEST.b3`, which names each record with the BLAKE3 of its bytes (docs/decisions/0012). Nothing that decides uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from evidence import tree
from evidence.manifest import Fault, FormatError, fault
from evidence.records import JSON_LIMIT_BYTES
from evidence.verify import ROOT, read, sealed


class Glance(NamedTuple):
    """What was read: bytes by path; with faults, nothing. ``digest`` is that of the manifest that is there."""

    digest: str | None
    faults: tuple[Fault, ...]
    files: dict[str, bytes]


def glance(folder: Path, paths: Iterable[str]) -> Glance:
    """The records ``paths`` of a root as its seal and manifest have them. Never raises."""
    digest = None
    files: dict[str, bytes] = {}
    try:
        with tree.opened(folder, ROOT) as root:
            digest, digests, faults = sealed(root)
            for path in () if faults else paths:
                try:
                    files[path] = _listed(root, digests, path)
                except FormatError as error:
                    faults += error.faults
    except OSError as error:
        faults = [tree.fault_of(error, "")]
    return Glance(digest, tuple(sorted(set(faults))), {} if faults else files)


def _listed(root: int, digests: Mapping[str, str], path: str) -> bytes:
    if path not in digests:
        raise FormatError([fault("E-RECORD", path, "this record", "none")])
    return read(root, path, digests[path], JSON_LIMIT_BYTES, missing="E-MISSING", other="E-HASH")
