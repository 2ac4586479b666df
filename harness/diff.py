"""Two roots that verified -> what differs between them, tier by tier and target by target. Pure: ``Side.read`` gives verified bytes.

A figure is only compared with one that means the same: the same data and bounds, the same unit, for L1 the same work on the same machine
class. Where it does not, both values stand there with the reason and there is no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from harness import diff_base, diff_figures, diff_identity, diff_queries
from harness.diff_values import ABSENT, About, BesideDiff, Diff, Side, StepDiff, rows, state_of
from harness.errors import AskedWrongly
from harness.plan import left_out
from harness.policy import Identity
from harness.records import TIERS, Qualification, Tier
from harness.report import view


def compare(
    baseline: Side, candidate: Side, pairs: Sequence[tuple[str, str]] = (), ladder_file: str = "LADDER"
) -> Diff:
    """Compare two roots. ``pairs`` names targets of the baseline and the candidate that are compared instead of those of one name.

    ``ladder_file`` stands for the ladder in the command that refreshes. Raises ``AskedWrongly`` for a pair that a plan does not have.
    """
    wanted = _pairs(baseline, candidate, pairs)
    identity = diff_identity.changes(baseline, candidate, wanted)
    changed = {change.part for change in identity}
    parts: tuple[Identity, ...] = get_args(Identity)
    unknown = diff_identity.unknown(baseline, candidate)
    steps = [
        _step(baseline, candidate, before, after, tier)
        for before, after in wanted
        for tier in TIERS
        if {baseline.verdict(before, tier), candidate.verdict(after, tier)} != {ABSENT}
    ]
    return Diff(
        baseline=_about(baseline),
        candidate=_about(candidate),
        identity=identity,
        same=tuple(part for part in parts if part not in changed and part not in unknown),
        unknown=unknown,
        ladder=diff_identity.ladder_changes(baseline.ladder, candidate.ladder),
        steps=tuple(steps),
        refresh=diff_base.refresh(baseline, candidate, ladder_file),
        beside=tuple(_beside(baseline.claim, candidate.claim)),
        notes=diff_identity.notes(baseline, candidate),
    )


def _beside(one: Qualification, other: Qualification) -> Iterator[BesideDiff]:
    """The verdicts of the whole roots, of each quality gate of either, and of the lock."""
    was, now = (
        {"root": claim.verdict}
        | {f"gate {gate.name}": gate.verdict for gate in claim.gates}
        | ({"lock": claim.lock.verdict} if claim.lock is not None else {})
        for claim in (one, other)
    )
    for name in dict.fromkeys((*was, *now)):
        before, after = was.get(name, ABSENT), now.get(name, ABSENT)
        yield BesideDiff(name=name, baseline=before, candidate=after, state=state_of(before, after))


def _pairs(
    baseline: Side, candidate: Side, asked: Sequence[tuple[str, str]]
) -> tuple[tuple[str | None, str | None], ...]:
    """Targets of one name in the order of the candidate's plan, then those that only the baseline has."""
    there, here = ([target.name for target in side.records.plan.targets] for side in (baseline, candidate))
    for before, after in asked:
        for name, names, side in ((before, there, "baseline"), (after, here, "candidate")):
            if name not in names:
                raise AskedWrongly(
                    f"--pair {before}={after}: expected a target of the {side}, got {name!r}; it has {', '.join(names)}"
                )
    if asked:
        return tuple(asked)
    both = [(name if name in there else None, name) for name in here]
    return (*both, *((name, None) for name in there if name not in here))


def _step(baseline: Side, candidate: Side, before: str | None, after: str | None, tier: Tier) -> StepDiff:
    was, now = baseline.verdict(before, tier), candidate.verdict(after, tier)
    one, other = before or "", after or ""
    reason = ""
    if before is None or after is None:
        reason = f"the {'baseline' if before is None else 'candidate'} has no such target"
    elif not (baseline.measured(before, tier) and candidate.measured(after, tier)):
        side, verdict = ("baseline", was) if not baseline.measured(before, tier) else ("candidate", now)
        reason = f"the {side} has no figures: {verdict}"
    else:
        reason = diff_figures.why_not(baseline, candidate, one, other, tier)
    both = rows(baseline, candidate, one, other) if tier == "L3" and not reason else None
    ranked = [
        view.bounds(side.records, name) if tier == "L3" else None
        for side, name in ((baseline, one), (candidate, other))
    ]
    smoke = [found.smoke if found is not None else "" for found in ranked]
    shows = both is not None and not any(smoke)
    moved, count = (
        diff_queries.moved_queries(baseline, candidate, one, other, both) if both is not None and shows else ((), 0)
    )
    return StepDiff(
        target=after or one,
        baseline_target=before or other,
        tier=tier,
        baseline=was,
        candidate=now,
        state=state_of(was, now),
        compared=tuple(
            diff_figures.withheld(item, *smoke)
            for item in diff_figures.compared(baseline, candidate, one, other, tier, reason, both)
        ),
        why_not=reason,
        moved=moved,
        moved_queries=count,
        baseline_bounds=str(ranked[0] or ""),
        candidate_bounds=str(ranked[1] or ""),
        smoke=smoke[1] or smoke[0],
    )


def _about(side: Side) -> About:
    plan, claim = side.records.plan, side.claim
    return About(
        root=side.name,
        digest=side.digest,
        ladder=plan.ladder,
        model=plan.candidate.model,
        revision=plan.candidate.revision,
        verdict=claim.verdict,
        ended_at=claim.ended_at,
        reached=claim.coverage.reached,
        missed=claim.coverage.missed,
        deferred=claim.coverage.deferred,
        complete=claim.coverage.complete,
        left_out=left_out(plan),
    )
