"""What a step's samples depend on: one test a condition, with the whole message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from harness import lineage
from harness.errors import AskedWrongly
from harness.records import (
    TIERS,
    BuildOptions,
    Environment,
    FileFact,
    Limit,
    ParityOptions,
    PerfOptions,
    Plan,
    PlannedStep,
    PlannedTarget,
    PrebuiltArtifact,
    RerankOptions,
    SessionOptions,
    Tier,
    TierOptions,
    Value,
)
from tests.support.plans import CANDIDATE, INPUTS, candidate

FACTS: dict[str, Value] = {
    "system": "Linux", "machine": "x86_64", "cpu_model": "Example", "instruction_sets": "avx2", "usable_cores": 2,
    "memory_bytes": 25_217_990_656, "load_average_1min": 0.4,
}  # fmt: skip
PACKAGES = {"onnxruntime": "1.32.0", "tokenizers": "0.23.3", "torch": "2.13.0", "transformers": "5.24.0", "rich": "15"}
HERE = Environment(format=1, facts=FACTS, packages=PACKAGES)
replace = msgspec.structs.replace


def plan(**changes: Any) -> Plan:
    steps = tuple(PlannedStep(tier=tier, limits={"x": Limit(at_most=1.0)}, time_limit_s=9.0) for tier in TIERS)
    targets = tuple(
        PlannedTarget(
            name=f"cpu-{precision}", precision=precision, provider="cpu", threads=2, artifact=None, deferred=None, steps=steps
        )
        for precision in ("fp32", "fp16")
    )  # fmt: skip
    made = Plan(
        format=1, ladder="tiny", ladder_digest="blake3:" + "e" * 64, seed=7, goal="L3", candidate=CANDIDATE,
        options=TierOptions(L0=BuildOptions(), L1=PerfOptions(), L2=ParityOptions(), L3=RerankOptions(data="g.jsonl")),
        inputs=INPUTS, targets=targets, defaults=(),
    )  # fmt: skip
    return replace(made, **changes)


def differing(tier: Tier, there: Plan, environment: Environment = HERE) -> list[tuple[str, object, object]]:
    sides = ((plan(), HERE), (there, environment))
    here, other = (lineage.relied_on(made, facts, made.targets[0], tier) for made, facts in sides)
    return list(lineage.disagreements(here, other))


def target(**changes: Any) -> Plan:
    first, *rest = plan().targets
    return plan(targets=(replace(first, **changes), *rest))


def options(**changes: Any) -> Plan:
    return plan(options=replace(plan().options, **changes))


def inputs(name: str, **changes: Any) -> Plan:
    return plan(inputs=replace(INPUTS, **{name: replace(getattr(INPUTS, name), **changes)}))


@pytest.mark.parametrize("tier", TIERS)
def test_the_same_plan_and_machine_agree(tier: Tier) -> None:
    assert differing(tier, plan()) == []


OTHER = "blake3:" + "0" * 64
CASES: dict[str, tuple[Callable[[], Plan], Tier, str]] = {
    "candidate": (lambda: plan(candidate=candidate(digest=OTHER)), "L0", "candidate"),
    "seed": (lambda: plan(seed=8), "L1", "seed"),
    "precision": (lambda: target(precision="int8"), "L2", "target.precision"),
    "provider": (lambda: target(provider="cuda"), "L2", "target.provider"),
    "session": (lambda: target(session=SessionOptions(inter_op_threads=2)), "L1", "target.session.inter_op_threads"),
    "threads": (lambda: target(threads=1), "L1", "target.threads"),
    "opset": (lambda: options(L0=BuildOptions(opset=18)), "L0", "tiers.L0.opset"),
    "calls": (lambda: options(L1=PerfOptions(calls=101)), "L1", "tiers.L1.calls"),
    "batch size": (lambda: options(L2=ParityOptions(batch_size=4)), "L2", "tiers.L2.batch_size"),
    "bound of groups": (lambda: options(L3=RerankOptions(data="g.jsonl", groups=1)), "L3", "tiers.L3.groups"),
    "longest pair that a build is probed with": (
        lambda: options(
            L1=PerfOptions(max_length=64), L2=ParityOptions(max_length=64), L3=RerankOptions(data="g.jsonl", max_length=64)
        ),
        "L0",
        "longest tokens",
    ),
    "pairs": (lambda: inputs("pairs", digest=OTHER), "L1", "inputs.pairs.digest"),
    "pairs of parity": (lambda: inputs("pairs", digest=OTHER), "L2", "inputs.pairs.digest"),
    "groups": (lambda: inputs("groups", digest=OTHER), "L3", "inputs.groups.digest"),
    "bounds": (lambda: inputs("groups", bounds={"groups": 2}), "L3", "inputs.groups.bounds.groups"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_whatever_else_the_samples_rely_on_is_named(case: str) -> None:
    make, tier, name = CASES[case]
    assert [found[0] for found in differing(tier, make())] == [name]


@pytest.mark.parametrize(("name", "tier"), [("calibration", "L0"), ("baseline", "L1")])
def test_data_that_only_one_side_names_is_a_difference(name: str, tier: Tier) -> None:
    named = plan(inputs=replace(INPUTS, **{name: INPUTS.pairs}))
    assert [found[0] for found in differing(tier, named)] == [f"inputs.{name}.digest", f"inputs.{name}.rows"]


def test_an_artifact_that_was_brought_is_another_than_one_that_was_built() -> None:
    brought = target(
        artifact=PrebuiltArtifact(name="m.onnx", files=(FileFact(path="m.onnx", bytes=1, blake3="0" * 64),))
    )
    assert [found[0] for found in differing("L0", brought)] == [
        "target.artifact.files.0.blake3",
        "target.artifact.files.0.bytes",
        "target.artifact.files.0.path",
        "target.artifact.name",
    ]


def test_limits_and_time_limits_may_differ() -> None:
    other = tuple(PlannedStep(tier=t, limits={"y": Limit(at_least=3.0)}, time_limit_s=1.0) for t in TIERS)
    changed = options(L1=PerfOptions(time_limit_s=1.0))
    changed = replace(changed, targets=tuple(replace(t, steps=other) for t in changed.targets))
    assert [differing(tier, changed) for tier in TIERS] == [[]] * 4


def test_what_a_limit_of_l3_names_must_have_been_measured() -> None:
    def limited(limits: dict[str, Limit]) -> Plan:
        return target(steps=(PlannedStep(tier="L3", limits=limits, time_limit_s=9.0),))

    named = limited({"recall_at_3": Limit(at_least=0.5)})
    assert differing("L3", named) == [("measured", "; cut at 10", "recall_at_3; cut at 3, 10")]
    gated = limited({"map_drop": Limit(at_most=0.1), "random_pass_chance": Limit(at_most=0.05)})
    assert differing("L3", gated) == [
        ("measured", "; cut at 10", "map_drop; cut at 10"),
        ("passed at random.map_drop.at_most", None, 0.1),
    ]


def test_what_a_limit_counts_must_have_been_counted() -> None:
    counted = (PlannedStep(tier="L0", limits={"operator_count.Erf": Limit(at_most=3.0)}, time_limit_s=9.0),)
    assert differing("L0", target(steps=counted)) == [("counted", "", "operator_count.Erf")]


def test_data_of_another_tier_is_no_concern() -> None:
    assert differing("L1", inputs("groups", digest=OTHER)) == []
    assert differing("L3", inputs("pairs", digest=OTHER)) == []


def environment(**facts: Any) -> Environment:
    return Environment(format=1, facts=FACTS | facts, packages=PACKAGES)


@pytest.mark.parametrize(
    ("fact", "value", "name", "tiers"),
    [
        ("cpu_model", "Another", "machine.cpu_model", ["L1"]),
        ("usable_cores", 4, "machine.usable_cores", ["L1"]),
        ("memory_bytes", 34_359_738_368, "machine.memory_gib", ["L1"]),
        ("system", "Darwin", "machine.system", ["L1"]),
        ("instruction_sets", "avx2 avx512f", "machine.instruction_sets", ["L0", "L1", "L2", "L3"]),
        ("machine", "aarch64", "machine.machine", ["L0", "L1", "L2", "L3"]),
        ("load_average_1min", 9.0, "", []),
        ("memory_bytes", 25_217_000_000, "", []),
    ],
)
def test_perf_needs_the_same_machine_and_the_rest_the_same_instructions(
    fact: str, value: object, name: str, tiers: list[Tier]
) -> None:
    for tier in TIERS:
        found = [item[0] for item in differing(tier, plan(), environment(**{fact: value}))]
        assert found == ([name] if tier in tiers else [])


def test_an_unknown_machine_is_never_the_same_machine() -> None:
    unknown = {"cpu_model": None, "memory_bytes": None}
    here = lineage.relied_on(plan(), environment(**unknown), plan().targets[0], "L1")
    assert lineage.disagreements(here, here) == [
        ("machine.cpu_model", "unknown", "unknown"),
        ("machine.memory_gib", "unknown", "unknown"),
    ]


def test_another_version_of_what_makes_the_numbers_is_another_number() -> None:
    other = Environment(format=1, facts=FACTS, packages=PACKAGES | {"torch": "2.14.0", "rich": "16"})
    assert {tier: differing(tier, plan(), other) for tier in TIERS} == {
        "L0": [("package.torch", "2.13.0", "2.14.0")],
        "L1": [],
        "L2": [("package.torch", "2.13.0", "2.14.0")],
        "L3": [("package.torch", "2.13.0", "2.14.0")],
    }


def test_rerun_names_a_tier_on_all_targets_or_on_one() -> None:
    assert lineage.to_rerun(["L1"], plan()) == {("cpu-fp32", "L1"), ("cpu-fp16", "L1")}
    assert lineage.to_rerun(["L1:cpu-fp16", "L3:cpu-fp32"], plan()) == {("cpu-fp16", "L1"), ("cpu-fp32", "L3")}


@pytest.mark.parametrize("word", ["L4", "perf", "L1:gpu", "L1:", "", ":cpu-fp16"])
def test_rerun_of_what_is_not_planned_is_refused(word: str) -> None:
    short = plan(targets=tuple(replace(t, steps=t.steps[:2]) for t in plan().targets))
    with pytest.raises(AskedWrongly) as refused:
        lineage.to_rerun([word], short)
    assert str(refused.value) == (
        f"--rerun {word}: expected a tier, or tier:target, of the plan, got none; it has "
        "L0:cpu-fp32, L1:cpu-fp32, L0:cpu-fp16, L1:cpu-fp16"
    )


def test_a_new_build_needs_every_tier_above_it_to_run_again() -> None:
    lineage.check_builds({("a", "L0"), ("a", "L1")}, [("b", "L0"), ("b", "L1")])
    with pytest.raises(AskedWrongly) as refused:
        lineage.check_builds({("a", "L0")}, [("a", "L1"), ("a", "L2"), ("b", "L1")])
    assert str(refused.value) == (
        "--rerun L0:a: expected every tier on a new artifact to run again, got some to carry; add --rerun L1:a --rerun L2:a"
    )
