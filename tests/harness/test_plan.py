"""A plan fixes every value and every limit beforehand, and refuses what cannot be carried out."""

from __future__ import annotations

import pytest

from harness import ladder, plan
from harness.errors import LadderError
from harness.records import (
    Candidate,
    FileFact,
    Inputs,
    Limit,
    Plan,
    PrebuiltArtifact,
    SessionOptions,
    from_json,
    to_json,
)
from tests.support.plans import CANDIDATE, INPUTS, candidate

LADDER = b"""\
format: 1
name: example
candidate: {model: ./model}
tiers:
  L0: {limits: {payload_bytes: {at_most: 8e6}}}
  L1: {limits: {p95_ms: {at_most: 1000}}}
  L2: {limits: {max_abs_gap: {at_most: 1e-4}}}
  L3: {data: groups.jsonl, limits: {ndcg_at_10_drop: {at_most: 0.005}}}
targets:
  - {precision: fp32}
  - {precision: fp16, limits: {L2: {max_abs_gap: {at_most: 1e-2}, pearson: {at_least: 0.99}}}}
"""
ARTIFACT = PrebuiltArtifact(name="mine.onnx", files=(FileFact(path="mine.onnx", bytes=5, blake3="e" * 64),))


def made(
    data: bytes = LADDER,
    found: Candidate = CANDIDATE,
    inputs: Inputs = INPUTS,
    prebuilt: dict[str, PrebuiltArtifact] | None = None,
) -> Plan:
    return plan.make(ladder.parse(data), data, found, inputs, prebuilt or {})


def changed(old: bytes, new: bytes) -> bytes:
    assert old in LADDER
    return LADDER.replace(old, new, 1)


def refusal(data: bytes, found: Candidate = CANDIDATE, inputs: Inputs = INPUTS) -> str:
    with pytest.raises(LadderError) as caught:
        made(data, found, inputs)
    return str(caught.value)


def test_the_same_input_gives_the_same_bytes_and_they_read_back() -> None:
    first = to_json(made())
    assert to_json(made()) == first
    assert from_json(first, Plan, "plan.json") == made()


def test_every_tier_carries_the_fixed_limits_beside_the_ladders_own() -> None:
    build, perf, parity, rerank = made().targets[0].steps
    assert build.limits == {
        "payload_bytes": Limit(at_most=8e6),
        "logits_width": Limit(exactly=1),
        "unfed_inputs": Limit(exactly=0),
        "unused_tokenizer_inputs": Limit(exactly=0),
        "checker_faults": Limit(exactly=0),
        "raw_logits": Limit(exactly=True),
        "probe_faults": Limit(exactly=0),
        "own_provider_nodes": Limit(at_least=1.0),
        "realised_precision": Limit(exactly="fp32"),
        "head_gap_ratio": Limit(at_most=0.0),
    }
    assert perf.limits == {"p95_ms": Limit(at_most=1000)}
    assert parity.limits["non_finite_count"] == Limit(exactly=0)
    assert rerank.limits["judged_groups"] == Limit(at_least=1)
    assert [step.tier for step in made().targets[0].steps] == ["L0", "L1", "L2", "L3"]


def test_a_target_overrides_metric_by_metric() -> None:
    limits = made().targets[1].steps[2].limits
    assert limits["max_abs_gap"] == Limit(at_most=1e-2)
    assert limits["pearson"] == Limit(at_least=0.99)
    assert made().targets[1].steps[0].limits["realised_precision"] == Limit(exactly="fp16")


def test_steps_end_at_the_goal() -> None:
    data = b"".join(line for line in LADDER.splitlines(keepends=True) if not line.startswith((b"  L2", b"  L3")))
    data = data.replace(b"name: example", b"name: example\ngoal: L1")
    data = data[: data.index(b"  - {precision: fp16")]
    found = made(data, inputs=Inputs(pairs=INPUTS.pairs, groups=None))
    assert [step.tier for step in found.targets[0].steps] == ["L0", "L1"]
    assert (found.options.L2, found.options.L3) == (None, None)


def test_the_time_limit_of_a_step_is_its_tiers() -> None:
    found = made(changed(b"L1: {", b"L1: {time_limit_s: 7, "))
    assert [step.time_limit_s for step in found.targets[0].steps] == [900.0, 7.0, 900.0, 1800.0]


def test_a_deferred_target_has_no_steps_and_its_reason_is_one_line() -> None:
    found = made(changed(b"{precision: fp16,", b'{deferred: "no\\n  GPU", artifact: x.onnx, precision: fp16,'))
    assert (found.targets[1].steps, found.targets[1].deferred, found.targets[1].artifact) == ((), "no GPU", None)


def test_a_prebuilt_artifact_stands_in_the_plan_by_digest() -> None:
    data = changed(b"{precision: fp32}", b"{precision: fp32, name: mine, artifact: mine.onnx}")
    assert made(data, prebuilt={"mine": ARTIFACT}).targets[0].artifact == ARTIFACT
    expected = "ladder example: target mine: expected the digests of its artifact, got none; read the file first"
    assert refusal(data) == expected


def test_a_default_length_gives_way_to_a_short_candidate() -> None:
    options = made(found=candidate(max_length=64)).options
    assert options.L1 is not None
    assert options.L2 is not None
    assert options.L3 is not None
    assert (options.L1.max_length, options.L2.max_length, options.L3.max_length) == (64, 64, 64)


def test_a_long_candidate_keeps_the_default_length_and_takes_a_longer_one_when_asked() -> None:
    long = candidate(max_length=8192)
    options = made(changed(b"L1: {", b"L1: {max_length: 4096, "), long).options
    assert options.L1 is not None
    assert options.L2 is not None
    assert (options.L1.max_length, options.L2.max_length) == (4096, 512)


