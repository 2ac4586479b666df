"""Whether several roots together qualify every target of a ladder: what a matrix of CI jobs comes to. Pure.

Each root is judged by itself, and none is rewritten or merged into another. They count together only when each was
measured under these very ladder bytes, on one candidate and on the same data; what is in none of them is not covered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from evidence.manifest import digest_of
from harness.ladder import Ladder
from harness.records import Plan, Qualification, Record, Tier, Verdict

EXIT_OK, EXIT_NO, EXIT_NOT_INTACT, EXIT_UNDETERMINED = 0, 10, 20, 30
State = Literal["PASS", "FAIL", "BLOCKED", "INCONCLUSIVE", "NOT_RUN", "DEFERRED", "MISSING"]
"""A verdict; or DEFERRED, by the ladder itself; or MISSING: no root climbed it."""
WORST_FIRST: tuple[State, ...] = ("FAIL", "MISSING", "BLOCKED", "INCONCLUSIVE", "NOT_RUN", "DEFERRED", "PASS")


class Seen(NamedTuple):
    """One root that was looked at: its path, digest, and what it holds; no plan when it is not intact, and then ``why``."""

    path: str
    digest: str | None
    exit_code: int
    plan: Plan | None = None
    claim: Qualification | None = None
    why: str = ""


class TargetCover(Record, frozen=True):
    """One target of a ladder: what came of it, in which roots (digests), and why where it did not reach the goal."""

    name: str
    state: State
    reached: Tier | None
    roots: tuple[str, ...]
    reason: str


class LadderCover(Record, frozen=True):
    """One ladder: its digest, the one candidate of its roots (None without a root), and every target in the ladder's order."""

    name: str
    digest: str
    candidate: str | None
    goal: Tier
    targets: tuple[TargetCover, ...]
    complete: bool
    exit_code: int


class Refused(Record, frozen=True):
    """A root that counts for no ladder, and why."""

    root: str
    digest: str | None
    reason: str
    exit_code: int


class Covered(Record, frozen=True):
    """The answer: every ladder, and every root that counts for none. ``exit_code`` is 0 only when all is covered and nothing refused."""

    ladders: tuple[LadderCover, ...]
    refused: tuple[Refused, ...]
    exit_code: int


def cover(ladders: Sequence[tuple[Ladder, bytes]], roots: Sequence[Seen], *, allow_deferred: bool = False) -> Covered:
    """Lay roots beside the ladders. A root given twice counts once; ``allow_deferred`` takes what a ladder defers for settled."""
    digests = {digest_of(data) for _, data in ladders}
    refused = [found for root in roots if (found := _refusal(root, digests)) is not None]
    bad = {found.root for found in refused}
    sound = {root.digest: root for root in roots if root.path not in bad}
    answers = []
    for asked, data in ladders:
        own = [root for root in sound.values() if root.plan is not None and root.plan.ladder_digest == digest_of(data)]
        kept = [root for root in own if _same(root, own[0])]
        refused += [_other(root, own[0]) for root in own if not _same(root, own[0])]
        answers.append(_ladder(asked, data, kept, allow_deferred=allow_deferred))
    codes = {answer.exit_code for answer in answers} | {root.exit_code for root in refused}
    worst = next((code for code in (EXIT_NOT_INTACT, EXIT_NO, EXIT_UNDETERMINED) if code in codes), EXIT_OK)
    return Covered(
        ladders=tuple(answers),
        refused=tuple(sorted(refused, key=lambda item: item.root)),
        exit_code=worst if answers else EXIT_UNDETERMINED,
    )


def _refusal(root: Seen, ladders: set[str]) -> Refused | None:
    """Why a root is of no use to any ladder: it is not intact, or it was measured under another."""
    if root.plan is None:
        return Refused(
            root=root.path, digest=root.digest, reason=root.why, exit_code=root.exit_code or EXIT_UNDETERMINED
        )
    if root.plan.ladder_digest in ladders:
        return None
    why = f"expected a root of a ladder given here, got one of {root.plan.ladder} {root.plan.ladder_digest}"
    return Refused(root=root.path, digest=root.digest, reason=why, exit_code=EXIT_UNDETERMINED)


def _data(plan: Plan) -> object:
    return msgspec.to_builtins((plan.candidate, plan.options, plan.inputs))


def _same(root: Seen, first: Seen) -> bool:
    """Whether two roots of one ladder measured one thing: candidate, options (defaults fitted to it) and data."""
    assert root.plan is not None
    assert first.plan is not None
    return _data(root.plan) == _data(first.plan)


def _other(root: Seen, first: Seen) -> Refused:
    assert root.plan is not None
    assert first.plan is not None
    what = "candidate" if root.plan.candidate.digest != first.plan.candidate.digest else "data"
    got = f"got another {what}"
    if what == "candidate":
        got = f"got candidate {root.plan.candidate.digest}"
    why = f"expected the {what} of {first.path} ({first.plan.candidate.digest}), {got}"
    return Refused(root=root.path, digest=root.digest, reason=why, exit_code=EXIT_UNDETERMINED)


def _ladder(asked: Ladder, data: bytes, roots: Sequence[Seen], *, allow_deferred: bool) -> LadderCover:
    targets = tuple(_target(target.name, target.deferred, asked.goal, roots) for target in asked.targets)
    states = {target.state for target in targets}
    settled = states <= ({"PASS", "DEFERRED"} if allow_deferred else {"PASS"}) and "PASS" in states
    first = next((root.plan for root in roots if root.plan is not None), None)
    return LadderCover(
        name=asked.name,
        digest=digest_of(data),
        candidate=first.candidate.digest if first is not None else None,
        goal=asked.goal,
        targets=targets,
        complete=states == {"PASS"},
        exit_code=EXIT_OK if settled else EXIT_NO if "FAIL" in states else EXIT_UNDETERMINED,
    )


def _target(name: str, deferred: str | None, goal: Tier, roots: Sequence[Seen]) -> TargetCover:
    """The worst that any root says of a target: a climb repeated until it passes has the earlier ones counted too."""
    if deferred is not None:
        reason = " ".join(deferred.split())
        return TargetCover(name=name, state="DEFERRED", reached=None, roots=(), reason=reason)
    found: list[tuple[State, Tier | None, str, str]] = []
    for root in roots:
        assert root.claim is not None
        for claim in root.claim.targets:
            if claim.name == name and claim.deferred is None:
                short = claim.verdict == "PASS" and claim.reached != goal
                state: Verdict = "NOT_RUN" if short else claim.verdict
                beside = [(gate.verdict, f"gate {gate.name}: {gate.reason}") for gate in root.claim.gates]
                beside += (
                    [(lock.verdict, f"{len(lock.differences)} packages differ from {lock.file}")]
                    if (lock := root.claim.lock)
                    else []
                )
                said = [(state, claim.reason), *(item for item in beside if item[0] != "PASS")]
                state, reason = min(said, key=lambda item: WORST_FIRST.index(item[0]))
                found.append((state, claim.reached, str(root.digest), reason))
    if not found:
        return TargetCover(name=name, state="MISSING", reached=None, roots=(), reason="no root climbed it")
    worst = min(found, key=lambda item: WORST_FIRST.index(item[0]))
    digests = tuple(sorted(digest for _, _, digest, _ in found))
    return TargetCover(name=name, state=worst[0], reached=worst[1], roots=digests, reason=worst[3])
