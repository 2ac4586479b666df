"""Gates on made-up comparisons: each rule, each verdict, each reason."""

from __future__ import annotations

from typing import Any

import pytest

from harness import gate
from harness.diff_values import About, Change, Compared, Diff, StepDiff
from harness.gate import Gated, Gates
from harness.metrics import catalogue
from harness.metrics.direction import better
from harness.policy import parse

ABOUT = About(
    root="root",
    digest="blake3:" + "a" * 64,
    ladder="tiny",
    model="model",
    revision=None,
    verdict="PASS",
    ended_at="2026-01-01T00:00:00Z",
    reached=("cpu-fp32",),
    missed=(),
    deferred=(),
    complete=True,
)


def figure(metric: str, baseline: Any, candidate: Any, **more: Any) -> Compared:
    unit = catalogue.METRICS[metric.partition(".")[0]].unit
    if "why_not" not in more and not isinstance(baseline, bool | str) and None not in (baseline, candidate):
        more = {"difference": candidate - baseline, **more}
    return Compared(metric=metric, unit=unit, better=better(metric), baseline=baseline, candidate=candidate, **more)


def judged(
    rule: str,
    *figures: Compared,
    why_not: str = "",
    identity: tuple[Change, ...] = (),
    unknown: Any = (),
    now: str = "PASS",
) -> Gates:
    metric = catalogue.find(figures[0].metric) if figures else None
    step = StepDiff(
        target="cpu-fp32",
        baseline_target="cpu-fp32",
        tier=metric.tier if metric is not None else "L1",
        baseline="PASS",
        candidate=now,
        state="same",
        compared=figures,
        why_not=why_not,
    )
    found = Diff(
        baseline=ABOUT,
        candidate=ABOUT,
        identity=identity,
        same=(),
        unknown=unknown,
        ladder=(),
        steps=(step,),
        refresh=None,
    )
    text = f"format: 1\nname: release\ngates:\n  - {{{rule}}}\n"
    return gate.judge(parse(text.encode()), "blake3:" + "0" * 64, found)


def only(found: Gates) -> Gated:
    (one,) = found.gates
    return one


@pytest.mark.parametrize(
    ("rule", "low", "high", "verdict"),
    [
        ("max_degradation: 5", -1.0, 4.0, "OK"),
        ("max_degradation: 5", -1.0, 5.0, "OK"),
        ("max_degradation: 5", 4.0, 6.0, "INCONCLUSIVE"),
        ("max_degradation: 5", 5.1, 6.0, "REGRESSION"),
        ("max_degradation: 10%", 4.0, 6.0, "INCONCLUSIVE"),
        ("min_improvement: 5", -9.0, -5.0, "OK"),
        ("min_improvement: 5", -9.0, -4.0, "INCONCLUSIVE"),
        ("min_improvement: 5", -4.0, -3.0, "REGRESSION"),
    ],
)
def test_the_whole_interval_must_meet_an_allowance(rule: str, low: float, high: float, verdict: str) -> None:
    """Less is better of a latency; of pairs a second more is, so the same change with the other sign is the same verdict."""
    less = figure("p50_ms", 50.0, 50.0 + (low + high) / 2, interval=(low, high))
    more = figure("pairs_per_s", 50.0, 50.0 - (low + high) / 2, interval=(-high, -low))
    assert only(judged(f"metric: p50_ms, {rule}", less)).verdict == verdict
    assert only(judged(f"metric: pairs_per_s, {rule}", more)).verdict == verdict


def test_without_an_interval_the_value_decides_and_the_reason_shows_both() -> None:
    found = judged("metric: payload_bytes, max_degradation: 10%", figure("payload_bytes", 1000, 1101))
    assert only(found).verdict == "REGRESSION"
    assert only(found).reason == "1,000, now 1,101 bytes: change +101, +10.10%"
    assert only(found).rule == "max_degradation 10%"
    assert (found.verdict, found.exit_code) == ("REGRESSION", 10)
    found = judged("metric: payload_bytes, max_degradation: 10%", figure("payload_bytes", 1000, 1100))
    assert (found.verdict, found.exit_code) == ("OK", 0)


def test_a_metric_that_is_missing_on_a_side_is_never_ok() -> None:
    gone = figure("p50_ms", 50.0, None, why_not="the candidate has no such figure")
    for rule in ("max_degradation: 50%", "min_improvement: 0", "must_not_change: true", "must_be_comparable: true"):
        found = judged(f"metric: p50_ms, {rule}", gone)
        assert (only(found).verdict, only(found).reason) == ("INCOMPARABLE", "the candidate has no such figure")
        assert found.exit_code == 30
    found = judged("metric: p50_ms, at_most: 100", gone)
    assert (only(found).verdict, found.exit_code) == ("INCONCLUSIVE", 30)


def test_a_metric_that_neither_side_has_is_incomparable() -> None:
    for rule, lacks, climbed in (
        ("at_most: 1", "the candidate has no such figure", "the candidate did not climb L2"),
        ("max_degradation: 1", "neither side has such a figure", "neither side climbed L2"),
    ):
        found = judged(f"metric: p95_ms, {rule}", figure("p50_ms", 1.0, 1.0))
        assert (only(found).verdict, only(found).reason) == ("INCOMPARABLE", lacks)
        found = judged(f"metric: max_abs_gap, {rule}", figure("p50_ms", 1.0, 1.0))
        assert (only(found).verdict, only(found).reason) == ("INCOMPARABLE", climbed)


