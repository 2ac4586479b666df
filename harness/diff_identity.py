"""What two roots are of: model, options, data, artifact, machine, packages; their ladders by pointer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from harness import ladder, lineage, packages, strict_yaml
from harness.diff_values import Change, LadderChange, Origin, Side
from harness.policy import Identity
from harness.records import TIERS, PlannedTarget, Value

Pairs = Sequence[tuple[str | None, str | None]]
"""Targets that are compared: the baseline's name and the candidate's, None where one side has none."""

_ADAPTER = "adapter"
HARNESS = ("harness_commit", "harness_dirty")


def changes(baseline: Side, candidate: Side, pairs: Pairs) -> tuple[Change, ...]:
    """Every part of the identity that differs, of the whole roots first, then target by target."""
    found: list[Change] = []
    for part, one, other in _whole(baseline, candidate):
        found += _differing(part, "", one, other)
    for before, after in pairs:
        for part, one, other in _targets(baseline, candidate, before, after):
            found += _differing(part, after or before or "", one, other)
    return tuple(found)


def unknown(baseline: Side, candidate: Side) -> tuple[Identity, ...]:
    """Parts that are not wholly known on both sides, so that nobody can say that they are the same."""
    sides = [(side.records.plan.inputs, side.records.environment) for side in (baseline, candidate)]
    missing: dict[Identity, bool] = {
        "dataset": any(inputs.groups is None for inputs, _ in sides),
        "pairs": any(inputs.pairs is None for inputs, _ in sides),
        "machine": any(None in lineage.machine_class(environment).values() for _, environment in sides),
        "harness": any(environment.facts.get("harness_commit") is None for _, environment in sides),
    }
    return tuple(part for part, is_missing in missing.items() if is_missing)


def notes(baseline: Side, candidate: Side) -> tuple[str, ...]:
    """What is not compared though one side has it, a sentence each."""
    said = packages.told(*((side.records.plan, side.records.environment) for side in (baseline, candidate))).note
    return (said,) if said else ()


def _differing(part: Identity, target: str, one: object, other: object) -> Iterator[Change]:
    was, now = dict(lineage.flat(one)), dict(lineage.flat(other))
    for name in [*was, *(key for key in now if key not in was)]:
        if was.get(name) != now.get(name) or type(was.get(name)) is not type(now.get(name)):
            yield Change(part=part, name=name, target=target, baseline=was.get(name), candidate=now.get(name))


def _whole(baseline: Side, candidate: Side) -> Iterator[tuple[Identity, object, object]]:
    both = packages.told(*((side.records.plan, side.records.environment) for side in (baseline, candidate)))
    one, other = (_facts(side, versions) for side, versions in ((baseline, both.baseline), (candidate, both.candidate)))
    for part in one:
        yield part, one[part], other[part]


def _facts(side: Side, versions: dict[str, str]) -> dict[Identity, object]:
    plan, environment = side.records.plan, side.records.environment
    model: dict[str, Any] = msgspec.to_builtins(plan.candidate)
    model["files"] = {item["path"]: item["blake3"] for item in model["files"]}
    adapter = {name: model.pop(name) for name in list(model) if name.startswith(_ADAPTER)}
    inputs = msgspec.to_builtins(plan.inputs)
    lock = inputs.pop("lock")
    options = {tier: table for tier, table in msgspec.to_builtins(plan.options).items() if table is not None}
    return {
        "model": model,
        "adapter": adapter,
        "options": {"goal": plan.goal, "seed": plan.seed, **options},
        "limits": {
            "gates": {gate.name: msgspec.to_builtins(gate) for gate in plan.gates},
            "lock": {"digest": lock["digest"], **msgspec.to_builtins(plan.lock)} if lock and plan.lock else None,
        },
        "dataset": {"groups": inputs.pop("groups"), "blocked": inputs.pop("groups_blocked")},
        "pairs": inputs,
        "machine": lineage.machine_class(environment),
        "packages": {**versions, "python": environment.facts.get("python")},
        "harness": {name: environment.facts.get(name) for name in HARNESS},
    }


def _targets(
    baseline: Side, candidate: Side, before: str | None, after: str | None
) -> Iterator[tuple[Identity, object, object]]:
    one, other = baseline.target(before), candidate.target(after)
    if one is None or other is None:
        return
    yield "options", _asked_of(one), _asked_of(other)
    yield "limits", limits_of(one), limits_of(other)
    yield "artifact", {"digest": _artifact(baseline, before)}, {"digest": _artifact(candidate, after)}


def _asked_of(target: PlannedTarget) -> dict[str, object]:
    made = ("precision", "provider", "threads", "artifact", "deferred")
    return {name: msgspec.to_builtins(getattr(target, name)) for name in made}


def limits_of(target: PlannedTarget) -> dict[str, object]:
    """The limits of every tier of a target."""
    return {step.tier: msgspec.to_builtins(step.limits) for step in target.steps}


def _artifact(side: Side, target: str | None) -> str | None:
    """The digest of the artifact that the target's steps ran; the verifier has seen that they agree."""
    ran = (side.records.steps.get((target or "", tier)) for tier in TIERS)
    return next(
        (step.outcome.artifact_digest for step in ran if step is not None and step.outcome.artifact_digest), None
    )


# --- the ladders ------------------------------------------------------------------------------------------------------


def ladder_changes(baseline: bytes, candidate: bytes) -> tuple[LadderChange, ...]:
    """Every value that differs between two ladders that parse, with the defaults of this version filled in on both sides."""
    one, other = _values(baseline), _values(candidate)
    absent: tuple[Value, Origin] = (None, "absent")
    found = []
    for pointer in [*one, *(key for key in other if key not in one)]:
        (was, was_from), (now, now_from) = one.get(pointer, absent), other.get(pointer, absent)
        if was != now or type(was) is not type(now):
            found.append(
                LadderChange(
                    pointer=pointer, baseline=was, candidate=now, baseline_from=was_from, candidate_from=now_from
                )
            )
    return tuple(found)


def _values(data: bytes) -> dict[str, tuple[Value, Origin]]:
    """Every value of a ladder by JSON pointer, and where it comes from. A key whose default is to be absent is left out."""
    given = dict(_pointers(strict_yaml.load(data)))
    whole = dict(_pointers(msgspec.to_builtins(ladder.parse(data))))
    return {
        at: (value, "explicit" if at in given else "default")
        for at, value in whole.items()
        if at in given or value is not None
    }


def _pointers(value: object, at: str = "") -> Iterator[tuple[str, Value]]:
    if isinstance(value, Mapping | list | tuple):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, inner in items:
            yield from _pointers(inner, f"{at}/{str(key).replace('~', '~0').replace('/', '~1')}")
    elif value is None or isinstance(value, int | float | str):
        yield at, value
