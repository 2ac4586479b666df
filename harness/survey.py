"""Read every root in a folder: through the verifier, or, for a listing, only the records that it shows.

Whatever decides something (which root is the baseline, whether a review is fresh) goes through the verifier. A listing holds the
records it shows against the manifest, and that against the seal, and says so; it is no verification (docs/decisions/0012).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from evidence.manifest import MANIFEST_NAME, SEAL_NAME, Fault
from evidence.verify import VerifiedRoot, open_root
from harness import VERSION, leftovers, made_by, records
from harness.errors import AskedWrongly, RecordError
from harness.glance import glance
from harness.history import LISTED, VERIFIED, History, Seen, history
from harness.records import Lineage, Plan, Qualification, from_json

_SIGNS = (SEAL_NAME, MANIFEST_NAME, records.PLAN, records.CLAIM)
"""A folder that holds one of these was meant as a root."""
_SHOWN = (records.PLAN, records.CLAIM, records.LINEAGE, records.ENVIRONMENT)
FEW = 16
"""Fewer roots than this are looked at before other processes would have started."""


def survey(
    folder: Path,
    progress: Callable[[int, int], None] | None = None,
    without: str | None = None,
    *,
    verified: bool = True,
) -> History:
    """The history of the roots in ``folder``: ``look`` and ``Looked.history`` in one. Raises AskedWrongly."""
    return look(folder, progress, verified=verified).history(without)


class Looked(NamedTuple):
    """The roots of a folder as they were seen, leftovers by name, and how they were looked at (``VERIFIED`` or ``LISTED``)."""

    seen: tuple[Seen, ...]
    leftovers: tuple[str, ...]
    checked: str

    def history(self, without: str | None = None) -> History:
        """Their history; the root with the digest ``without`` is left out, so that what is current without it can be told."""
        kept = [item for item in self.seen if without is None or item.digest != without]
        return history(kept, self.leftovers, self.checked)


def look(
    folder: Path,
    progress: Callable[[int, int], None] | None = None,
    known: Mapping[Path, VerifiedRoot] | None = None,
    *,
    verified: bool = True,
) -> Looked:
    """Look at the roots in ``folder``, not at those deeper. ``progress`` counts roots.

    A root whose path is in ``known`` was verified by the caller and is not again. ``verified`` false is for a listing: of each root
    only the records shown are read. Staging folders and ``quarantine/`` are no roots; those whose process is gone are named as
    leftovers. Raises AskedWrongly.
    """
    try:
        entries = sorted(entry for entry in folder.iterdir() if entry.is_dir())
    except OSError as error:
        raise AskedWrongly(f"{folder}: expected a folder of roots, got {error.strerror}; give another path") from error
    if (folder / SEAL_NAME).is_file():
        raise AskedWrongly(f"{folder}: expected a folder of roots, got a root; give the folder that it is in")
    roots = [
        entry for entry in entries if not leftovers.is_aside(entry) and any((entry / sign).exists() for sign in _SIGNS)
    ]
    seen = [_opened(root, known[root]) for root in roots if known is not None and root in known]
    for found in _all([root for root in roots if known is None or root not in known], verified=verified):
        seen.append(found)
        if progress is not None:
            progress(len(seen), len(roots))
    left = tuple(path.relative_to(folder).as_posix() for path in leftovers.leftovers(folder))
    return Looked(tuple(seen), left, VERIFIED if verified else LISTED)


def _all(roots: Sequence[Path], *, verified: bool) -> Iterator[Seen]:
    """Look at each root, in order; at many, in as many processes as there are processors: hashing and parsing are most of it."""
    look = partial(_look, verified=verified)
    if len(roots) < FEW:
        yield from map(look, roots)
        return
    from concurrent.futures import ProcessPoolExecutor

    processes = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(look, roots, chunksize=4)


def _look(root: Path, *, verified: bool) -> Seen:
    if not verified:
        found = glance(root, _SHOWN)
        return _seen(root, found.digest, found.faults, found.files)
    return _opened(root, open_root(root))


def _opened(root: Path, opened: VerifiedRoot) -> Seen:
    whole = opened.report.ok
    files = {path: opened.read(path) for path in _SHOWN} if whole else {}
    return _seen(root, opened.digest, opened.report.faults, files)


def _seen(root: Path, digest: str | None, faults: Sequence[Fault], files: Mapping[str, bytes]) -> Seen:
    """What the records say; nothing where there is a fault, or where they do not read."""
    if not files:
        why = f"{faults[0].rule} {faults[0].message}" if faults else "not every check could run"
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return Seen(name=root.name, digest=digest, why=why + more)
    try:
        return Seen(
            name=root.name,
            digest=digest,
            plan=from_json(files[records.PLAN], Plan, records.PLAN),
            claim=from_json(files[records.CLAIM], Qualification, records.CLAIM),
            lineage=from_json(files[records.LINEAGE], Lineage, records.LINEAGE),
        )
    except RecordError as error:
        version = made_by.stated(files.__getitem__)
        if version is None or version == VERSION:
            return Seen(name=root.name, digest=digest, why=str(error))
        return Seen(name=root.name, digest=digest, why=made_by.why([version]), version=version)
