from __future__ import annotations

import itertools

import pytest

from harness.raw import Variant
from harness.records import ParityOptions
from harness.variants import BATCHES, CALLS, THREADS, Shape, Side, subset, variants

OPTIONS = ParityOptions(invariance_pairs=8, invariance_tokens=20)
FREE = Shape(batch=None, length=None, segments=True, threads=True)
PAIRS = tuple(range(24))


def by_kind(found: tuple[Variant, ...], kind: str) -> list[Variant]:
    return [variant for variant in found if variant.kind == kind]


def test_the_subset_spans_the_short_pairs_and_leaves_out_what_was_refused() -> None:
    lengths = [*range(1, 21), *range(100, 120)]
    chosen = subset(lengths, OPTIONS, 7)
    assert len(chosen) == 8
    assert {0, 19} <= set(chosen)
    assert all(lengths[pair] <= 20 for pair in chosen)
    assert set(subset(lengths, OPTIONS, 7, {0, 19})).isdisjoint({0, 19})


def test_the_subset_is_drawn_by_the_seed_alone() -> None:
    lengths = list(range(1, 21))
    assert subset(lengths, OPTIONS, 7) == subset(lengths, OPTIONS, 7)
    assert len({subset(lengths, OPTIONS, seed) for seed in range(10)}) > 1


def test_longer_pairs_are_taken_where_too_few_are_short() -> None:
    assert subset([500, 3, 40, 30, 60, 70, 80, 90, 100, 400], OPTIONS, 0) == (1, 2, 3, 4, 5, 6, 7, 8)


@pytest.mark.parametrize("side", ["left", "right"])
def test_every_pair_stands_in_every_kind_of_batch(side: Side) -> None:
    found = variants(PAIRS, side, 7, FREE)
    sizes = [len(variant.rows[0]) for variant in by_kind(found, "batch")]
    assert sizes == list(BATCHES)
    for variant in found:
        if variant.kind not in ("repeat", "threads"):
            assert set(itertools.chain(*variant.rows)) == set(PAIRS)
    assert [variant.padding for variant in by_kind(found, "padded")] == [side, "right" if side == "left" else "left"]
    assert all(variant.padding == side for variant in found if variant.kind != "padded")


def test_batches_mix_pairs_that_are_no_neighbours() -> None:
    (first, *_) = by_kind(variants(PAIRS, "right", 7, FREE), "batch")[1].rows
    assert first != tuple(sorted(first))


def test_eight_threads_have_a_batch_each() -> None:
    (threads,) = by_kind(variants(PAIRS, "right", 7, FREE), "threads")
    assert (len(threads.rows), threads.calls) == (THREADS, CALLS)
    assert len(set(threads.rows)) == THREADS


def test_a_graph_of_one_pair_says_what_it_cannot_take() -> None:
    found = variants(PAIRS, "right", 7, Shape(batch=1, length=64, segments=False, threads=False))
    skipped = [variant.skipped for variant in found if variant.skipped]
    assert skipped == [
        *(f"batches of {size}: the graph takes 1" for size in BATCHES),
        "the graph takes one pair at a time",
        "the graph pads every pair to 64 tokens",
        "the model takes no segment ids",
    ]


def test_a_graph_of_a_fixed_batch_is_tried_with_that_batch() -> None:
    found = variants(PAIRS, "right", 7, Shape(batch=4, length=None, segments=True, threads=True))
    assert [len(variant.rows[0]) for variant in by_kind(found, "batch") if variant.rows] == [4]
    assert all(len(row) == 4 for variant in found for row in variant.rows)
