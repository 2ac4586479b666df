"""How to climb again what a root says: where, and by which command. Pure; what is a root's own word is inert or left out.

The root holds the bytes of the ladder but not the files beside it, so the command is one of the ladder's own repository.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from harness import again
from harness.root import RootRecords

LADDER = "LADDER"
_WORD = re.compile(
    r"(?!.*www\.)[A-Za-z0-9][A-Za-z0-9._/-]*(@[0-9a-f]{40})?|blake3:[0-9a-f]{64}|--[a-z-]+", re.IGNORECASE
)
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Reproduce(NamedTuple):
    """``where`` it runs, ``origin`` (the root's word, not escaped; may be empty), commands, what each placeholder is, and a warning."""

    where: str
    origin: str
    commands: tuple[str, ...]
    placeholders: tuple[str, ...]
    warning: str


def reproduce(records: RootRecords) -> Reproduce:
    """The commands in order. A word of the root that could be anything but a plain name is left for the reader to fill in."""
    facts, plan = records.environment.facts, records.plan
    commit, origin = facts.get("ladder_commit"), facts.get("ladder_origin")
    known = isinstance(commit, str) and _COMMIT.fullmatch(commit) is not None
    words = ["qualify", "run", LADDER, *again.model(plan.candidate), *again.rest(plan)]
    said = " ".join(word if _WORD.fullmatch(word) else "NAME" for word in words)
    placeholders = [f"{LADDER} is the file of which this root holds the bytes as ladder.yaml"]
    if plan.candidate.revision is None:
        placeholders.append(f"{again.FOLDER} is the folder of the candidate; its digest must be the one above")
    if plan.inputs.baseline is not None:
        placeholders.append(f"{again.BASELINE} is the folder of the root that L1 was compared with")
    return Reproduce(
        where="In the repository of the ladder" if known else "Where the ladder and the files that it names are",
        origin=origin if known and isinstance(origin, str) else "",
        commands=(*([f"git checkout {commit}"] if known else []), said),
        placeholders=tuple(placeholders),
        warning="The ladder, data, or other tracked files were not as that commit has them."
        if known and facts.get("ladder_dirty")
        else "",
    )
