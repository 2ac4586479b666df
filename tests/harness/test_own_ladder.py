from __future__ import annotations

import msgspec
import pytest
import yaml

from harness import derive, judge, ladder, plan
from harness.errors import LadderError
from harness.metrics import rerank_names
from harness.own_beside import Difference
from harness.own_ladder import Under, judge_under
from harness.recheck import Rejudged
from harness.records import (
    BuildOptions,
    Exit,
    Limit,
    Measurement,
    Measurements,
    Outcome,
    ParityOptions,
    PerfOptions,
    PlannedTarget,
    Record,
    Request,
    RerankOptions,
    SessionOptions,
    Tier,
    Value,
    measured,
)
from harness.root import RootRecords, StepRecords
from tests.support.plans import INPUTS, candidate
from tests.support.ranked import good, ranked
from tests.support.roots import example

LADDER = """
format: 1
name: mine
candidate: {model: ./model}
tiers:
  L0: {limits: {opset: {exactly: 17}}}
  L1: {calls: 100, limits: {p50_ms: {at_most: 50}}}
  L2: {limits: {max_abs_gap: {at_most: 1e-3}}}
  L3: {data: groups.jsonl, groups: 60, limits: {ndcg_at_10_drop: {at_most: 0.01}}}
targets:
  - {precision: fp32}
  - {precision: int8, limits: {L2: {max_abs_gap: {at_most: 0.5}}}}
"""
FOLDER = candidate(model="model")


def meeting(limit: Limit) -> Value:
    """A value that meets a limit just so."""
    bounds = [bound for bound in (limit.exactly, limit.at_most, limit.at_least) if bound is not None]
    return bounds[0]


def root(text: str = LADDER, **changes: Value) -> Rejudged:
    """A root whose every step meets the limits of ``text``. ``changes`` are other values, by metric."""
    sealed = plan.make(ladder.parse(text.encode()), text.encode(), FOLDER, INPUTS, {})
    found: dict[tuple[str, Tier], tuple[Measurement, ...]] = {}
    steps: dict[tuple[str, Tier], StepRecords] = {}
    outcomes: dict[tuple[str, Tier], Outcome] = {}
    for target in sealed.targets:
        for step in target.steps:
            key = (target.name, step.tier)
            found[key] = tuple(
                measured(name, changes.get(name, meeting(limit)), "") for name, limit in step.limits.items()
            )
            found[key] += tuple(
                measured(f"sentinel.{scorer}.{name}", None if scorer == "nan" else 1.0, "")
                for name in rerank_names.asked(step.limits)
                for scorer in rerank_names.SENTINELS
            )
            findings = judge.judge(step.limits, found[key])
            verdict = judge.step_verdict(findings)
            outcomes[key] = Outcome(
                format=1,
                tier=step.tier,
                target=target.name,
                verdict=verdict,
                reason=judge.outcome_reason(verdict, findings),
                plan_digest="blake3:" + "e" * 64,
                candidate_digest=sealed.candidate.digest,
                artifact_digest=None,
                started_at=None,
                ended_at=None,
                exit=Exit(code=0, signal=None, timed_out=False, seconds=1.0),
                redactions=0,
                findings=findings,
            )
            steps[key] = StepRecords(request=None, outcome=outcomes[key], measurements=None)
    claim = judge.qualification(sealed, "blake3:" + "e" * 64, outcomes, "2026-11-30T14:12:05Z", "2026-11-30T14:13:05Z")
    bare = example().records
    records = RootRecords(plan=sealed, claim=claim, environment=bare.environment, lineage=bare.lineage, steps=steps)
    return Rejudged(faults=(), records=records, verdict=claim.verdict, claim=claim, measured=found)


def under(old: str = "", new: str = "", *, judged: Rejudged | None = None) -> Under:
    """The root judged under its own ladder with ``old`` replaced by ``new``."""
    assert old in LADDER
    found = judge_under(judged or root(), LADDER.replace(old, new).encode(), "mine.yaml")
    assert found is not None
    return found


def difference(found: Under) -> Difference:
    (only,) = found.differences
    return only


def reasons(found: Under) -> list[str]:
    return [target.reason for target in found.claim.targets]


