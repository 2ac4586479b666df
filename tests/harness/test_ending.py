"""Why a step has no number: every way in which a child can end names tier, model, revision and target."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from harness import ending
from harness.records import BuildOptions, Exit, Inputs, PlannedStep, PlannedTarget, Request, TierOptions
from tests.support.plans import candidate

HUB = candidate(model="org/reranker", revision="1" * 40)
AT = f"L2 parity of org/reranker at revision {'1' * 40} on cpu-fp16"
OVER = (
    "was ended at its memory limit of 1,000 bytes after 1.0 s, with 2,000 resident;"
    " set tiers.L2.memory_limit_bytes higher if the machine has them"
)
KILLED = Exit(code=None, signal="SIGKILL", timed_out=False, seconds=2.0)


def request() -> Request:
    step = PlannedStep(tier="L2", limits={}, time_limit_s=60.0, memory_limit_bytes=1_000)
    target = PlannedTarget(
        name="cpu-fp16", precision="fp16", provider="cpu", threads=1, artifact=None, deferred=None, steps=(step,)
    )
    return Request(
        format=1,
        tier="L2",
        target=target,
        candidate=HUB,
        options=TierOptions(L0=BuildOptions()),
        inputs=Inputs(pairs=None, groups=None),
        seed=0,
        plan_digest="blake3:" + "0" * 64,
        step="steps/L2-parity.cpu-fp16",
        artifact="artifacts/cpu-fp16",
    )


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (
            Exit(code=None, signal="SIGKILL", timed_out=True, seconds=60.04),
            f"{AT} was ended at its time limit after 60.0 s",
        ),
        (
            Exit(code=None, signal="SIGKILL", timed_out=False, over_memory_bytes=2_000, seconds=1.0),
            f"{AT} {OVER}",
        ),
        (KILLED, f"{AT} was killed by SIGKILL after 2.0 s; see stderr.log"),
        (
            Exit(code=3, signal=None, timed_out=False, seconds=1.0),
            f"{AT} ended with exit code 3 and no measurements; see stderr.log",
        ),
    ],
    ids=["time", "memory", "signal", "code"],
)
def test_a_child_that_left_no_reason_is_named_with_model_and_revision(ended: Exit, said: str) -> None:
    assert ending.why_blocked(request(), ended, None, measured=False) == said


def test_the_reason_that_a_child_left_is_the_reason() -> None:
    assert (
        ending.why_blocked(request(), KILLED, "graph: expected X, got Y", measured=False) == "graph: expected X, got Y"
    )


def test_a_child_that_ended_well_with_measurements_has_no_reason() -> None:
    assert (
        ending.why_blocked(request(), Exit(code=0, signal=None, timed_out=False, seconds=1.0), None, measured=True)
        == ""
    )


def test_a_folder_has_no_revision_to_name() -> None:
    assert ending.of(replace(request(), candidate=candidate())) == "./model"
