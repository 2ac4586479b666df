"""The plot of a sweep: how the median grows with candidates and tokens, and what micro-batch and threads make of it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.report import wording
from harness.report.markup import Html
from harness.report.svg import ACCENT, INK, MUTED, SECOND, blank, finish, styled
from harness.report.view_perf import Cell

_LINES = ((ACCENT, "-"), (SECOND, "-"), (MUTED, "-"), (ACCENT, "--"), (SECOND, "--"), (MUTED, "--"))


def sweep(cells: Sequence[Cell], mark: str) -> Html | None:
    """Median over candidates, a line for each length at which pairs are cut; bars span the micro-batches and threads of the same two.

    None when no cell has a median.
    """
    by_length: dict[int, dict[int, list[float]]] = {}
    for cell in cells:
        middle = cell.found.get("sweep_p50_ms")
        if middle is not None and isinstance(middle.value, float):
            by_length.setdefault(cell.max_length, {}).setdefault(cell.candidates, []).append(middle.value)
    if not by_length:
        return None
    with styled():
        figure, axes = blank(2.6)
        for place, (length, found) in enumerate(sorted(by_length.items())):
            color, dash = _LINES[place % len(_LINES)]
            xs = sorted(found)
            best = [min(found[x]) for x in xs]
            axes.vlines(xs, best, [max(found[x]) for x in xs], color=color, lw=3, alpha=0.35)
            axes.plot(xs, best, marker="o", ms=3, lw=1.2, ls=dash, color=color)
            axes.annotate(
                f"cut at {length}",
                (xs[-1], best[-1]),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                color=INK,
            )
        widest = max(max(found) for found in by_length.values())
        axes.set_xlim(0, 1.3 * widest)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("candidates a call")
        axes.set_ylabel("median ms a call")
        every = [ms for found in by_length.values() for values in found.values() for ms in values]
        note = (
            f"{len(cells)} cells, medians from {wording.number(min(every))} to {wording.number(max(every))} ms; lines join the"
            " fastest micro-batch and threads, bars reach to the slowest."
        )
        return finish(figure, "Sweep", note, f"sweep-{mark}")