def test_the_sealed_ladder_itself_differs_in_nothing_and_gives_the_sealed_verdict() -> None:
    found = under()
    assert found.differences == ()
    assert found.verdict == "PASS"
    assert found.claim.coverage.complete


def test_a_tighter_limit_decides_and_is_listed_for_each_target_that_it_changes() -> None:
    found = under("p50_ms: {at_most: 50}", "p50_ms: {at_most: 40}")
    assert found.verdict == "FAIL"
    assert [target.tiers["L2"] for target in found.claim.targets] == ["NOT_RUN", "NOT_RUN"]
    assert reasons(found) == ["L1: p50_ms: expected at most 40.0, got 50.0"] * 2
    assert found.differences == tuple(
        Difference(kind="limit", target=target, tier="L1", name="p50_ms", sealed="at most 50.0", own="at most 40.0")
        for target in ("cpu-fp32", "cpu-int8")
    )


def test_a_root_that_failed_can_pass_under_looser_limits_and_they_are_listed() -> None:
    failed = root(p50_ms=60)
    assert failed.verdict == "FAIL"
    found = under("p50_ms: {at_most: 50}", "p50_ms: {at_most: 70}", judged=failed)
    assert found.verdict == "PASS"
    assert len(found.differences) == 2


def test_a_step_that_the_root_never_came_to_is_not_run_under_looser_limits() -> None:
    failed = root(p50_ms=60)
    for target in ("cpu-fp32", "cpu-int8"):
        for tier in ("L2", "L3"):
            assert failed.records is not None
            del failed.records.steps[target, tier]
            del failed.measured[target, tier]
    found = under("p50_ms: {at_most: 50}", "p50_ms: {at_most: 70}", judged=failed)
    assert found.verdict == "NOT_RUN"
    assert reasons(found) == ["L2: not run"] * 2


def test_a_limit_that_only_one_side_has_is_listed_as_absent_on_the_other() -> None:
    found = under("{p50_ms: {at_most: 50}}", "{p95_ms: {at_most: 90}}")
    own = [(d.name, d.sealed, d.own) for d in found.differences if d.target == "cpu-fp32"]
    assert own == [("p50_ms", "at most 50.0", "none"), ("p95_ms", "none", "at most 90.0")]


def test_a_limit_on_a_ratio_that_the_root_has_no_baseline_for_is_blocked_and_no_refusal() -> None:
    found = under("{p50_ms: {at_most: 50}}", "{ratio_p50: {at_most: 1.05}}")
    assert found.verdict == "BLOCKED"
    assert reasons(found)[0] == "L1: ratio_p50: expected at most 1.05, got unknown: not measured"


def test_a_limit_on_a_metric_that_was_not_measured_is_blocked() -> None:
    found = under("{p50_ms: {at_most: 50}}", "{p95_ms: {at_most: 90}}")
    assert found.verdict == "BLOCKED"
    assert reasons(found)[0] == "L1: p95_ms: expected at most 90.0, got unknown: not measured"


@pytest.mark.parametrize(
    ("old", "new", "tier", "reason"),
    [
        ("{limits: {opset", "{opset: 18, limits: {opset", "L0", "opset 17, not 18"),
        ("calls: 100", "calls: 1000", "L1", "calls 100, not 1000"),
        ("L2: {limits", "L2: {max_length: 128, limits", "L2", "max_length 512, not 128"),
        ("groups: 60", "groups: 600", "L3", "groups 60, not 600"),
        ("groups: 60, ", "", "L3", "groups 60, not none"),
        ("groups.jsonl", "other.jsonl", "L3", "data groups.jsonl, not other.jsonl"),
    ],
    ids=["opset", "calls", "length", "bounds", "no bounds", "dataset"],
)
def test_an_option_that_would_have_measured_something_else_blocks_its_tier(
    old: str, new: str, tier: Tier, reason: str
) -> None:
    found = under(old, new)
    assert found.verdict == "BLOCKED"
    assert reasons(found) == [f"{tier}: the root measured something else: {reason}"] * 2
    assert difference(found).blocks
    assert difference(found).kind == "option"
    below = ["L0", "L1", "L2", "L3"][["L0", "L1", "L2", "L3"].index(tier) + 1 :]
    assert all(target.tiers[name] == "NOT_RUN" for target in found.claim.targets for name in below)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("calls: 100", "calls: 100, time_limit_s: 5", "option"),
        ("calls: 100", "calls: 100, eager: true", "option"),
        ("name: mine\n", "name: mine\nseed: 7\n", "seed"),
        ("./model", "/home/me/another", "candidate"),
    ],
    ids=["time limit", "measured beside", "seed", "folder"],
)
def test_what_changes_no_number_is_listed_and_blocks_nothing(old: str, new: str, kind: str) -> None:
    found = under(old, new)
    assert found.verdict == "PASS"
    assert (difference(found).kind, difference(found).blocks) == (kind, False)


