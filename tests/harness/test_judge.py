from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import judge
from harness.records import (
    TIERS,
    BuildOptions,
    Exit,
    Inputs,
    Limit,
    Measurement,
    Outcome,
    Plan,
    PlannedStep,
    PlannedTarget,
    Qualification,
    Tier,
    TierOptions,
    Value,
    Verdict,
    measured,
)
from tests.support import plans


def one(limit: Limit, value: Value, interval: tuple[float, float] | None = None) -> Verdict:
    findings = judge.judge({"m": limit}, [Measurement(metric="m", value=value, unit="ms", interval=interval)])
    assert len(findings) == 1
    return findings[0].verdict


@pytest.mark.parametrize(
    ("limit", "value", "expected"),
    [
        pytest.param(Limit(at_most=5), 5, "PASS", id="at-most-met-exactly"),
        pytest.param(Limit(at_most=5), 5.0001, "FAIL", id="at-most-broken"),
        pytest.param(Limit(at_least=5), 5, "PASS", id="at-least-met-exactly"),
        pytest.param(Limit(at_least=5), 4.999, "FAIL", id="at-least-broken"),
        pytest.param(Limit(at_least=1, at_most=2), 3, "FAIL", id="range-broken-above"),
        pytest.param(Limit(at_least=1, at_most=2), 1.5, "PASS", id="range-met"),
        pytest.param(Limit(exactly=76), 76, "PASS", id="exact-integer"),
        pytest.param(Limit(exactly=76), 76.0, "PASS", id="exact-across-int-and-float"),
        pytest.param(Limit(exactly="fp16"), "fp32", "FAIL", id="exact-text-differs"),
        pytest.param(Limit(exactly=True), True, "PASS", id="exact-bool"),
        pytest.param(Limit(exactly=True), 1, "BLOCKED", id="a-number-is-not-a-bool"),
        pytest.param(Limit(exactly=1), True, "BLOCKED", id="a-bool-is-not-a-number"),
        pytest.param(Limit(at_most=5), "4", "BLOCKED", id="text-against-a-bound"),
        pytest.param(Limit(at_most=5), True, "BLOCKED", id="bool-against-a-bound"),
        pytest.param(Limit(at_most=True), True, "BLOCKED", id="bool-against-a-bound-that-is-one"),
        pytest.param(Limit(at_most=5), None, "BLOCKED", id="null"),
        pytest.param(Limit(at_most=5), math.nan, "BLOCKED", id="nan"),
        pytest.param(Limit(at_most=5), -math.inf, "BLOCKED", id="minus-infinity-under-at-most"),
        pytest.param(Limit(at_least=5), math.inf, "BLOCKED", id="infinity-over-at-least"),
        pytest.param(Limit(exactly=5), math.nan, "FAIL", id="nan-is-not-five"),
        pytest.param(Limit(), 5, "BLOCKED", id="limit-without-a-bound"),
    ],
)
def test_a_value_against_a_limit(limit: Limit, value: Value, expected: Verdict) -> None:
    assert one(limit, value) == expected


@pytest.mark.parametrize(
    ("limit", "interval", "expected"),
    [
        pytest.param(Limit(at_most=5), (1, 5), "PASS", id="whole-interval-meets"),
        pytest.param(Limit(at_most=5), (4, 6), "INCONCLUSIVE", id="interval-straddles"),
        pytest.param(Limit(at_most=5), (5.1, 6), "FAIL", id="whole-interval-breaks"),
        pytest.param(Limit(at_least=5), (5, 9), "PASS", id="whole-interval-above"),
        pytest.param(Limit(at_least=5), (4, 6), "INCONCLUSIVE", id="interval-straddles-below"),
        pytest.param(Limit(at_least=5), (1, 4.9), "FAIL", id="whole-interval-below"),
        pytest.param(Limit(at_least=0, at_most=5), (4, 6), "INCONCLUSIVE", id="one-side-straddled"),
        pytest.param(Limit(at_most=5), (6, 4), "BLOCKED", id="interval-upside-down"),
        pytest.param(Limit(at_most=5), (-math.inf, 4), "BLOCKED", id="interval-without-an-end"),
    ],
)
def test_an_interval_against_a_limit(limit: Limit, interval: tuple[float, float], expected: Verdict) -> None:
    assert one(limit, sum(interval) / 2, interval) == expected


