r"""Text from a root made inert. A name, a reason, a query or a log line is data, whatever it spells.

First every character that moves a cursor, reorders or hides text is written out (``\x1b``, ``\u202e``); then each
output has one function that leaves nothing of its own syntax alive.
"""

from __future__ import annotations

import html
import json
import os
import re
import unicodedata
from collections.abc import Mapping

# Controls, format characters (bidi marks, zero width, tags), surrogates, private use, unassigned, line and paragraph ends.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

# What CommonMark, GFM or GitHub gives a meaning inside a line. An underscore between letters has none.
_MARKDOWN = re.compile(r"[\\`*\[\]!<>&|~$:@#]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])|(?<=[wW])\.")

# Every colon before a colon (``:::`` holds ``::`` twice), and the first sign of ``##[``.
_COMMAND = re.compile(r":(?=:)|#(?=#\[)")


def visible(text: str) -> str:
    r"""``text`` on one line with every hidden character written out, e.g. ``\n``, ``\x1b``, ``\u202e``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written_out(char) if unicodedata.category(char) in _HIDDEN else char for char in text)


def shorten(text: str, limit: int) -> str:
    """``text`` cut to ``limit`` characters; the cut is said, and how much it took."""
    left_out = len(text) - limit
    return text if left_out <= 0 else f"{text[:limit]}… ({left_out:,} more characters)"


def terminal(text: str, environment: Mapping[str, str] | None = None) -> str:
    r"""Text for a terminal or a log.

    A GitHub Actions runner takes ``::name::`` at the start of a line and ``##[name]`` anywhere in one as a command.
    When one may be reading (``GITHUB_ACTIONS`` is ``true``) the first character of each is written out, wherever
    it stands, since wrapping can put any word first.
    """
    safe = visible(text)
    if (os.environ if environment is None else environment).get("GITHUB_ACTIONS") == "true":
        safe = _COMMAND.sub(lambda found: f"\\x{ord(found[0]):02x}", safe)
    return safe


def markdown(text: str) -> str:
    """Text for Markdown, also inside a table cell: a ``<code>`` element in which nothing has a meaning.

    Numeric references make no structure in CommonMark, and GitHub links no mention, issue or commit inside ``code``.
    """
    return f"<code>{_MARKDOWN.sub(lambda found: f'&#{ord(found[0])};', visible(text))}</code>"


def page(text: str) -> str:
    """Text for HTML, in an element or in a quoted attribute."""
    return html.escape(visible(text), quote=True)


def json_text(value: object) -> str:
    """Plain values as ASCII JSON with sorted keys that no CI runner takes for a command.

    ``::`` and ``##[`` can stand inside strings alone, where writing a character out is free.
    """
    text = json.dumps(value, indent=2, sort_keys=True, allow_nan=False)
    return text.replace("::", ":\\u003a").replace("##[", "#\\u0023[").replace("\x7f", "\\u007f")


def _written_out(char: str) -> str:
    code = ord(char)
    if char in "\n\r\t":
        return {"\n": r"\n", "\r": r"\r", "\t": r"\t"}[char]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
