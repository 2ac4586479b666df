"""Faults of a runtime that L1 must name: real sessions in real children, made faulty by a wrapper."""

from __future__ import annotations

from pathlib import Path

import msgspec

from harness.metrics.catalogue import LOAD_LIMITS, fixed_limits
from harness.prebuilt import pin
from harness.records import Limit, Limits, LoadOptions, PerfOptions
from tests.support import faults
from tests.support.steps import OPTIONS, Bench, bench

CALLS = PerfOptions(candidates=4, batch_size=4, max_length=48, warm_up=1, calls=40, growth_calls=1)


def findings(
    climbed: Bench, root: Path, fault: str, options: PerfOptions, limits: Limits
) -> dict[str, tuple[str, str]]:
    there = climbed.copy(root)
    asked = there.request("L1", options=msgspec.structs.replace(OPTIONS, L1=options))
    (root / asked.step).rename(root.parent / f"before-{fault}")
    ran = faults.run(there, asked, fault)
    return {name: (found.verdict, found.text) for name, found in faults.judged(ran, limits).items()}


def test_a_leak_of_a_megabyte_in_a_hundred_calls_is_growth(climbed: Bench, tmp_path: Path) -> None:
    calls = msgspec.structs.replace(CALLS, calls=6, growth_calls=300)
    limit = {"growth_bytes_per_1000_calls": Limit(at_most=2e6)}
    verdict, text = findings(climbed, tmp_path / "root", "leak", calls, limit)["growth_bytes_per_1000_calls"]
    assert verdict == "FAIL"
    assert text.startswith("growth_bytes_per_1000_calls: expected at most 2,000,000.0, got 1")  # of about 10.5 million


def test_a_session_without_a_leak_does_not_grow(climbed: Bench) -> None:
    growth = climbed.earlier("L1").measured()["growth_bytes_per_1000_calls"]
    assert growth.interval is not None
    assert growth.interval[1] <= 2e6  # what the leak above breaks five times over


def test_a_slowdown_over_the_calls_is_drift_and_leaves_a_limit_between_undecided(
    climbed: Bench, tmp_path: Path
) -> None:
    limits = {"drift_ratio": Limit(at_most=1.2), "p50_ms": Limit(at_most=20)}
    found = findings(climbed, tmp_path / "root", "slowing", CALLS, limits)
    assert found["drift_ratio"][0] == "FAIL"
    verdict, text = found["p50_ms"]
    assert verdict == "INCONCLUSIVE"
    assert "drifts: the last third took" in text


def test_a_deadlock_of_several_callers_is_named_and_the_step_ends(climbed: Bench, tmp_path: Path) -> None:
    load = LoadOptions(concurrency=(1, 4, 8), calls=20, deadlock_s=2.0, arrival_per_s=100.0)
    calls = msgspec.structs.replace(CALLS, calls=6, load=load)
    limits = LOAD_LIMITS | {"load_p50_ms.8": Limit(at_most=1e6)}
    found = findings(climbed, tmp_path / "root", "deadlock", calls, limits)
    verdict, text = found["load_unfinished_calls"]
    assert verdict == "FAIL"
    assert text.startswith("load_unfinished_calls: expected exactly 0, got ")
    assert text.endswith(" calls: not back after 2 s: a deadlock, or calls that slow")
    assert found["load_differing_logits"][0] == "PASS"
    assert found["load_p50_ms.8"] == (
        "BLOCKED",
        "load_p50_ms.8: expected at most 1,000,000.0, got unknown: not called: a call of fewer callers had not come back",
    )


def test_a_first_call_that_is_ten_times_slower_is_named_and_is_not_in_the_steady_figures(
    climbed: Bench, tmp_path: Path
) -> None:
    limits = {"first_call_ratio": Limit(at_most=5), "max_ms": Limit(at_most=199)}
    found = findings(climbed, tmp_path / "root", "slow-first", CALLS, limits)
    assert found["first_call_ratio"][0] == "FAIL"
    assert found["max_ms"][0] == "PASS"


def test_a_provider_that_takes_no_node_is_named_before_anything_is_timed(climbed: Bench, tmp_path: Path) -> None:
    there = bench(tmp_path / "root", climbed.model)
    graph = climbed.root / "artifacts/cpu-fp32/model.onnx"
    asked = there.request("L0", artifact=pin(graph))
    ran = faults.run(there, asked, "other-provider", graph)
    found = faults.judged(ran, fixed_limits("L0", "fp32"))["own_provider_nodes"]
    assert (found.verdict, found.text) == ("FAIL", "own_provider_nodes: expected at least 1.0, got 0 nodes: of 130")