def test_a_value_outside_its_own_interval_is_blocked() -> None:
    assert one(Limit(at_most=5), 9, (1, 2)) == "BLOCKED"


def test_a_missing_metric_is_blocked_not_pass() -> None:
    (finding,) = judge.judge({"m": Limit(at_most=5)}, [])
    assert finding.verdict == "BLOCKED"
    assert finding.text == "m: expected at most 5, got unknown: not measured"


def test_a_metric_measured_twice_is_blocked() -> None:
    twice = [measured("m", 1, "ms"), measured("m", 1, "ms")]
    assert judge.judge({"m": Limit(at_most=5)}, twice)[0].verdict == "BLOCKED"


def test_a_null_says_why_in_its_sentence() -> None:
    (finding,) = judge.judge({"p99_ms": Limit(at_most=5)}, [measured("p99_ms", None, "ms", note="needs 459 samples")])
    assert finding.text == "p99_ms: expected at most 5, got unknown: needs 459 samples"


def test_a_sentence_shows_value_interval_unit_and_limit() -> None:
    (finding,) = judge.judge({"m": Limit(at_least=1, at_most=2)}, [measured("m", 1.5, "ms", interval=(1.25, 1.75))])
    assert finding.text == "m: expected at most 2 and at least 1, got 1.5 (95% 1.25 to 1.75) ms"


def test_a_step_without_findings_is_blocked() -> None:
    assert judge.step_verdict(()) == "BLOCKED"
    assert judge.outcome_reason("BLOCKED", ()) == "no limit was judged"


def test_a_broken_number_outranks_a_missing_one() -> None:
    findings = judge.judge({"a": Limit(at_most=1), "b": Limit(at_most=1)}, [measured("a", 2, "")])
    assert [finding.verdict for finding in findings] == ["FAIL", "BLOCKED"]
    assert judge.step_verdict(findings) == "FAIL"
    assert judge.outcome_reason("FAIL", findings) == "a: expected at most 1, got 2"


def test_the_reason_counts_the_other_findings_of_the_same_verdict() -> None:
    findings = judge.judge({"a": Limit(at_most=1), "b": Limit(at_most=1)}, [measured("a", 2, ""), measured("b", 3, "")])
    assert judge.outcome_reason("FAIL", findings) == "a: expected at most 1, got 2 (and 1 more)"
    assert judge.outcome_reason("PASS", findings) == ""


def test_worst_of_nothing_is_not_run_never_pass() -> None:
    assert judge.worst([]) == "NOT_RUN"
    assert judge.worst(["PASS", "NOT_RUN"]) == "NOT_RUN"
    assert judge.worst(["PASS", "INCONCLUSIVE", "BLOCKED"]) == "BLOCKED"


def test_a_measurement_that_is_not_finite_is_stored_as_null_with_a_note() -> None:
    found = measured("m", math.nan, "ms", interval=(0, math.inf))
    assert (found.value, found.note, found.interval) == (None, "not finite: nan", None)
    assert measured("m", 1.0, "ms", interval=(0, math.inf)).interval is None


