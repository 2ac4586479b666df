"""Texts that try to be more than text, for every kind of output."""

from __future__ import annotations

from tests.support.roots import Example, example, rewritten

HTML = "<script>alert(1)</script><img src=//evil.example/x onerror=alert(1)>\"'><b>"
ANSI = "\x1b[2K\x1b[1A\r✓ PASS\x9b31m\x07"
COMMAND = "::error::forged\n::set-output name=x::y ##[error]forged"
MARKDOWN = "| a | b |\n|---|---|\n``` `x` **b** [l](https://evil.example) @octocat #1 www.evil.example <!-- -->\\"
BIDI = "\u202etxt.\u2066exe\u200b\u2028"
TEX = r"$\frac{a}{b}$ {{7*7}} ${x}"

ALL = (HTML, ANSI, COMMAND, MARKDOWN, BIDI, TEX)


PLACES = (
    "cpu-fp32",
    "cpu-fp16",
    "cpu-int8",
    "quickstart",
    "CPUExecutionProvider",
    "timed out",
    "built-in",
    "groups.jsonl",
    "candidates stand in",
    "Example CPU",
    "Linux",
    "transformers",
    "how do I close",
    "q00",
    "loading session",
    "the exporter is",
    "token_mismatches",
    "BertFor",
)
"""Words of the example that a ladder, a dataset, a model, a machine or a log fills in."""


def hostile() -> Example:
    """The example root with all hostile texts before each word of PLACES, wherever it stands."""
    return rewritten(example(), {place: f"{' '.join(ALL)} {place}" for place in PLACES})
