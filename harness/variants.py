"""Which pairs are scored again, and in which batches, paddings and orders, to see whether that moves their logits. Pure.

The stage scores what stands here; the verifier makes it again from the plan and refuses a root in which some of it is missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple

from harness.raw import Variant
from harness.records import ParityOptions

BATCHES = (2, 7, 16, 32)
THREADS, CALLS, REPEATS = 8, 10, 3

Side = Literal["left", "right"]


class Shape(NamedTuple):
    """What a scorer takes: a fixed batch and length (None: any), whether it takes segments, and whether threads are tried on it."""

    batch: int | None
    length: int | None
    segments: bool
    threads: bool


def subset(lengths: Sequence[int], options: ParityOptions, seed: int, without: Collection[int] = ()) -> tuple[int, ...]:
    """Indices of the pairs to score again, rising: the longest and the shortest of the short ones, the others drawn by the seed.

    Short is at most ``invariance_tokens``; where fewer pairs are, the next longer ones are taken. ``without`` are left out.
    """
    there = sorted((length, index) for index, length in enumerate(lengths) if index not in without)
    count = options.invariance_pairs
    short = [index for length, index in there if length <= options.invariance_tokens]
    if len(short) <= count:
        return tuple(sorted(index for _, index in there[:count]))
    inner = _drawn(short[1:-1], seed, "subset")[: count - 2]
    return tuple(sorted([short[0], short[-1], *inner]))


def variants(pairs: Sequence[int], padding: Side, seed: int, shape: Shape) -> tuple[Variant, ...]:
    """Every way to score the subset ``pairs`` with a scorer of ``shape``; ``padding`` is the tokenizer's side."""
    return tuple(_variants(list(pairs), padding, seed, shape))


def _variants(pairs: list[int], padding: Side, seed: int, shape: Shape) -> Iterator[Variant]:
    other: Side = "right" if padding == "left" else "left"
    alone = tuple((pair,) * (shape.batch or 1) for pair in pairs)
    drawn = _drawn(pairs, seed, "batches")
    mixed = _batches(drawn, shape.batch or 16)
    yield Variant(kind="alone", padding=padding, rows=alone)
    for size in BATCHES:
        if shape.batch is None:
            yield Variant(kind="batch", padding=padding, rows=_batches(drawn, size))
        elif size != shape.batch:
            yield Variant(kind="batch", padding=padding, skipped=f"batches of {size}: the graph takes {shape.batch}")
    if shape.batch == 1:
        yield Variant(kind="order", padding=padding, skipped="the graph takes one pair at a time")
    else:
        if shape.batch is not None:
            yield Variant(kind="batch", padding=padding, rows=mixed)
        yield Variant(kind="order", padding=padding, rows=tuple(row[::-1] for row in mixed))
    if shape.length is not None:
        yield Variant(kind="padded", padding=padding, skipped=f"the graph pads every pair to {shape.length} tokens")
    else:
        yield Variant(kind="padded", padding=padding, rows=alone)
    yield Variant(kind="padded", padding=other, rows=alone)
    yield Variant(kind="repeat", padding=padding, rows=mixed[:1], calls=REPEATS)
    if shape.segments:
        yield Variant(kind="segments", padding=padding, rows=alone)
    else:
        yield Variant(kind="segments", padding=padding, skipped="the model takes no segment ids")
    if shape.threads:
        two = _batches(drawn, shape.batch or 2)
        rows = tuple(two[thread % len(two)] for thread in range(THREADS))
        yield Variant(kind="threads", padding=padding, rows=rows, calls=CALLS)


def _batches(drawn: list[int], size: int) -> tuple[tuple[int, ...], ...]:
    """All pairs in batches of exactly ``size``; the last is filled up from the start."""
    count = -(-len(drawn) // size)
    filled = [drawn[place % len(drawn)] for place in range(count * size)]
    return tuple(tuple(filled[begin : begin + size]) for begin in range(0, count * size, size))


def _drawn(indices: Sequence[int], seed: int, purpose: str) -> list[int]:
    """The indices in an order that depends on seed and purpose alone, the same in every version of Python."""
    return sorted(indices, key=lambda index: hashlib.sha256(f"{seed} {purpose} {index}".encode()).digest())
