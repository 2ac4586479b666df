"""Scorers without a model, to stand beside a reranker: BM25, word overlap, length.

Each gives one float per document of one group (higher = ranked earlier). Pure Python, no dependency.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_WORD = re.compile(r"\w+")


def tokens(text: str) -> list[str]:
    """The words of ``text``: maximal runs of letters, digits and underscores (``_WORD``), lower-cased.

    No stemming and no stop words. An empty text has no words.
    """
    return _WORD.findall(text.lower())


class Matches(NamedTuple):
    """How often each distinct word of a query stands in it and in every document, and the number of words of each document."""

    in_query: dict[str, int]
    in_documents: dict[str, list[int]]
    lengths: list[int]


def matches(query: str, documents: Sequence[str]) -> Matches:
    """Look for the words of the query in the documents, each of which is cut into words once."""
    in_query = Counter(tokens(query))
    in_documents = {word: [0] * len(documents) for word in in_query}
    lengths = []
    for place, document in enumerate(documents):
        lowered = document.lower()
        words = _WORD.findall(lowered)
        lengths.append(len(words))
        for word, counts in in_documents.items():
            if word in lowered:  # a quick look that most words do not pass
                counts[place] = words.count(word)
    return Matches(dict(in_query), in_documents, lengths)


def bm25(found: Matches, k1: float = 1.2, b: float = 0.75) -> list[float]:
    """BM25 of each document, where the collection is the documents alone (one group, not the whole corpus).

    Robertson & Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond", eq. 3.15 without the
    constant factor k1 + 1, which changes no order. The idf is the variant that is never negative,
    ``ln(1 + (N - n + 0.5) / (n + 0.5))`` (as in Lucene): a word in every document of a small group must not
    count against a document. A word that stands twice in the query counts twice.

    Returns a float >= 0 a document; empty for no documents; all 0.0 when the query has no word.
    """
    lengths = found.lengths
    mean_length = sum(lengths) / len(lengths) if any(lengths) else 1.0
    norms = [k1 * (1 - b + b * length / mean_length) for length in lengths]
    scores = [0.0] * len(lengths)
    for word, times in found.in_query.items():
        counts = found.in_documents[word]
        holding = len(counts) - counts.count(0)
        idf = math.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
        for index, frequency in enumerate(counts):
            if frequency:
                scores[index] += times * idf * frequency / (frequency + norms[index])
    return scores


def overlap(found: Matches) -> list[float]:
    """Fraction (0 to 1) of the query's distinct words that each document holds; 0.0 for a query without words."""
    if not found.in_query:
        return [0.0] * len(found.lengths)
    return [(len(row) - row.count(0)) / len(row) for row in zip(*found.in_documents.values(), strict=True)]


def bm25_scores(query: str, documents: Sequence[str], k1: float = 1.2, b: float = 0.75) -> list[float]:
    """``bm25`` of a query and its documents."""
    return bm25(matches(query, documents), k1, b)


def overlap_scores(query: str, documents: Sequence[str]) -> list[float]:
    """``overlap`` of a query and its documents."""
    return overlap(matches(query, documents))


def length_scores(documents: Sequence[str]) -> list[float]:
    """Number of characters (Unicode code points) of each document: the scorer that only knows "longer is better"."""
    return [float(len(document)) for document in documents]