@given(value=st.floats(), bound=st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_passes_at_most_only_when_it_is_finite_and_not_above(value: float, bound: float) -> None:
    passed = one(Limit(at_most=bound), value) == "PASS"
    assert passed == (math.isfinite(value) and value <= bound)


@given(
    interval=st.tuples(st.floats(-10, 10), st.floats(-10, 10)),
    value=st.floats(-10, 10),
    bound=st.floats(-10, 10),
)
def test_an_interval_passes_only_when_every_point_of_it_does(
    interval: tuple[float, float], value: float, bound: float
) -> None:
    verdict = one(Limit(at_most=bound), value, interval)
    if verdict == "PASS":
        assert max(*interval, value) <= bound
    if verdict == "FAIL":
        assert min(*interval, value) > bound


def outcome(target: str, tier: Tier, verdict: Verdict) -> Outcome:
    return plans.outcome(target, tier, verdict, verdict.lower())


def target(name: str, tiers: str = "L0 L1", deferred: str | None = None) -> PlannedTarget:
    steps = [PlannedStep(tier=tier, limits={}, time_limit_s=1) for tier in TIERS if tier in tiers and not deferred]
    return PlannedTarget(
        name=name,
        precision="fp32",
        provider="cpu",
        threads=1,
        artifact=None,
        deferred=deferred,
        steps=tuple(steps),
    )


def plan(*targets: PlannedTarget) -> Plan:
    return Plan(
        format=1,
        ladder="l",
        ladder_digest="d",
        seed=0,
        goal="L1",
        candidate=plans.CANDIDATE,
        options=TierOptions(L0=BuildOptions()),
        inputs=Inputs(pairs=None, groups=None),
        targets=targets,
        defaults=(),
    )


def claim(planned: Plan, *outcomes: Outcome) -> Qualification:
    return judge.qualification(planned, "p", {(o.target, o.tier): o for o in outcomes}, "s", "e")


def test_all_targets_at_the_goal_qualify_with_complete_coverage() -> None:
    found = claim(plan(target("a")), outcome("a", "L0", "PASS"), outcome("a", "L1", "PASS"))
    assert (found.verdict, found.coverage.reached, found.coverage.complete) == ("PASS", ("a",), True)
    assert found.targets[0].tiers == {"L0": "PASS", "L1": "PASS"}


def test_a_failed_tier_ends_its_target_and_the_others_go_on() -> None:
    planned = plan(target("a"), target("b"))
    found = claim(planned, outcome("a", "L0", "FAIL"), outcome("b", "L0", "PASS"), outcome("b", "L1", "PASS"))
    assert [(t.verdict, t.reached, t.tiers["L1"]) for t in found.targets] == [
        ("FAIL", None, "NOT_RUN"),
        ("PASS", "L1", "PASS"),
    ]
    assert (found.verdict, found.coverage.missed, found.coverage.complete) == ("FAIL", ("a",), False)


def test_an_outcome_after_a_tier_that_did_not_pass_does_not_count() -> None:
    found = claim(plan(target("a")), outcome("a", "L0", "BLOCKED"), outcome("a", "L1", "PASS"))
    assert found.targets[0].tiers == {"L0": "BLOCKED", "L1": "NOT_RUN"}
    assert (found.targets[0].reached, found.targets[0].reason) == (None, "L0: blocked")


def test_a_target_that_stopped_without_an_outcome_is_not_run() -> None:
    found = claim(plan(target("a")), outcome("a", "L0", "PASS"))
    assert (found.verdict, found.targets[0].reason) == ("NOT_RUN", "L1: not run")


def test_a_deferred_target_narrows_the_coverage_and_not_the_verdict() -> None:
    planned = plan(target("a"), target("gpu", deferred="no GPU here"))
    found = claim(planned, outcome("a", "L0", "PASS"), outcome("a", "L1", "PASS"))
    assert (found.verdict, found.coverage.deferred, found.coverage.complete) == ("PASS", ("gpu",), False)
    assert found.targets[1].reason == "no GPU here"


def test_a_ladder_whose_targets_are_all_deferred_is_not_qualified() -> None:
    found = claim(plan(target("gpu", deferred="no GPU here")))
    assert (found.verdict, found.coverage.complete) == ("NOT_RUN", False)


def test_a_plan_without_targets_is_never_complete() -> None:
    assert (claim(plan()).verdict, claim(plan()).coverage.complete) == ("NOT_RUN", False)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "unknown"),
        (True, "true"),
        (False, "false"),
        ("fp16", "'fp16'"),
        (76710324, "76,710,324"),
        (1e-7, "1e-07"),
    ],
)
def test_values_are_shown_as_a_person_reads_them(value: Value, shown: str) -> None:
    assert judge.show_value(value) == shown


WELL = Exit(code=0, signal=None, timed_out=False, seconds=1)


def ended(how: Exit | None, verdict: Verdict = "FAIL") -> Outcome:
    return msgspec.structs.replace(outcome("a", "L1", verdict), exit=how)


