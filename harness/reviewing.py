"""What ``qualify review`` does: read, ask every question of ``questions``, ``review_files`` writes the answer."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import msgspec

from evidence.manifest import digest_of
from evidence.verify import VerifiedRoot
from harness import approval, diff, diff_base, gate, policy, questions, records, sides
from harness.answer import Checked, check
from harness.approval import Asked, Review
from harness.clock import now
from harness.diff_values import Diff, Side
from harness.environment import observe
from harness.errors import AskedWrongly
from harness.files import read_small
from harness.gate import Gates
from harness.policy import Policy
from harness.records import Qualification, from_json
from harness.review import check_expect, judge_under
from harness.sides import Named, Progress
from harness.survey import Looked, look

_SOUND = "another root as baseline, one that verifies and has the pinned digest"


class Reviewed(NamedTuple):
    """The review, what it compared (None without a baseline that verifies), and what the attestation speaks of."""

    review: Review
    checked: Checked
    found: Diff | None
    gates: Gates | None
    ladder: bytes | None
    claim: Qualification | None


class _Files(NamedTuple):
    """What the reviewer brought, read. A baseline is a root, or the folder of roots that it is the current one of."""

    policy: Policy
    digest: str
    baseline: Named | Path | None
    ladder: tuple[str, bytes] | None


class _Folders:
    """Folders of roots, each looked at once. Roots that the review verified itself are not verified again for it."""

    def __init__(self) -> None:
        self._known: dict[Path, VerifiedRoot] = {}
        self._looked: dict[Path, Looked] = {}

    def know(self, checked: Checked) -> None:
        """Take over what was verified."""
        self._known[checked.path.absolute()] = checked.opened

    def at(self, folder: Path) -> Looked:
        """What is in a folder. Raises ``AskedWrongly``."""
        place = folder.absolute()
        if place not in self._looked:
            self._looked[place] = look(place, known=self._known)
        return self._looked[place]


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
    files = _read(policy_file, baseline)
    earlier = _earlier(earlier_file)
    asked, notes = Asked(), list[str]()
    checked = check(root, expect, progress)
    told = checked.judged.why if checked.judged is not None else ""
    questions.integrity(asked, checked.faults, whole=checked.holds, why=told)
    found, gates, ladder, claim = None, None, None, None
    against = files.baseline.root if isinstance(files.baseline, Named) else files.baseline
    if checked.holds:
        side, folders = sides.side(checked), _Folders()
        folders.know(checked)
        claim, ladder = _claim(checked, files, notes)
        questions.steps(asked, claim, files.policy.accept_deferred, checked.opened.paths)
        questions.whole(asked, claim, checked.opened.paths)
        notes += diff_base.notes_since(side, observe(policy_file.parent))
        named = _find(asked, files, side, folders)
        other = _baseline(asked, named, side, folders, notes, progress) if named is not None else None
        against = named.root if named is not None else against
        found, gates = _gates(asked, files, side, other, checked.opened.paths)
        if gates.left_out:
            notes.append(f"gates are not judged on targets that are deferred: {', '.join(gates.left_out)}")
        there = folders.at(root.absolute().parent).history()
        questions.siblings(asked, there, side.digest, other.digest if other is not None else None)
        notes += questions.replaced(side.records.lineage.supersedes, there)
    elif checked.judged is not None and checked.judged.claim is not None:
        claim, ladder = checked.judged.claim, checked.opened.read(records.LADDER)
    review = _review(root, files, checked, asked, tuple(notes), earlier, against)
    return Reviewed(review, checked, found, gates, ladder, claim)


def _read(policy_file: Path, baseline: Path | None) -> _Files:
    data = read_small(policy_file)
    asked = policy.parse(data, policy_file.name)
    folder = policy_file.parent
    named: Named | Path | None = None
    if baseline is not None:
        named = sides.find(baseline)
    elif asked.baseline is not None:
        named = Named(folder / asked.baseline.path, asked.baseline.digest)
    own = None
    if asked.ladder is not None:
        from harness.ladder import parse

        own = (asked.ladder, read_small(folder / asked.ladder))
        parse(own[1], own[0])
    return _Files(asked, digest_of(data), named, own)


def _earlier(path: Path | None) -> tuple[Review, str] | None:
    if path is None:
        return None
    data = read_small(path, 1 << 24)
    return from_json(data, Review, path.name), hashlib.sha256(data).hexdigest()


def _claim(checked: Checked, files: _Files, notes: list[str]) -> tuple[Qualification, bytes]:
    """The claim that counts and the ladder that it is of: as it was sealed, or under the policy's ladder."""
    assert checked.judged is not None
    assert checked.judged.claim is not None
    if files.ladder is None:
        return checked.judged.claim, checked.opened.read(records.LADDER)
    under = judge_under(checked, *files.ladder)
    assert under is not None
    sealed = checked.judged.claim.verdict
    if sealed != under.verdict:
        notes.append(f"under its sealed limits the root is {sealed}; the policy's ladder decides: {under.verdict}")
    notes += [f"your ladder differs: {d.name} sealed {d.sealed}, yours {d.own}" for d in under.differences]
    return under.claim, under.ladder


