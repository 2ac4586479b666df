"""The roots of one folder as a history: what replaces what, what is preserved from where, which is current. Pure.

A root says what it replaces; nothing in the replaced root changes. So a history is only as whole as the folder: a root that is not
there replaces nothing here, and is said to be missing. Verdicts are what each root claims; ``verify`` judges them again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from harness.judge_rerank import claimed
from harness.records import Lineage, Plan, Qualification, Record, Verdict

State = Literal["current", "older", "superseded", "not intact", "another version"]
VERIFIED = "every file of every root, by all rules of the bundle; the verdicts are the roots' claims"
LISTED = (
    "seal, manifest, the records shown; artifacts, raw samples and the other records are not rehashed: --verify; "
    "the verdicts are the roots' claims"
)
"""What was looked at before a root was listed (docs/decisions/0012)."""


class Seen(Record, frozen=True):
    """One folder that was looked at. ``why`` is the first fault of one that is not intact; then there is nothing else to say.

    ``version`` is the other version of qualify whose records this one cannot read; then there is no more to say either.
    """

    name: str
    digest: str | None
    why: str = ""
    version: str | None = None
    plan: Plan | None = None
    claim: Qualification | None = None
    lineage: Lineage | None = None


class Line(Record, frozen=True):
    """One root of a history. Of one that is not intact, or that another version made, only name, digest and ``notes`` are given.

    ``supersedes`` is a pair of digest and reason; ``preserved`` a digest and how many steps are carried from it; ``smoke`` says for each
    target whose L3 is a functional smoke test why it is one.
    """

    name: str
    digest: str | None
    state: State
    ended_at: str = ""
    ladder: str = ""
    model: str = ""
    revision: str | None = None
    candidate_digest: str = ""
    verdict: Verdict | None = None
    targets: dict[str, Verdict] = {}  # noqa: RUF012 - msgspec copies an empty default
    smoke: dict[str, str] = {}  # noqa: RUF012
    supersedes: tuple[tuple[str, str], ...] = ()
    preserved: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()


class History(Record, frozen=True):
    """Roots in the order in which they ended, those that cannot be read last; what is odd about the whole; leftovers by name.

    ``checked`` says what was looked at: ``LISTED`` is no verification.
    """

    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    leftovers: tuple[str, ...]
    checked: str = VERIFIED


def history(seen: Sequence[Seen], leftovers: Sequence[str] = (), checked: str = VERIFIED) -> History:
    """Put what was seen in order; ``checked`` is ``VERIFIED`` or ``LISTED``.

    *superseded*: another intact root here says that it replaces this one. *current*: of those that are not, the one of its
    ladder and model that ended last. *older*: the others. A fork and a missing root are notes.
    """
    intact = sorted((item for item in seen if item.claim is not None), key=lambda item: (_ended(item), item.name))
    foreign = [item for item in seen if item.version is not None]
    there = {item.digest: item.name for item in (*foreign, *reversed(intact))}
    replaced_by: dict[str, list[str]] = {}
    for item in intact:
        for old in _lineage(item).supersedes:
            if item.digest not in replaced_by.get(old.digest, ()):
                replaced_by.setdefault(old.digest, []).append(str(item.digest))
    newest = {_subject(item): item.digest for item in intact if item.digest not in replaced_by}
    kept = {item.digest: {(k.origin, step) for k in _lineage(item).preserved for step in k.steps} for item in intact}
    lines = [_line(item, there, replaced_by, newest, kept) for item in intact]
    lines += [
        Line(name=item.name, digest=item.digest, state=_unread(item, replaced_by), notes=(item.why,))
        for item in sorted(seen, key=lambda item: item.name)
        if item.claim is None
    ]
    return History(
        lines=tuple(lines),
        notes=tuple(_whole(intact, there, replaced_by)),
        leftovers=tuple(sorted(leftovers)),
        checked=checked,
    )


def _unread(item: Seen, replaced_by: Mapping[str, object]) -> State:
    """The state of a root of which nothing is read. What another version made may well be replaced."""
    if item.version is None:
        return "not intact"
    return "superseded" if item.digest in replaced_by else "another version"


def _line(
    item: Seen,
    there: dict[str | None, str],
    replaced_by: dict[str, list[str]],
    newest: dict[tuple[str, str], str | None],
    kept: dict[str | None, set[tuple[str, str]]],
) -> Line:
    assert item.plan is not None
    assert item.claim is not None
    candidate, lineage = item.plan.candidate, _lineage(item)
    state: State = "current" if newest.get(_subject(item)) == item.digest else "older"
    return Line(
        name=item.name,
        digest=item.digest,
        state="superseded" if item.digest in replaced_by else state,
        ended_at=item.claim.ended_at,
        ladder=item.plan.ladder,
        model=candidate.model,
        revision=candidate.revision,
        candidate_digest=candidate.digest,
        verdict=item.claim.verdict,
        targets={target.name: target.verdict for target in item.claim.targets},
        smoke=claimed(item.claim),
        supersedes=tuple((old.digest, old.reason) for old in lineage.supersedes),
        preserved=tuple((kept.origin, len(kept.steps)) for kept in lineage.preserved),
        notes=tuple(_notes(item, there, replaced_by, kept)),
    )


def _notes(
    item: Seen,
    there: dict[str | None, str],
    replaced_by: dict[str, list[str]],
    kept: dict[str | None, set[tuple[str, str]]],
) -> Iterator[str]:
    """A root that is not here; and evidence that another root replaced without carrying it itself."""
    lineage = _lineage(item)
    for old in lineage.supersedes:
        if old.digest not in there:
            yield f"what it replaces is not here: {old.digest}"
    for entry in lineage.preserved:
        if entry.origin not in there:
            yield f"its origin is not here, what it carries of it is: {entry.origin}"
        carried = {(entry.origin, step) for step in entry.steps}
        others = [there[by] for by in replaced_by.get(entry.origin, ()) if not carried <= kept[by]]
        if others:
            yield f"it carries steps that {', '.join(others)} replaced: {entry.origin}"


def _whole(intact: Sequence[Seen], there: dict[str | None, str], replaced_by: dict[str, list[str]]) -> Iterator[str]:
    for digest, others in sorted(replaced_by.items()):
        if len(others) > 1:
            named = " and ".join(sorted(there[other] for other in others))
            yield f"fork: {named} both replace {there.get(digest, digest)}"
    for digest, count in sorted(Counter(str(item.digest) for item in intact).items()):
        if count > 1:
            names = ", ".join(item.name for item in intact if item.digest == digest)
            yield f"one root {count} times: {names}"


def _lineage(item: Seen) -> Lineage:
    return item.lineage if item.lineage is not None else Lineage(format=1)


def _subject(item: Seen) -> tuple[str, str]:
    """What a root is about: two roots of one ladder and model answer the same question."""
    return (item.plan.ladder, item.plan.candidate.model) if item.plan is not None else ("", "")


def _ended(item: Seen) -> str:
    return item.claim.ended_at if item.claim is not None else ""
