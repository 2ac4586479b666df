"""The scorers without a model, against figures worked out by hand."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics import lexical, words

DOCUMENTS = ["the cat sat", "the dog sat on the cat", "", "birds"]
texts = st.text(alphabet="abc é_1.,", max_size=20)
odd = st.text(alphabet="aAbB _1.\n\0éÉΣσςİßK\u0307\u2019中文𝒳😀Ａǅ", max_size=30)
groups = st.lists(st.tuples(odd, st.lists(odd, max_size=4)), max_size=6)


def one_by_one(query: str, documents: list[str]) -> list[float]:
    """BM25 by its formula, a word and a document at a time."""
    cut = [words.tokens(document) for document in documents]
    mean = sum(map(len, cut)) / len(cut) if any(cut) else 1.0
    scores = [0.0] * len(documents)
    for word, times in Counter(words.tokens(query)).items():
        holding = sum(word in its for its in cut)
        idf = math.log(1 + (len(cut) - holding + 0.5) / (holding + 0.5))
        for place, its in enumerate(cut):
            count = its.count(word)
            scores[place] += times * idf * count / (count + 1.2 * (1 - 0.75 + 0.75 * len(its) / mean))
    return scores


def test_words_are_lower_case_runs_of_word_characters() -> None:
    assert words.tokens("Don't STOP: os.path_join, É2!") == ["don", "t", "stop", "os", "path_join", "é2"]
    assert words.tokens(" ... ") == []


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


@given(groups, st.sampled_from([1, 40, 1 << 19]))
def test_groups_scored_together_get_what_each_gets_by_the_formula_to_the_last_bit(
    found: list[tuple[str, list[str]]], letters: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexical, "_LETTERS", letters)
        scores = lexical.score([query for query, _ in found], [documents for _, documents in found])
    assert scores.bm25.tolist() == [one for group in found for one in one_by_one(*group)]
    assert scores.length.tolist() == [len(text) for _, documents in found for text in documents]
    shares = [
        len(wanted & {*words.tokens(text)}) / len(wanted) if wanted else 0.0
        for query, documents in found
        for wanted in [{*words.tokens(query)}]
        for text in documents
    ]
    assert scores.overlap.tolist() == shares


@given(st.lists(odd, max_size=5))
def test_texts_cut_together_have_the_words_of_each(found: list[str]) -> None:
    cut = words.cut(found)
    spelled = ["".join(map(chr, cut.letters[begin:end])) for begin, end in zip(cut.begins, cut.ends, strict=True)]
    assert spelled == [word for text in found for word in words.tokens(text)]
    assert cut.counts.tolist() == [len(words.tokens(text)) for text in found]


def test_words_of_one_key_are_told_apart_by_their_letters() -> None:
    cut = words.cut(["stone store", "a" * 5 + "b" * (1 << 10) + "a", "stone"])
    assert cut.keys[0] == cut.keys[1]
    first = np.array([0, 0, 0])
    assert words.same(cut, first, np.array([1, 2, 3])).tolist() == [False, False, True]
