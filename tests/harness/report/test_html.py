from __future__ import annotations

import re
import sys
from collections import Counter
from html.parser import HTMLParser

import msgspec
import pytest

from harness.errors import AskedWrongly
from harness.raw import PerQuery
from harness.records import Limit, Tier, from_json, step_folder, to_json
from harness.report import html, markup, view, wording
from tests.support.roots import DIGEST, Example, example, limited


class Page(HTMLParser):
    """Tags, attributes, ids and text of a page as a browser's parser sees them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def only(found: Example, target: str, tier: Tier) -> Example:
    """The example with the records of one step."""
    steps = {(target, tier): found.records.steps[target, tier]}
    return found._replace(records=msgspec.structs.replace(found.records, steps=steps))


def test_nothing_outside_the_file_is_referred_to(page: str, hostile_page: str) -> None:
    for text in (page, hostile_page):
        found = Page(text)
        assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form", "image"} & set(found.tags)
        assert all(href.startswith("#") for href in found.values("href"))
        assert not [
            name for _, name, _ in found.attributes if name in {"src", "srcset", "action"} or name.startswith("on")
        ]
        styles = " ".join([*found.values("style"), *re.findall(r"<style>(.*?)</style>", text, re.DOTALL)])
        assert "@import" not in styles
        assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)", text))


def test_the_policy_lets_a_browser_fetch_and_run_nothing(page: str) -> None:
    assert page.index("Content-Security-Policy") < page.index("<style>")
    assert markup.POLICY.startswith("default-src 'none'; style-src 'unsafe-inline';")
    assert "script" not in markup.POLICY


def test_every_finding_is_there_with_limit_value_and_margin(root: Example, page: str) -> None:
    text = Page(page).text
    for (target, tier), step in root.records.steps.items():
        assert f"{len(step.outcome.findings)} findings" in text or not step.outcome.findings, (target, tier)
        for finding in step.outcome.findings:
            limit = wording.limit(finding.limit, wording.unit_of(finding.metric))
            row = f"{wording.sign(finding.verdict)} {limit} {wording.found(finding)} {wording.margin(finding)}"
            assert row in text


def test_every_part_of_the_report_is_there(page: str) -> None:
    text = Page(page).text
    for part in (
        "What stands in the way",
        "partial at L3 rerank",
        "Latency distribution.",
        "Latency in sample order.",
        "From cold to steady.",
        "Memory over time.",
        "Logits: reference against artifact.",
        "Sizes of the gaps.",
        "nDCG@10 beside other scorers.",
        "Per-query ranking: 60 queries, worst first",
        "Structure census",
        "Operators of cpu-fp32 by type",
        "How it was made",
        "Last 3 lines of stderr.log",
        "This root stands alone",
        f"qualify verify ROOT --expect {DIGEST}",
        "/tiers/L1/warm_up",
        "onnxruntime",
    ):
        assert part in text


def test_bounds_stand_in_every_ranking_caption_and_a_smoke_test_is_called_one() -> None:
    found = only(example(groups=6), "cpu-fp32", "L3")
    text = Page(html.render(found.records, found.read, found.files, DIGEST)).text
    assert text.count("functional smoke: 6 groups x 12 candidates") == 2
    assert "functional smoke: 6 judged groups, and an interval needs 30; no claim of accuracy" in text
    own = view.measurement(found.records, "cpu-fp32", "L3", "ndcg_at_10")
    assert own is not None
    assert wording.measured(own, interval=False) not in text
    assert "Per-query ranking" not in text
    whole = only(example(), "cpu-fp32", "L3")
    shown = Page(html.render(whole.records, whole.read, whole.files, DIGEST)).text
    assert shown.count("60 groups x 12 candidates") >= 4
    assert "smoke" not in shown


def test_a_smoke_test_shows_the_figure_of_a_limit_that_was_not_met_and_of_no_other() -> None:
    limits = {"map": Limit(at_least=0.1), "mrr_at_10": Limit(at_least=0.9)}
    found = only(limited(example(groups=6), "L3", {**limits, "judged_groups": Limit(at_least=1)}), "cpu-fp32", "L3")
    text = Page(html.render(found.records, found.read, found.files, DIGEST)).text
    assert "✓ PASS ≥ 0.1 not shown: functional smoke –" in text
    assert "0.6712" not in text
    assert "✗ FAIL ≥ 0.9 0.7031" in text


def test_the_ladder_shows_the_metric_that_a_limit_is_on(root: Example) -> None:
    found = only(limited(root, "L3", {"mrr_at_10_drop": Limit(at_most=0.01)}), "cpu-fp32", "L3")
    text = Page(html.render(found.records, found.read, found.files, DIGEST)).text
    assert "✓ PASS MRR@10 0.7031 on 60 groups x 12 candidates" in text


def test_casts_and_placement_of_another_precision_stand_in_its_perf_section(page: str) -> None:
    said = "The graph that was timed: 14 Casts after optimisation, storage only; 281 of 281 nodes on its own provider."
    assert Page(page).text.count(said) == 1


def test_queries_that_lost_most_come_first_with_their_text(page: str) -> None:
    changes = [float(value) for value in re.findall(r'data-label="nDCG@10 change">([+-]?[\d.]+)<', page)]
    assert len(changes) == 60
    assert changes == sorted(changes)
    assert "how do I close file" in page


def test_ids_are_unique_and_every_reference_has_its_target(page: str) -> None:
    found = Page(page)
    counts = Counter(found.values("id"))
    assert set(counts.values()) == {1}
    inside = [*found.values("href"), *(f"#{name}" for name in found.values("aria-labelledby"))]
    assert {reference.removeprefix("#") for reference in inside} <= set(counts)
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(counts)


def test_plots_take_their_colours_from_the_page_and_tell_what_they_show(page: str) -> None:
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) == 14
    for drawing in drawings:
        assert not re.search(r"#0[1-5]0", drawing)
        assert "var(--accent)" in drawing
        assert re.search(r'role="img" aria-label="[^"]{20,}"', drawing)
        assert "<title>" in drawing
        assert "<desc>" in drawing
        assert "mathdefault" not in drawing


def test_tables_have_captions_and_scopes(page: str) -> None:
    found = Page(page)
    assert found.tags.count("table") == found.tags.count("caption")
    assert found.tags.count("th") == sum(name == "scope" for _, name, _ in found.attributes)
    assert ("html", "lang", "en") in found.attributes
    assert ("a", "class", "skip") in found.attributes


def test_the_same_root_gives_the_same_bytes(root: Example) -> None:
    found = only(root, "cpu-fp32", "L1")
    first, second = (html.render(found.records, found.read, found.files, found.digest) for _ in range(2))
    assert first == second


def test_hostile_text_is_shown_as_text(page: str, hostile_page: str) -> None:
    clean, found = Page(page), Page(hostile_page)
    assert Counter(found.tags) == Counter(clean.tags)
    assert {(tag, name) for tag, name, _ in found.attributes} == {(tag, name) for tag, name, _ in clean.attributes}
    assert "<script>alert(1)</script>" in found.text
    assert r"\x1b[2K" in found.text
    assert r"\u202e" in found.text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", hostile_page)


def test_steps_without_raw_files_say_so_and_keep_their_figures(root: Example) -> None:
    text = Page(html.render(root.records, root.read, (), DIGEST)).text
    assert text.count("The step left no samples.") == 6
    assert "p50 48.21 ms" in text
    assert "nDCG@10 beside other scorers." in text


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\xfe", b"{" * 100_000, b'{"format": 1}\n'])
def test_raw_files_of_another_shape_are_named_and_nothing_else_breaks(root: Example, content: bytes) -> None:
    folders = [step_folder(tier, "cpu-int8") for tier in ("L0", "L1", "L2")]
    files = {path: content for path in root.files if path.startswith(tuple(folders))}
    passed = {key: step for key, step in root.records.steps.items() if key[0] == "cpu-int8"}
    records = msgspec.structs.replace(root.records, steps=passed)
    text = Page(html.render(records, files.__getitem__, files, DIGEST)).text
    assert "steps/L1-perf.cpu-int8/samples.json: expected a PerfRaw record" in text
    assert "steps/L2-parity.cpu-int8: expected float32 logits" in text or len(content) % 4 == 0


def test_not_a_number_among_the_logits_is_said_and_not_drawn(root: Example) -> None:
    folder = step_folder("L2", "cpu-fp32")
    nan = b"\x00\x00\xc0\x7f"
    files = {**root.files, f"{folder}/artifact.f32": nan + root.files[f"{folder}/artifact.f32"][4:]}
    text = Page(html.render(only(root, "cpu-fp32", "L2").records, files.__getitem__, files, DIGEST)).text
    assert "1 pair with a non-finite logit cannot be drawn" in text


def test_without_matplotlib_the_error_says_what_to_install(root: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(AskedWrongly) as caught:
        html.render(root.records, root.read, root.files, DIGEST)
    assert str(caught.value) == (
        "report --html: expected matplotlib for the plots, which is not installed; pip install 'qualify[report]'"
    )


def test_twenty_thousand_queries_give_a_page_that_opens(root: Example) -> None:
    path = f"{step_folder('L3', 'cpu-fp32')}/per_query.json"
    rows = from_json(root.files[path], PerQuery, path).rows
    many = [msgspec.structs.replace(rows[n % len(rows)], query_id=f"q{n:06d}") for n in range(20_000)]
    found = only(root, "cpu-fp32", "L3")
    files = {**root.files, path: to_json(PerQuery(format=1, rows=tuple(many)))}
    text = html.render(found.records, files.__getitem__, files, DIGEST)
    assert len(text) < 550_000
    assert "20,000 queries, worst first" in text
    assert "19,900 more are in the root" in text
