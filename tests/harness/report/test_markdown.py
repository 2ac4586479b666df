from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
from markdown_it import MarkdownIt

from harness.records import Limit
from harness.report import markdown, view, wording
from harness.root import RootRecords
from tests.support.ladders import changed, edited, qualify, writable_copy
from tests.support.roots import DIGEST, Example, example, limited


def tables(text: str) -> list[list[list[str]]]:
    found: list[list[list[str]]] = []
    for line in text.splitlines():
        if line.startswith("| "):
            found[-1].append(line.strip("| ").split(" | "))
        elif not line and (not found or found[-1]):
            found.append([])
    return [rows for rows in found if rows]


def test_summary_tiers_and_figures_are_there(root: Example) -> None:
    text = markdown.render(root.records, DIGEST)
    assert text.startswith("## ✗ FAIL: <code>quickstart</code>\n\n**1 of 3 targets reached L3 rerank.**")
    for title in (
        "What stands in the way",
        "Tiers",
        "Build (L0)",
        "Perf (L1)",
        "Parity (L2)",
        "Rerank (L3)",
        "Reproduce",
    ):
        assert f"### {title}\n" in text
    assert f"qualify verify . --expect {DIGEST}\n" in text


def test_every_finding_that_is_not_pass_is_a_row_worst_first(root: Example) -> None:
    rows = tables(markdown.render(root.records, DIGEST))[0][2:]
    expected = [
        (finding.metric, wording.limit(finding.limit, wording.unit_of(finding.metric)), wording.found(finding))
        for step in root.records.steps.values()
        for finding in step.outcome.findings
        if finding.verdict != "PASS"
    ]
    assert [(row[3].removeprefix("<code>").removesuffix("</code>"), row[4], row[5]) for row in rows[:-1]] == expected
    assert rows[-1][:3] == ["<code>cpu-fp16</code>", "L1 perf", "■ BLOCKED"]


def test_bounds_stand_beside_every_ranking_figure(root: Example) -> None:
    for found, bounds in (
        (root, "60 groups x 12 candidates, 512 tokens"),
        (example(groups=6), "functional smoke: 6 groups x 12 candidates, 512 tokens"),
    ):
        ranked = [rows for rows in tables(markdown.render(found.records, DIGEST)) if rows[0][-1] == "On"]
        assert len(ranked) == (1 if "smoke" in bounds else 2)
        assert {row[-1] for rows in ranked for row in rows[2:]} == {bounds}


def test_the_metric_that_a_limit_is_on_has_the_first_column(root: Example) -> None:
    found = limited(root, "L3", {"mrr_at_10_drop": Limit(at_most=0.01)}).records
    ranked = next(rows for rows in tables(markdown.render(found, DIGEST)) if rows[0][-1] == "On")
    assert ranked[0] == ["Target", "MRR@10", "drop", "nDCG@10", "nDCG@10 drop", "MAP", "On"]
    assert ranked[2][1:3] == ["0.7031", "0"]


def test_casts_and_placement_of_another_precision_stand_under_the_times(root: Example) -> None:
    rows = next(rows for rows in tables(markdown.render(root.records, DIGEST)) if "Casts" in rows[0][-1])
    said = "14 Casts after optimisation, storage only; 281 of 281 nodes on its own provider"
    assert rows[2:] == [["<code>cpu-int8</code>", said]]


def test_the_time_limit_stands_beside_the_bounds(root: Example) -> None:
    assert "at most 60 groups</code>; the step may take 1,800 s, digest" in markdown.render(root.records, DIGEST)


def test_a_smoke_test_claims_no_accuracy() -> None:
    text = markdown.render(example(groups=6).records, DIGEST)
    assert "1 of 3 targets reached L3 rerank (functional smoke)." in text
    assert "functional smoke: 6 judged groups, and an interval needs 30; no claim of accuracy" in text
    own = view.measurement(example(groups=6).records, "cpu-fp32", "L3", "ndcg_at_10")
    assert own is not None
    assert wording.measured(own, interval=False) not in text


def test_the_same_root_gives_the_same_bytes_whatever_order_its_facts_were_read_in(root: Example) -> None:
    turned = msgspec.structs.replace(
        root.records,
        claim=msgspec.structs.replace(root.records.claim, targets=root.records.claim.targets[::-1]),
        environment=msgspec.structs.replace(
            root.records.environment, facts=dict(reversed(root.records.environment.facts.items()))
        ),
    )
    assert markdown.render(turned, DIGEST) == markdown.render(root.records, DIGEST)


def test_a_clean_root_has_nothing_in_the_way() -> None:
    found = example().records
    passed = {key: step for key, step in found.steps.items() if step.outcome.verdict == "PASS"}
    text = markdown.render(msgspec.structs.replace(found, steps=passed), DIGEST)
    assert "What stands in the way" not in text


def kinds(records: RootRecords) -> list[str]:
    """Every token of the rendered Markdown: its type, and for raw HTML the tag itself."""
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    found: list[str] = []
    for token in reader.parse(markdown.render(records, DIGEST)):
        found.append(token.type)
        found += [child.content if child.type == "html_inline" else child.type for child in token.children or []]
    return found


def test_hostile_text_makes_no_markup_at_all(root: Example, hostile_root: Example) -> None:
    clean, hostile = set(kinds(root.records)), set(kinds(hostile_root.records))
    assert "html_block" not in hostile
    assert hostile <= clean
    for rows in tables(markdown.render(hostile_root.records, DIGEST)):
        assert len({len(row) for row in rows}) == 1


def test_hostile_text_is_no_mention_link_or_command(hostile_root: Example) -> None:
    text = markdown.render(hostile_root.records, DIGEST)
    assert "@octocat" not in text
    assert "://" not in text
    assert "www." not in text
    assert "::" not in text
    assert "##[" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_delta_against_a_baseline_stands_before_how_to_reproduce(tiny_root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "base"
    folder.mkdir()
    shutil.copytree(tiny_root, folder / "march")
    later = edited("qualification.json", lambda claim: claim.update(ended_at="2036-01-01T00:00:00Z"))
    root = changed(tiny_root, tmp_path / "today", later)
    for baseline in (folder / "march", folder):
        said = qualify("report", root, "--markdown", "--baseline", baseline)
        assert said.code == 0, said.err
        alone = qualify("report", root, "--markdown").out
        before, _, after = alone.partition("### Reproduce")
        assert said.out.startswith(before)
        assert said.out.endswith(f"### Reproduce{after}")
        delta = said.out.removeprefix(before).removesuffix(f"### Reproduce{after}")
        assert delta.startswith("### Against the baseline compared: no verdict lost or gained; no policy")
        sections = qualify("diff", folder / "march", root, "--markdown").out.partition("\n")[2]
        assert delta.partition("\n")[2].strip().replace("#### ", "### ") == sections.strip()


def test_a_baseline_that_is_not_intact_reports_nothing(tiny_root: Path, tmp_path: Path) -> None:
    broken = writable_copy(tiny_root, tmp_path / "broken")
    (broken / "environment.json").write_bytes(b"{}\n")
    said = qualify("report", tiny_root, "--markdown", "--baseline", broken)
    assert (said.code, said.out) == (20, "")
    said = qualify("report", tiny_root, "--annotations", "--baseline", broken)
    assert (said.code, said.out) == (64, "")
