"""What moved under two roots of the same candidate, ladder and data: packages, machine, harness; what that touches. Pure."""

from __future__ import annotations

from typing import Any

from harness import again, lineage, packages
from harness.diff_identity import HARNESS, limits_of
from harness.diff_values import Refresh, Side
from harness.quality import canonical
from harness.records import TIERS, Environment, Plan, Tier, Value

_BASE = ("package.", "machine.")
"""What a step relies on that is not the candidate, the ladder or the data."""
UNSEEN = "which stages' code it changed is not looked at"
"""All that can be said of another commit of this harness: its version is what says that a number may mean something else."""


def refresh(baseline: Side, candidate: Side, ladder_file: str) -> Refresh | None:
    """What it takes to bring the baseline's evidence to the candidate's packages, machine and harness. None unless only these moved."""
    moved: dict[str, None] = {}
    touched: list[tuple[str, Tier]] = []
    carried: list[tuple[str, Tier]] = []
    one, other = baseline.records, candidate.records
    if not _same_question(one.plan, other.plan):
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
    harness = [f"harness.{name.removeprefix('harness_')}" for name in HARNESS if _fact(one, name) != _fact(other, name)]
    if not moved and not harness:
        return None
    return Refresh(
        moved=(*moved, *harness),
        touched=tuple(f"{tier}:{target}" for target, tier in touched),
        preserved=tuple(f"{tier}:{target}" for target, tier in carried),
        command=_command(baseline, touched, carried, ladder_file),
    )


def _same_question(one: Plan, other: Plan) -> bool:
    """Whether both plans ask the same of the same targets: limits, gates and lock too, which no sample relies on."""

    def asked(plan: Plan) -> tuple[object, ...]:
        lock = plan.inputs.lock.digest if plan.inputs.lock is not None else None
        return plan.goal, [(t.name, limits_of(t)) for t in plan.targets], plan.gates, plan.lock, lock

    return asked(one) == asked(other)


def _fact(records: Any, name: str) -> Value:
    value: Value = records.environment.facts.get(name)
    return value


def _command(
    baseline: Side, touched: list[tuple[str, Tier]], carried: list[tuple[str, Tier]], ladder_file: str
) -> tuple[str, ...]:
    """``qualify run`` that measures again what is touched and carries the rest; everything again where there is nothing to carry."""
    if not touched:
        return ()
    plan = baseline.records.plan
    words = ["qualify", "run", ladder_file, *again.other_model(plan.candidate, baseline.ladder), *again.rest(plan)]
    words += ["--supersede", baseline.name, "--reason", "the base moved"]
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
    installed = {canonical(name): version for name, version in here.packages.items()}
    versions = {name: installed.get(canonical(name), version) for name, version in then.packages.items()}
    commits = {name: here.facts.get(name) for name in HARNESS if here.facts.get(name) is not None}
    now = Environment(format=1, facts={**then.facts, **commits}, packages=versions)
    return _moved("since it was measured, as installed here", (plan, then), (plan, now))


def _moved(since: str, one: tuple[Plan, Environment], other: tuple[Plan, Environment]) -> tuple[str, ...]:
    told = packages.told(one, other)
    was, now = (
        {**versions, **_harness(environment), **lineage.machine_class(environment)}
        for versions, (_, environment) in ((told.baseline, one), (told.candidate, other))
    )
    there = {target.name: target for target in one[0].targets}
    touched: dict[str, dict[Tier, None]] = {}
    for target in other[0].targets:
        for step in target.steps if target.name in there else ():
            facts = [lineage.relied_on(*side, t, step.tier) for side, t in ((other, target), (one, there[target.name]))]
            for name, _, _ in lineage.disagreements(facts[0], facts[1]):
                if name.startswith(_BASE):
                    touched.setdefault(name.partition(".")[2], {})[step.tier] = None

    def touches(name: str) -> str:
        return UNSEEN if name.startswith("harness ") else f"touches {', '.join(touched.get(name, ())) or 'no tier'}"

    return tuple(
        f"the base moved {since}: {name} {_word(was.get(name))}, now {_word(now.get(name))}; {touches(name)}"
        for name in [*was, *(key for key in now if key not in was)]
        if was.get(name) != now.get(name)
    ) + ((told.note,) if told.note else ())


def _harness(environment: Environment) -> dict[str, Value]:
    return {name.replace("_", " "): environment.facts.get(name) for name in HARNESS}


def _word(value: Value) -> str:
    return "none" if value is None else f"{value}"
