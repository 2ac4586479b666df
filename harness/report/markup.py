"""HTML that is safe by construction: text becomes inert unless it already is ``Html``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import resources

from harness.report import escape

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""What a browser may do with the page: show it. Style is inline; nothing is fetched and nothing runs."""

_VOID = frozenset({"br", "hr", "meta"})


class Html(str):
    """A piece of finished HTML. Made by ``el``, ``join`` and ``text``, or from what this package itself wrote."""

    __slots__ = ()


def text(value: str) -> Html:
    """``value`` escaped; what is ``Html`` already stays as it is."""
    return value if isinstance(value, Html) else Html(escape.page(value))


def join(parts: Iterable[str], between: str = "") -> Html:
    """The parts one after the other, each made inert."""
    return Html(text(between).join(text(part) for part in parts))


def el(tag: str, *children: str, **attributes: str | int | bool | None) -> Html:
    """An element. ``class_`` is ``class``, ``aria_label`` is ``aria-label``; True gives a bare attribute, None and False none."""
    shown = "".join(_attribute(name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    if tag in _VOID:
        return Html(f"<{tag}{shown}>")
    return Html(f"<{tag}{shown}>{join(children)}</{tag}>")


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], class_: str = "") -> Html:
    """A table with caption, whose first column heads its rows; it scrolls by itself, by keyboard too, where it is too wide.

    The class ``stack`` lays a row out as a block on a phone. Display then hides what a table is, so the roles say it.
    """
    stack = "stack" in class_.split()

    def role(name: str) -> str | None:
        return name if stack else None

    heads = el("tr", *(el("th", name, scope="col", role=role("columnheader")) for name in head), role=role("row"))
    body = []
    for first, *rest in rows:
        cells = [el("th", first, scope="row", role=role("rowheader"))]
        for name, cell in zip(head[1:], rest, strict=True):
            cells.append(el("td", cell, role=role("cell"), data_label=name if stack else None))
        body.append(el("tr", *cells, role=role("row")))
    whole = el(
        "table",
        el("caption", caption),
        el("thead", heads, role=role("rowgroup")),
        el("tbody", *body, role=role("rowgroup")),
        class_=class_ or None,
        role=role("table"),
    )
    return el("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)


def details(summary: str, *children: str, open_: bool = False) -> Html:
    """A part that opens on demand."""
    return el("details", el("summary", summary), *children, open_=open_)


def facts(rows: Iterable[tuple[str, str]], *wide: tuple[str, str]) -> Html:
    """A list of names and values; those of ``wide`` take the whole width."""
    listed = [(*row, None) for row in rows] + [(*row, "wide") for row in wide]
    return el(
        "dl", *(el("div", el("dt", name), el("dd", value), class_=kind) for name, value, kind in listed), class_="facts"
    )


def head(title: str) -> Html:
    """The head of a page that needs nothing else: its policy, its style and its title."""
    style = resources.files("harness.report").joinpath("report.css").read_text(encoding="utf-8")
    return el(
        "head",
        el("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        el("style", Html(style)),
    )


def code(value: str) -> Html:
    """Text as it stands in a file."""
    return el("code", value)


def _attribute(name: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape.page(str(value))}"'
