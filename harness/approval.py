"""A reviewer's answer to a root: what stands in the way of approving it, what would close that, and what an earlier review had. Pure.

The questions themselves are in ``questions``.

    REJECT           the root is not intact, or its claim is not what its samples give
    REQUEST_CHANGES  at least one blocker: on merit (exit 10), or else because something could not be told (exit 30)
    APPROVE          everything that is asked was looked at and holds

Every question that was asked has an id. An earlier blocker is closed only when its question was asked again and is met now; one that was
not asked again is a blocker of its own, so that nothing is approved by leaving a question out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from harness.records import Record

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
