"""What a review leaves beside the root, never in it: Markdown, JSON, and the attestation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from harness import attest
from harness.errors import AskedWrongly
from harness.records import to_json
from harness.reviewing import Reviewed


class Places(NamedTuple):
    """Where a review goes: Markdown, JSON (for ``--earlier``), and the attestation."""

    markdown: Path
    json: Path
    attestation: Path


def places(root: Path, folder: Path | None) -> Places:
    """Beside the root, or in ``folder``. Raises ``AskedWrongly`` for a place that is taken, is in the root, or has no folder."""
    named = root if root.name not in {"", ".."} else root.resolve()
    where = folder if folder is not None else named.parent
    if not where.is_dir():
        raise AskedWrongly(f"{where}: expected a folder to write the review to, got none; make it first")
    made = Places(*(where / f"{named.name}.{end}" for end in ("review.md", "review.json", "review.intoto.json")))
    for place in made:
        attest.check_place(place, root)
    return made


def statement(reviewed: Reviewed, name: str) -> dict[str, Any] | str:
    """The verification summary of a review, or why there is none: as in ``review.summarise``, a broken copy has a sound root's seal."""
    verifier = attest.verifier_id(name)
    if not reviewed.checked.opened.report.ok:
        return "the root did not verify, and its seal may be that of a sound one"
    if reviewed.checked.judged is not None and reviewed.checked.judged.undetermined:
        return reviewed.checked.judged.why
    if reviewed.claim is None or reviewed.ladder is None:
        return "the records cannot be read, so there is no verdict"
    broken = tuple(sorted({fault.rule for fault in reviewed.checked.faults}))
    judged = attest.Judged(str(reviewed.checked.opened.digest), reviewed.ladder, reviewed.claim, broken)
    said = reviewed.review
    about = {
        "verdict": said.verdict,
        "policy": {"name": said.policy, "digest": said.policy_digest},
        "blockers": [blocker.id for blocker in said.blockers],
    }
    return attest.summary(judged, verifier, said.reviewed_at, (), about)


def encode(reviewed: Reviewed) -> bytes:
    """The review as JSON, which a later one reads."""
    return to_json(reviewed.review)
