"""Groups are selected and cut by stated rules, and no more of a source is read than those rules need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.bounds import Bounds, cut, judgeable, select, stratum
from harness.data import Doc, Group
from harness.errors import LadderError


def group(*gains: float, query_id: str = "q") -> Group:
    docs = tuple(Doc(id=f"d{n}", text=f"text {n}", gain=gain) for n, gain in enumerate(gains, 1))
    return Group(query_id=query_id, query="a query", candidates=docs)


def ids(group: Group) -> list[str]:
    return [doc.id for doc in group.candidates]


def queries(groups: tuple[Group, ...]) -> list[str]:
    return [item.query_id for item in groups]


def many(count: int = 40) -> list[Group]:
    """Groups of 1, 3 and 6 positives in turn, each with 4 negatives."""
    return [group(*[1] * (1, 3, 6)[n % 3], 0, 0, 0, 0, query_id=f"q{n}") for n in range(count)]


class Counted:
    """An endless source that counts what was taken of it."""

    def __init__(self) -> None:
        self.taken = 0

    def __iter__(self) -> Iterator[Group]:
        while True:
            self.taken += 1
            yield group(1, 0, 0, query_id=f"q{self.taken}")


@pytest.mark.parametrize(
    ("bounds", "taken", "kept"),
    [
        (Bounds(groups=2), 2, 2),
        (Bounds(pairs=6), 2, 2),
        (Bounds(pairs=7), 3, 2),
        (Bounds(groups=5, pairs=3), 1, 1),
        (Bounds(groups=3, candidates=2, pairs=100), 3, 3),
    ],
)
def test_an_endless_source_is_read_no_further_than_the_bound(bounds: Bounds, taken: int, kept: int) -> None:
    source = Counted()
    found = select(source, bounds, "s")
    assert (source.taken, len(found.groups), found.read, found.whole) == (taken, kept, taken, False)


def test_a_cut_keeps_positives_first_one_place_for_a_negative_and_source_order() -> None:
    assert ids(cut(group(0, 0, 1, 0, 2, 0), Bounds(candidates=4))) == ["d1", "d2", "d3", "d5"]
    assert ids(cut(group(1, 1, 0, 1), Bounds(candidates=2))) == ["d1", "d3"]
    assert ids(cut(group(1, 1, 1), Bounds(candidates=2))) == ["d1", "d2"]
    assert ids(cut(group(0, 0, 0), Bounds(candidates=2))) == ["d1", "d2"]


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=12), st.integers(2, 12), st.booleans())
def test_a_cut_group_can_be_judged_whenever_the_whole_one_could(gains: list[float], most: int, seeded: bool) -> None:
    whole = group(*gains)
    kept = cut(whole, Bounds(candidates=most, negatives="seeded" if seeded else "first"))
    assert judgeable(kept) == judgeable(whole)
    assert len(kept.candidates) == min(most, len(gains))
    places = [int(name[1:]) for name in ids(kept)]
    assert places == sorted(places)
    negatives = sum(doc.gain == 0 for doc in kept.candidates)
    if negatives > 1:  # then no positive was left out
        assert sum(doc.gain > 0 for doc in kept.candidates) == sum(gain > 0 for gain in gains)


def test_seeded_negatives_depend_on_the_seed_alone() -> None:
    whole = group(1, *[0] * 20)
    one, other = (cut(whole, Bounds(candidates=5, negatives="seeded", seed=seed)) for seed in (1, 2))
    assert ids(one) != ids(other)
    assert ids(one) == ids(cut(whole, Bounds(candidates=5, negatives="seeded", seed=1)))
    assert ids(one) != ["d1", "d2", "d3", "d4", "d5"]


def test_a_seeded_sample_is_the_same_in_whatever_order_the_source_comes() -> None:
    asked = Bounds(groups=7, select="seeded", seed=3)
    found, turned = select(many(), asked, "s"), select(reversed(many()), asked, "s")
    assert queries(found.groups) == list(reversed(queries(turned.groups)))
    assert (len(found.groups), found.read, found.whole) == (7, 40, True)
    assert queries(found.groups) != queries(select(many(), Bounds(groups=7, select="seeded", seed=4), "s").groups)


def test_a_larger_seeded_sample_holds_the_smaller_one() -> None:
    small, large = (select(many(), Bounds(groups=n, select="seeded"), "s").groups for n in (5, 20))
    assert set(queries(small)) < set(queries(large))


@given(st.integers(1, 50), st.integers(0, 9))
def test_a_stratified_sample_has_each_stratum_by_its_share(wanted: int, seed: int) -> None:
    everything = many()
    found = select(everything, Bounds(groups=wanted, select="stratified", seed=seed), "s").groups
    assert len(found) == min(wanted, len(everything))
    for name in {stratum(item) for item in everything}:
        share = sum(stratum(item) == name for item in everything) * len(found) / len(everything)
        assert abs(sum(stratum(item) == name for item in found) - share) < 1


def test_a_bound_of_pairs_ends_a_sample_before_the_group_that_goes_beyond_it() -> None:
    found = select(many(), Bounds(pairs=30, select="seeded"), "s").groups
    assert 20 < sum(len(item.candidates) for item in found) <= 30


def test_groups_that_cannot_be_judged_are_kept_and_by_rule_dropped_before_the_bound() -> None:
    source = [
        group(1, 1, query_id="all"),
        group(0, 0, query_id="none"),
        group(1, 0, query_id="a"),
        group(1, 0, query_id="b"),
    ]
    assert queries(select(source, Bounds(groups=2), "s").groups) == ["all", "none"]
    dropped: dict[str, Any] = {"groups": 2, "unjudged": "drop"}
    first, sample = select(source, Bounds(**dropped), "s"), select(source, Bounds(**dropped, select="seeded"), "s")
    assert (queries(first.groups), first.left_out) == (["a", "b"], 2)
    assert (queries(sample.groups), sample.left_out) == (["a", "b"], 2)


@pytest.mark.parametrize("how", ["first", "seeded"])
def test_a_bound_that_leaves_nothing_is_refused(how: Any) -> None:
    for asked in (Bounds(select=how, pairs=1), Bounds(select=how, groups=1, unjudged="drop")):
        with pytest.raises(LadderError) as caught:
            select([group(0, 0)], asked, "g.jsonl")
        left = 1 if asked.unjudged == "drop" else 0
        assert str(caught.value) == (
            f"g.jsonl: expected at least one group within the bounds, got none of 1 ({left} without both a positive and"
            " a negative); widen them"
        )
