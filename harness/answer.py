"""A root looked at: verified and judged again first, then what it says, as plain values. ``review.py`` adds what a reviewer brings.

Nothing is read from a root that did not verify. ``cli.py`` prints these answers; no command has another way to a root.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from evidence.manifest import Fault
from evidence.report import AUTHENTICITY
from evidence.verify import VerifiedRoot, open_root
from harness.errors import AskedWrongly, NotIntact
from harness.judge import exit_code
from harness.recheck import Rejudged, rejudge
from harness.report.view import redacted
from harness.root import RootRecords

EXIT_NOT_INTACT = 20


class Checked(NamedTuple):
    """A root that was rehashed and, where it is intact, judged again (``judged`` is None where it is not)."""

    path: Path
    opened: VerifiedRoot
    judged: Rejudged | None

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Every fault of the bundle and of the claim."""
        return (*self.opened.report.faults, *(self.judged.faults if self.judged else ()))

    @property
    def exit_code(self) -> int:
        """20 or 30 when the bundle or the claim does not hold, else by the verdict judged again (decision 0001)."""
        if not self.opened.report.ok or self.judged is None:
            return self.opened.report.exit_code or EXIT_NOT_INTACT
        return EXIT_NOT_INTACT if self.judged.faults else exit_code(self.judged.verdict)

    @property
    def holds(self) -> bool:
        """Whether the bundle is intact and its claim wholly what its samples give."""
        return self.judged is not None and self.judged.holds

    @property
    def why(self) -> str:
        """The first reason why it does not hold; empty where it does."""
        if self.holds:
            return ""
        told = self.judged.why if self.judged is not None else ""
        return self.faults[0].message if self.faults else told or "it could not be verified"

    @property
    def records(self) -> RootRecords:
        """The records of an intact root. Raises ``NotIntact`` with the first fault for any other."""
        if self.judged is None or self.judged.records is None or not self.holds:
            said = f"{self.path}: expected an intact root, got: {self.why}; run qualify verify for all faults"
            raise NotIntact(said, self.exit_code)
        return self.judged.records


def check(root: Path, expect: str | None = None, progress: Callable[[int, int], None] | None = None) -> Checked:
    """Rehash a root and judge it again. Never raises for what the root holds; ``progress`` counts bytes hashed.

    Raises ``AskedWrongly`` when there is no folder at ``root``: nothing was looked at, so nothing is said of evidence.
    """
    return judged(root, opened(root, expect, progress))


def opened(root: Path, expect: str | None, progress: Callable[[int, int], None] | None) -> VerifiedRoot:
    """Rehash a root: the first half of ``check``."""
    if not root.is_dir():
        got = "something else" if root.exists() else "nothing"
        raise AskedWrongly(f"{root}: expected the folder of a root, got {got}; check the path")
    return open_root(root, expect, progress)


def judged(root: Path, opened: VerifiedRoot) -> Checked:
    """Judge a root again: the second half of ``check``."""
    return Checked(
        root, opened, rejudge(opened.read, opened.paths, opened.digests, opened.sizes) if opened.report.ok else None
    )


def show_answer(checked: Checked) -> dict[str, Any]:
    """The answer of ``qualify show --json``: claim, environment, and every step's outcome and measurements."""
    found = checked.records
    return {
        "root": str(checked.path),
        "digest": checked.opened.report.digest,
        "authenticity": checked.opened.report.authenticity,
        "authenticity_means": AUTHENTICITY[checked.opened.report.authenticity],
        "claim": msgspec.to_builtins(found.claim),
        "redactions": redacted(found),
        "environment": msgspec.to_builtins(found.environment),
        "lineage": msgspec.to_builtins(found.lineage),
        "steps": {
            f"{tier}.{target}": {
                "outcome": msgspec.to_builtins(step.outcome),
                "measurements": msgspec.to_builtins(step.measurements and step.measurements.measurements),
                "preserved_from": found.preserved.get((target, tier)),
            }
            for (target, tier), step in found.steps.items()
        },
    }