def test_a_target_that_nobody_has_is_incomparable() -> None:
    found = judged("metric: p50_ms, target: gpu-*, at_most: 100", figure("p50_ms", 1.0, 1.0))
    assert (only(found).verdict, only(found).reason) == ("INCOMPARABLE", "no target matches 'gpu-*'")


def test_per_cent_of_nothing_is_incomparable() -> None:
    found = judged("metric: max_abs_gap, max_degradation: 10%", figure("max_abs_gap", 0.0, 1e-9))
    assert only(found).verdict == "INCOMPARABLE"
    assert only(found).reason == "10% of a baseline of 0.0 means nothing; write an absolute amount"


def test_a_bound_is_judged_on_the_interval_of_the_candidate() -> None:
    for interval, verdict in (((40.0, 50.0), "OK"), ((45.0, 55.0), "INCONCLUSIVE"), ((51.0, 55.0), "REGRESSION")):
        middle = sum(interval) / 2
        found = judged("metric: p50_ms, at_most: 50", figure("p50_ms", 1.0, middle, candidate_interval=interval))
        assert only(found).verdict == verdict
    found = judged("metric: ndcg_at_10, at_least: 0.6", figure("ndcg_at_10", 0.7, 0.5))
    assert (only(found).verdict, only(found).reason) == ("REGRESSION", "0.5 nDCG")
    assert only(found).rule == "at_least 0.6"


def test_a_bound_on_the_candidate_holds_where_the_two_do_not_compare() -> None:
    other = figure("p50_ms", 40.0, 45.0, why_not="another machine class")
    assert only(judged("metric: p50_ms, at_most: 50", other)).verdict == "OK"
    assert only(judged("metric: p50_ms, max_degradation: 50%", other)).verdict == "INCOMPARABLE"


def test_what_must_not_change_is_compared_with_its_kind() -> None:
    assert only(judged("metric: opset, must_not_change: true", figure("opset", 17, 17))).verdict == "OK"
    found = only(judged("metric: opset, must_not_change: true", figure("opset", 17, 18)))
    assert (found.verdict, found.reason) == ("REGRESSION", "17, now 18")
    found = only(judged("metric: order_kept, must_not_change: true", figure("order_kept", True, 1)))
    assert found.verdict == "REGRESSION"


def test_a_part_of_the_identity_must_not_change() -> None:
    change = Change(part="packages", name="onnxruntime", target="", baseline="1.31.0", candidate="1.32.0")
    found = only(judged("identity: packages, must_not_change: true", figure("opset", 17, 17), identity=(change,)))
    assert (found.verdict, found.reason) == ("REGRESSION", "onnxruntime: '1.31.0', now '1.32.0'")
    assert (found.what, found.target) == ("packages", "*")
    found = only(judged("identity: model, must_not_change: true", figure("opset", 17, 17), identity=(change,)))
    assert (found.verdict, found.reason) == ("OK", "the same on both sides")


def test_a_part_of_the_identity_by_target_is_judged_by_target() -> None:
    change = Change(part="artifact", name="digest", target="cpu-fp32", baseline="blake3:a", candidate="blake3:b")
    found = only(judged("identity: artifact, must_not_change: true", figure("opset", 17, 17), identity=(change,)))
    assert (found.verdict, found.target) == ("REGRESSION", "cpu-fp32")


def test_the_worst_gate_stands_first_and_decides() -> None:
    text = (
        "format: 1\nname: release\ngates:\n  - {metric: opset, must_not_change: true}\n"
        "  - {metric: nodes, must_not_change: true}\n  - {metric: p50_ms, at_most: 1}\n"
    )
    step = judged("metric: opset, must_not_change: true", figure("opset", 17, 17), figure("nodes", 1, 2))
    assert step.verdict == "OK"
    found = Diff(
        baseline=ABOUT,
        candidate=ABOUT,
        identity=(),
        same=(),
        unknown=(),
        ladder=(),
        steps=(
            StepDiff(
                target="cpu-fp32",
                baseline_target="cpu-fp32",
                tier="L0",
                baseline="PASS",
                candidate="PASS",
                state="same",
                compared=(figure("opset", 17, 17), figure("nodes", 1, 2)),
            ),
        ),
        refresh=None,
    )
    gates = gate.judge(parse(text.encode()), "", found)
    assert [item.verdict for item in gates.gates] == ["REGRESSION", "INCOMPARABLE", "OK"]
    assert gates.exit_code == 10


def test_what_is_not_known_on_both_sides_is_never_the_same() -> None:
    opset = figure("opset", 17, 17)
    for part in ("machine", "dataset", "harness"):
        found = only(judged(f"identity: {part}, must_not_change: true", opset, unknown=(part,)))
        assert (found.verdict, found.reason) == ("INCOMPARABLE", "it is not known on both sides")
    found = only(judged("identity: limits, must_not_change: true", opset, now="absent"))
    assert (found.verdict, found.reason) == ("INCOMPARABLE", "cpu-fp32 is not there on both sides")
    found = only(judged("identity: artifact, must_not_change: true", opset, why_not="BLOCKED"))
    assert (found.verdict, found.reason) == ("INCOMPARABLE", "cpu-fp32 has no artifact on both sides")