def test_an_option_of_one_precision_blocks_the_targets_of_that_precision_only() -> None:
    found = under("L0: {limits", "L0: {int8: {method: static, calibration: mine.jsonl}, limits")
    assert [target.verdict for target in found.claim.targets] == ["PASS", "BLOCKED"]
    assert (difference(found).target, difference(found).name) == ("cpu-int8", "int8")
    assert under("L0: {limits", "L0: {fp16: {keep_io: false}, limits").differences == ()


def test_a_folder_is_compared_by_its_last_name_since_a_path_means_nothing_elsewhere() -> None:
    assert under("./model", "/home/me/model").differences == ()


def test_a_pinned_digest_decides_whether_the_data_is_the_same_whatever_its_file_is_called() -> None:
    assert INPUTS.groups is not None
    same = under("data: groups.jsonl", f"data: elsewhere.jsonl, digest: '{INPUTS.groups.digest}'")
    assert (same.verdict, same.differences) == ("PASS", ())
    pin = "blake3:" + "0" * 64
    other = under("data: groups.jsonl", f"data: groups.jsonl, digest: '{pin}'")
    assert other.verdict == "BLOCKED"
    assert difference(other).name == "digest"
    assert reasons(other)[0] == f"L3: the root measured something else: digest {INPUTS.groups.digest}, not {pin}"


def test_another_hub_model_or_revision_blocks_everything() -> None:
    revision = "a" * 40
    found = under("{model: ./model}", f"{{model: org/model, revision: '{revision}'}}")
    assert found.verdict == "BLOCKED"
    expected = f"L0: the root measured something else: model model, not org/model at {revision}"
    assert reasons(found) == [expected] * 2


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        ("{precision: fp32, threads: 4}", "threads 2, not 4"),
        ("{precision: fp32, artifact: mine.onnx}", "artifact built, not mine.onnx"),
        ("{precision: fp16, name: cpu-fp32}", "precision fp32, not fp16"),
        ("{precision: fp16}", "target none, not climbed"),
    ],
    ids=["threads", "artifact", "precision", "new target"],
)
def test_another_target_is_blocked(new: str, reason: str) -> None:
    found = under("{precision: fp32}", new)
    assert found.verdict == "BLOCKED"
    assert reasons(found)[0] == f"L0: the root measured something else: {reason}"
    assert found.claim.targets[1].verdict == "PASS"


SESSION = {
    "spinning": "false",
    "memory_arena": "false",
    "graph_optimization": "none",
    "inter_op_threads": "2",
    "cpus": "[0]",
}
"""By each field of a session, another value than the default."""


@pytest.mark.parametrize("field", SESSION)
def test_another_session_is_blocked_and_listed_by_the_field_that_differs(field: str) -> None:
    found = under("{precision: fp32}", f"{{precision: fp32, session: {{{field}: {SESSION[field]}}}}}")
    assert (difference(found).name, difference(found).own, difference(found).blocks) == (
        f"session.{field}",
        SESSION[field],
        True,
    )
    assert [target.verdict for target in found.claim.targets] == ["BLOCKED", "PASS"]


