"""Which climbs a CI matrix starts: one for each candidate (a ladder names one) and group of targets. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from harness.errors import AskedWrongly
from harness.ladder import Ladder
from harness.records import Record

By = Literal["provider", "target", "ladder"]


class Job(Record, frozen=True):
    """One climb: its name, once in a matrix; the ladder's path and name; the targets to climb, none for all of the ladder.

    Everything but ``ladder`` is made of ``a-z 0-9 - _`` and spaces, so that it may name an artifact.
    """

    name: str
    ladder: str
    ladder_name: str
    group: str
    targets: str


def jobs(ladders: Iterable[tuple[str, Ladder]], by: By) -> tuple[Job, ...]:
    """The jobs of ladders (path and content), in their order; targets that a ladder defers are in none.

    ``by`` says what stands together: the targets of one execution provider, each target alone, or the whole ladder. Raises
    ``AskedWrongly`` when two ladders have one name, or nothing is left to climb.
    """
    found: list[Job] = []
    names: dict[str, str] = {}
    for path, asked in ladders:
        if asked.name in names:
            raise AskedWrongly(
                f"{path}: expected a name of its own, got {asked.name!r}, as {names[asked.name]}; rename one ladder"
            )
        names[asked.name] = path
        groups: dict[str, list[str]] = {}
        for target in asked.targets:
            if target.deferred is None:
                group = {"provider": target.provider, "target": target.name, "ladder": "all"}[by]
                groups.setdefault(group, []).append(target.name)
        found += [
            Job(
                name=f"{asked.name}_{group}",
                ladder=path,
                ladder_name=asked.name,
                group=group,
                targets="" if len(groups) == 1 else " ".join(targets),
            )
            for group, targets in groups.items()
        ]
    if not found:
        raise AskedWrongly(
            "plan --matrix: expected a target to climb, got none that is not deferred; give another ladder"
        )
    return tuple(found)
