"""Read every root in a folder through the verifier. Nothing is read from one that does not verify."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from evidence import seal
from evidence.manifest import MANIFEST_NAME, SEAL_NAME
from evidence.verify import open_root
from harness import records
from harness.errors import AskedWrongly, RecordError
from harness.history import History, Seen, history
from harness.records import Lineage, Plan, Qualification, from_json

_SIGNS = (SEAL_NAME, MANIFEST_NAME, records.PLAN, records.CLAIM)
"""A folder that holds one of these was meant as a root."""
FEW = 16
"""Fewer roots than this are looked at before other processes would have started."""


def survey(folder: Path, progress: Callable[[int, int], None] | None = None, without: str | None = None) -> History:
    """The history of the roots in ``folder``, not of those deeper. ``progress`` counts roots.

    The root with the digest ``without`` is left out, so that what is current without it can be told.
    Staging folders and ``quarantine/`` are no roots; those whose process is gone are named as leftovers. Raises AskedWrongly.
    """
    try:
        entries = sorted(entry for entry in folder.iterdir() if entry.is_dir())
    except OSError as error:
        raise AskedWrongly(f"{folder}: expected a folder of roots, got {error.strerror}; give another path") from error
    if (folder / SEAL_NAME).is_file():
        raise AskedWrongly(f"{folder}: expected a folder of roots, got a root; give the folder that it is in")
    left = seal.leftovers(folder)
    roots = [entry for entry in entries if not seal.is_aside(entry) and any((entry / sign).exists() for sign in _SIGNS)]
    seen: list[Seen] = []
    for found in _all(roots):
        seen.append(found)
        if progress is not None:
            progress(len(seen), len(roots))
    seen = [item for item in seen if without is None or item.digest != without]
    return history(seen, [path.relative_to(folder).as_posix() for path in left])


def _all(roots: Sequence[Path]) -> Iterator[Seen]:
    """Look at each root, in order; at many, in as many processes as there are processors: hashing and parsing are most of it."""
    if len(roots) < FEW:
        yield from map(_look, roots)
        return
    from concurrent.futures import ProcessPoolExecutor

    processes = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(_look, roots, chunksize=4)


def _look(root: Path) -> Seen:
    opened = open_root(root)
    if not opened.report.ok:
        faults = opened.report.faults
        why = f"{faults[0].rule} {faults[0].message}" if faults else "not every check could run"
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return Seen(name=root.name, digest=opened.digest, why=why + more)
    try:
        return Seen(
            name=root.name,
            digest=opened.digest,
            plan=from_json(opened.read(records.PLAN), Plan, records.PLAN),
            claim=from_json(opened.read(records.CLAIM), Qualification, records.CLAIM),
            lineage=from_json(opened.read(records.LINEAGE), Lineage, records.LINEAGE),
        )
    except RecordError as error:
        return Seen(name=root.name, digest=opened.digest, why=str(error))
