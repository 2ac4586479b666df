"""Faults of ranking evaluations that people met, each made here: what must be found, by name and in words."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from harness import derive_chance, diff, gate, judge, sides
from harness.answer import check
from harness.diff_values import Side
from harness.judge_rerank import claimed
from harness.metrics.rerank_names import SENTINELS, asked
from harness.policy import parse
from harness.records import Limit, Tier
from tests.support.ranked import Ranked, good, ranked
from tests.support.roots import example, limited

DROP = {"ndcg_at_10_drop": Limit(at_most=0.05)}


def test_a_good_reranker_on_enough_groups_passes() -> None:
    gains, scores = good(40)
    found = ranked(gains, scores, limits=DROP, recall_at_3=Limit(at_least=0.5))
    assert {finding.verdict for finding in found.findings.values()} == {"PASS"}
    assert (found.verdict, found.reason) == ("PASS", "")


# --- a constant scorer gets MRR 1.0 because positives come first ---------------------------------------------------------


def test_a_constant_scorer_gets_no_reward_for_positives_that_come_first() -> None:
    gains = [[1, 1, 0, 0, 0, 0, 0, 0, 0, 0]] * 40
    measured = ranked(gains, [[0.5] * 10] * 40).measured
    expected = sum((10 - place) / 45 / place for place in range(1, 10))
    assert measured["mrr_at_10"].value == pytest.approx(expected, abs=1e-9)
    assert (measured["mrr_at_10_best"].value, measured["mrr_at_10_worst"].value) == pytest.approx((1.0, 1 / 9))
    assert measured["row_mrr_at_10.source_order"].value == 1.0


def undecided(found: Ranked, scorers: str) -> None:
    """The groups decide nothing, since these ``scorers`` would pass too; ``scorers`` is their count and their names."""
    assert found.findings["passing_sentinels"].text == (
        f"passing_sentinels: expected exactly 0, got {scorers} would meet every limit on the ranking,"
        " so these groups cannot tell a reranker from that; add groups or limits"
    )
    assert found.verdict == "INCONCLUSIVE"


def test_a_set_on_which_a_sentinel_meets_the_limits_cannot_decide_and_the_sentinel_is_named() -> None:
    gains, scores = good(40, candidates=4, positives=3)
    found = ranked(gains, scores, mrr_at_10=Limit(at_least=0.5))
    assert found.findings["mrr_at_10"].verdict == "PASS"
    undecided(found, "4 of 5: constant, random, reversed and length")


def test_a_set_whose_relevant_texts_are_the_longest_is_decided_by_length_alone() -> None:
    gains, scores = good(40)
    texts = [["x" * (9 if gain else 3) for gain in row] for row in gains]
    found = ranked(gains, scores, texts=texts, ndcg_at_10=Limit(at_least=0.7))
    undecided(found, "1 of 5: length")


def test_a_reference_that_ranks_upside_down_is_seen_since_its_reverse_would_pass() -> None:
    gains, scores = good(40)
    found = ranked(gains, -scores, limits=DROP)
    assert "reversed" in found.findings["passing_sentinels"].text
    assert found.verdict == "INCONCLUSIVE"


def test_limits_of_which_none_looks_at_the_ranking_decide_nothing() -> None:
    gains, scores = good(40)
    found = ranked(gains, scores, groups=Limit(exactly=40))
    assert found.findings["passing_sentinels"].text == (
        "passing_sentinels: expected exactly 0, got 4 of 5: no limit looks at the ranking, so any scorer meets them all"
    )
    assert found.verdict == "INCONCLUSIVE"


def test_a_broken_limit_is_fail_also_where_a_sentinel_would_pass() -> None:
    gains, scores = good(40)
    found = ranked(gains, -scores, scores, ndcg_at_10=Limit(at_least=0.9), map=Limit(at_least=0.0))
    assert found.verdict == "FAIL"


def test_each_sentinel_passes_a_limit_that_asks_for_nothing_but_nan() -> None:
    gains, scores = good(40)
    found = ranked(gains, scores, ndcg_at_10=Limit(at_least=0.0))
    assert found.findings["passing_sentinels"].value == len(SENTINELS) - 1
    assert "nan" not in found.findings["passing_sentinels"].text


def test_a_limit_whose_sentinels_were_not_measured_is_blocked_not_pass() -> None:
    gains, scores = good(40)
    found = ranked(gains, scores, limits=DROP)
    other = Ranked(found.request, found.files, {**found.limits, "map_drop": Limit(at_most=0.05)})
    assert other.findings["passing_sentinels"].text == (
        "passing_sentinels: expected exactly 0, got unknown: sentinel.constant.map_drop was not measured"
    )
    assert other.verdict == "BLOCKED"


# --- recall at as many places as there are candidates --------------------------------------------------------------------


def test_recall_with_as_many_places_as_candidates_is_null_and_no_achievement() -> None:
    gains, scores = good(40, candidates=10)
    found = ranked(gains, scores, recall_at_10=Limit(at_least=0.9))
    assert found.findings["recall_at_10"].text == (
        "recall_at_10: expected at least 0.9, got unknown: in every judged group every order of the candidates gives the same,"
        " so it says nothing of the ranking"
    )
    assert found.verdict == "BLOCKED"
    for name in ("recall_at_10_drop", "precision_at_10", "hit_at_10", "overlap_at_10"):
        assert found.measured[name].value is None


def test_groups_with_at_most_k_candidates_are_left_out_of_recall_and_counted() -> None:
    gains, scores = good(40)
    small, large = [row[:6] for row in gains[:10]], list(gains[10:])
    small = [np.array([1, 0, 0, 0, 0, 0])] * len(small)
    found = ranked([*small, *large], [*(row[:6] for row in scores[:10]), *scores[10:]]).measured["recall_at_10"]
    wanted = [
        sum(gain for _, gain in sorted(zip(-s, g, strict=True))[:10]) / 3
        for s, g in zip(scores[10:], large, strict=True)
    ]
    assert found.value == pytest.approx(np.mean(wanted))
    assert found.samples == 30
    assert found.note == "10 of 40 judged groups are left out: every order gives the same there"


# --- graded labels -------------------------------------------------------------------------------------------------------


def test_graded_labels_count_by_their_gain() -> None:
    scores = [[2.0, 1.0, 0.0]] * 3
    best, worse = ([[3, 1, 0]] * 3, [[1, 3, 0]] * 3)
    assert ranked(best, scores).measured["ndcg_at_10"].value == pytest.approx(1.0)
    flattened = (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    assert ranked(worse, scores).measured["ndcg_at_10"].value == pytest.approx(flattened, abs=1e-9)


# --- few groups ----------------------------------------------------------------------------------------------------------


def test_the_label_can_be_read_from_the_claim_whatever_the_verdict() -> None:
    label = "functional smoke: 6 judged groups, and an interval needs 30; no claim of accuracy"
    assert claimed(example().records.claim) == {}
    assert claimed(example(groups=6).records.claim) == {"cpu-fp32": label}
    failed = limited(example(groups=6), "L3", {"judged_groups": Limit(at_least=1), "map": Limit(at_least=0.9)}).records
    outcomes = {key: step.outcome for key, step in failed.steps.items()}
    claim = judge.qualification(failed.plan, "", outcomes, "", "")
    assert claim.targets[0].tiers["L3"] == "FAIL"
    assert claimed(claim) == {"cpu-fp32": label}


def test_two_groups_are_a_functional_smoke_test_that_claims_nothing() -> None:
    gains, scores = good(2, candidates=10, positives=5)
    found = ranked(gains, scores, ndcg_at_10_drop=Limit(at_most=0.005), groups=Limit(exactly=2))
    assert found.verdict == "PASS"
    assert found.reason == "functional smoke: 2 judged groups, and an interval needs 30; no claim of accuracy"


def test_one_group_gives_no_interval_and_so_no_verdict() -> None:
    gains, scores = good(1)
    found = ranked(gains, scores, limits=DROP)
    assert found.findings["ndcg_at_10_drop"].text == (
        "ndcg_at_10_drop: expected at most 0.05, got unknown: one group gives no interval"
    )
    assert found.verdict == "BLOCKED"


def test_an_interval_wider_than_the_drop_allowed_is_inconclusive_and_says_how_many_groups_it_needs() -> None:
    gains, scores = good(40)
    noisy = scores + np.random.default_rng(4).normal(0, 0.5, scores.shape).astype(np.float32)
    found = ranked(gains, noisy, scores, ndcg_at_10_drop=Limit(at_most=0.005))
    measured, finding = found.measured["ndcg_at_10_drop"], found.findings["ndcg_at_10_drop"]
    assert measured.interval is not None
    width = measured.interval[1] - measured.interval[0]
    needed = math.ceil(40 * (width / 0.005) ** 2)
    assert finding.verdict == "INCONCLUSIVE"
    assert finding.text.endswith(
        f": the interval is {width:.3g} wide; about {needed:,} groups would decide it, not 40, if queries differ as these do"
    )
    assert found.reason.endswith(
        f"; functional smoke: 40 judged groups, and the limit of ndcg_at_10_drop needs about {needed:,}; no claim of accuracy"
    )


def test_a_gain_with_an_interval_wider_than_the_drop_allowed_is_not_pass() -> None:
    gains, scores = good(40)
    weak = scores - 2.5 * gains
    found = ranked(gains, scores, weak, ndcg_at_10_drop=Limit(at_most=0.005))
    interval = found.measured["ndcg_at_10_drop"].interval
    assert interval is not None
    assert interval[1] < 0
    assert found.findings["ndcg_at_10_drop"].verdict == "INCONCLUSIVE"


def test_a_mean_whose_interval_straddles_its_limit_says_how_many_groups_would_decide() -> None:
    gains, scores = good(40)
    measured = ranked(gains, scores).measured["map"]
    assert measured.interval is not None
    between = (float(measured.value or 0) + measured.interval[0]) / 2
    text = ranked(gains, scores, map=Limit(at_least=between)).findings["map"].text
    assert "groups would decide it, not 40, if queries differ as these do" in text
    assert "wide" not in text


# --- agreement with PyTorch ----------------------------------------------------------------------------------------------


def test_agreement_is_measured_beside_the_drop_and_takes_limits() -> None:
    gains, scores = good(40, candidates=20)
    swapped = scores.copy()
    swapped[:, [0, 1]] = swapped[:, [1, 0]]
    found = ranked(
        gains, swapped, scores, kendall_tau_b_by_query=Limit(at_least=0.99), overlap_at_1=Limit(at_least=0.5)
    )
    assert found.findings["kendall_tau_b_by_query"].verdict == "FAIL"
    assert found.measured["overlap_at_1"].value == pytest.approx(
        np.mean(swapped.argmax(axis=1) == scores.argmax(axis=1)), abs=1e-9
    )
    row = found.per_query.rows[0]
    assert set(row.agreement) == {"kendall_tau_b_by_query", "overlap_at_1", "overlap_at_10"}


# --- the chance of a random scorer ---------------------------------------------------------------------------------------


def test_the_chance_that_a_random_scorer_passes_is_that_of_the_combinatorics() -> None:
    """MRR 1.0 in both of two groups with 5 positives of 10: a half each, so a quarter."""
    gains, scores = good(2, candidates=10, positives=5)
    found = ranked(gains, scores, mrr_at_10=Limit(at_least=1.0)).measured["random_pass_chance"]
    assert found.interval is not None
    assert found.interval[0] <= 0.25 <= found.interval[1]
    assert found.samples == 1000
    assert found.note == f"{round(float(found.value or 0) * 1000)} of 1,000 random orders, seed 7"


def test_on_many_groups_the_chance_is_bounded_and_nothing_is_drawn() -> None:
    gains, scores = good(60)
    found = ranked(gains, scores, limits=DROP).measured["random_pass_chance"]
    assert found.note == "at most, by Hoeffding's inequality"
    assert isinstance(found.value, float)
    assert 0 < found.value < 1e-4
    assert found.samples is None


def test_a_limit_on_the_chance_is_judged_on_its_interval() -> None:
    gains, scores = good(2, candidates=10, positives=5)
    found = ranked(gains, scores, mrr_at_10=Limit(at_least=1.0), random_pass_chance=Limit(at_most=0.05))
    assert found.findings["random_pass_chance"].verdict == "FAIL"


def test_a_chance_of_none_of_the_draws_meets_a_limit_that_its_interval_meets() -> None:
    gains, scores = good(2, candidates=10, positives=5)
    limits = {"ndcg_at_10_drop": Limit(at_most=0.005), "random_pass_chance": Limit(at_most=0.01)}
    found = ranked(gains, scores, limits=limits).findings["random_pass_chance"]
    assert found.text == "random_pass_chance: expected at most 0.01, got 0.0 (95% 0.0 to 0.00382676) probability"
    assert found.verdict == "PASS"


@pytest.mark.parametrize("draws", [1, 50, 1000])
def test_wilsons_interval_holds_its_share_and_agrees_with_scipy(draws: int) -> None:
    from scipy import stats

    for hits in {0, 1, draws // 3, draws}:
        low, high = derive_chance.wilson(hits, draws)
        wanted = stats.binomtest(hits, draws).proportion_ci(method="wilson")
        assert (low, high) == pytest.approx((wanted.low, wanted.high), abs=1e-6)
        assert 0 <= low <= hits / draws <= high <= 1


# --- laws ----------------------------------------------------------------------------------------------------------------

shapes = st.lists(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.0, 1.0, 3.0]), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=6
    ),
    min_size=2,
    max_size=4,
)


def split(rows: list[list[tuple[float, int, int]]]) -> tuple[list[list[float]], list[list[float]], list[list[float]]]:
    columns = [[[float(item[side]) for item in row] for row in rows] for side in range(3)]
    return columns[0], columns[1], columns[2]


def figures(found: Ranked) -> dict[str, object]:
    """All that is measured but the rows that look at texts or at the order of the source."""
    seen = ("length", "source_order", "bm25", "word_overlap")
    return {
        item.metric: (item.value, item.interval, item.note)
        for item in found.measurements
        if not any(word in item.metric for word in seen) and item.metric != "random_pass_chance"
    }


@settings(max_examples=25, deadline=None)
@given(shapes, st.randoms(use_true_random=False))
def test_permuting_the_candidates_changes_no_tie_aware_metric(
    rows: list[list[tuple[float, int, int]]], random: object
) -> None:
    shuffled = [list(row) for row in rows]
    for row in shuffled:
        random.shuffle(row)  # type: ignore[attr-defined]
    # texts of one length, so that the best sentinel is the same
    before, after = (
        ranked(*split(some), texts=[["same"] * len(row) for row in some], map_drop=Limit(at_most=0.1))
        for some in (rows, shuffled)
    )
    assert figures(before) == figures(after)


@settings(max_examples=25, deadline=None)
@given(shapes, st.integers(-100, 100), st.integers(-100, 100))
def test_adding_a_constant_to_all_logits_changes_nothing(
    rows: list[list[tuple[float, int, int]]], one: int, other: int
) -> None:
    gains, artifact, reference = split(rows)
    moved = (
        [[value + one for value in row] for row in artifact],
        [[value + other for value in row] for row in reference],
    )
    before, after = (ranked(gains, *sides, map_drop=Limit(at_most=0.1)) for sides in ((artifact, reference), moved))
    assert before.measurements == after.measurements
    assert [row.artifact for row in before.per_query.rows] == [row.artifact for row in after.per_query.rows]


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 5),
    st.integers(0, 11),
    st.sampled_from(["artifact", "reference"]),
    st.sampled_from([math.nan, math.inf, -math.inf]),
    st.sampled_from(
        ["ndcg_at_10", "map_worst", "recall_at_3", "hit_at_1", "kendall_tau_b_by_query", "groups", "mrr_at_10_drop"]
    ),
)
def test_one_score_that_is_not_finite_is_never_pass(
    group: int, place: int, side: str, value: float, metric: str
) -> None:
    gains, scores = good(6)
    spoilt = scores.copy()
    spoilt[group, place] = value
    sides = (spoilt, scores) if side == "artifact" else (scores, spoilt)
    found = ranked(gains, *sides, limits={metric: Limit(at_least=-1.0)})
    assert found.measured["non_finite_scores"].value == 1
    assert found.findings["non_finite_scores"].verdict == "FAIL"
    assert found.verdict == "FAIL"
    if asked([metric]) and side == "artifact":
        assert found.findings[metric].verdict == "BLOCKED"
        assert found.measured[metric].note == "1 groups have a score that is not finite"


# --- a metric is renamed between two releases of an evaluation --------------------------------------------------------


@pytest.mark.parametrize("new", ["ndcg_at_11", "ndcg_cut_10"])
@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_a_metric_under_another_name_on_one_side_is_not_compared(side: str, new: str, tiny_root: Path) -> None:
    whole = sides.side(check(tiny_root))
    step: tuple[str, Tier] = ("cpu-fp32", "L3")
    moved = tuple(
        replace(item, metric=new) if item.metric == "ndcg_at_10" else item for item in whole.judged.measured[step]
    )
    renamed = whole._replace(judged=replace(whole.judged, measured={**whole.judged.measured, step: moved}))
    pair: tuple[Side, Side] = (renamed, whole) if side == "baseline" else (whole, renamed)
    found = diff.compare(*pair)
    other = "candidate" if side == "baseline" else "baseline"
    (ranked_step,) = (item for item in found.steps if (item.target, item.tier) == step)
    figures = {item.metric: item for item in ranked_step.compared}
    assert (figures["ndcg_at_10"].difference, figures[new].difference) == (None, None)
    assert (figures["ndcg_at_10"].why_not, figures[new].why_not) == (
        f"the {side} has no such figure",
        f"the {other} has no such figure",
    )
    text = b"format: 1\nname: release\ngates:\n  - {metric: ndcg_at_10, target: cpu-fp32, max_degradation: 50%}\n"
    gates = gate.judge(parse(text), "blake3:" + "0" * 64, found)
    assert [(item.verdict, item.reason) for item in gates.gates] == [("INCOMPARABLE", f"the {side} has no such figure")]
    assert gates.exit_code == 30
