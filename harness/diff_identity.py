"""What two roots are of: model, options, data, artifact, machine, packages; their ladders by pointer; what a moved base touches. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from harness import ladder, lineage, strict_yaml
from harness.diff_values import Change, LadderChange, Origin, Refresh, Side
from harness.policy import Identity
from harness.records import TIERS, Environment, Plan, PlannedTarget, Tier, Value

Pairs = Sequence[tuple[str | None, str | None]]
"""Targets that are compared: the baseline's name and the candidate's, None where one side has none."""

_ADAPTER = "adapter"
_BASE = ("package.", "machine.")
"""What a step relies on that is not the candidate, the ladder or the data."""
_HARNESS = ("harness_commit", "harness_dirty")


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


def _differing(part: Identity, target: str, one: object, other: object) -> Iterator[Change]:
    was, now = dict(lineage.flat(one)), dict(lineage.flat(other))
    for name in [*was, *(key for key in now if key not in was)]:
        if was.get(name) != now.get(name) or type(was.get(name)) is not type(now.get(name)):
            yield Change(part=part, name=name, target=target, baseline=was.get(name), candidate=now.get(name))


def _whole(baseline: Side, candidate: Side) -> Iterator[tuple[Identity, object, object]]:
    one, other = (_facts(side) for side in (baseline, candidate))
    for part in one:
        yield part, one[part], other[part]


def _facts(side: Side) -> dict[Identity, object]:
    plan, environment = side.records.plan, side.records.environment
    model: dict[str, Any] = msgspec.to_builtins(plan.candidate)
    model["files"] = {item["path"]: item["blake3"] for item in model["files"]}
    adapter = {name: model.pop(name) for name in list(model) if name.startswith(_ADAPTER)}
    inputs = msgspec.to_builtins(plan.inputs)
    options = {tier: table for tier, table in msgspec.to_builtins(plan.options).items() if table is not None}
    return {
        "model": model,
        "adapter": adapter,
        "options": {"goal": plan.goal, "seed": plan.seed, **options},
        "dataset": {"groups": inputs.pop("groups"), "blocked": inputs.pop("groups_blocked")},
        "pairs": inputs,
        "machine": lineage.machine_class(environment),
        "packages": {**environment.packages, "python": environment.facts.get("python")},
        "harness": {name: environment.facts.get(name) for name in _HARNESS},
    }


def _targets(
    baseline: Side, candidate: Side, before: str | None, after: str | None
) -> Iterator[tuple[Identity, object, object]]:
    one, other = baseline.target(before), candidate.target(after)
    if one is None or other is None:
        return
    yield "options", _asked_of(one), _asked_of(other)
    yield "limits", _limits_of(one), _limits_of(other)
    yield "artifact", {"digest": _artifact(baseline, before)}, {"digest": _artifact(candidate, after)}


def _asked_of(target: PlannedTarget) -> dict[str, object]:
    made = ("precision", "provider", "threads", "artifact", "deferred")
    return {name: msgspec.to_builtins(getattr(target, name)) for name in made}


def _limits_of(target: PlannedTarget) -> dict[str, object]:
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


# --- a base that moved ------------------------------------------------------------------------------------------------


def refresh(baseline: Side, candidate: Side, ladder_file: str) -> Refresh | None:
    """What it takes to bring the baseline's evidence to the candidate's packages, machine and harness. None unless only these moved."""
    moved: dict[str, None] = {}
    touched: list[tuple[str, Tier]] = []
    carried: list[tuple[str, Tier]] = []
    one, other = baseline.records, candidate.records
    if one.plan.goal != other.plan.goal or [t.name for t in one.plan.targets] != [t.name for t in other.plan.targets]:
        return None
    for target in one.plan.targets:
        again = candidate.target(target.name)
        assert again is not None
        for step in target.steps:
            there, here = one.ran_under((target.name, step.tier)), (other.plan, other.environment)
            was, now = (
                lineage.relied_on(*side, planned, step.tier) for side, planned in ((there, target), (here, again))
            )
            differing = [name for name, _, _ in lineage.disagreements(now, was)]
            if any(not name.startswith(_BASE) for name in differing):
                return None
            moved |= dict.fromkeys(differing)
            built_anew = (target.name, "L0") in touched
            numbers = (target.name, step.tier) in baseline.judged.measured
            (touched if differing or built_anew or not numbers else carried).append((target.name, step.tier))
    harness = [
        f"harness.{name.removeprefix('harness_')}" for name in _HARNESS if _fact(one, name) != _fact(other, name)
    ]
    if not moved and not harness:
        return None
    return Refresh(
        moved=(*moved, *harness),
        touched=tuple(f"{tier}:{target}" for target, tier in touched),
        preserved=tuple(f"{tier}:{target}" for target, tier in carried),
        command=_command(baseline, touched, carried, ladder_file),
    )


def _fact(records: Any, name: str) -> Value:
    value: Value = records.environment.facts.get(name)
    return value


def _command(
    baseline: Side, touched: list[tuple[str, Tier]], carried: list[tuple[str, Tier]], ladder_file: str
) -> tuple[str, ...]:
    """``qualify run`` that measures again what is touched and carries the rest; everything again where there is nothing to carry."""
    if not touched:
        return ()
    words = ["qualify", "run", ladder_file, "--supersede", baseline.name, "--reason", "the base moved"]
    if not carried:
        return tuple(words)
    words += ["--preserve", baseline.name]
    for tier in TIERS:
        named = [target for target, its in touched if its == tier]
        if named and not any(its == tier for _, its in carried):
            words += ["--rerun", tier]
        else:
            words += [word for target in named for word in ("--rerun", f"{tier}:{target}")]
    return tuple(words)


def base_notes(baseline: Side, candidate: Side) -> tuple[str, ...]:
    """What moved under two roots beside the candidate itself, and the tiers that it touches, a sentence each."""
    one, other = baseline.records, candidate.records
    return _moved("since the baseline", (one.plan, one.environment), (other.plan, other.environment))


def notes_since(root: Side, here: Environment) -> tuple[str, ...]:
    """What moved since a root was measured, as far as ``here`` tells: packages that are installed here too, and this harness."""
    plan, then = root.records.plan, root.records.environment
    packages = {name: here.packages.get(name, version) for name, version in then.packages.items()}
    commits = {name: here.facts.get(name) for name in _HARNESS if here.facts.get(name) is not None}
    now = Environment(format=1, facts={**then.facts, **commits}, packages=packages)
    return _moved("since it was measured, as installed here", (plan, then), (plan, now))


def _moved(since: str, one: tuple[Plan, Environment], other: tuple[Plan, Environment]) -> tuple[str, ...]:
    was, now = ({**_base(environment), **lineage.machine_class(environment)} for _, environment in (one, other))
    there = {target.name: target for target in one[0].targets}
    touched: dict[str, dict[Tier, None]] = {}
    for target in other[0].targets:
        for step in target.steps if target.name in there else ():
            facts = [lineage.relied_on(*side, t, step.tier) for side, t in ((other, target), (one, there[target.name]))]
            for name, _, _ in lineage.disagreements(facts[0], facts[1]):
                if name.startswith(_BASE):
                    touched.setdefault(name.partition(".")[2], {})[step.tier] = None
    return tuple(
        f"the base moved {since}: {name} {_word(was.get(name))}, now {_word(now.get(name))}; "
        f"touches {', '.join(touched[name]) if name in touched else 'no tier'}"
        for name in [*was, *(key for key in now if key not in was)]
        if was.get(name) != now.get(name)
    )


def _base(environment: Environment) -> dict[str, Value]:
    facts = {name.replace("_", " "): environment.facts.get(name) for name in _HARNESS}
    return {**environment.packages, **facts}


def _word(value: Value) -> str:
    return "none" if value is None else f"{value}"
