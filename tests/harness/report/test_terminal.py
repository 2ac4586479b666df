from __future__ import annotations

import io
import unicodedata

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console

from harness.records import GateClaim, Limit
from harness.report import terminal, wording
from harness.root import RootRecords
from tests.support.roots import DIGEST, Example, example, limited, with_bounds


def shown(records: RootRecords, *, path: str = "runs/x", width: int = 80) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False).print(terminal.render(records, digest=DIGEST, path=path))
    return stream.getvalue()


def inert(text: str) -> bool:
    return all(char == "\n" or unicodedata.category(char) not in {"Cc", "Cf", "Zl", "Zp"} for char in text)


def test_the_worst_thing_comes_first_and_the_root_digest_last(root: Example) -> None:
    lines = shown(root.records).splitlines()
    assert lines[0] == "✗ FAIL  quickstart: 1 of 3 targets reached L3 rerank"
    assert lines[2] == "✗ FAIL  cpu-int8 at L2 parity"
    assert lines[-1].strip() == f"digest  {DIGEST}"


def test_every_finding_that_is_not_pass_stands_there_with_limit_and_value(root: Example) -> None:
    text = " ".join(shown(root.records).split())
    for step in root.records.steps.values():
        for finding in step.outcome.findings:
            if finding.verdict != "PASS":
                limit = wording.limit(finding.limit, wording.unit_of(finding.metric))
                assert f"{finding.metric} limit {limit}, found {wording.found(finding)}" in text


def test_a_step_without_findings_says_why_it_is_blocked(root: Example) -> None:
    text = " ".join(shown(root.records).split())
    assert "■ BLOCKED cpu-fp16 at L1 perf timed out: expected the step to end within 900 s" in text


def test_ladder_coverage_and_figures_are_there(root: Example) -> None:
    text = shown(root.records)
    assert "cpu-int8  ✓ PASS 3.9 s  ✓ PASS 6.2 s           ✗ FAIL 2.4 s  – NOT RUN" in text
    assert "partial at L3 rerank: reached cpu-fp32; missed cpu-fp16, cpu-int8" in text
    assert "p50 48.21 ms (95% 47.7 to 48.8), 651.3 pairs/s, peak RSS 262.5 MB" in text
    assert "[60 groups x 12 candidates, 512 tokens]" in text
    assert "smoke" not in text


def test_few_groups_are_called_a_smoke_test_and_claim_nothing() -> None:
    text = " ".join(shown(example(groups=6).records).split())
    assert "quickstart: 1 of 3 targets reached L3 rerank (functional smoke)" in text
    assert "L3 rerank functional smoke: 6 groups x 12 candidates, 512 tokens" in text
    assert "functional smoke: 6 judged groups, and an interval needs 30; no claim of accuracy" in text
    assert "nDCG" not in text


def test_the_metric_that_a_limit_is_on_is_shown_with_its_drop_before_any_other(root: Example) -> None:
    only = limited(root, "L3", {"mrr_at_10_drop": Limit(at_most=0.01)}).records
    text = " ".join(shown(only).split())
    assert "L3 rerank MRR@10 0.7031, drop 0 [60 groups x 12 candidates" in text
    assert "nDCG@10" not in text
    both = limited(root, "L3", {"map_drop": Limit(at_most=0.01), "ndcg_at_10_drop": Limit(at_most=0.01)}).records
    text = " ".join(shown(both).split())
    assert "L3 rerank MAP 0.6712, drop 4e-4, nDCG@10 0." in text
    assert ", nDCG@10 drop " in text


def test_a_bound_on_pairs_and_one_on_candidates_that_groups_do_not_reach_stand_beside_every_figure(
    root: Example,
) -> None:
    text = " ".join(shown(with_bounds(root, pairs=730).records).split())
    assert "[60 groups x 12 candidates, 512 tokens, at most 730 pairs]" in text
    text = " ".join(shown(with_bounds(root, candidates=20, pairs=730).records).split())
    assert "[60 groups x 12 candidates, 512 tokens, at most 20 candidates a group, at most 730 pairs]" in text


def test_a_gate_that_passed_stands_below_the_ladder_and_one_that_did_not_above(root: Example) -> None:
    gates = (
        GateClaim(name="lint", verdict="PASS", reason=""),
        GateClaim(name="types", verdict="FAIL", reason="exit code 1"),
    )
    claim = msgspec.structs.replace(root.records.claim, gates=gates)
    lines = shown(msgspec.structs.replace(root.records, claim=claim)).splitlines()
    assert lines[2] == "✗ FAIL  gate types"
    ladder = next(place for place, line in enumerate(lines) if line.startswith("target "))
    worst, passed = lines.index("✗ FAIL  cpu-int8 at L2 parity"), lines.index("✓ PASS  gate lint")
    assert 2 < worst < ladder < passed


def test_a_deferred_target_is_deferred_in_every_tier_with_its_reason(root: Example) -> None:
    first, *others = root.records.plan.targets
    deferred = msgspec.structs.replace(first, deferred="no such machine yet", steps=())
    plan = msgspec.structs.replace(root.records.plan, targets=(deferred, *others))
    text = shown(msgspec.structs.replace(root.records, plan=plan))
    assert "cpu-fp32  deferred      deferred" in text
    assert "no such machine yet" in text


def test_nothing_is_wider_than_eighty_columns(root: Example, hostile_root: Example) -> None:
    for found in (root, hostile_root):
        lines = shown(found.records, path="/a/very/long/path" * 9).splitlines()
        assert max(map(cell_len, lines)) <= 80


def test_hostile_text_moves_nothing_and_commands_no_runner(
    hostile_root: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    text = shown(hostile_root.records) + terminal.plan_text(hostile_root.records.plan)
    assert inert(text)
    assert "::" not in text
    assert "##[" not in text


def test_print_root_is_plain_text_when_stdout_is_no_terminal(root: Example, capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_root(found=root.records, digest=DIGEST, path=root.path)
    printed = capsys.readouterr()
    assert printed.out.endswith(f"digest  {DIGEST}\n")
    assert inert(printed.out)
    assert printed.err == ""


def test_a_plan_shows_every_limit_and_marks_the_defaults(root: Example) -> None:
    plan = root.records.plan
    text = " ".join(terminal.plan_text(plan).split())
    assert "warm_up 5*" in text
    assert "opset 17," in text
    assert "defaults /seed, /tiers/L0/exporter" in text
    for target in plan.targets:
        for step in target.steps:
            for metric, limit in step.limits.items():
                assert f"{metric} {wording.limit(limit, wording.unit_of(metric))}" in text
    assert max(map(cell_len, terminal.plan_text(plan).splitlines())) <= 80
