"""What a step says of its session, held against the target that was planned."""

from __future__ import annotations

from harness.errors import RecordError
from harness.raw import SessionFacts
from harness.records import PlannedTarget, Value
from harness.runtimes import RUNTIMES
from harness.runtimes.onnxruntime import Provider


def check_session(where: str, target: PlannedTarget, facts: SessionFacts) -> None:
    """Raise ``RecordError`` when provider, threads or an option of a session is not the target's."""
    options = facts.options
    threads, shown = options.get("intra_op_threads", target.threads), ", ".join(facts.providers)
    runtime = RUNTIMES.get(target.provider)
    named = runtime.name if isinstance(runtime, Provider) else facts.providers[0]
    if threads != target.threads or facts.providers[:1] != (named,):
        raise RecordError(
            f"{where}: expected a session of {target.threads} threads on {named}, as planned, got {threads} threads on {shown}"
        )
    asked: dict[str, Value] = {
        "allow_spinning": target.session.spinning,
        "memory_arena": target.session.memory_arena,
        "graph_optimization": target.session.graph_optimization,
        "inter_op_threads": target.session.inter_op_threads,
    }
    if target.session.cpus is not None:
        asked["cpus"] = ",".join(map(str, sorted(set(target.session.cpus))))
    for name, value in asked.items():
        got = options.get(name, value)  # a runtime that has no such option states none
        if got != value:
            raise RecordError(f"{where}: expected a session with {name} {value}, as planned, got {got}")
