"""What a step's samples depend on, so that one that ran before can stand for one that would run now. Pure; rules in one place.

A step of an earlier root may be carried when all that its samples rely on is as it would be today: candidate, target, options,
seed, data and bounds, and the software and processor that made the numbers; for L1 the whole class of the machine. Limits may
differ, because the carried samples are judged again under the new ones. What a limit counts (L0) or names (L3) may not: it would not
be there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from harness.derive_build import COUNTS
from harness.errors import AskedWrongly
from harness.metrics.rerank_names import cuts, is_ranking
from harness.probes import longest_tokens
from harness.records import TIERS, DataFact, Environment, Plan, PlannedTarget, Tier, Value

Step = tuple[str, Tier]
"""Target and tier."""

SOFTWARE: dict[Tier, tuple[str, ...]] = {
    "L0": ("onnx", "onnxruntime", "openvino", "tokenizers", "torch", "transformers"),
    "L1": ("onnxruntime", "openvino", "tokenizers"),
    "L2": ("onnxruntime", "openvino", "tokenizers", "torch", "transformers"),
    "L3": ("onnxruntime", "openvino", "tokenizers", "torch", "transformers"),
}
"""Packages that make a tier's numbers."""

DATA: dict[Tier, tuple[str, ...]] = {
    "L0": ("pairs", "calibration"),
    "L1": ("pairs", "baseline"),
    "L2": ("pairs",),
    "L3": ("groups",),
}
"""Inputs of the plan that a tier may look at."""

NO_NUMBER = frozenset({"time_limit_s", "memory_limit_bytes"})
"""Options that only say when a step is ended."""

_MACHINE = ("system", "machine", "cpu_model", "instruction_sets", "usable_cores")
_GIB = 1 << 30
_UNKNOWN = "unknown"


def machine_class(environment: Environment) -> dict[str, Value]:
    """What two machines must share for a latency of one to speak for the other. Memory in whole GiB; null where unknown."""
    facts = environment.facts
    memory = facts.get("memory_bytes")
    found: dict[str, Value] = {name: facts.get(name) for name in _MACHINE}
    return found | {"memory_gib": round(memory / _GIB) if isinstance(memory, int | float) else None}


def relied_on(plan: Plan, environment: Environment, target: PlannedTarget, tier: Tier) -> dict[str, Value]:
    """Everything that the samples of one step depend on, flat: name to value. The artifact's digest is the bundle's to compare."""
    options = getattr(plan.options, tier)
    limits = next((step.limits for step in target.steps if step.tier == tier), {})
    machine = machine_class(environment)
    facts = {
        "candidate": plan.candidate.digest,
        "seed": plan.seed,
        "target": {name: getattr(target, name) for name in ("precision", "provider", "threads", "artifact", "session")},
        f"tiers.{tier}": {k: v for k, v in msgspec.to_builtins(options or {}).items() if k not in NO_NUMBER},
        "inputs": {name: _pinned(getattr(plan.inputs, name)) for name in DATA[tier]},
        "package": {name: environment.packages.get(name) for name in (*SOFTWARE[tier], *_adapter_software(plan, tier))},
        "machine": machine if tier == "L1" else {name: machine[name] for name in ("machine", "instruction_sets")},
    }
    if tier == "L0":
        facts["longest tokens"] = longest_tokens(plan.options, plan.candidate.max_length)
        facts["counted"] = ", ".join(sorted(name for name in limits if name.startswith(COUNTS)))
    if tier == "L3":
        own = {name: limit for name, limit in limits.items() if is_ranking(name)}
        facts["measured"] = ", ".join(sorted(own)) + f"; cut at {', '.join(map(str, cuts(limits)))}"
        facts["passed at random"] = own if "random_pass_chance" in limits else None
    return dict(flat(msgspec.to_builtins(facts)))


def _adapter_software(plan: Plan, tier: Tier) -> tuple[str, ...]:
    """What puts an adapter on, where there is one and the tier runs PyTorch."""
    return ("peft",) if plan.candidate.adapter is not None and "torch" in SOFTWARE[tier] else ()


def _pinned(fact: DataFact | None) -> dict[str, object] | None:
    return None if fact is None else {"digest": fact.digest, "rows": fact.rows, "bounds": fact.bounds}


def flat(value: object, at: str = "") -> Iterator[tuple[str, Value]]:
    """Every leaf of plain values with its place. Empty lists and tables are no leaf."""
    if isinstance(value, Mapping | list | tuple):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, inner in items:
            yield from flat(inner, f"{at}.{key}" if at else str(key))
    elif value is None or isinstance(value, int | float | str):
        yield at, value


def disagreements(here: Mapping[str, Value], there: Mapping[str, Value]) -> list[tuple[str, Value, Value]]:
    """Name, value here and value there of all that differs, sorted by name. An unknown machine is never the same machine."""

    def stated(side: Mapping[str, Value], name: str) -> Value:
        return _UNKNOWN if side.get(name) is None and name.startswith("machine.") else side.get(name)

    names = sorted(here.keys() | there.keys())
    found = [(name, stated(here, name), stated(there, name)) for name in names]
    return [(name, one, other) for name, one, other in found if one != other or one == _UNKNOWN]


def to_rerun(words: Sequence[str], plan: Plan) -> set[Step]:
    """The steps that ``--rerun`` names: ``L1`` on every target, or ``L1:cpu-fp16``. Raises AskedWrongly for what is not planned."""
    found: set[Step] = set()
    planned: dict[Step, None] = {(t.name, step.tier): None for t in plan.targets for step in t.steps}
    for word in words:
        tier, _, name = word.partition(":")
        named = {step for step in planned if step[1] == tier and name in {"", step[0]}}
        if not named or word.endswith(":"):
            steps = ", ".join(f"{planned_tier}:{target}" for target, planned_tier in planned)
            raise AskedWrongly(
                f"--rerun {word}: expected a tier, or tier:target, of the plan, got none; it has {steps}"
            )
        found |= named
    return found


def check_builds(rerun: Collection[Step], carried: Collection[Step]) -> None:
    """Refuse tiers carried from above an artifact that is built again: they measured another. Raises AskedWrongly."""
    stale = [
        (target, tier) for target, tier in carried if (target, "L0") in rerun and TIERS.index(tier) > TIERS.index("L0")
    ]
    if stale:
        words = " ".join(f"--rerun {tier}:{target}" for target, tier in stale)
        raise AskedWrongly(
            f"--rerun L0:{stale[0][0]}: expected every tier on a new artifact to run again, got some to carry; add {words}"
        )
