"""What a session states, held against its target: each statement changed or left out, for both kinds of runtime."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from harness.derive_session import check_session
from harness.errors import RecordError
from harness.raw import SessionFacts
from harness.records import PlannedTarget, SessionOptions, Value

CPU = PlannedTarget(
    name="cpu-fp32", precision="fp32", provider="cpu", threads=2, artifact=None, deferred=None, steps=()
)
OPENVINO = replace(CPU, name="openvino-fp32", provider="openvino")
PINNED = replace(OPENVINO, session=SessionOptions(cpus=(1, 0)))
ORT, OV = "CPUExecutionProvider", "OpenVINO CPU"
STATED: dict[str, dict[str, Value]] = {
    ORT: {
        "intra_op_threads": 2,
        "inter_op_threads": 1,
        "graph_optimization": "all",
        "allow_spinning": True,
        "memory_arena": True,
        "cpus": "0,1",
    },
    OV: {"threads": 2, "cpus": "0,1"},
}


def facts(provider: str, **changes: Value) -> SessionFacts:
    options: dict[str, Value] = {
        name: value for name, value in {**STATED[provider], **changes}.items() if value is not None
    }
    return SessionFacts(load_ms=1.0, providers=(provider,), options=options)


@pytest.mark.parametrize(("target", "provider"), [(CPU, ORT), (OPENVINO, OV), (PINNED, OV)])
def test_the_session_that_was_planned_is_taken(target: PlannedTarget, provider: str) -> None:
    check_session("samples.json", target, facts(provider))


@pytest.mark.parametrize(
    ("target", "provider", "changes", "message"),
    [
        (CPU, ORT, {"intra_op_threads": 64}, f"of 2 threads on {ORT}, as planned, got 64 threads on {ORT}"),
        (CPU, ORT, {"intra_op_threads": None}, f"of 2 threads on {ORT}, as planned, got None threads on {ORT}"),
        (CPU, OV, {}, f"of 2 threads on {ORT}, as planned, got 2 threads on {OV}"),
        (OPENVINO, OV, {"threads": 64}, f"of 2 threads on {OV}, as planned, got 64 threads on {OV}"),
        (OPENVINO, OV, {"threads": None}, f"of 2 threads on {OV}, as planned, got None threads on {OV}"),
        (OPENVINO, ORT, {}, f"of 2 threads on {OV}, as planned, got 2 threads on {ORT}"),
        (PINNED, OV, {"cpus": "0"}, "with cpus 0,1, as planned, got 0"),
        (CPU, ORT, {"allow_spinning": False}, "with allow_spinning True, as planned, got False"),
        (CPU, ORT, {"memory_arena": None}, "with memory_arena True, as planned, got None"),
    ],
)  # fmt: skip
def test_another_session_than_planned_is_refused(
    target: PlannedTarget, provider: str, changes: dict[str, Value], message: str
) -> None:
    with pytest.raises(RecordError) as caught:
        check_session("samples.json", target, facts(provider, **changes))
    assert str(caught.value) == f"samples.json: expected a session {message}"