TARGET = {
    "name": "name: other",
    "precision": "precision: fp16, name: cpu-fp32",
    "provider": "provider: openvino, name: cpu-fp32",
    "threads": "threads: 4",
    "artifact": "artifact: mine.onnx",
    "deferred": "deferred: later",
    "session": "session: {spinning: false}",
    "steps": "limits: {L1: {p50_ms: {at_most: 1}}}",
}
OPTIONS: dict[Tier, dict[str, str]] = {
    "L0": {
        "exporter": "torch_export",
        "opset": "18",
        "shape": "[4, 64]",
        "integers": "int32",
        "optimize": "basic",
        "external_data": "true",
        "repeat_export": "true",
        "fp16": "{keep_io: false}",
        "int8": "{per_channel: true}",
    },
    "L1": {
        "candidates": "8",
        "batch_size": "8",
        "max_length": "64",
        "warm_up": "7",
        "calls": "200",
        "min_calls": "80",
        "interval": "0.5",
        "seconds": "9",
        "growth_calls": "0",
        "end_to_end_calls": "3",
        "sweep": "{candidates: [4], max_length: [64], batch_size: [4]}",
        "load": "{concurrency: [2]}",
        "paired": "{sessions: 30}",
        "eager": "true",
    },
    "L2": {
        "pairs": "mine.jsonl",
        "batch_size": "8",
        "max_length": "64",
        "noise": "0.5",
        "invariance_pairs": "30",
        "invariance_tokens": "30",
        "deadlock_s": "9",
    },
    "L3": {
        "data": "other.jsonl",
        "digest": "'blake3:" + "0" * 64 + "'",
        "groups": "50",
        "candidates": "9",
        "pairs": "99",
        "select": "seeded",
        "negatives": "seeded",
        "unjudged": "drop",
        "batch_size": "8",
        "max_length": "64",
        "resamples": "99",
    },
}
"""By each field of what a ladder asks of a target and of a tier, another value: a field that nobody compares has none here."""
HELD = {"time_limit_s": "9", "memory_limit_bytes": "99999999999"}


def test_every_field_of_targets_sessions_and_options_has_a_value_that_differs() -> None:
    assert TARGET.keys() == set(PlannedTarget.__struct_fields__)
    assert SESSION.keys() == set(SessionOptions.__struct_fields__)
    kinds: dict[Tier, type[Record]] = {"L0": BuildOptions, "L1": PerfOptions, "L2": ParityOptions, "L3": RerankOptions}
    for tier, kind in kinds.items():
        assert OPTIONS[tier].keys() | HELD.keys() == set(kind.__struct_fields__)


@pytest.mark.parametrize("field", TARGET)
def test_no_field_of_a_target_differs_unsaid(field: str) -> None:
    text = TARGET[field] if "precision" in TARGET[field] else f"precision: fp32, {TARGET[field]}"
    assert under("{precision: fp32}", f"{{{text}}}").differences


@pytest.mark.parametrize(
    ("tier", "field"), [(tier, field) for tier, fields in OPTIONS.items() for field in (*fields, *HELD)]
)
def test_no_option_differs_unsaid(tier: Tier, field: str) -> None:
    whole = LADDER.replace("targets:\n", "targets:\n  - {precision: fp16}\n")
    whole = whole.replace("groups: 60", "groups: 60, candidates: 20")
    own = ladder_with(whole.encode(), tier, field, {**OPTIONS[tier], **HELD}[field])
    found = judge_under(root(whole), own, "mine.yaml")
    assert found is not None
    assert field in {difference.name for difference in found.differences}


def ladder_with(text: bytes, tier: Tier, field: str, value: str) -> bytes:
    """The ladder with one option of a tier set, in place of what it says of it."""
    asked = yaml.safe_load(text)
    asked["tiers"][tier][field] = yaml.safe_load(value)
    return yaml.safe_dump(asked).encode()


def test_a_target_that_the_reviewer_leaves_out_or_defers_is_listed_and_does_not_count() -> None:
    failed = root(max_abs_gap=0.4)
    assert failed.verdict == "FAIL"
    without = under("  - {precision: fp32}\n", "", judged=failed)
    assert without.verdict == "PASS"
    assert difference(without) == Difference(
        kind="target", target="cpu-fp32", tier="", name="target", sealed="climbed", own="none"
    )
    deferred = under("{precision: fp32}", "{precision: fp32, deferred: later}", judged=failed)
    assert deferred.verdict == "PASS"
    assert not deferred.claim.coverage.complete
    assert (difference(deferred).own, difference(deferred).blocks) == ("deferred", False)


