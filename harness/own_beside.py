"""What a reviewer's ladder asks beside the targets: gates and the lock; and what one difference from the sealed plan is. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from harness.records import GateClaim, LockClaim, Plan, Qualification, Record, Tier

NONE = "none"
ELSE = "the root measured something else"


class Difference(Record, frozen=True):
    """One thing that differs from the sealed plan. ``target`` and ``tier`` are empty where it is about all of them.

    ``blocks``: the root has no number for what the reviewer asks, so the steps concerned are BLOCKED.
    """

    kind: Literal["limit", "option", "target", "candidate", "goal", "seed", "gate", "lock"]
    target: str
    tier: Tier | Literal[""]
    name: str
    sealed: str
    own: str
    blocks: bool = False


def beside_of(own: Plan, sealed: Plan) -> Iterator[Difference]:
    """Gates and lock that the reviewer asks for and the root has not, or has otherwise; and gates that the reviewer leaves out."""
    theirs = {gate.name: gate for gate in sealed.gates}
    for gate in own.gates:
        was = theirs.pop(gate.name, None)
        before, now = (NONE if side is None else shown([*side.command, side.folder]) for side in (was, gate))
        if before != now:
            yield Difference(kind="gate", target="", tier="", name=gate.name, sealed=before, own=now, blocks=True)
    for name in theirs:
        yield Difference(kind="gate", target="", tier="", name=name, sealed="ran", own=NONE)
    before, now = (NONE if side is None else f"{side.file}, {side.parity}" for side in (sealed.lock, own.lock))
    if before != now:
        yield Difference(
            kind="lock", target="", tier="", name="lock", sealed=before, own=now, blocks=own.lock is not None
        )


def claims_beside(
    own: Plan, claim: Qualification, differences: tuple[Difference, ...]
) -> tuple[tuple[GateClaim, ...], LockClaim | None]:
    """Gates and lock as the root has them, for what the reviewer asks; BLOCKED where it has another or none."""
    left = {gate.name: gate for gate in claim.gates}
    blocked = {(d.kind, d.name): f"{ELSE}: {d.name} {d.sealed}, not {d.own}" for d in differences if d.blocks}
    gates = tuple(
        GateClaim(name=gate.name, verdict="BLOCKED", reason=blocked["gate", gate.name])
        if ("gate", gate.name) in blocked
        else left[gate.name]
        for gate in own.gates
    )
    lock = claim.lock if own.lock is not None else None
    if own.lock is not None and (("lock", "lock") in blocked or lock is None):
        lock = LockClaim(file=own.lock.file, parity=own.lock.parity, verdict="BLOCKED", differences=())
    return gates, lock


def shown(value: object) -> str:
    """A value of a ladder as a difference shows it."""
    return NONE if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()