def _find(asked: Asked, files: _Files, side: Side, folders: _Folders) -> Named | None:
    """The root that is the baseline; None, and said so, where there is none."""
    needed = any(questions.needs_baseline(gate.rules()) for gate in files.policy.gates)
    if isinstance(files.baseline, Named):
        return files.baseline
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
    plan = side.records.plan
    line = sides.current(folders.at(files.baseline), side.digest, plan.ladder, plan.candidate.model)
    if line is not None:
        return Named(files.baseline / line.name)
    asked.say(
        "baseline",
        met=False,
        kind="undetermined",
        text=f"the folder holds no intact root of ladder {plan.ladder} and model {plan.candidate.model} other than the one reviewed",
        evidence=str(files.baseline),
        closes=_SOUND,
    )
    return None


def _baseline(
    asked: Asked, named: Named, side: Side, folders: _Folders, notes: list[str], progress: Progress | None
) -> Side | None:
    """The baseline where it verifies, whether it is current, and what moved under the two."""
    if not named.root.is_dir():
        raise AskedWrongly(f"{named.root}: expected the folder of the baseline, got nothing; check the path")
    checked = check(named.root, named.expect, progress)
    itself = checked.opened.digest == side.digest
    asked.say(
        "baseline",
        met=checked.holds and not itself,
        kind="undetermined",
        text="the baseline is the root itself, which shows nothing"
        if checked.holds
        else f"the baseline does not verify: {checked.why}",
        evidence=str(named.root),
        closes=_SOUND,
    )
    if not checked.holds or itself:
        return None
    folders.know(checked)
    other = sides.side(checked)
    plan = other.records.plan
    beside = folders.at(named.root.absolute().parent)
    line = sides.current(beside, side.digest, plan.ladder, plan.candidate.model)
    questions.freshness(asked, other.digest, line, named.root.name)
    notes += diff_base.base_notes(other, side)
    return other


def _gates(
    asked: Asked, files: _Files, side: Side, other: Side | None, paths: Collection[str]
) -> tuple[Diff | None, Gates]:
    """The comparison, and the gates. Without a baseline only bounds on the root's own values can be judged."""
    found = diff.compare(other if other is not None else side, side)
    gates = gate.judge(files.policy, files.digest, found)
    if other is None:
        bounds = tuple(item for item in gates.gates if item.rule.startswith(("at_most", "at_least")))
        gates = msgspec.structs.replace(gates, gates=bounds)
    questions.gates(asked, gates, paths)
    return (found if other is not None else None), gates


def _review(
    root: Path,
    files: _Files,
    checked: Checked,
    asked: Asked,
    notes: tuple[str, ...],
    earlier: tuple[Review, str] | None,
    against: Path | None,
) -> Review:
    old = earlier[0] if earlier is not None else None
    plan = checked.judged.records.plan if checked.judged is not None and checked.judged.records is not None else None
    ladder, model = (plan.ladder, plan.candidate.model) if plan is not None else (None, None)
    if old is not None and plan is not None and old.ladder is not None and (old.ladder, old.model) != (ladder, model):
        raise AskedWrongly(
            f"--earlier: expected a review of ladder {ladder} and model {model}, got one of {old.ladder} and {old.model}; "
            "give the review of an earlier root of the same"
        )
    missed = approval.unasked(asked, old)
    blockers, met = asked.result(old)
    verdict, code = approval.verdict(blockers)
    return Review(
        format=1,
        root=str(root),
        digest=checked.opened.digest,
        ladder=ladder,
        model=model,
        policy=files.policy.name,
        policy_digest=files.digest,
        baseline=str(against) if against is not None else None,
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