def test_a_carried_step_is_judged_again_under_other_limits() -> None:
    found = judge.again(ended(WELL), {"m": Limit(at_most=5)}, [measured("m", 4, "ms")])
    assert (found.verdict, found.reason, [f.verdict for f in found.findings]) == ("PASS", "", ["PASS"])
    found = judge.again(ended(WELL, "PASS"), {"m": Limit(at_most=3)}, [measured("m", 4, "ms")])
    assert (found.verdict, found.reason) == ("FAIL", "m: expected at most 3, got 4 ms")


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(None, id="never-ran"),
        pytest.param(msgspec.structs.replace(WELL, code=3), id="bad-exit"),
        pytest.param(msgspec.structs.replace(WELL, code=None, signal="SIGKILL"), id="killed"),
        pytest.param(msgspec.structs.replace(WELL, timed_out=True), id="timed-out"),
    ],
)
def test_numbers_of_a_child_that_ended_badly_do_not_count_again(how: Exit | None) -> None:
    step = ended(how)
    assert judge.broke(step)
    assert judge.again(step, {"m": Limit(at_most=5)}, [measured("m", 4, "ms")]) is step


def test_a_carried_step_without_measurements_stays_as_it_is() -> None:
    step = ended(WELL, "BLOCKED")
    assert not judge.broke(step)
    assert judge.again(step, {"m": Limit(at_most=5)}, None) is step


def under(**values: float) -> dict[str, tuple[Verdict, str]]:
    """The findings of some L1 measurements, each against a limit of at most 10, the shares at most 0.2."""
    limits = {name: Limit(at_most=0.2 if name.endswith("share") else 10) for name in values}
    found = judge.judge(limits, [measured(name, value, "ms") for name, value in values.items()])
    return {finding.metric: (finding.verdict, finding.text) for finding in found}


def test_a_busy_machine_decides_nothing_and_takes_the_durations_with_it() -> None:
    found = under(busy_share=0.5, p95_ms=12.0, peak_rss_bytes=12.0, p50_ms=9.0)
    assert found["busy_share"] == (
        "INCONCLUSIVE",
        "busy_share: expected at most 0.2, got 0.5 ms; the machine was not fit to measure",
    )
    assert found["p95_ms"] == ("INCONCLUSIVE", "p95_ms: expected at most 10, got 12.0 ms; measured under busy_share")
    assert found["peak_rss_bytes"][0] == "FAIL"
    assert found["p50_ms"][0] == "PASS"


TIMED = {
    "first_call_ratio": 12.0,
    "drift_ratio": 12.0,
    "cv": 12.0,
    "outliers": 12,
    "involuntary_switches": 12,
    "tokenise_share": 12.0,
    "ratio_eager": 12.0,
    "load_p95_ms.4": 12.0,
}


@pytest.mark.parametrize("metric", TIMED)
def test_under_a_condition_that_is_broken_no_figure_made_of_times_fails(metric: str) -> None:
    limits = {"busy_share": Limit(at_most=0.2), metric: Limit(at_most=10)}
    busy, quiet = ([measured("busy_share", share, ""), measured(metric, TIMED[metric], "")] for share in (0.5, 0.1))
    assert [found.verdict for found in judge.judge(limits, busy)] == ["INCONCLUSIVE", "INCONCLUSIVE"]
    assert {found.metric: found.verdict for found in judge.judge(limits, quiet)} == {
        "busy_share": "PASS",
        metric: "FAIL",
    }


@pytest.mark.parametrize(
    "metric", ["ratio_p50", "ratio_p95", "ratio_pairs_per_s", "ratio_cpu", "load_unfinished_calls"]
)
def test_what_is_timed_in_turn_with_a_baseline_and_what_never_came_back_fail_on_any_machine(metric: str) -> None:
    limits = {"busy_share": Limit(at_most=0.2), metric: Limit(at_most=10)}
    found = judge.judge(limits, [measured("busy_share", 0.5, ""), measured(metric, 12, "")])
    assert {one.metric: one.verdict for one in found} == {"busy_share": "INCONCLUSIVE", metric: "FAIL"}


