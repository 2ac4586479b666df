"""The cases of a root, from what a command has at hand, and the files that a CI system takes them from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.answer import Checked
from harness.files import write_new
from harness.records import Outcome, Qualification, Tier
from harness.report.cases import Account, of_claim, of_verification
from harness.root import RootRecords


def of_records(found: RootRecords, digest: str) -> Account:
    """What a sealed root claims; for one that was sealed a moment ago, or was verified."""
    return Account(
        found.plan.ladder,
        digest,
        found.claim.started_at,
        _seconds(found),
        tuple(of_claim(found.claim, _outcomes(found))),
    )


def of_review(
    checked: Checked,
    answer: dict[str, Any],
    under: tuple[Qualification, dict[tuple[str, Tier], Outcome]] | None,
) -> Account:
    """What a verification found: the checks of the bundle and, of an intact root, every finding, under the reviewer's ladder if given."""
    cases = list(of_verification(answer))
    judged, digest = checked.judged, str(checked.opened.report.digest)
    if judged is None or judged.records is None or judged.claim is None or checked.faults:
        return Account("a root that is not intact", digest, "1970-01-01T00:00:00Z", {}, tuple(cases))
    found = judged.records
    claim, outcomes = under if under is not None else (judged.claim, _outcomes(found))
    cases += of_claim(claim, outcomes)
    return Account(claim.ladder, digest, found.claim.started_at, _seconds(found), tuple(cases))


def write(account: Account, junit: Path | None, sarif: Path | None) -> None:
    """Write the files that were asked for. Raises as ``files.write_new``."""
    from harness.report import junit as as_junit
    from harness.report import sarif as as_sarif

    for path, data in ((junit, as_junit.render), (sarif, as_sarif.render)):
        if path is not None:
            write_new(path, data(account))


def _outcomes(found: RootRecords) -> dict[tuple[str, Tier], Outcome]:
    return {key: step.outcome for key, step in found.steps.items()}


def _seconds(found: RootRecords) -> dict[tuple[str, Tier], float]:
    """Wall time of each step that ran here."""
    return {
        key: step.outcome.exit.seconds
        for key, step in found.steps.items()
        if step.outcome.exit is not None and key not in found.preserved
    }