def test_a_fixed_shape_becomes_batch_and_length_of_every_tier() -> None:
    options = made(changed(b"L0: {", b"L0: {shape: [4, 128], ")).options
    for tier in (options.L1, options.L2, options.L3):
        assert tier is not None
        assert (tier.batch_size, tier.max_length) == (4, 128)


def test_data_that_could_not_be_had_blocks_but_does_not_refuse() -> None:
    found = made(inputs=Inputs(pairs=INPUTS.pairs, groups=None, groups_blocked="no hub"))
    assert found.inputs.groups_blocked == "no hub"


def test_a_pinned_digest_that_the_data_has_is_taken() -> None:
    assert made(changed(b"data: groups.jsonl", b"data: groups.jsonl, digest: 'blake3:" + b"d" * 64 + b"'")).options.L3


REFUSED = {
    "longer-than-the-candidate": (
        changed(b"L1: {", b"L1: {max_length: 513, "),
        "tiers.L1.max_length: expected at most 512 tokens, all that ./model takes, got 513; lower it",
    ),
    "shorter-than-a-pair": (
        changed(b"L2: {", b"L2: {max_length: 7, "),
        "tiers.L2.max_length: expected at least 8 tokens, room for a pair, got 7; raise it",
    ),
    "shape-longer-than-the-candidate": (
        changed(b"L0: {", b"L0: {shape: [1, 513], "),
        "tiers.L0.shape: expected at most 512 tokens, all that ./model takes, got 513; lower it",
    ),
    "batch-other-than-the-shape": (
        changed(b"L0: {", b"L0: {shape: [4, 128], ").replace(b"L1: {", b"L1: {batch_size: 16, "),
        "tiers.L1.batch_size: expected 4, as the fixed shape [4, 128], got 16; change one of the two",
    ),
    "length-other-than-the-shape": (
        changed(b"L0: {", b"L0: {shape: [4, 128], ").replace(b"L3: {", b"L3: {max_length: 512, "),
        "tiers.L3.max_length: expected 128, as the fixed shape [4, 128], got 512; change one of the two",
    ),
    "another-digest": (
        changed(b"data: groups.jsonl", b"data: groups.jsonl, digest: 'blake3:" + b"0" * 64 + b"'"),
        (
            f"tiers.L3.digest: expected blake3:{'0' * 64}, got blake3:{'d' * 64};"
            " the data or the bounds are not those that were pinned; correct the ladder or the file"
        ),
    ),
    "static-without-calibration": (
        changed(b"L0: {limits", b"L0: {int8: {method: static}, limits"),
        "tiers.L0.int8.calibration: expected a JSONL of query and document, since the method is static, got nothing; name one",
    ),
    "calibration-for-nothing": (
        changed(b"L0: {limits", b"L0: {int8: {calibration: pairs.jsonl}, limits"),
        "tiers.L0.int8.calibration: expected none, since the method is dynamic, got pairs.jsonl; remove it or set method: static",
    ),
    "calibration-not-read": (
        changed(b"L0: {limits", b"L0: {int8: {method: static, calibration: pairs.jsonl}, limits"),
        "inputs.calibration: expected the pairs of tiers.L0.int8.calibration, got none; read them first",
    ),
}


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_candidate_or_data_do_not_allow_is_refused_before_any_work(data: bytes, message: str) -> None:
    assert refusal(data) == "ladder example: " + message


def test_inputs_that_were_never_read_are_refused() -> None:
    expected = "ladder example: inputs.pairs: expected pairs for L1 and L2, got none; read them first"
    assert refusal(LADDER, inputs=Inputs(pairs=None, groups=INPUTS.groups)) == expected
    expected = (
        "ladder example: inputs.groups: expected groups for L3, or why there are none, got neither; read them first"
    )
    assert refusal(LADDER, inputs=Inputs(pairs=INPUTS.pairs, groups=None)) == expected


def test_callers_at_once_bring_limits_that_no_ladder_can_set() -> None:
    perf = made(changed(b"L1: {limits", b"L1: {load: {concurrency: [1, 4]}, limits")).targets[0].steps[1]
    assert perf.limits == {
        "p95_ms": Limit(at_most=1000),
        "load_differing_logits": Limit(exactly=0),
        "load_unfinished_calls": Limit(exactly=0),
    }


def test_a_sweep_of_more_tokens_than_the_candidate_takes_is_refused() -> None:
    sweep = b"L1: {sweep: {candidates: [10], max_length: [128, 1024], batch_size: [8]}, limits"
    assert refusal(changed(b"L1: {limits", sweep)) == (
        "ladder example: tiers.L1.sweep.max_length: expected at most 512 tokens, all that ./model takes, got 1024; lower it"
    )


def test_a_sweep_of_other_shapes_than_the_fixed_one_is_refused() -> None:
    data = changed(b"L0: {limits", b"L0: {shape: [4, 128], limits").replace(
        b"L1: {limits", b"L1: {sweep: {candidates: [10], max_length: [128], batch_size: [8]}, limits"
    )
    assert refusal(data) == (
        "ladder example: tiers.L1.sweep: expected [4] and [128], as the fixed shape, got batch_size [8] and max_length [128];"
        " a graph of one shape can be swept over candidates and threads only"
    )


def test_the_options_of_a_session_are_planned_for_every_tier_of_the_target() -> None:
    found = made(changed(b"{precision: fp32}", b"{precision: fp32, session: {spinning: false, cpus: [0, 1]}}"))
    assert found.targets[0].session == SessionOptions(spinning=False, cpus=(0, 1))
    assert found.targets[1].session == SessionOptions()
