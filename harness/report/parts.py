"""Parts of an answer (title, lines, a table, commands) for a terminal, as Markdown and as one page. All text is made inert here."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harness.report import escape
from harness.report.markup import Html, code, el, head, join, table

WIDTH = 80
CELL = 400
"""Characters of one cell or line of text that are shown; what is cut is said."""


class Part(NamedTuple):
    """One part of the answer: title, lines of text, a table whose head is empty when there is none, lines for a shell."""

    title: str
    lines: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    commands: tuple[str, ...] = ()


def text(headline: str, parts: Iterable[Part]) -> str:
    """The answer in 80 columns. A table that is wider is written row by row."""
    lines = textwrap.wrap(_clean(headline), WIDTH, subsequent_indent="  ")
    for part in parts:
        lines += ["", _clean(part.title)]
        for line in part.lines:
            lines += textwrap.wrap(
                _clean(line), WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
            )
        lines += _rows(part)
        lines += [f"  {_clean(line)}" for line in part.commands]  # never wrapped: it is there to be copied
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _rows(part: Part) -> Iterator[str]:
    rows = [[_clean(cell) for cell in row] for row in (part.head, *part.rows)] if part.rows else []
    wide = [max(len(row[place]) for row in rows) for place in range(len(part.head))] if rows else []
    if sum(wide) + 2 * len(wide) <= WIDTH:
        for row in rows:
            yield "  " + "  ".join(cell.ljust(size) for cell, size in zip(row, wide, strict=True))
        return
    for row in rows:
        said = "  ".join(cell for cell in row if cell)
        yield from textwrap.wrap(said, WIDTH, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False)


def markdown(headline: str, parts: Iterable[Part], level: int = 2) -> str:
    """The answer for a pull request or a job summary; the same values give the same bytes. ``level`` is that of its heading."""
    found = [f"{'#' * level} {_inert(headline)}"]
    for part in parts:
        found.append(f"{'#' * (level + 1)} {_inert(part.title)}")
        if part.lines:
            found.append("\n".join(f"- {_inert(line)}" for line in part.lines))
        if part.rows:
            rows = [list(map(_plain, part.head)), ["---"] * len(part.head)]
            rows += [[_inert(cell) for cell in row] for row in part.rows]
            found.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
        found += [_inert(line) for line in part.commands]
    return "\n\n".join(found) + "\n"


def page(title: str, headline: str, parts: Sequence[Part]) -> str:
    """The answer as one HTML file that needs nothing else, under the policy that the report of a root has."""
    links = el("ul", *(el("li", el("a", part.title, href=f"#part-{n}")) for n, part in enumerate(parts)))
    mast = el(
        "header",
        el("p", title, class_="eyebrow"),
        el("h1", escape.shorten(headline, CELL)),
        el("nav", links, aria_label="Parts of this page"),
        class_="mast",
    )
    body = el(
        "body",
        el("a", "Skip to the answer", class_="skip", href="#part-0"),
        mast,
        el("main", *(_section(part, number) for number, part in enumerate(parts))),
    )
    return f"<!DOCTYPE html>\n{el('html', head(title), body, lang='en')}\n"


def _section(part: Part, number: int) -> Html:
    children = [el("h2", part.title, id=f"part-{number}-name")]
    children += [el("p", escape.shorten(line, CELL)) for line in part.lines]
    if part.rows:
        rows = [[_cell(escape.shorten(cell, CELL)) for cell in row] for row in part.rows]
        count = f"{len(rows)} row{'' if len(rows) == 1 else 's'}"  # the section has the title alone as its name already
        children.append(table(f"{part.title}: {count}", part.head, rows, "stack"))
    if part.commands:
        children.append(el("pre", join(map(code, part.commands), "\n"), tabindex=0))
    return el("section", *children, id=f"part-{number}", aria_labelledby=f"part-{number}-name")


def _cell(value: str) -> str:
    """A cell of a page; one with a word too long for a phone breaks anywhere, as code does."""
    return code(value) if any(len(word) > 40 for word in value.split()) else value


def _clean(value: str) -> str:
    return escape.terminal(escape.shorten(value, CELL))


def _inert(value: str) -> str:
    """Own wording stays plain; anything that could be a link, a mention, a reference or structure becomes code."""
    return _plain(escape.shorten(value, CELL))


_ALLOWED = re.compile(r"[\w .,;()%/+\-–≤≥=:✓✗?≠]*")
_SYNTAX = re.compile(
    r"(?i)(?<![0-9a-z])_|_(?![0-9a-z])"  # emphasis
    r"|\A(?:[-+=]|[0-9]+[.)](?:\s|\Z))|::|:/|www\.|gh-[0-9]"  # a list, a command of a runner, a link, a reference
)


def _plain(value: str) -> str:
    inert = _ALLOWED.fullmatch(value) is not None and _SYNTAX.search(value) is None
    return value if inert and all(len(word) < 30 for word in value.split()) else escape.markdown(value)
