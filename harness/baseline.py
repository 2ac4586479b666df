"""The root that L1 is compared with: verified and judged again before anything else is done with it, and then only read.

What a new root keeps of it is its manifest, as an input of the plan; ``derive_paired`` says what that shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from evidence.manifest import render_digests
from evidence.verify import open_root
from harness import records
from harness.derive_paired import Sealed, artifacts_of
from harness.errors import AskedWrongly
from harness.preserve import check_withdrawn
from harness.recheck import rejudge
from harness.records import DataFact


class Baseline(NamedTuple):
    """A root that was verified: where it is, its manifest, the fact that the plan pins, and its artifacts by target."""

    root: Path
    manifest: bytes
    fact: DataFact
    artifacts: dict[str, Sealed]

    def artifact(self, target: str) -> Path | None:
        """The folder of a target's artifact; None where the baseline has none."""
        found = self.artifacts.get(target)
        return None if found is None else self.root / found.folder


def look(root: Path, digest: str | None = None) -> Baseline:
    """Look at a root, whatever its verdict; ``digest`` is what its root digest must be.

    Raises AskedWrongly for one that is not intact, whose claim its samples do not bear out, or that another root beside it replaces.
    """
    opened = open_root(root, digest)
    where = f"--baseline {root}"
    if not opened.report.ok:
        faults = opened.report.faults
        got = faults[0].message if faults else "one that could not be checked wholly"
        raise AskedWrongly(f"{where}: expected a root that is intact, got: {got}; see qualify verify")
    judged = rejudge(opened.read, opened.paths)
    if judged.faults or judged.records is None:
        raise AskedWrongly(
            f"{where}: expected a root whose claim its samples bear out, got: {judged.faults[0].message}; see qualify verify"
        )
    check_withdrawn(where, str(opened.digest), {}, opened)
    manifest = render_digests(opened.digests)  # it has one spelling: these are the bytes that were verified
    plan = judged.records.plan
    fact = DataFact(
        path=records.BASELINE,
        digest=str(opened.digest),
        source=f"{plan.ladder} of {plan.candidate.model}"
        + (f" at {plan.candidate.revision}" if plan.candidate.revision else ""),
        rows=len(opened.digests),
    )
    return Baseline(root, manifest, fact, artifacts_of(manifest))
