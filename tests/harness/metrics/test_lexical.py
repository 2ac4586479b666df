"""The scorers without a model, against figures worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics import lexical

DOCUMENTS = ["the cat sat", "the dog sat on the cat", "", "birds"]
texts = st.text(alphabet="abc é_1.,", max_size=20)


def test_words_are_lower_case_runs_of_word_characters() -> None:
    assert lexical.tokens("Don't STOP: os.path_join, É2!") == ["don", "t", "stop", "os", "path_join", "é2"]
    assert lexical.tokens(" ... ") == []


def test_bm25_equals_the_formula_worked_by_hand() -> None:
    idf = math.log(1 + (4 - 2 + 0.5) / (2 + 0.5))
    mean_length = 10 / 4
    first = idf * 1 / (1 + 1.2 * (0.25 + 0.75 * 3 / mean_length))
    second = idf * 1 / (1 + 1.2 * (0.25 + 0.75 * 6 / mean_length))
    assert lexical.bm25_scores("cat", DOCUMENTS) == pytest.approx([first, second, 0.0, 0.0])


def test_a_word_in_every_document_still_counts_for_them() -> None:
    assert min(lexical.bm25_scores("the", ["the cat", "the dog"])) > 0


def test_a_query_word_given_twice_counts_twice() -> None:
    once, twice = lexical.bm25_scores("cat", DOCUMENTS), lexical.bm25_scores("cat cat", DOCUMENTS)
    assert twice == pytest.approx([2 * score for score in once])


def test_scorers_of_nothing_give_nothing() -> None:
    assert lexical.bm25_scores("cat", []) == []
    assert lexical.bm25_scores("cat", ["", "!"]) == [0.0, 0.0]
    assert lexical.bm25_scores("", DOCUMENTS) == [0.0] * 4
    assert lexical.overlap_scores("", DOCUMENTS) == [0.0] * 4
    assert lexical.overlap_scores("cat", []) == []
    assert lexical.length_scores([]) == []


def test_overlap_is_the_share_of_distinct_query_words() -> None:
    assert lexical.overlap_scores("The cat the bird", DOCUMENTS) == [2 / 3, 2 / 3, 0.0, 0.0]


def test_length_counts_characters() -> None:
    assert lexical.length_scores(["é", "two words", ""]) == [1.0, 9.0, 0.0]


@given(texts, st.lists(texts, max_size=6))
def test_scores_are_finite_and_follow_the_documents(query: str, documents: list[str]) -> None:
    scores = lexical.bm25_scores(query, documents)
    assert all(math.isfinite(score) and score >= 0 for score in scores)
    assert lexical.bm25_scores(query, documents[::-1]) == pytest.approx(scores[::-1])
    overlaps = lexical.overlap_scores(query, documents)
    assert all(0 <= overlap <= 1 for overlap in overlaps)
    assert [score > 0 for score in scores] == [overlap > 0 for overlap in overlaps]
