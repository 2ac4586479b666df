"""The plots of a report as inline SVG. Each takes raw samples and gives one ``<figure>`` with caption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.report import view_figures, wording
from harness.report.markup import Html
from harness.report.svg import ACCENT, GRID, INK, MUTED, SECOND, blank, finish, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]

MOST_POINTS = 2000
"""Points in one scatter. Above it an even subset is drawn, with the largest gaps kept, and the caption says so."""

_EVENTS = {"loaded": "session loaded", "steady": "steady calls began"}


def latency(steady_ms: Sequence[float], interval: tuple[float, float] | None, mark: str) -> Html:
    """How the steady calls are spread: every call as a dot over a histogram, the median and its interval marked."""
    values = np.asarray(steady_ms, dtype=float)
    with styled():
        figure, axes = blank(2.3)
        counts, _, _ = axes.hist(values, bins=_bins(values), color=ACCENT, alpha=0.35, linewidth=0)
        top = max(float(np.max(counts)), 1.0)
        jitter = (np.arange(values.size) * 0.618034) % 1.0  # the golden ratio spreads dots evenly, the same every time
        shown = _subset(values, values.size)
        axes.plot(values[shown], -top * (0.08 + 0.2 * jitter[shown]), "o", ms=2.2, color=ACCENT, mew=0, alpha=0.7)
        median = float(np.median(values))
        _mark(axes, median, interval, "median")
        axes.set_ylim(-0.34 * top, 1.2 * top)
        _whole_counts(axes)
        axes.set_yticks([tick for tick in axes.get_yticks() if 0 <= tick <= top])
        axes.set_xlabel("ms a call")
        axes.set_ylabel("calls")
        axes.grid(visible=False, axis="x")
        note = f"{values.size} steady calls from {values.min():.4g} to {values.max():.4g} ms, median {median:.4g} ms."
        return finish(figure, "Latency distribution", note, f"latency-{mark}")


def drift(warm_up_ms: Sequence[float], steady_ms: Sequence[float], mark: str) -> Html:
    """Latency in the order the calls were made; medians of the first and last third of the steady calls."""
    values = np.asarray(steady_ms, dtype=float)
    warm = np.asarray(warm_up_ms, dtype=float)
    third = max(values.size // 3, 1)
    first, last = float(np.median(values[:third])), float(np.median(values[-third:]))
    with styled():
        figure, axes = blank(2.3)
        number = np.arange(values.size) + 1
        shown = _subset(values, values.size)
        axes.plot(-np.arange(warm.size)[::-1], warm, "o", ms=3, mfc="none", mec=SECOND, mew=0.9, label="warm-up")
        axes.plot(number[shown], values[shown], "o", ms=2.6, mew=0, color=ACCENT, alpha=0.8, label="steady")
        for begin, end, middle in ((1, third, first), (values.size - third + 1, values.size, last)):
            axes.plot([begin, end], [middle, middle], color=INK, lw=1.6)
        axes.set_xlabel("call, in the order made")
        axes.set_ylabel("ms")
        axes.set_ylim(0, 1.12 * float(max(values.max(), warm.max(initial=0.0))))
        _legend(axes)
        note = f"Median of the first third {first:.4g} ms, of the last third {last:.4g} ms; bars mark them."
        return finish(figure, "Latency in sample order", note, f"drift-{mark}")


def memory(at_ms: Sequence[float], rss_bytes: Sequence[int], events_ms: Mapping[str, float], mark: str) -> Html:
    """Resident memory of the process tree over time, the peak marked; dotted where the session was loaded and steady calls began."""
    count = len(at_ms)
    seconds, megabytes = np.asarray(at_ms, dtype=float) / 1000, np.asarray(rss_bytes, dtype=float) / 1e6
    kept = _peaks(megabytes)
    start = float(seconds[0])
    seconds, megabytes = seconds[kept] - start, megabytes[kept]
    known = [(name, events_ms[event] / 1000 - start) for event, name in _EVENTS.items() if event in events_ms]
    peak = int(np.argmax(megabytes))
    with styled():
        figure, axes = blank(2.1)
        axes.fill_between(seconds, megabytes, color=ACCENT, alpha=0.15, lw=0)
        axes.plot(seconds, megabytes, color=ACCENT, lw=1.4)
        axes.plot(seconds[peak], megabytes[peak], "o", ms=4, color=INK)
        late = seconds[peak] > (seconds[0] + seconds[-1]) / 2
        axes.annotate(
            f"peak {megabytes[peak]:,.0f} MB",
            (seconds[peak], megabytes[peak]),
            xytext=(-6 if late else 6, 5),
            textcoords="offset points",
            ha="right" if late else "left",
        )
        axes.set_ylim(0, float(megabytes[peak]) * 1.22)
        for _, at in known:
            axes.axvline(at, color=MUTED, lw=1, ls=":")
        axes.set_xlabel("s since the first sample")
        axes.set_ylabel("resident MB")
        note = f"{count:,} samples; peak {megabytes[peak]:,.1f} MB after {seconds[peak]:.3g} s."
        note += f" Dotted: {', '.join(f'{name} at {at:.2f} s' for name, at in known)}." if known else ""
        return finish(figure, "Memory over time", note, f"memory-{mark}")


def parity(reference: Floats, artifact: Floats, mark: str) -> Html | None:
    """Each pair's logit from PyTorch against the artifact's; on the diagonal they agree."""
    finite = np.isfinite(reference) & np.isfinite(artifact)
    left, right = reference[finite].astype(float), artifact[finite].astype(float)
    lost = reference.size - left.size
    if not left.size:
        return None
    shown = _subset(np.abs(right - left), left.size)
    with styled():
        figure, axes = blank(3.0)
        ends = [float(min(left.min(), right.min())), float(max(left.max(), right.max()))]
        axes.plot(ends, ends, color=MUTED, lw=0.8)
        axes.plot(left[shown], right[shown], "o", ms=3, mew=0, color=ACCENT, alpha=0.55)
        axes.set_xlabel("PyTorch fp32 logit")
        axes.set_ylabel("artifact logit")
        note = f"{left.size:,} pairs, {shown.size:,} drawn; reference from {left.min():.4g} to {left.max():.4g}."
        if lost:
            note += f" {lost:,} pair{'' if lost == 1 else 's'} with a non-finite logit cannot be drawn."
        return finish(figure, "Logits: reference against artifact", note, f"parity-{mark}")


def gaps(reference: Floats, artifact: Floats, limit: float | None, mark: str) -> Html | None:
    """How large the absolute gaps are, on a logarithmic axis, with the limit where there is one."""
    gap = np.abs(artifact.astype(float) - reference.astype(float))
    gap = gap[np.isfinite(gap)]
    exact = int(np.count_nonzero(gap == 0))
    positive = gap[gap > 0]
    if not positive.size:
        return None
    with styled():
        figure, axes = blank(3.0)
        low, high = float(positive.min()), float(positive.max())
        edges = np.geomspace(low / 1.2, max(high, low * 1.5) * 1.2, 28)
        counts, _, _ = axes.hist(positive, bins=list(edges), color=ACCENT, alpha=0.55, linewidth=0)
        axes.set_xscale("log")
        _plain_powers(axes)
        if limit is not None and limit > 0:
            _limit(axes, limit, float(np.max(counts)))
        axes.set_xlabel("absolute gap, logit")
        axes.set_ylabel("pairs")
        _whole_counts(axes)
        axes.grid(visible=False, axis="x")
        note = f"Median gap {wording.number(float(np.median(gap)))}, largest {wording.number(high)} logit"
        note += f"; {exact:,} of {gap.size:,} pairs equal to the bit."
        if limit is not None:
            note += f" Limit {wording.number(limit)}."
        return finish(figure, "Sizes of the gaps", note, f"gaps-{mark}")


def phases(
    load_ms: float, first_call_ms: float, warm_up_ms: Sequence[float], steady_ms: Sequence[float], mark: str
) -> Html:
    """Load, first call, warm-up and steady state apart, in ms."""
    rows = [("load", load_ms), ("first call", first_call_ms)]
    rows += [("warm-up", float(np.median(warm_up_ms)))] if warm_up_ms else []
    rows += [("steady", float(np.median(steady_ms)))]
    with styled():
        figure, axes = blank(2.3)
        _rows(axes, [(name, value, f"{value:.4g} ms") for name, value in rows], own="steady", interval=None)
        axes.set_xlim(0, max(value for _, value in rows) * 1.3 or 1)
        axes.set_xlabel("ms")
        note = "Session load and first call as they were; medians of the warm-up and of the steady calls."
        told = "; ".join(f"{name} {value:.4g} ms" for name, value in rows)
        return finish(figure, "From cold to steady", note, f"phases-{mark}", told)


def scorers(rows: Sequence[tuple[str, float]], interval: tuple[float, float] | None, bounds: str, mark: str) -> Html:
    """nDCG@10 of the artifact and of the scorers beside it, best at the top. ``rows`` are name and value."""
    with styled():
        figure, axes = blank(0.55 + 0.27 * len(rows))
        _rows(axes, [(name, value, f"{value:.3f}") for name, value in rows], own=view_figures.OWN, interval=interval)
        axes.set_xlim(0, 1.12)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
        axes.set_xlabel("nDCG@10")
        note = f"On {bounds}; the bar is the artifact's 95% interval." if interval else f"On {bounds}."
        told = "; ".join(f"{name} {value:.3f}" for name, value in rows)
        return finish(figure, "nDCG@10 beside other scorers", note, f"scorers-{mark}", told)


def _rows(
    axes: Axes, rows: Sequence[tuple[str, float, str]], *, own: str, interval: tuple[float, float] | None
) -> None:
    """Names down the side, a dot at each value with its text; the row called ``own`` stands out and carries the interval."""
    for place, (name, value, shown) in enumerate(reversed(rows)):
        mine = name == own
        axes.plot([0, value], [place, place], color=GRID, lw=2.2)
        axes.plot(value, place, "o", ms=6 if mine else 5, color=ACCENT if mine else MUTED)
        end = value
        if mine and interval is not None:
            axes.plot(interval, [place, place], color=ACCENT, lw=1.6)
            end = max(value, interval[1])
        axes.annotate(
            shown, (end, place), xytext=(7, 0), textcoords="offset points", va="center", color=INK if mine else MUTED
        )
    axes.set_yticks(range(len(rows)), [name for name, _, _ in reversed(rows)])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False, axis="y")


def moves(drops: Sequence[float], bounds: str, mark: str) -> Html:
    """Change of nDCG@10 query by query (artifact less PyTorch), sorted: who lost, who gained."""
    change = -np.sort(np.asarray(drops, dtype=float))[::-1]
    with styled():
        figure, axes = blank(2.1)
        shown = np.unique(np.linspace(0, change.size - 1, min(change.size, MOST_POINTS)).astype(np.intp))
        edges = np.append(shown + 0.5, change.size + 0.5)  # one step a query; a sorted curve loses nothing by thinning
        steps = np.append(change[shown], change[-1])
        for color, side in ((SECOND, np.minimum(steps, 0)), (ACCENT, np.maximum(steps, 0))):
            axes.fill_between(edges, side, step="post", color=color, lw=0)
        axes.axhline(0, color=MUTED, lw=0.8)
        room = max(float(np.abs(change).max()), 0.01) * 1.15
        axes.set_ylim(-room, room)
        axes.set_xlabel("queries, largest loss first")
        axes.set_ylabel("change of nDCG@10")
        axes.grid(visible=False, axis="x")
        lost, gained = int((change < 0).sum()), int((change > 0).sum())
        note = f"{lost:,} queries lost, {gained:,} gained, {change.size - lost - gained:,} unchanged against PyTorch, on {bounds}."
        return finish(figure, "Change by query", note, f"moves-{mark}")


def _bins(values: Floats) -> int:
    """Freedman and Diaconis 1981, held between 8 and 40."""
    quarter = float(np.subtract(*np.percentile(values, [75, 25])))
    width = 2 * quarter / max(values.size, 1) ** (1 / 3)
    return int(np.clip(float(np.ptp(values)) / width, 8, 40)) if width > 0 else 8


def _subset(importance: Floats, count: int) -> NDArray[np.intp]:
    """Indices to draw: all of them, or an even subset together with the hundred most important."""
    if count <= MOST_POINTS:
        return np.arange(count)
    even = np.linspace(0, count - 1, MOST_POINTS - 100).astype(np.intp)
    return np.union1d(even, np.argsort(importance)[-100:])


def _peaks(values: Floats) -> NDArray[np.intp]:
    """Indices of the largest value of each of at most 1,200 runs of equal length, so that no peak is lost."""
    step = -(-values.size // 1200)
    return np.array([start + int(np.argmax(values[start : start + step])) for start in range(0, values.size, step)])


def _mark(axes: Axes, middle: float, interval: tuple[float, float] | None, word: str) -> None:
    if interval is not None:
        axes.axvspan(*interval, color=INK, alpha=0.1, lw=0)
    axes.axvline(middle, color=INK, lw=1.2)
    axes.annotate(
        f"{word} {middle:.4g} ms", (middle, 1), xycoords=("data", "axes fraction"),
        xytext=(5, -3), textcoords="offset points", va="top",
    )  # fmt: skip


def _limit(axes: Axes, limit: float, top: float) -> None:
    axes.axvline(limit, color=SECOND, lw=1.4, ls=(0, (4, 2)))
    axes.set_ylim(0, top * 1.25)
    axes.annotate(
        f"limit {wording.number(limit)}", (limit, 1), xycoords=("data", "axes fraction"),
        xytext=(-5, -3), textcoords="offset points", va="top", ha="right", color=SECOND,
    )  # fmt: skip


def _plain_powers(axes: Axes) -> None:
    """At most six labelled powers of ten, written as in the tables; the default labels are TeX."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.xaxis.set_major_locator(LogLocator(numticks=6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda power, _: f"1e{round(np.log10(power))}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _whole_counts(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))


def _legend(axes: Axes) -> None:
    axes.legend(frameon=False, loc="lower right", ncols=2, handletextpad=0.2, borderpad=0, labelcolor=MUTED)
