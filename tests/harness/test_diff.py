"""Two real roots compared: the same twice, then one thing changed at a time; what is not comparable is never compared."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evidence.manifest import digest_of
from evidence.report import AUTHENTICITY
from harness import answer, comparison, diff, gate, sides
from harness.answer import check
from harness.diff_figures import withheld
from harness.diff_values import Compared, Diff, Side, StepDiff
from harness.errors import AskedWrongly, NotIntact
from harness.policy import parse
from harness.recheck import Rejudged, rejudge
from tests.support.ladders import Said, changed, edited, qualify, writable_copy


def compared(baseline: Path, candidate: Path, *pairs: tuple[str, str]) -> Diff:
    return comparison.compare(baseline, candidate, pairs)


def step(found: Diff, tier: str, target: str) -> StepDiff:
    return next(item for item in found.steps if (item.tier, item.target) == (tier, target))


@pytest.fixture(scope="session")
def other_machine(tmp_path_factory: pytest.TempPathFactory, tiny_root: Path) -> Path:
    """The root as if it had run on a machine with another processor."""
    place = tmp_path_factory.mktemp("machine") / "root"
    edit = edited("environment.json", lambda value: value["facts"].update(cpu_model="Another CPU"))
    return changed(tiny_root, place, edit)


# --- one root against itself ------------------------------------------------------------------------------------------


def test_a_root_against_itself_differs_in_nothing_and_says_so_in_a_line_a_part(tiny_root: Path) -> None:
    found = compared(tiny_root, tiny_root)
    assert found.identity == ()
    assert found.ladder == ()
    assert found.refresh is None
    assert {item.state for item in found.steps} == {"same"}
    assert all(item.same or item.baseline is None for one in found.steps for item in one.compared)
    text = comparison.text(found, None)
    assert (
        "identical: model, adapter, options, limits, dataset, pairs, artifact, machine, packages, harness"
        in " ".join(text.split())
    )
    assert text.count("figures identical") == 12
    assert "Metric" not in text
    assert max(map(len, text.splitlines())) <= 80 + len(str(tiny_root))


def test_two_targets_are_compared_by_pair(tiny_root: Path) -> None:
    found = compared(tiny_root, tiny_root, ("cpu-fp32", "cpu-int8"))
    assert {(item.baseline_target, item.target) for item in found.steps} == {("cpu-fp32", "cpu-int8")}
    values = {item.metric: item for item in step(found, "L0", "cpu-int8").compared}
    assert values["initializer_count.INT8"].baseline == 0
    assert values["initializer_count.INT8"].difference == values["initializer_count.INT8"].candidate
    payload = values["payload_bytes"]
    assert isinstance(payload.ratio, float)
    assert payload.ratio < 1
    assert ("options", "precision", "fp32", "int8") in {
        (change.part, change.name, change.baseline, change.candidate) for change in found.identity
    }


def test_a_pair_that_is_not_there_is_refused(tiny_root: Path) -> None:
    with pytest.raises(AskedWrongly) as refused:
        compared(tiny_root, tiny_root, ("cpu-fp32", "gpu"))
    assert str(refused.value) == (
        "--pair cpu-fp32=gpu: expected a target of the candidate, got 'gpu'; it has cpu-fp32, cpu-fp16, cpu-int8"
    )


def test_latencies_of_raw_samples_have_an_interval_on_their_ratio(tiny_root: Path) -> None:
    values = {item.metric: item for item in step(compared(tiny_root, tiny_root), "L1", "cpu-fp32").compared}
    for name in ("p50_ms", "p90_ms", "p95_ms", "mean_ms", "pairs_per_s"):
        low, high = values[name].ratio_interval or (0, 0)
        assert low <= values[name].ratio == 1 <= high  # type: ignore[operator]
        assert low < high


def test_rankings_are_compared_by_query(ranked_root: Path) -> None:
    found = step(compared(ranked_root, ranked_root, ("cpu-fp32", "cpu-int8")), "L3", "cpu-int8")
    values = {item.metric: item for item in found.compared}
    assert values["ndcg_at_10"].how == "queries resampled, both sides by the same query"
    assert values["ndcg_at_10"].interval is not None
    assert values["ndcg_at_10_drop"].difference == pytest.approx(-(values["ndcg_at_10"].difference or 0.0))
    assert len(found.moved) == min(found.moved_queries, 5)
    changes = [abs(query.candidate - query.baseline) for query in found.moved]
    assert changes == sorted(changes, reverse=True)
    for query in found.moved:
        assert query.candidates
        assert all(doc.baseline_rank != doc.candidate_rank for doc in query.candidates)


def test_what_was_ranked_stands_beside_the_figures(ranked_root: Path) -> None:
    found = compared(ranked_root, ranked_root)
    one = step(found, "L3", "cpu-int8")
    assert (one.baseline_bounds, one.candidate_bounds) == ("32 groups x 8 candidates, 64 tokens",) * 2
    assert one.smoke == ""
    assert "cpu-int8: on 32 groups x 8 candidates, 64 tokens" in comparison.text(found, None)


SMOKE = "functional smoke: 8 judged groups, and an interval needs 30; no claim of accuracy"


def test_of_a_smoke_test_no_figure_of_the_ranking_is_in_any_form(tiny_root: Path, tmp_path: Path) -> None:
    policy = asked(
        tmp_path,
        "format: 1\nname: release\ngates:\n  - {metric: ndcg_at_10, max_degradation: 50%, at_least: 0.01}\n"
        "  - {metric: map, must_not_change: true}\n  - {metric: row_map.bm25, at_least: 0}\n  - {metric: groups, at_least: 1}\n",
    )
    pair = ("diff", tiny_root, tiny_root, "--pair", "cpu-fp32=cpu-int8", "--policy", policy)
    said = qualify(*pair, "--json")
    assert said.code == 30
    gates = {(item["what"], item["rule"]): (item["verdict"], item["reason"]) for item in said.json["gates"]["gates"]}
    assert gates.pop(("groups", "at_least 1"))[0] == "OK", "of the data, not of the ranking"
    assert len(gates) == 4
    assert set(gates.values()) == {("INCONCLUSIVE", SMOKE)}
    (ranked,) = [one for one in said.json["steps"] if one["tier"] == "L3"]
    assert (ranked["smoke"], ranked["moved"], ranked["moved_queries"]) == (SMOKE, [], 0)
    figures = {item["metric"]: item for item in ranked["compared"]}
    for name in ("ndcg_at_10", "ndcg_at_10_drop", "recall_at_10", "row_map.bm25"):
        assert [
            figures[name][key] for key in ("baseline", "candidate", "difference", "interval", "candidate_interval")
        ] == ([None] * 5), name
        assert figures[name]["smoke"] == SMOKE
    text = qualify(*pair)
    assert f"on {ranked['baseline_bounds']}" in " ".join(text.out.split())
    assert SMOKE in " ".join(text.out.split())
    markdown = qualify(*pair, "--markdown", "--html", tmp_path / "diff.html")
    for form in (text.out, markdown.out, (tmp_path / "diff.html").read_text(encoding="utf-8")):
        assert "functional smoke: 8 groups x 8 candidates, 64 tokens" in " ".join(html.unescape(form).split())
        assert "nDCG" not in form
        assert "sentinel" not in form
        assert "Queries that moved" not in form


def test_a_smoke_test_of_one_side_withholds_that_side_alone() -> None:
    figure = Compared(
        metric="map",
        unit="MAP",
        better="more",
        baseline=0.5,
        candidate=0.6,
        difference=0.1,
        ratio=1.2,
        interval=(0.0, 0.2),
        candidate_interval=(0.5, 0.7),
    )
    kept = withheld(figure, SMOKE, "")
    assert (kept.baseline, kept.candidate, kept.candidate_interval) == (None, 0.6, (0.5, 0.7))
    assert (kept.difference, kept.ratio, kept.interval, kept.smoke, kept.same) == (None, None, None, SMOKE, False)
    assert withheld(figure, "", "") == figure


# --- what does not compare --------------------------------------------------------------------------------------------


def test_another_machine_class_makes_latency_incomparable_and_nothing_else(
    tiny_root: Path, other_machine: Path
) -> None:
    found = compared(tiny_root, other_machine)
    perf = step(found, "L1", "cpu-fp32")
    cpu = json.loads((tiny_root / "environment.json").read_bytes())["facts"]["cpu_model"]
    assert perf.why_not == (
        f"another machine class: cpu_model {cpu} and Another CPU; only a paired measurement compares these"
    )
    assert all(item.difference is None for item in perf.compared)
    assert not step(found, "L2", "cpu-fp32").why_not
    assert [(change.part, change.name) for change in found.identity] == [("machine", "cpu_model")]


def test_a_comparison_says_what_vouches_for_each_side(tiny_root: Path, tmp_path: Path) -> None:
    digest = str(check(tiny_root).opened.report.digest)
    pin = tmp_path / "pin.yaml"
    pin.write_text(f"baseline: {{path: {tiny_root}, digest: '{digest}'}}\n", encoding="utf-8")
    found = comparison.compare(pin, tiny_root)
    assert (found.baseline.authenticity, found.candidate.authenticity) == ("pinned", "none")
    said = " ".join(comparison.text(found, None).split())
    assert f"baseline pinned: {AUTHENTICITY['pinned']}" in said
    assert f"candidate none: {AUTHENTICITY['none']}" in said
    both = comparison.compare(tiny_root, tiny_root)
    for text in (comparison.text(both, None), comparison.markdown(both, None), comparison.html(both, None)):
        assert "baseline and candidate none:" in " ".join(text.replace("`", "").split())


def test_two_uploads_of_one_task_name_are_not_compared_in_any_figure_of_the_ranking(tiny_root: Path) -> None:
    whole = sides.side(check(tiny_root))
    plan, groups = whole.records.plan, whole.records.plan.inputs.groups
    assert groups is not None

    def uploaded(commit: str) -> Side:
        """The root as if its groups had come from a task of one name at that commit."""
        fact = replace(groups, source=f"some/task@{commit * 40}:test", digest=f"blake3:{commit * 64}")
        told = replace(plan, inputs=replace(plan.inputs, groups=fact))
        return whole._replace(judged=replace(whole.judged, records=replace(whole.records, plan=told)))

    found = diff.compare(uploaded("1"), uploaded("2"))
    ranked = step(found, "L3", "cpu-fp32")
    assert ranked.why_not == f"the ranked set differs: digest blake3:{'1' * 64} and blake3:{'2' * 64}"
    assert all(item.difference is None for item in ranked.compared)
    assert ranked.moved == ()
    assert not step(found, "L2", "cpu-fp32").why_not
    asked = parse(b"format: 1\nname: release\ngates:\n  - {metric: ndcg_at_10, max_degradation: 50%}\n")
    gates = gate.judge(asked, "blake3:" + "0" * 64, found)
    assert {(item.verdict, item.reason) for item in gates.gates} == {("INCOMPARABLE", ranked.why_not)}
    assert gates.exit_code == 30


def test_a_target_of_one_side_is_lost_or_gained(tiny_root: Path) -> None:
    whole = sides.side(check(tiny_root))
    plan = whole.records.plan
    less = replace(plan, targets=plan.targets[:2])
    claim = replace(whole.claim, targets=whole.claim.targets[:2])
    smaller = whole._replace(judged=replace(whole.judged, records=replace(whole.records, plan=less), claim=claim))
    lost = diff.compare(whole, smaller)
    assert {(item.state, item.why_not) for item in lost.steps if item.target == "cpu-int8"} == {
        ("lost", "the candidate has no such target")
    }
    gained = diff.compare(smaller, whole)
    assert {(item.baseline, item.state) for item in gained.steps if item.target == "cpu-int8"} == {("absent", "gained")}


def test_nothing_is_read_from_a_root_that_does_not_verify(tiny_root: Path, tmp_path: Path) -> None:
    broken = writable_copy(tiny_root, tmp_path / "broken")
    (broken / "qualification.json").write_bytes(b"{}\n")
    for pair in ((broken, tiny_root), (tiny_root, broken)):
        said = qualify("diff", *pair)
        assert (said.code, said.out) == (20, "")
        assert "expected an intact root, got: qualification.json: expected blake3 " in said.err


# --- the base ---------------------------------------------------------------------------------------------------------


def test_large_ranked_sets_are_judged_at_once_with_the_same_answer(
    tiny_root: Path, other_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = compared(tiny_root, other_machine)
    untrue = changed(
        tiny_root, tmp_path / "untrue", edited("qualification.json", lambda value: value.update(verdict="FAIL"))
    )
    with pytest.raises(NotIntact) as alone:
        compared(other_machine, untrue)
    monkeypatch.setattr(comparison, "LARGE_BYTES", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    assert compared(tiny_root, other_machine) == apart
    with pytest.raises(NotIntact) as together:
        compared(other_machine, untrue)
    assert str(together.value) == str(alone.value)


def test_when_only_the_machine_moved_the_command_measures_l1_again_and_carries_the_rest(
    tiny_root: Path, other_machine: Path
) -> None:
    found = compared(other_machine, tiny_root).refresh
    assert found is not None
    assert found.moved == ("machine.cpu_model",)
    assert found.touched == ("L1:cpu-fp32", "L1:cpu-fp16", "L1:cpu-int8")
    assert len(found.preserved) == 9
    assert found.command[-4:] == ("--preserve", str(other_machine), "--rerun", "L1")


def test_the_printed_command_works(tiny_root: Path, other_machine: Path, tmp_path: Path) -> None:
    """The ladder of the tiny root stands beside it."""
    ladder = tiny_root.parent / "tiny.yaml"
    found = comparison.compare(other_machine, tiny_root, (), str(ladder)).refresh
    assert found is not None
    said = qualify(*found.command[1:], "--out", tmp_path / "fresh", "--json")
    assert said.code == 0, said.err
    assert sorted(path.name for path in (tmp_path / "fresh" / "steps").iterdir()) == [
        "L1-perf.cpu-fp16",
        "L1-perf.cpu-fp32",
        "L1-perf.cpu-int8",
    ]
    again = compared(tiny_root, tmp_path / "fresh").refresh
    assert again is None or again.touched == ()


def test_a_new_package_version_touches_all_it_makes_and_a_new_harness_commit_nothing(
    tiny_root: Path, tmp_path: Path
) -> None:
    package = edited("environment.json", lambda value: value["packages"].update(onnxruntime="1.0.0"))
    found = compared(tiny_root, changed(tiny_root, tmp_path / "package", package)).refresh
    assert found is not None
    assert found.moved == ("package.onnxruntime",)
    assert (len(found.touched), found.preserved) == (12, ())
    assert "--preserve" not in found.command
    commit = edited("environment.json", lambda value: value["facts"].update(harness_commit="f" * 40))
    found = compared(tiny_root, changed(tiny_root, tmp_path / "commit", commit)).refresh
    assert found is not None
    assert (found.moved, found.touched, found.command) == (("harness.commit",), (), ())


# --- the command ------------------------------------------------------------------------------------------------------

POLICY = """format: 1
name: release
gates:
  - {metric: payload_bytes, max_degradation: 1%}
  - {metric: max_abs_gap, max_degradation: 0}
  - {metric: opset, must_not_change: true}
  - {identity: dataset, must_not_change: true}
