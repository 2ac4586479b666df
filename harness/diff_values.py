"""The values of a comparison of two roots: what differs, by how much, and what could not be compared. Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple

from harness.derive_raw import Read
from harness.derive_rerank import Queries
from harness.metrics.direction import Better
from harness.policy import Identity
from harness.recheck import Rejudged
from harness.records import Measurement, PlannedTarget, Qualification, Record, TargetClaim, Tier, Value
from harness.root import RootRecords

ABSENT = "absent"
State = Literal["same", "gained", "lost", "changed"]
Origin = Literal["explicit", "default", "absent"]


class Side(NamedTuple):
    """A root that verified and whose claim its samples bear out: what it is called, its digest, records, and verified bytes by path.

    ``read`` gives the files of carried steps by the paths that they would have, had they run here (``root.merged``).
    """

    name: str
    digest: str
    ladder: bytes
    judged: Rejudged
    read: Read

    @property
    def records(self) -> RootRecords:
        """Every record of the root."""
        assert self.judged.records is not None
        return self.judged.records

    @property
    def claim(self) -> Qualification:
        """The claim that the samples give."""
        assert self.judged.claim is not None
        return self.judged.claim

    def target(self, name: str | None) -> PlannedTarget | None:
        """A target of the plan."""
        return next((target for target in self.records.plan.targets if target.name == name), None)

    def verdict(self, name: str | None, tier: Tier) -> str:
        """The verdict of a step; ``deferred`` or ``absent`` where the plan has none."""
        claim: TargetClaim | None = next((claim for claim in self.claim.targets if claim.name == name), None)
        if claim is None:
            return ABSENT
        return "deferred" if claim.deferred is not None else claim.tiers.get(tier, ABSENT)

    def measured(self, name: str | None, tier: Tier) -> dict[str, Measurement]:
        """What was derived from the raw samples of a step, by metric; empty where it has no numbers that count."""
        return {item.metric: item for item in self.judged.measured.get((name or "", tier), ())}


class Rows(NamedTuple):
    """The queries of one step on both sides: of one target they are the same, in the same order."""

    baseline: Queries
    candidate: Queries


def state_of(was: str, now: str) -> State:
    """What became of a verdict."""
    return "same" if was == now else "gained" if now == "PASS" else "lost" if was == "PASS" else "changed"


def rows(baseline: Side, candidate: Side, before: str, after: str) -> Rows | None:
    """The queries of both sides, None unless they are the same."""
    one, other = (side.judged.queries.get(name) for side, name in ((baseline, before), (candidate, after)))
    if one is None or other is None or [*one.ids] != [*other.ids]:
        return None
    return Rows(one, other)


class Change(Record, frozen=True):
    """One part of the identity that differs. ``target`` is empty where it is about the whole root."""

    part: Identity
    name: str
    target: str
    baseline: Value
    candidate: Value


class LadderChange(Record, frozen=True):
    """One value of the two ladders that differs, by JSON pointer (RFC 6901), and whether each side gave it or left it to its default."""

    pointer: str
    baseline: Value
    candidate: Value
    baseline_from: Origin
    candidate_from: Origin


class Compared(Record, frozen=True):
    """One metric on one target. ``difference`` is candidate less baseline, in the metric's unit; ``ratio`` is candidate over baseline.

    Both intervals are 95%, and null where nothing was resampled; ``how`` says what was. ``candidate_interval`` is that of the candidate's
    own measurement. ``why_not`` says why the two values do not mean
    the same thing; then there is neither difference nor ratio. ``smoke`` says why a figure of the ranking is no claim of accuracy; it is
    null then on the side that makes none, and there is neither difference nor ratio.
    """

    metric: str
    unit: str
    better: Better
    baseline: Value
    candidate: Value
    difference: float | None = None
    interval: tuple[float, float] | None = None
    ratio: float | None = None
    ratio_interval: tuple[float, float] | None = None
    candidate_interval: tuple[float, float] | None = None
    how: str = ""
    why_not: str = ""
    smoke: str = ""

    @property
    def same(self) -> bool:
        """Whether both sides have this value, and it means the same."""
        return (
            not self.why_not
            and not self.smoke
            and self.baseline == self.candidate
            and type(self.baseline) is type(self.candidate)
        )


class Reranked(Record, frozen=True):
    """A candidate of a query whose place changed: its id, gain, and rank (1 is first; the mean rank of a tie) and score on both sides."""

    id: str
    gain: float
    baseline_rank: float
    candidate_rank: float
    baseline_score: float
    candidate_score: float


class MovedQuery(Record, frozen=True):
    """A query whose nDCG@10 moved, with the candidates that moved most."""

    query_id: str
    query: str
    baseline: float
    candidate: float
    candidates: tuple[Reranked, ...]


class StepDiff(Record, frozen=True):
    """One tier of one target: verdicts (``deferred``, ``absent`` too), every metric of either side, and why they do not compare, if so.

    ``gained`` is a PASS that the baseline did not have, ``lost`` one that it had. Of L3 the bounds of what either side ranked, in words,
    and ``smoke``: why they are too little for a claim of accuracy, else empty.
    """

    target: str
    baseline_target: str
    tier: Tier
    baseline: str
    candidate: str
    state: State
    compared: tuple[Compared, ...]
    why_not: str = ""
    moved: tuple[MovedQuery, ...] = ()
    moved_queries: int = 0
    baseline_bounds: str = ""
    candidate_bounds: str = ""
    smoke: str = ""


class BesideDiff(Record, frozen=True):
    """A verdict beside the steps: ``root`` (of the whole), ``gate NAME``, or ``lock``; ``absent`` where a side has none."""

    name: str
    baseline: str
    candidate: str
    state: State


class Refresh(Record, frozen=True):
    """What moved under the same candidate and ladder, which steps it touches, which could be carried, and the command that refreshes.

    ``command`` is empty where nothing has to run again. Steps are ``tier:target``.
    """

    moved: tuple[str, ...]
    touched: tuple[str, ...]
    preserved: tuple[str, ...]
    command: tuple[str, ...]


class About(Record, frozen=True):
    """One side in short. ``left_out`` are the deferred targets that the climb was not asked for (``run --target``)."""

    root: str
    digest: str
    ladder: str
    model: str
    revision: str | None
    verdict: str
    ended_at: str
    reached: tuple[str, ...]
    missed: tuple[str, ...]
    deferred: tuple[str, ...]
    complete: bool
    left_out: tuple[str, ...] = ()
    authenticity: Literal["none", "pinned"] = "none"


class Diff(Record, frozen=True):
    """Two roots compared. ``same`` names the parts of the identity that are identical; ``unknown`` those of which a side does not tell.

    ``beside`` are the verdicts that are of no step; ``notes`` say what is not compared though one side has it.
    """

    baseline: About
    candidate: About
    identity: tuple[Change, ...]
    same: tuple[Identity, ...]
    unknown: tuple[Identity, ...]
    ladder: tuple[LadderChange, ...]
    steps: tuple[StepDiff, ...]
    refresh: Refresh | None
    beside: tuple[BesideDiff, ...] = ()
    notes: tuple[str, ...] = ()
