from __future__ import annotations

import pytest

from harness import ladder, plan
from harness.errors import AskedWrongly, LadderError
from harness.ladder import Ladder
from harness.matrix import jobs
from harness.records import Plan, from_json, to_json
from tests.support.plans import CANDIDATE, INPUTS

LADDER = b"""\
format: 1
name: example
candidate: {model: ./model}
goal: L0
tiers:
  L0: {limits: {payload_bytes: {at_most: 8e6}}}
targets:
  - {precision: fp32}
  - {precision: int8}
  - {precision: fp16, provider: cuda}
  - {precision: int8, provider: qnn, deferred: no device}
"""
CONFLICT = "example.yaml: expected a name of its own, got 'example', as one.yaml; rename one ladder"


def asked(data: bytes = LADDER) -> Ladder:
    return ladder.parse(data)


def made(*only: str) -> Plan:
    return plan.make(asked(), LADDER, CANDIDATE, INPUTS, {}, only)


def test_a_job_climbs_the_targets_of_one_provider_and_deferred_ones_are_in_none() -> None:
    found = jobs([("a b.yaml", asked())], "provider")
    assert [(job.name, job.ladder, job.group, job.targets) for job in found] == [
        ("example_cpu", "a b.yaml", "cpu", "cpu-fp32 cpu-int8"),
        ("example_cuda", "a b.yaml", "cuda", "cuda-fp16"),
    ]


def test_other_groups_are_each_target_or_the_whole_ladder() -> None:
    assert [job.targets for job in jobs([("a", asked())], "target")] == ["cpu-fp32", "cpu-int8", "cuda-fp16"]
    assert [(job.name, job.targets) for job in jobs([("a", asked())], "ladder")] == [("example_all", "")]


def test_two_ladders_of_one_name_would_overwrite_each_other() -> None:
    with pytest.raises(AskedWrongly) as caught:
        jobs([("one.yaml", asked()), ("example.yaml", asked())], "target")
    assert str(caught.value) == CONFLICT


def test_a_matrix_without_a_job_is_refused() -> None:
    nothing = LADDER.replace(b"{precision: fp32}", b"{precision: fp32, deferred: later}")
    nothing = nothing.replace(b"  - {precision: int8}\n  - {precision: fp16, provider: cuda}\n", b"")
    with pytest.raises(AskedWrongly, match="expected a target to climb, got none"):
        jobs([("a", asked(nothing))], "target")


def test_a_plan_of_some_targets_defers_the_others_and_is_made_again_the_same() -> None:
    found = made("cuda-fp16", "cpu-fp32")
    assert found.only == ("cpu-fp32", "cuda-fp16")
    assert [(target.name, target.deferred, len(target.steps)) for target in found.targets] == [
        ("cpu-fp32", None, 1),
        ("cpu-int8", "left to another climb: this one was asked for cpu-fp32, cuda-fp16 alone", 0),
        ("cuda-fp16", None, 1),
        ("qnn-int8", "no device", 0),
    ]
    assert from_json(to_json(found), Plan, "plan.json") == found == made(*found.only)


def test_naming_every_target_is_naming_none() -> None:
    assert made("cpu-int8", "cuda-fp16", "cpu-fp32") == made()
    assert b"only" not in to_json(made())


@pytest.mark.parametrize(
    ("name", "got"),
    [("gpu", "'gpu'"), ("qnn-int8", "'qnn-int8', which the ladder defers")],
    ids=["unknown", "deferred"],
)
def test_a_target_that_cannot_be_climbed_is_refused(name: str, got: str) -> None:
    with pytest.raises(LadderError) as caught:
        made(name)
    expected = "expected one of cpu-fp32, cpu-int8, cuda-fp16"
    assert str(caught.value) == f"ladder example: targets: {expected}, got {got}; name a target of the ladder"
