"""What a ladder's L1 asks for beside the steady calls, and which metrics that gives. Pure; no import of numpy."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from harness.metrics.catalogue import METRICS, cell_name
from harness.records import PerfOptions, SweepOptions


class Cell(NamedTuple):
    """A cell of a sweep: candidates a call, tokens, pairs a micro-batch, threads."""

    candidates: int
    max_length: int
    batch_size: int
    threads: int


def cells_of(options: SweepOptions, threads: int) -> tuple[tuple[Cell, ...], ...]:
    """The cells of a sweep, session by session; ``threads`` where the sweep names none."""
    grid = list(itertools.product(options.candidates, options.max_length, options.batch_size))
    return tuple(tuple(Cell(*cell, count) for cell in grid) for count in options.threads or (threads,))


def missing(metric: str, options: PerfOptions, threads: int) -> str | None:
    """What L1 would have to ask for so that ``metric`` is measured; None when it does."""
    base, _, parameter = metric.partition(".")
    match METRICS[base].parameter:
        case "cell":
            groups = cells_of(options.sweep, threads) if options.sweep is not None else ()
            return (
                None
                if parameter in {cell_name(*cell) for group in groups for cell in group}
                else "that cell in its sweep"
            )
        case "callers":
            levels = options.load.concurrency if options.load is not None else ()
            return None if parameter in map(str, levels) else f"{parameter} in load.concurrency"
    if base.startswith("arrival_"):
        return None if options.load is not None and options.load.arrival_per_s is not None else "load.arrival_per_s"
    if base.startswith("end_to_end_") or base == "tokenise_share":
        return None if options.end_to_end_calls else "end_to_end_calls above 0"
    if base == "ratio_eager":
        return None if options.eager else "eager: true"
    if base.startswith("growth_"):
        return None if options.growth_calls else "growth_calls above 0"
    return None
