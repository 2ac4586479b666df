"""The root that L1 is compared with: verified and judged again before anything else is done with it, and then only read.

What a new root keeps of it is its manifest, as an input of the plan; ``derive_paired`` says what that shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from evidence.manifest import render_digests
from harness import records
from harness.derive_paired import Sealed, artifacts_of
from harness.errors import NotIntact
from harness.preserve import check_withdrawn, intact
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

    Raises NotIntact for one that is not intact, or whose claim its samples do not bear out; AskedWrongly for one that is not there, or
    that another root beside it replaces.
    """
    where = f"--baseline {root}"
    opened = intact(root, "--baseline", digest)
    judged = rejudge(opened.read, opened.paths, opened.digests, opened.sizes)
    if judged.faults or judged.records is None:
        got = judged.faults[0].message if judged.faults else judged.why
        said = f"{where}: expected a root whose claim its samples bear out, got: {got}; see qualify verify"
        raise NotIntact(said, 20 if judged.faults else 30)
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