def test_a_target_that_the_root_deferred_is_blocked_for_a_reviewer_who_asks_for_it() -> None:
    deferring = root(LADDER.replace("{precision: fp32}", "{precision: fp32, deferred: later}"))
    found = under(judged=deferring)
    assert found.verdict == "BLOCKED"
    assert reasons(found)[0] == "L0: the root measured something else: target deferred, not climbed"


def test_a_higher_goal_than_the_root_had_is_blocked_and_a_lower_one_is_enough() -> None:
    top = LADDER.index("  L3:"), LADDER.index("targets:")
    low = LADDER.replace("name: mine\n", "name: mine\ngoal: L2\n").replace(LADDER[slice(*top)], "")
    found = judge_under(root(low), LADDER.encode(), "mine.yaml")
    assert found is not None
    assert found.verdict == "BLOCKED"
    assert reasons(found)[0] == "L3: the root measured something else: goal L2, not L3"
    lower = judge_under(root(), low.encode(), "mine.yaml")
    assert lower is not None
    assert lower.verdict == "PASS"
    assert [(d.kind, d.blocks) for d in lower.differences] == [("goal", False)]


def test_a_root_that_scored_nothing_is_blocked_for_a_reviewer_who_asks_for_scores() -> None:
    only = (
        "format: 1\nname: mine\ngoal: L0\ncandidate: {model: ./model}\ntiers:\n  L0: {limits: {opset: {exactly: 17}}}\n"
    )
    judged = root(only + "targets:\n  - {precision: fp32}\n  - {precision: int8}\n")
    assert judged.records is not None
    bare = msgspec.structs.replace(judged.records.plan, inputs=msgspec.structs.replace(INPUTS, pairs=None, groups=None))
    records = msgspec.structs.replace(judged.records, plan=bare)
    found = under(judged=msgspec.structs.replace(judged, records=records))
    assert [target.tiers for target in found.claim.targets] == [
        {"L0": "PASS", "L1": "BLOCKED", "L2": "NOT_RUN", "L3": "NOT_RUN"}
    ] * 2


def test_a_step_whose_numbers_do_not_count_stays_blocked_for_the_same_reason() -> None:
    judged = root()
    assert judged.records is not None
    left = judged.records.steps["cpu-fp32", "L1"]
    died = msgspec.structs.replace(left.outcome, verdict="BLOCKED", reason="killed by SIGKILL", findings=())
    judged.records.steps["cpu-fp32", "L1"] = msgspec.structs.replace(left, outcome=died)
    del judged.measured["cpu-fp32", "L1"]
    found = under(judged=judged)
    assert found.verdict == "BLOCKED"
    assert reasons(found)[0] == "L1: killed by SIGKILL"


def test_a_ladder_that_is_none_is_refused_and_a_root_without_records_gives_no_verdict() -> None:
    with pytest.raises(LadderError, match=r"^mine\.yaml: expected only the keys format, name, .*, got 'gaol'"):
        judge_under(root(), LADDER.replace("name: mine\n", "name: mine\ngaol: L3\n").encode(), "mine.yaml")
    assert judge_under(Rejudged(faults=(), records=None, verdict="BLOCKED"), LADDER.encode(), "mine.yaml") is None


def test_l3_is_derived_again_from_the_samples_for_a_cut_off_that_the_sealed_limits_did_not_name() -> None:
    gains, scores = good(40)
    files = ranked(gains, scores).files
    files |= {path.replace("fp32", "int8"): content for path, content in files.items()}

    def measure(request: Request) -> Measurements:
        return derive.measure(request, files.__getitem__)

    own = LADDER.replace("ndcg_at_10_drop: {at_most: 0.01}", "recall_at_3: {at_least: 0.5}").encode()
    blocked = judge_under(root(), own, "mine.yaml")
    assert blocked is not None
    assert reasons(blocked)[0] == "L3: recall_at_3: expected at least 0.5, got unknown: not measured"
    found = judge_under(root(), own, "mine.yaml", measure)
    assert found is not None
    assert (found.verdict, reasons(found)) == ("PASS", ["", ""])
    tight = judge_under(root(), own.replace(b"0.5", b"0.999"), "mine.yaml", measure)
    assert tight is not None
    assert reasons(tight)[0].startswith("L3: recall_at_3: expected at least 0.999, got 0.9")
