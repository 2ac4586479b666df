"""What a step says of its session, held against the target that was planned."""

from __future__ import annotations

from harness.errors import RecordError
from harness.raw import SessionFacts
from harness.records import PlannedTarget, Value
from harness.runtimes import RUNTIMES
from harness.runtimes.onnxruntime import Provider

SHAPE_OPERATORS = frozenset(
    {
        "Cast", "Concat", "ConstantOfShape", "Expand", "Gather", "Identity", "Range", "Reshape", "Shape", "Size", "Slice",
        "Split", "Squeeze", "Unsqueeze", "MemcpyFromHost", "MemcpyToHost",
    }
)  # fmt: skip
"""Operators that runtimes keep on the CPU on purpose, since they compute shapes: they are no fallback."""


def fallback(facts: SessionFacts) -> tuple[int, list[str]]:
    """Nodes that another provider than the session's first took, shape arithmetic apart, and who took which."""
    own = facts.providers[0] if facts.providers else ""
    elsewhere = {
        provider: {name: count for name, count in operators.items() if name not in SHAPE_OPERATORS}
        for provider, operators in (facts.placement or {}).items()
        if provider != own
    }
    told = [
        f"{provider} took {', '.join(f'{count} {name}' for name, count in sorted(operators.items())[:6])}"
        for provider, operators in elsewhere.items()
        if operators
    ]
    return sum(sum(operators.values()) for operators in elsewhere.values()), told


def planned(target: PlannedTarget) -> dict[str, Value]:
    """Provider and threads of a target, the provider by the name that its sessions state."""
    runtime = RUNTIMES.get(target.provider)
    return {"provider": runtime.name if runtime is not None else target.provider, "threads": target.threads}


def stated(facts: SessionFacts) -> dict[str, Value]:
    """Provider and threads that a session states, each null where it states none."""
    threads = facts.options.get("intra_op_threads", facts.options.get("threads"))  # OpenVINO has no other threads
    return {"provider": facts.providers[0] if facts.providers else None, "threads": threads}


def check_session(where: str, target: PlannedTarget, facts: SessionFacts) -> None:
    """Raise ``RecordError`` when provider, threads or an option of a session is not the target's."""
    asked, got = planned(target), stated(facts)
    if got != asked:
        raise RecordError(
            f"{where}: expected a session of {asked['threads']} threads on {asked['provider']}, as planned, "
            f"got {got['threads']} threads on {', '.join(facts.providers)}"
        )
    options: dict[str, Value] = {}
    if isinstance(RUNTIMES.get(target.provider), Provider):  # OpenVINO has none of these
        options = {
            "allow_spinning": target.session.spinning,
            "memory_arena": target.session.memory_arena,
            "graph_optimization": target.session.graph_optimization,
            "inter_op_threads": target.session.inter_op_threads,
        }
    if target.session.cpus is not None:
        options["cpus"] = ",".join(map(str, sorted(set(target.session.cpus))))
    for name, value in options.items():
        if facts.options.get(name) != value:
            raise RecordError(
                f"{where}: expected a session with {name} {value}, as planned, got {facts.options.get(name)}"
            )
