"""A reviewer's answer to a root: what stands in the way of approving it, what would close that, and what an earlier review had. Pure.

    REJECT           the root is not intact, or its claim is not what its samples give
    REQUEST_CHANGES  at least one blocker: on merit (exit 10), or else because something could not be told (exit 30)
    APPROVE          everything that is asked was looked at and holds

Every question that was asked has an id. An earlier blocker is closed only when its question was asked again and is met now; one that was
not asked again is a blocker of its own, so that nothing is approved by leaving a question out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from evidence.manifest import Fault
from harness.gate import Gates
from harness.history import History, Line
from harness.metrics import catalogue
from harness.records import TIERS, Qualification, Record, step_folder

Answer = Literal["APPROVE", "REQUEST_CHANGES", "REJECT"]
Kind = Literal["integrity", "merit", "undetermined"]
KINDS: tuple[Kind, ...] = ("integrity", "merit", "undetermined")


class Blocker(Record, frozen=True):
    """One thing in the way: where in the root (or beside it) the evidence is, and what would close it."""

    id: str
    kind: Kind
    text: str
    evidence: str
    closes: str


class Earlier(Record, frozen=True):
    """What became of the blockers of an earlier review, by id. ``unasked`` are those whose question was not asked again."""

    sha256: str
    digest: str | None
    closed: tuple[str, ...]
    open: tuple[str, ...]
    unasked: tuple[str, ...]


class Review(Record, frozen=True):
    """The whole answer, as it is written beside the root. ``met`` are the ids of all questions that hold; blockers are numbered from 1.

    ``ladder`` and ``model`` are null where the root cannot be read.
    """

    format: Literal[1]
    root: str
    digest: str | None
    ladder: str | None
    model: str | None
    policy: str
    policy_digest: str
    baseline: str | None
    verdict: Answer
    exit_code: int
    blockers: tuple[Blocker, ...]
    met: tuple[str, ...]
    notes: tuple[str, ...]
    reviewed_at: str
    earlier: Earlier | None = None


class Asked:
    """Questions as they are answered: what is met, and what is not."""

    def __init__(self) -> None:
        self.met: dict[str, None] = {}
        self.blockers: dict[str, Blocker] = {}

    def say(
        self, name: str, *, met: bool, kind: Kind = "merit", text: str = "", evidence: str = "", closes: str = ""
    ) -> None:
        """Answer one question. A question that was ever not met stays so."""
        if met:
            self.met[name] = None
        elif name not in self.blockers:
            self.blockers[name] = Blocker(id=name, kind=kind, text=text, evidence=evidence, closes=closes)

    def result(self, earlier: Review | None) -> tuple[tuple[Blocker, ...], tuple[str, ...]]:
        """Blockers, the worst kind first, and ids that are met. An earlier blocker that was not asked again is one."""
        for old in unasked(self, earlier):
            if self.rejected:
                break  # nothing could be asked of a root that is not intact, and that alone decides
            self.blockers[old.id] = Blocker(
                id=old.id,
                kind="undetermined",
                text=f"an earlier review found: {old.text}; this one has no such question",
                evidence=old.evidence,
                closes="ask it again: the same target, tier, gate or root",
            )
        found = sorted(self.blockers.values(), key=lambda blocker: KINDS.index(blocker.kind))
        return tuple(found), tuple(name for name in self.met if name not in self.blockers)

    @property
    def rejected(self) -> bool:
        """Whether a fault of integrity was found."""
        return any(blocker.kind == "integrity" for blocker in self.blockers.values())


def unasked(asked: Asked, earlier: Review | None) -> list[Blocker]:
    """Earlier blockers whose question was not asked now."""
    if earlier is None:
        return []
    return [old for old in earlier.blockers if old.id not in asked.met and old.id not in asked.blockers]


def verdict(blockers: Sequence[Blocker]) -> tuple[Answer, int]:
    """The answer, and the exit code of the command."""
    kinds = {blocker.kind for blocker in blockers}
    if "integrity" in kinds:
        return "REJECT", 20
    return ("REQUEST_CHANGES", 10 if "merit" in kinds else 30) if kinds else ("APPROVE", 0)


def since(
    earlier: Review, sha256: str, blockers: Iterable[Blocker], met: Iterable[str], missed: Iterable[Blocker]
) -> Earlier:
    """What became of the blockers of an earlier review. ``missed`` are those whose question was not asked."""
    now, holds = {blocker.id for blocker in blockers}, set(met)
    gone = {blocker.id for blocker in missed}
    names = [blocker.id for blocker in earlier.blockers]
    return Earlier(
        sha256=sha256,
        digest=earlier.digest,
        closed=tuple(name for name in names if name in holds and name not in now),
        open=tuple(name for name in names if name in now and name not in gone),
        unasked=tuple(name for name in names if name in gone),
    )


# --- the questions ----------------------------------------------------------------------------------------------------


def integrity(asked: Asked, faults: Sequence[Fault], *, whole: bool, why: str = "") -> None:
    """Whether the root is intact and its claim is what its samples give; ``why`` says what could not be told."""
    for fault in faults:
        asked.say(
            f"integrity {fault.rule} {fault.path}",
            met=False,
            kind="integrity",
            text=f"{fault.rule} {fault.message}",
            evidence=fault.path or "the root",
            closes="a root that was sealed by qualify run and not changed since; this one cannot be mended",
        )
    asked.say(
        "integrity",
        met=whole and not faults,
        kind="integrity" if faults else "undetermined",
        text="the root does not verify"
        if faults
        else ": ".join(filter(None, ("not every check of the root could run", why))),
        evidence="qualify verify",
        closes="a root that verifies",
    )


def steps(asked: Asked, claim: Qualification, accepted: Sequence[str]) -> None:
    """Every step of every target; a deferred target only where the policy accepts it."""
    for target in claim.targets:
        if target.deferred is not None:
            asked.say(
                f"coverage {target.name}",
                met=target.name in accepted,
                kind="undetermined",
                text=f"{target.name} is deferred: {target.deferred}",
                evidence="plan.json",
                closes="climb it, or list it under accept_deferred in the policy",
            )
            continue
        stopped = False
        for tier in TIERS:
            found = target.tiers.get(tier)
            if found is None or stopped:
                continue
            stopped = found != "PASS"
            asked.say(
                f"step {tier} {target.name}",
                met=found == "PASS",
                kind="merit" if found == "FAIL" else "undetermined",
                text=f"{tier} of {target.name} is {found}: {target.reason}",
                evidence=f"{step_folder(tier, target.name)}/outcome.json",
                closes=CLOSES.get(found, "climb it"),
            )
    asked.say(
        "coverage",
        met=not claim.coverage.missed and bool(claim.coverage.reached),
        kind="undetermined",
        text=f"not every target reached {claim.coverage.goal}: missed {', '.join(claim.coverage.missed) or 'all'}",
        evidence="qualification.json",
        closes="a root in which every target that is not deferred reaches the goal",
    )


CLOSES = {
    "FAIL": "a root in which that figure meets its limit",
    "BLOCKED": "a root in which that step has its numbers; outcome.json and stderr.log say why it has none",
    "INCONCLUSIVE": "more samples, so that the interval lies on one side of the limit",
    "NOT_RUN": "climb it",
}


def gates(asked: Asked, found: Gates) -> None:
    """Every gate of the policy that could be laid over the comparison."""
    for gate in found.gates:
        asked.say(
            gate.id,
            met=gate.verdict == "OK",
            kind="merit" if gate.verdict == "REGRESSION" else "undetermined",
            text=f"{gate.verdict}: {gate.what} on {gate.target}, {gate.rule}: {gate.reason}",
            evidence=_evidence(gate.what, gate.target),
            closes="a candidate that meets the rule"
            if gate.verdict == "REGRESSION"
            else "figures on both sides that can be compared, and samples enough to tell",
        )


def _evidence(what: str, target: str) -> str:
    metric = catalogue.find(what)
    return (
        f"{step_folder(metric.tier, target)}/measurements.json" if metric is not None else "plan.json, environment.json"
    )


def freshness(asked: Asked, digest: str | None, current: Line | None, name: str) -> None:
    """Whether the baseline is the current root of its folder."""
    asked.say(
        "fresh baseline",
        met=current is not None and current.digest == digest,
        kind="undetermined",
        text=f"{name} is not the current root of its folder"
        + (f": {current.name} ({current.digest}) is" if current is not None else "; none is"),
        evidence="qualify history of the baseline's folder",
        closes="compare with the current root, or pin the one that is meant where no later one lies beside it",
    )


def siblings(asked: Asked, found: History, digest: str, baseline: str | None) -> None:
    """Whether the root is the current one of its folder, and whether each root beside it that failed is accounted for."""
    own = next((line for line in found.lines if line.digest == digest), None)
    subject = (own.ladder, own.model) if own is not None else None
    asked.say(
        "current root",
        met=own is not None and own.state == "current",
        kind="undetermined",
        text=f"the root is {own.state if own is not None else 'not there'} in its folder, not the current one",
        evidence="qualify history of its folder",
        closes="review the root that is current",
    )
    for line in _unaccounted(found.lines, subject, {digest, baseline}):
        whole = line.state != "not intact"
        what = (line.verdict or "of another version of qualify") if whole else "not intact"
        asked.say(
            f"account {line.digest if whole else line.name}",
            met=line.state == "superseded",
            kind="undetermined",
            text=f"{line.name} beside it is {what}, and no root says that it replaces it",
            evidence=f"../{line.name}",
            closes=f"qualify run --supersede {line.name} --reason TEXT, so that the lineage says what became of it"
            if whole
            else "restore it from where it came, or remove it and say so",
        )


def _unaccounted(lines: Iterable[Line], subject: tuple[str, str] | None, known: set[str | None]) -> Iterator[Line]:
    """Roots of the same ladder and model that are not PASS, replaced or not, and those of which nothing can be told."""
    for line in lines:
        ours = line.verdict is None or ((line.ladder, line.model) == subject and line.verdict != "PASS")
        if ours and line.digest not in known:
            yield line


def needs_baseline(rules: Mapping[str, object]) -> bool:
    """Whether a gate's rules ask for two sides."""
    return bool(rules.keys() - {"at_most", "at_least"})
