"""Parts of a comparison or a review in every form: 80 columns, the same bytes, and text that is only text."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt

from harness.report import parts
from harness.report.parts import Part
from tests.support.hostile import ALL, BIDI, COMMAND, HTML

LINES = ("one line", "another line")
CLEAN = (
    Part("First", LINES, ("Metric", "Value"), (("p50_ms", "3.2 ms"), ("opset", "17")), ("qualify run ladder.yaml",)),
    Part("Second", ("only text",)),
)
MORE = (
    "- item",
    "1. item",
    "+ item",
    "= x",
    "_a_ b",
    "__a__",
    "GH-12",
    "::error::x",
    "https://evil.example",
    "# x",
    "\n| x |",
)


def hostile(text: str) -> tuple[Part, ...]:
    return (Part(text, (text,), (text, "Value"), ((text, text), (text, "17")), (text,)), Part("Second", (text,)))


def kinds(text: str) -> set[str]:
    """Every kind of token of the rendered Markdown; for raw HTML the tag itself."""
    found: set[str] = set()
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        found.add(token.type)
        found |= {child.content if child.type == "html_inline" else child.type for child in token.children or []}
    return found


def test_a_table_that_fits_is_aligned_and_a_wider_one_is_written_row_by_row() -> None:
    assert parts.text("✓ OK: all well", CLEAN) == (
        "✓ OK: all well\n\nFirst\n  one line\n  another line\n  Metric  Value\n  p50_ms  3.2 ms\n  opset   17\n"
        "  qualify run ladder.yaml\n\nSecond\n  only text\n"
    )
    wide = parts.text("x", (Part("T", (), ("A", "B"), (("word " * 20, "b"),)),))
    assert all(len(line) <= 80 for line in wide.splitlines())
    assert "  A  B\n" in wide


def test_the_markdown_has_headings_lists_and_tables() -> None:
    text = parts.markdown("✓ OK: all well", CLEAN)
    assert "## ✓ OK: all well\n\n### First\n\n- one line\n- another line\n" in text
    assert "| Metric | Value |\n| --- | --- |\n| p50_ms | 3.2 ms |\n" in text
    assert text == parts.markdown("✓ OK: all well", CLEAN)


@pytest.mark.parametrize("text", [*ALL, *MORE])
def test_hostile_text_makes_no_structure_in_markdown(text: str) -> None:
    made = parts.markdown(text, hostile(text))
    assert kinds(made) <= kinds(parts.markdown("x", CLEAN)) | {"<code>", "</code>"}
    assert "::" not in made
    assert "://" not in made
    rows = [line for line in made.splitlines() if line.startswith("| ")]
    assert {line.count(" | ") for line in rows} == {1}


@pytest.mark.parametrize("text", [*ALL, *MORE])
def test_hostile_text_moves_nothing_on_a_terminal(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    made = parts.text(text, hostile(text))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", made)
    assert "::" not in made
    assert "##[" not in made


def test_hostile_text_is_text_on_the_page() -> None:
    text = f"{HTML} {COMMAND} {BIDI}"
    page = parts.page(text, text, hostile(text))
    assert "<script" not in page
    assert "<img" not in page
    assert "onerror=alert" in page, "it is shown, escaped"
    assert "\u202e" not in page
    assert set(re.findall(r"<([a-z0-9]+)", page)) == set(re.findall(r"<([a-z0-9]+)", parts.page("x", "x", CLEAN)))


def test_what_is_cut_is_said() -> None:
    assert "more characters)" in parts.text("x", (Part("T", ("word " * 200,)),))
