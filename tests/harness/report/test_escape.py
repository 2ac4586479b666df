from __future__ import annotations

import pytest

from harness.report import escape

RUNNER = {"GITHUB_ACTIONS": "true"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("plain text, 100%", "plain text, 100%", id="plain text stays"),
        pytest.param("größer ≤ 5 µs 文", "größer ≤ 5 µs 文", id="letters of any script stay"),
        pytest.param("a\nb\r\tc", r"a\nb\r\tc", id="line ends"),
        pytest.param("\x1b[2Kx\x07\x9b", r"\x1b[2Kx\x07\x9b", id="terminal controls"),
        pytest.param("\u202eabc\u2066", r"\u202eabc\u2066", id="bidi marks"),
        pytest.param("a\u200bb\ufeff\u2028", r"a\u200bb\ufeff\u2028", id="zero width and line separator"),
        pytest.param("\U000e0041", r"\U000e0041", id="tag characters"),
        pytest.param("\ud800", r"\ud800", id="lone surrogate"),
    ],
)
def test_hidden_characters_are_written_out(text: str, expected: str) -> None:
    assert escape.visible(text) == expected


def test_shorten_says_how_much_it_took() -> None:
    assert escape.shorten("abcdef", 6) == "abcdef"
    assert escape.shorten("a" * 1010, 10) == "aaaaaaaaaa… (1,000 more characters)"


@pytest.mark.parametrize("text", ["::error::x", "x ::set-output name=a::b", ":::error::", "##[error]x", "###[group]x"])
def test_no_workflow_command_survives_under_github_actions(text: str) -> None:
    shown = escape.terminal(text, RUNNER)
    assert "::" not in shown
    assert "##[" not in shown


def test_double_colons_stay_as_they_are_elsewhere() -> None:
    assert escape.terminal("aten::add ##[x]", {}) == "aten::add ##[x]"


def test_github_actions_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert escape.terminal("::error::x") == r"\x3a:error\x3a:x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a_b-c.d/e", "<code>a_b-c.d/e</code>", id="names stay readable"),
        pytest.param("a|b", "<code>a&#124;b</code>", id="pipe"),
        pytest.param("`x` **b**", "<code>&#96;x&#96; &#42;&#42;b&#42;&#42;</code>", id="code and bold"),
        pytest.param("<b>&amp;", "<code>&#60;b&#62;&#38;amp;</code>", id="html"),
        pytest.param("@me #1 \\", "<code>&#64;me &#35;1 &#92;</code>", id="mention, reference, backslash"),
        pytest.param("[l](http://x)", "<code>&#91;l&#93;(http&#58;//x)</code>", id="links"),
        pytest.param("www.x.org", "<code>www&#46;x.org</code>", id="bare link"),
        pytest.param("a _b_ c", "<code>a &#95;b&#95; c</code>", id="emphasis"),
        pytest.param("a\n# b", "<code>a&#92;n&#35; b</code>", id="line end"),
    ],
)
def test_markdown_leaves_no_syntax_alive(text: str, expected: str) -> None:
    assert escape.markdown(text) == expected


def test_html_is_escaped_in_elements_and_attributes() -> None:
    assert escape.page("<a href=\"x\" class='y'>&\x00") == r"&lt;a href=&quot;x&quot; class=&#x27;y&#x27;&gt;&amp;\x00"