"""


def asked(folder: Path, text: str) -> Path:
    path = folder / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_command_ends_by_its_gates(tiny_root: Path, other_machine: Path, tmp_path: Path) -> None:
    policy = asked(tmp_path, POLICY)
    said = qualify("diff", tiny_root, tiny_root, "--policy", policy)
    assert (said.code, said.out.splitlines()[0]) == (0, "✓ OK: 10 OK under policy release")
    (tmp_path / "perf").mkdir()
    perf = asked(tmp_path / "perf", "format: 1\nname: perf\ngates:\n  - {metric: p50_ms, max_degradation: 90%}\n")
    said = qualify("diff", tiny_root, other_machine, "--policy", perf, "--json")
    assert said.code == 30
    assert {gate["verdict"] for gate in said.json["gates"]["gates"]} == {"INCOMPARABLE"}
    said = qualify("diff", tiny_root, tiny_root, "--pair", "cpu-int8=cpu-fp32", "--policy", policy, "--json")
    assert said.code == 10
    first = said.json["gates"]["gates"][0]
    assert (first["verdict"], first["what"], first["target"]) == ("REGRESSION", "payload_bytes", "cpu-fp32")


def test_a_baseline_is_found_in_a_folder_or_by_a_pin(tiny_root: Path, other_machine: Path, tmp_path: Path) -> None:
    digest = digest_of((tiny_root / "MANIFEST.b3").read_bytes())
    pin = tmp_path / "baseline.yaml"
    pin.write_text(f"baseline: {{path: {tiny_root}, digest: '{digest}'}}\n", encoding="utf-8")
    said = qualify("diff", pin, other_machine, "--json")
    assert (said.code, said.json["baseline"]["digest"]) == (0, digest)
    pin.write_text(f"baseline: {{path: {other_machine}, digest: '{digest}'}}\n", encoding="utf-8")
    said = qualify("diff", pin, tiny_root)
    assert said.code == 20
    assert f"expected the root digest {digest}, got " in said.err
    runs = tmp_path / "runs"
    runs.mkdir()
    writable_copy(tiny_root, runs / "one")
    said = qualify("diff", runs, other_machine, "--json")
    assert (said.code, said.json["baseline"]["root"]) == (0, str(runs / "one"))
    said = qualify("diff", runs, runs / "one")
    assert (said.code, said.out) == (64, "")
    assert f"{runs}: expected a root of ladder tiny and model " in said.err


def test_each_root_is_judged_once_also_where_a_folder_is_named(
    tiny_root: Path, other_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[Rejudged] = []

    def counted(*given: Any) -> Rejudged:
        judged.append(rejudge(*given))
        return judged[-1]

    monkeypatch.setattr(answer, "rejudge", counted)
    writable_copy(tiny_root, tmp_path / "runs" / "one")
    found = comparison.compare(tmp_path / "runs", other_machine)
    assert (found.baseline.root, found.candidate.root, len(judged)) == (
        str(tmp_path / "runs" / "one"),
        str(other_machine),
        2,
    )
    found = comparison.compare(other_machine, tmp_path / "runs")
    assert (found.baseline.root, found.candidate.root, len(judged)) == (
        str(other_machine),
        str(tmp_path / "runs" / "one"),
        4,
    )


def test_every_form_holds_the_same_answer(tiny_root: Path, tmp_path: Path) -> None:
    arguments = ("diff", tiny_root, tiny_root, "--pair", "cpu-int8=cpu-fp32", "--policy", asked(tmp_path, POLICY))
    markdown: Said = qualify(*arguments, "--markdown", "--html", tmp_path / "diff.html")
    assert markdown.code == 10
    assert markdown.out.startswith("## ✗ REGRESSION: ")
    assert qualify(*arguments, "--markdown").out == markdown.out
    page = (tmp_path / "diff.html").read_text(encoding="utf-8")
    assert "<h2" in page
    assert "http" not in page.replace("http-equiv", "")
    assert qualify(*arguments, "--html", tmp_path / "diff.html").err == (
        f"qualify: {tmp_path}/diff.html: expected a path that does not exist, got an existing one; name another or remove it\n"
    )
    assert qualify(*arguments, "--markdown", "--json").code == 64
