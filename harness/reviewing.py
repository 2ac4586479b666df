"""What ``qualify review`` does: read, ask every question of ``approval``, and write the answer beside the root, never into it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from evidence.manifest import digest_of
from harness import approval, attest, diff, diff_identity, gate, own_ladder, policy, records, sides
from harness.answer import Checked, check
from harness.approval import Asked, Review
from harness.clock import now
from harness.diff_values import Diff, Side
from harness.environment import observe
from harness.errors import AskedWrongly
from harness.files import read_small
from harness.gate import Gates
from harness.policy import Policy
from harness.records import Qualification, from_json, to_json
from harness.review import check_expect
from harness.sides import Named, Progress
from harness.survey import survey


class Reviewed(NamedTuple):
    """The review, what it compared (None without a baseline that verifies), and what the attestation speaks of."""

    review: Review
    checked: Checked
    found: Diff | None
    gates: Gates | None
    ladder: bytes | None
    claim: Qualification | None


class _Files(NamedTuple):
    """What the reviewer brought, read."""

    policy: Policy
    digest: str
    folder: Path
    baseline: Named | None
    ladder: tuple[str, bytes] | None


def review(
    root: Path,
    policy_file: Path,
    baseline: Path | None = None,
    earlier_file: Path | None = None,
    expect: str | None = None,
    progress: Progress | None = None,
) -> Reviewed:
    """Review a root under a policy. Raises ``AskedWrongly`` for what the reviewer brought, never for what the root holds."""
    check_expect(expect)
    files = _read(root, policy_file, baseline)
    earlier = _earlier(earlier_file)
    asked, notes = Asked(), list[str]()
    checked = check(root, expect, progress)
    approval.integrity(asked, checked.faults, whole=checked.opened.report.ok)
    side = sides.side(checked) if checked.judged is not None and not checked.faults else None
    found, gates, ladder, claim = None, None, None, None
    if side is not None:
        claim, ladder = side.claim, side.ladder
        if files.ladder is not None:
            under = own_ladder.judge_under(side.judged, files.ladder[1], files.ladder[0])
            assert under is not None
            claim, ladder = under.claim, files.ladder[1]
            notes += [f"your ladder differs: {d.name} sealed {d.sealed}, yours {d.own}" for d in under.differences]
        approval.steps(asked, claim, files.policy.accept_deferred)
        notes += diff_identity.notes_since(side, observe(policy_file.parent))
        other = _baseline(asked, files, side, notes, progress)
        found, gates = _gates(asked, files, side, other)
        approval.siblings(
            asked, survey(root.absolute().parent), side.digest, other.digest if other is not None else None
        )
    elif checked.judged is not None and checked.judged.claim is not None:
        claim, ladder = checked.judged.claim, checked.opened.read(records.LADDER)
    return Reviewed(_review(root, files, checked, asked, tuple(notes), earlier), checked, found, gates, ladder, claim)


def _read(root: Path, policy_file: Path, baseline: Path | None) -> _Files:
    data = read_small(policy_file)
    asked = policy.parse(data, policy_file.name)
    folder = policy_file.parent
    named: Named | None = None
    if baseline is not None:
        named = sides.pair(baseline, root)[0]
    elif asked.baseline is not None:
        named = Named(folder / asked.baseline.path, asked.baseline.digest)
    own = None
    if asked.ladder is not None:
        from harness.ladder import parse

        own = (asked.ladder, read_small(folder / asked.ladder))
        parse(own[1], own[0])
    return _Files(asked, digest_of(data), folder, named, own)


def _earlier(path: Path | None) -> tuple[Review, str] | None:
    if path is None:
        return None
    data = read_small(path, 1 << 24)
    return from_json(data, Review, path.name), hashlib.sha256(data).hexdigest()


def _baseline(asked: Asked, files: _Files, side: Side, notes: list[str], progress: Progress | None) -> Side | None:
    """The baseline where it verifies, whether it is current, and what moved under the two."""
    needed = any(approval.needs_baseline(gate.rules()) for gate in files.policy.gates)
    if files.baseline is None:
        asked.say(
            "baseline",
            met=not needed,
            kind="undetermined",
            text="the policy compares with a baseline, and there is none",
            evidence="the policy",
            closes="give --baseline ROOT, or pin one under baseline in the policy",
        )
        return None
    if not files.baseline.root.is_dir():
        raise AskedWrongly(f"{files.baseline.root}: expected the folder of the baseline, got nothing; check the path")
    checked = check(files.baseline.root, files.baseline.expect, progress)
    sound = checked.judged is not None and not checked.faults
    itself = checked.opened.digest == side.digest
    why = checked.faults[0].message if checked.faults else "not every check could run"
    asked.say(
        "baseline",
        met=sound and not itself,
        kind="undetermined",
        text=f"the baseline does not verify: {why}"
        if not sound
        else "the baseline is the root itself, which shows nothing",
        evidence=str(files.baseline.root),
        closes="another root as baseline, one that verifies and has the pinned digest",
    )
    if not sound or itself:
        return None
    other = sides.side(checked)
    plan = other.records.plan
    line = sides.current(files.baseline.root.absolute().parent, side.digest, plan.ladder, plan.candidate.model)
    approval.freshness(asked, other.digest, line, files.baseline.root.name)
    notes += diff_identity.base_notes(other, side)
    return other


def _gates(asked: Asked, files: _Files, side: Side, other: Side | None) -> tuple[Diff | None, Gates]:
    """The comparison, and the gates. Without a baseline only bounds on the root's own values can be judged."""
    found = diff.compare(other if other is not None else side, side)
    gates = gate.judge(files.policy, files.digest, found)
    if other is None:
        bounds = tuple(item for item in gates.gates if item.rule.startswith(("at_most", "at_least")))
        gates = msgspec.structs.replace(gates, gates=bounds)
    approval.gates(asked, gates)
    return (found if other is not None else None), gates


def _review(
    root: Path,
    files: _Files,
    checked: Checked,
    asked: Asked,
    notes: tuple[str, ...],
    earlier: tuple[Review, str] | None,
) -> Review:
    old = earlier[0] if earlier is not None else None
    plan = checked.judged.records.plan if checked.judged is not None and checked.judged.records is not None else None
    if (
        old is not None
        and plan is not None
        and old.ladder is not None
        and (old.ladder, old.model) != (plan.ladder, plan.candidate.model)
    ):
        raise AskedWrongly(
            f"--earlier: expected a review of ladder {plan.ladder} and model {plan.candidate.model}, got one of {old.ladder} and "
            f"{old.model}; give the review of an earlier root of the same"
        )
    missed = approval.unasked(asked, old)
    blockers, met = asked.result(old)
    verdict, code = approval.verdict(blockers)
    return Review(
        format=1,
        root=str(root),
        digest=checked.opened.digest,
        ladder=plan.ladder if plan is not None else None,
        model=plan.candidate.model if plan is not None else None,
        policy=files.policy.name,
        policy_digest=files.digest,
        baseline=str(files.baseline.root) if files.baseline is not None else None,
        verdict=verdict,
        exit_code=code,
        blockers=blockers,
        met=met,
        notes=notes,
        reviewed_at=now(),
        earlier=approval.since(old, earlier[1], blockers, met, missed)
        if old is not None and earlier is not None
        else None,
    )


# --- what is written --------------------------------------------------------------------------------------------------


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
