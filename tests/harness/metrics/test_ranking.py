"""Ranking metrics: against enumeration of every tie order, against pytrec_eval and mteb, and by their laws."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics import ranking
from harness.metrics.ranking import GroupMetrics, TieAware

NAMES = ("ndcg", "mrr", "average_precision", "recall", "precision", "hit")


def plain(gains: list[float], k: int) -> dict[str, float]:
    """Every metric of one fixed order, written down from its definition."""
    flags = [gain > 0 for gain in gains]
    ideal = sum(g / math.log2(i + 2) for i, g in enumerate(sorted(gains, reverse=True)[:k]))
    first = flags.index(True) + 1
    return {
        "ndcg": sum(g / math.log2(i + 2) for i, g in enumerate(gains[:k])) / ideal,
        "mrr": 1 / first if first <= k else 0.0,
        "average_precision": sum(sum(flags[: i + 1]) / (i + 1) for i, f in enumerate(flags) if f) / sum(flags),
        "recall": sum(flags[:k]) / sum(flags),
        "precision": sum(flags[:k]) / k,
        "hit": float(any(flags[:k])),
    }


def tie_orders(scores: list[int], gains: list[float]) -> Iterator[list[float]]:
    """The gains in every order that the scores allow."""
    classes = [
        list(itertools.permutations([g for s, g in zip(scores, gains, strict=True) if s == value]))
        for value in sorted(set(scores), reverse=True)
    ]
    for choice in itertools.product(*classes):
        yield list(itertools.chain.from_iterable(choice))


def by_enumeration(scores: list[int], gains: list[float], k: int) -> dict[str, TieAware]:
    rows = [plain(order, k) for order in tie_orders(scores, gains)]
    return {
        name: TieAware(
            expected=math.fsum(row[name] for row in rows) / len(rows),
            best=max(row[name] for row in rows),
            worst=min(row[name] for row in rows),
        )
        for name in NAMES
    }


def assert_close(found: TieAware | None, wanted: TieAware) -> None:
    assert found is not None
    assert (found.expected, found.best, found.worst) == pytest.approx(
        (wanted.expected, wanted.best, wanted.worst), abs=1e-12
    )


def metrics_of(scores: Any, gains: Any, k: int) -> GroupMetrics:
    found = ranking.group_metrics(scores, gains, k)
    assert found is not None
    return found


groups = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.0, 1.0, 2.0, 0.1])), min_size=1, max_size=7
).filter(lambda rows: any(gain > 0 for _, gain in rows))


@given(groups, st.integers(1, 9))
def test_every_metric_equals_the_enumeration_of_all_tie_orders(rows: list[tuple[int, float]], k: int) -> None:
    scores, gains = [s for s, _ in rows], [g for _, g in rows]
    wanted = by_enumeration(scores, gains, k)
    found = metrics_of(scores, gains, k)
    for name in NAMES:
        assert_close(getattr(found, name), wanted[name])


@given(st.lists(groups, min_size=1, max_size=5), st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True))
def test_many_groups_of_any_size_and_many_cuts_at_once_equal_one_at_a_time(
    rows: list[list[tuple[int, float]]], cuts: list[int]
) -> None:
    scores, gains = [[s for s, _ in row] for row in rows], [[g for _, g in row] for row in rows]
    found = ranking.spreads(scores, gains, cuts)
    assert set(found) == {"map", *(f"{family}_at_{k}" for family in ranking.FAMILIES for k in cuts)}
    for place, (score, gain) in enumerate(zip(scores, gains, strict=True)):
        for k in cuts:
            alone = metrics_of(score, gain, k)
            for family in (*ranking.FAMILIES, "average_precision"):
                spread = found["map" if family == "average_precision" else f"{family}_at_{k}"]
                wanted = getattr(alone, family)
                assert [float(side[place]) for side in spread] == pytest.approx(
                    [wanted.expected, wanted.best, wanted.worst], abs=1e-12
                )


def test_groups_looked_at_in_blocks_equal_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_groups(20, 12) + random_groups(3, 40)
    scores, gains = [s for s, _ in rows], [g for _, g in rows]
    whole = ranking.spreads(scores, gains, [5])
    monkeypatch.setattr(ranking, "_CELLS", 50)
    parts = ranking.spreads(scores, gains, [5])
    for name, spread in whole.items():
        assert np.stack(parts[name]) == pytest.approx(np.stack(spread), abs=1e-12)


@given(groups, st.integers(1, 9), st.randoms(use_true_random=False))
def test_permuting_the_candidates_changes_no_bit(rows: list[tuple[int, float]], k: int, random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    before = ranking.group_metrics([s for s, _ in rows], [g for _, g in rows], k)
    after = ranking.group_metrics([s for s, _ in shuffled], [g for _, g in shuffled], k)
    assert before == after


@given(groups, st.integers(1, 9), st.integers(-1000, 1000))
def test_adding_a_constant_to_all_scores_changes_nothing(rows: list[tuple[int, float]], k: int, constant: int) -> None:
    scores, gains = [s for s, _ in rows], [g for _, g in rows]
    assert ranking.group_metrics([s + constant for s in scores], gains, k) == metrics_of(scores, gains, k)


@given(groups, st.integers(1, 9))
def test_the_oracle_is_the_ceiling_and_random_lies_between_the_bounds(rows: list[tuple[int, float]], k: int) -> None:
    gains = [g for _, g in rows]
    oracle, random = ranking.oracle(gains, k), ranking.expected_random(gains, k)
    assert oracle is not None
    assert random is not None
    assert oracle.ndcg == TieAware(expected=1.0, best=1.0, worst=1.0)
    for name in NAMES:
        value = getattr(random, name)
        assert value.worst <= value.expected <= value.best
        assert getattr(oracle, name).expected == pytest.approx(value.best, abs=1e-12)


def test_constant_scorer_with_positives_first_is_not_rewarded() -> None:
    found = metrics_of([0.5] * 10, [1, 1, 0, 0, 0, 0, 0, 0, 0, 0], 10)
    assert found.mrr.best == 1.0
    assert found.mrr.worst == pytest.approx(1 / 9)
    assert found.mrr.expected == pytest.approx(sum((10 - j) / 45 / j for j in range(1, 10)))


def test_recall_with_as_many_places_as_candidates_is_seen_to_be_foregone() -> None:
    found = ranking.expected_random([1, 0, 0], 3)
    assert found is not None
    assert found.recall == TieAware(expected=1.0, best=1.0, worst=1.0)


def test_fewer_candidates_than_k_still_divides_precision_by_k() -> None:
    assert metrics_of([2.0, 1.0], [1, 1], 10).precision == TieAware(expected=0.2, best=0.2, worst=0.2)


def test_linear_not_exponential_gain() -> None:
    found = metrics_of([2.0, 1.0], [1, 3], 10).ndcg
    assert found.expected == pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3)))


def test_minus_zero_ties_with_zero() -> None:
    assert metrics_of([0.0, -0.0], [1, 0], 1).hit == TieAware(expected=0.5, best=1.0, worst=0.0)


def test_float32_scores_tie_where_they_are_equal_as_float32() -> None:
    scores = np.array([1.0, 1.0 + 1e-9], dtype=np.float32)
    assert metrics_of(scores, [1, 0], 1).hit.expected == 0.5


@pytest.mark.parametrize(
    ("scores", "gains"),
    [
        pytest.param([], [], id="no candidates"),
        pytest.param([1.0, 2.0], [0, 0], id="no positives"),
        pytest.param([1.0, math.nan], [1, 0], id="nan"),
        pytest.param([1.0, math.inf], [1, 0], id="infinity"),
        pytest.param([-math.inf, 1.0], [1, 0], id="minus infinity"),
    ],
)
def test_a_group_without_a_value_is_none(scores: list[float], gains: list[float]) -> None:
    assert ranking.group_metrics(scores, gains, 10) is None
    found = ranking.spreads([scores, [1.0, 2.0]], [gains, [1, 0]], [10])
    assert {math.isnan(side[0]) for spread in found.values() for side in spread} == {True}
    assert {math.isnan(side[1]) for spread in found.values() for side in spread} == {False}


@pytest.mark.parametrize(
    ("scores", "gains", "k", "message"),
    [
        pytest.param([1.0], [1, 0], 10, "scores and gains: expected one shape (candidates,), got (1,) and (2,)"),
        pytest.param([[1.0]], [[1]], 10, "scores and gains: expected one shape (candidates,), got (1, 1) and (1, 1)"),
        pytest.param([1.0], [-1], 10, "gains: expected finite numbers >= 0, got a negative or non-finite one"),
        pytest.param([1.0], [math.nan], 10, "gains: expected finite numbers >= 0, got a negative or non-finite one"),
        pytest.param([1.0], [1], 0, "k: expected a whole number >= 1, got 0"),
        pytest.param([1.0], [1], True, "k: expected a whole number >= 1, got True"),
    ],
)
def test_a_group_that_is_asked_wrongly_is_refused(scores: Any, gains: Any, k: int, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the whole message is compared
        ranking.group_metrics(scores, gains, k)
    assert str(caught.value) == message


def random_groups(count: int, candidates: int) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    generator = np.random.default_rng(7)
    found = []
    for _ in range(count):
        gains = generator.integers(0, 4, candidates) * (generator.random(candidates) < 0.3)
        gains[generator.integers(candidates)] = 1
        found.append((generator.permutation(candidates).astype(np.float32) / 8, gains))
    return found


def test_untied_groups_agree_with_pytrec_eval() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pytrec_eval
    rows = random_groups(40, 30)
    qrels = {f"q{i}": {f"d{j}": int(g) for j, g in enumerate(gains)} for i, (_, gains) in enumerate(rows)}
    run = {f"q{i}": {f"d{j}": float(s) for j, s in enumerate(scores)} for i, (scores, _) in enumerate(rows)}
    wanted = pytrec_eval.RelevanceEvaluator(
        qrels, {"ndcg_cut.10", "map", "recip_rank", "recall.10", "P.10", "success.10"}
    ).evaluate(run)
    for i, (scores, gains) in enumerate(rows):
        found, peer = metrics_of(scores, gains, 10), wanted[f"q{i}"]
        assert found.ndcg.expected == pytest.approx(peer["ndcg_cut_10"], abs=1e-6)
        assert found.average_precision.expected == pytest.approx(peer["map"], abs=1e-6)
        assert found.recall.expected == pytest.approx(peer["recall_10"], abs=1e-6)
        assert found.precision.expected == pytest.approx(peer["P_10"], abs=1e-6)
        assert found.hit.expected == peer["success_10"]
        whole = metrics_of(scores, gains, len(scores)).mrr
        assert whole.expected == pytest.approx(peer["recip_rank"], abs=1e-6)
        assert found.ndcg.best == found.ndcg.worst


def test_untied_groups_agree_with_mteb() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mteb._evaluators.retrieval_metrics import calculate_retrieval_scores, mrr
    rows = random_groups(40, 30)
    qrels = {f"q{i}": {f"d{j}": int(g) for j, g in enumerate(gains)} for i, (_, gains) in enumerate(rows)}
    run = {f"q{i}": {f"d{j}": float(s) for j, s in enumerate(scores)} for i, (scores, _) in enumerate(rows)}
    found = [metrics_of(scores, gains, 10) for scores, gains in rows]
    peer = calculate_retrieval_scores(run, qrels, [10, 1000])
    assert np.mean([row.ndcg.expected for row in found]) == pytest.approx(peer.ndcg["NDCG@10"], abs=1e-4)
    assert np.mean([row.average_precision.expected for row in found]) == pytest.approx(peer.map["MAP@1000"], abs=1e-4)
    assert np.mean([row.recall.expected for row in found]) == pytest.approx(peer.recall["Recall@10"], abs=1e-4)
    assert np.mean([row.mrr.expected for row in found]) == pytest.approx(
        np.mean(mrr(qrels, run, [10])["MRR@10"]), abs=1e-4
    )


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.0, 1.0, 0.7])), max_size=12), max_size=12)
)
def test_how_many_groups_are_looked_at_together_changes_no_bit(found: list[list[tuple[int, float]]]) -> None:
    scores, gains = ([np.array([pair[side] for pair in group], dtype=float) for group in found] for side in (0, 1))
    together = ranking.spreads(scores, gains, [2, 10])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "_AT_ONCE", 1)
        apart = ranking.spreads(scores, gains, [2, 10])
    for name, spread in together.items():
        assert all(map(np.array_equal, spread, apart[name], [True] * 3)), name
