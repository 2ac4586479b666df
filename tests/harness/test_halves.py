"""Groups as columns: read by halves they are the same, and what is not spelled as it is sealed is read with care."""

from __future__ import annotations

import os

import numpy as np
import pytest

from harness import data, halves, rerank_groups
from harness.data import Doc, Group
from harness.errors import LadderError
from harness.rerank_groups import Groups, read_groups

CUTS = (3, 10)


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    rerank_groups._read.clear()


def made(count: int) -> list[Group]:
    """Groups of 1 to 7 candidates, some of which no order can rank wrong."""
    return [
        Group(
            query_id=f"q{number}",
            query=f"a word, {number}",
            candidates=tuple(
                Doc(id=f"d{place}", text=f"A word {number * place % 5}", gain=float((number + place) % 3 == 0))
                for place in range(1 + number % 7)
            ),
        )
        for number in range(count)
    ]


def same(one: Groups, other: Groups) -> bool:
    flat = [(its.gains.flat, its.gains.sizes, *its.lexical) for its in (one, other)]
    return one.counted == other.counted and all(map(np.array_equal, *flat))


def test_groups_read_by_halves_are_those_read_at_once_with_the_same_metrics() -> None:
    raw = data.render_groups(made(40))
    at_once = read_groups(raw)
    found = at_once.spreads(CUTS)
    rerank_groups._read.clear()
    halves.derive(raw, [CUTS])
    joined = read_groups(raw)
    assert joined is not at_once
    assert same(joined, at_once)
    assert joined.known.keys() == {CUTS}
    for name, metrics in at_once.spreads(CUTS).items():
        for metric, spread in metrics.items():
            assert all(map(np.array_equal, joined.known[CUTS][name][metric], spread, [True] * 3)), (name, metric)
    assert found["random"] is found["constant"]


@pytest.mark.parametrize("count", [1, 2])
def test_few_groups_are_read_all_the_same(count: int) -> None:
    raw = data.render_groups(made(count))
    halves.derive(raw, [CUTS])
    assert read_groups(raw).counted.ids == [f"q{number}" for number in range(count)]


def test_one_name_in_both_halves_is_refused_with_its_lines() -> None:
    raw = data.render_groups([*made(6), *made(1)])
    halves.derive(raw, [CUTS])
    with pytest.raises(
        LadderError, match=r"line 7: expected each query_id once, got 'q0', as line 1; correct the line$"
    ):
        read_groups(raw)


def test_another_spelling_is_read_with_care_and_counted_by_the_one_spelling() -> None:
    sealed = data.render_groups(made(6))
    spelled = sealed.replace(b'"query":', b'"query": ')
    halves.derive(spelled, [CUTS])
    assert same(read_groups(spelled), read_groups(sealed))
