from __future__ import annotations

import pytest

from harness.records import Finding, Limit, Value, Verdict, measured
from harness.report import wording


def finding(
    metric: str, limit: Limit, value: Value, verdict: Verdict, interval: tuple[float, float] | None = None
) -> Finding:
    return Finding(metric=metric, limit=limit, value=value, interval=interval, verdict=verdict, text="")


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (6_983_221, "bytes", "6.98 MB"),
        (76_710_324, "bytes", "76.7 MB"),
        (3 * 10**9, "bytes", "3 GB"),
        (216, "bytes", "216 bytes"),
        (46.013, "ms", "46.01 ms"),
        (2341.0, "ms", "2,341 ms"),
        (1.907e-6, "logit", "1.91e-6 logit"),
        (0.0, "logit", "0 logit"),
        (0.98712, "correlation", "0.9871"),
        (1, "groups", "1 group"),
        (1720, "pairs", "1,720 pairs"),
        (True, "boolean", "yes"),
        ("fp32", "precision", "fp32"),
        (None, "ms", "unknown"),
    ],
)
def test_quantities_read_with_their_unit(value: Value, unit: str, expected: str) -> None:
    assert wording.quantity(value, unit) == expected


def test_memory_is_in_the_unit_of_its_limit() -> None:
    in_mib = finding("peak_rss_bytes", Limit(at_most=512 * 2**20), 262_500_000, "PASS")
    in_mb = finding("peak_rss_bytes", Limit(at_most=5e8), 262_500_000, "PASS")
    assert (wording.limit(in_mib.limit, "bytes"), wording.found(in_mib)) == ("≤ 512 MiB", "250.3 MiB")
    assert (wording.limit(in_mb.limit, "bytes"), wording.found(in_mb)) == ("≤ 500 MB", "262.5 MB")
    assert wording.limit(Limit(at_most=3 * 2**30), "bytes") == "≤ 3 GiB"


def test_a_limit_with_two_sides_names_both() -> None:
    assert wording.limit(Limit(at_least=0.9, at_most=1.1), "ratio") == "≥ 0.9 and ≤ 1.1"
    assert wording.limit(Limit(exactly="fp32"), "precision") == "= fp32"


@pytest.mark.parametrize(
    ("limit", "value", "interval", "verdict", "expected"),
    [
        pytest.param(Limit(at_most=60.0), 48.0, None, "PASS", "20% to spare", id="below"),
        pytest.param(Limit(at_most=60.0), 48.0, (47.0, 57.0), "PASS", "5% to spare", id="the interval's end counts"),
        pytest.param(Limit(at_most=60.0), 90.0, None, "FAIL", "50% over", id="above"),
        pytest.param(Limit(at_most=0.01), 0.15, None, "FAIL", "15 times the limit", id="far above"),
        pytest.param(Limit(at_most=0.0), 0.5, None, "FAIL", "0.5 over", id="above a limit of zero"),
        pytest.param(Limit(at_most=0.0), 0.0, None, "PASS", "just at the limit", id="at the limit"),
        pytest.param(Limit(at_least=400.0), 300.0, None, "FAIL", "25% short", id="too little"),
        pytest.param(Limit(at_least=0.9, at_most=1.1), 1.0, None, "PASS", "9% to spare, 11% to spare", id="both sides"),
        pytest.param(Limit(exactly=17), 18, None, "FAIL", "missed", id="exactly"),
        pytest.param(Limit(at_most=1.0), None, None, "BLOCKED", "no number", id="no number"),
    ],
)
def test_margin_says_how_far_the_judged_end_is_from_the_limit(
    limit: Limit, value: Value, interval: tuple[float, float] | None, verdict: Verdict, expected: str
) -> None:
    assert wording.margin(finding("p50_ms", limit, value, verdict, interval)) == expected


def test_an_unknown_measurement_says_why() -> None:
    assert wording.measured(measured("p99_ms", None, "ms", note="needs 459 samples, got 60")) == (
        "unknown (needs 459 samples, got 60)"
    )


@pytest.mark.parametrize(
    ("interval", "shown"),
    [((1.018, 1.026), "slower"), ((0.97, 0.99), "faster"), ((0.99, 1.05), "no difference shown")],
)
def test_a_ratio_keeps_four_digits_and_says_what_its_interval_shows(interval: tuple[float, float], shown: str) -> None:
    ratio = measured("ratio_p50", sum(interval) / 2, "ratio", interval=interval)
    assert wording.compared(ratio, "of its time", ("faster", "slower")) == (
        f"{sum(interval) / 2:.4g} of its time (95% {interval[0]:.4g} to {interval[1]:.4g}), {shown}"
    )


def test_a_ratio_without_a_number_says_why() -> None:
    missing = measured("ratio_p50", None, "ratio", note="the baseline has no artifact of cpu-int8 (it has cpu-fp32)")
    assert wording.compared(missing, "of its time", ("faster", "slower")) == (
        "unknown (the baseline has no artifact of cpu-int8 (it has cpu-fp32))"
    )


def test_every_verdict_has_a_sign_and_a_word_of_its_own() -> None:
    assert len(set(wording.SYMBOLS.values())) == len(set(wording.WORDS.values())) == len(wording.SYMBOLS) == 5


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({}, "no bound"),
        ({"candidates": 10, "groups": 2}, "at most 10 candidates a group, at most 2 groups"),
        (
            {"groups": 50, "select": "stratified", "negatives": "seeded", "seed": 7, "unjudged": "drop"},
            "at most 50 groups, a stratified sample, seeded negatives, groups that cannot be judged: drop, seed 7",
        ),
    ],
)
def test_bounds_are_said_in_one_line(stated: dict[str, Value], words: str) -> None:
    assert wording.bounds(stated) == words