def test_an_interval_that_stayed_wide_is_inconclusive_and_leaves_a_figure_that_is_clear_to_its_limit() -> None:
    limits = {
        "sampling_ended_by": Limit(exactly="interval"),
        "p50_interval_ratio": Limit(at_most=0.02),
        "p50_ms": Limit(at_most=10),
    }
    wide = [
        measured("sampling_ended_by", "calls", ""),
        measured("p50_interval_ratio", 0.3, ""),
        measured("p50_ms", 40.0, "", interval=(36.0, 48.0)),
    ]
    assert {found.metric: (found.verdict, found.text.rpartition("; ")[2]) for found in judge.judge(limits, wide)} == {
        "sampling_ended_by": ("INCONCLUSIVE", "the figure is not known well enough"),
        "p50_interval_ratio": ("INCONCLUSIVE", "the figure is not known well enough"),
        "p50_ms": ("FAIL", "p50_ms: expected at most 10, got 40.0 (95% 36.0 to 48.0)"),
    }
    busy = judge.judge(limits | {"busy_share": Limit(at_most=0.2)}, [*wide, measured("busy_share", 0.5, "")])
    assert {found.verdict for found in busy} == {"INCONCLUSIVE"}
    assert {found.text.rpartition("; ")[2] for found in busy} == {
        "the machine was not fit to measure",
        "measured under busy_share",
    }


def test_on_a_quiet_machine_a_slow_figure_fails() -> None:
    found = under(busy_share=0.1, p95_ms=12.0)
    assert found["busy_share"][0] == "PASS"
    assert found["p95_ms"][0] == "FAIL"


SENTINEL_LIMITS = {"ndcg_at_10": Limit(at_least=0.5), "passing_sentinels": Limit(exactly=0)}


def sentinels(limits: dict[str, Limit], scores: dict[str, float]) -> tuple[Verdict, Value, str]:
    """The finding on ``passing_sentinels``, with the nDCG@10 that each scorer has."""
    rows = [Measurement(metric="ndcg_at_10", value=0.9, unit="nDCG")]
    rows += [
        Measurement(metric=f"sentinel.{name}.ndcg_at_10", value=value, unit="nDCG") for name, value in scores.items()
    ]
    found = next(item for item in judge.judge(limits, rows) if item.metric == "passing_sentinels")
    return found.verdict, found.value, found.text


@pytest.mark.parametrize(
    ("passing", "named"),
    [
        ((), None),
        (("random",), "random would meet"),
        (("constant", "reversed", "length"), "constant, reversed and length would meet"),
    ],
)
def test_scorers_that_know_nothing_and_would_pass_make_the_ranking_undecided(
    passing: tuple[str, ...], named: str | None
) -> None:
    scores = {name: 0.6 if name in passing else 0.4 for name in ("constant", "random", "reversed", "length", "nan")}
    verdict, value, text = sentinels(SENTINEL_LIMITS, scores)
    assert (verdict, value) == (("PASS", 0) if named is None else ("INCONCLUSIVE", len(passing)))
    assert named is None or named in text


def test_scorers_that_were_not_measured_block_the_ranking() -> None:
    verdict, value, text = sentinels(SENTINEL_LIMITS, {})
    assert (verdict, value) == ("BLOCKED", None)
    assert text.endswith("sentinel.constant.ndcg_at_10 was not measured")


def test_limits_of_which_none_looks_at_the_ranking_are_met_by_any_scorer() -> None:
    verdict, value, text = sentinels({"passing_sentinels": Limit(exactly=0)}, {})
    assert (verdict, value) == ("INCONCLUSIVE", 4)  # all but the one that gives no number
    assert text.endswith("no limit looks at the ranking, so any scorer meets them all")


def test_a_drop_is_undecided_where_its_interval_is_wider_than_the_drop_allowed() -> None:
    def verdict(low: float) -> Verdict:
        row = Measurement(metric="ndcg_at_10_drop", value=0.0, unit="nDCG", interval=(low, 0.01))
        return judge.judge({"ndcg_at_10_drop": Limit(at_most=0.02)}, [row])[0].verdict

    assert (verdict(-0.01), verdict(-0.02)) == ("PASS", "INCONCLUSIVE")


@pytest.mark.parametrize(
    ("verdict", "code"), [("PASS", 0), ("FAIL", 10), ("BLOCKED", 30), ("INCONCLUSIVE", 30), ("NOT_RUN", 30)]
)
def test_only_a_pass_ends_well_and_only_a_broken_limit_is_a_no(verdict: Verdict, code: int) -> None:
    assert judge.exit_code(verdict) == code
