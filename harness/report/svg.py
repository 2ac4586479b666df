"""How a figure becomes a part of the page: matplotlib draws, colours and font become the page's own.

Every figure is drawn in stand-in colours which are then replaced by CSS variables, so it follows the page's light or
dark theme. Nothing in a figure is text from a root.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from harness.errors import AskedWrongly
from harness.report.markup import Html, el

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, GRID, ACCENT, SECOND = "#010101", "#020202", "#030303", "#040404", "#050505"
_THEME = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    ACCENT: "var(--accent)",
    SECOND: "var(--second)",
}

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "qualify",
    "font.size": 9.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.solid_capstyle": "round",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.unicode_minus": True,
    "text.parse_math": False,
}


def styled() -> AbstractContextManager[None]:
    """The style of all figures, for as long as it is entered. Raises AskedWrongly where matplotlib is not installed."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        message = (
            "report --html: expected matplotlib for the plots, which is not installed; pip install 'qualify[report]'"
        )
        raise AskedWrongly(message) from error
    return mpl.rc_context(_STYLE)


def blank(height: float) -> tuple[Figure, Axes]:
    """An empty figure of one width, ``height`` in inches, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.7, height), layout="constrained")
    return figure, figure.subplots()


def finish(figure: Figure, title: str, note: str, mark: str, told: str = "") -> Html:
    """The drawn figure as one ``<figure>``: ``note`` is its caption, ``told`` what else a listener should hear.

    ``mark`` makes its ids its own on the page.
    """
    drawn = io.BytesIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(drawn, format="svg", metadata=nothing)
    body = _inline(drawn.getvalue(), mark)
    wide, high = (f"{72 * side:g}" for side in figure.get_size_inches())
    said = f"{note} {told}".strip()
    picture = el(
        "svg",
        el("title", title),
        el("desc", said),
        body,
        viewBox=f"0 0 {wide} {high}",
        role="img",
        aria_label=f"{title}. {said}",
    )
    return el("figure", picture, el("figcaption", el("b", f"{title}."), f" {note}"))


def _inline(svg: bytes, mark: str) -> Html:
    """The children of the ``svg`` element without namespaces, ids of their own, fonts, or colours but the page's."""
    root = ET.fromstring(svg)  # noqa: S314 - what matplotlib just wrote
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for name in [name for name in element.attrib if name.startswith("{")]:
            element.attrib[name.rpartition("}")[2]] = element.attrib.pop(name)
        for name, value in element.attrib.items():
            element.attrib[name] = _themed(value)
    for parent in list(root.iter()):
        for unwanted in [
            child for child in parent if child.tag in {"metadata", "style"}
        ]:  # style would reach the whole page
            parent.remove(unwanted)
    return _own_ids("".join(ET.tostring(child, encoding="unicode") for child in root), mark)


def _themed(value: str) -> str:
    for stand_in, variable in _THEME.items():
        value = value.replace(stand_in, variable)
    return re.sub(r"font: ([\d.]+)px [^;]*", r"font: \1px var(--sans)", value)


def _own_ids(body: str, mark: str) -> Html:
    """Ids that nothing refers to go; the others end in ``mark``."""
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', body))
    body = re.sub(r' id="([^"]+)"', lambda found: f' id="{found[1]}-{mark}"' if found[1] in used else "", body)
    return Html(re.sub(r'(url\(#|href="#)([^)"]+)', rf"\1\2-{mark}", body))
