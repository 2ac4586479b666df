"""Scorers without a model, to stand beside a reranker: BM25, word overlap, length.

Each gives one float per document of one group (higher = ranked earlier). Pure Python, no dependency.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"\w+")


def tokens(text: str) -> list[str]:
    """The words of ``text``: maximal runs of letters, digits and underscores (``_WORD``), lower-cased.

    No stemming and no stop words. An empty text has no words.
    """
    return _WORD.findall(text.lower())


def bm25_scores(query: str, documents: Sequence[str], k1: float = 1.2, b: float = 0.75) -> list[float]:
    """BM25 of each document, where the collection is ``documents`` alone (one group, not the whole corpus).

    Robertson & Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond", eq. 3.15 without the
    constant factor k1 + 1, which changes no order. The idf is the variant that is never negative,
    ``ln(1 + (N - n + 0.5) / (n + 0.5))`` (as in Lucene): a word in every document of a small group must not
    count against a document. A word that stands twice in the query counts twice.

    Returns a list of len(documents) floats >= 0; empty for no documents; all 0.0 when the query has no word.
    """
    counts = [Counter(tokens(document)) for document in documents]
    lengths = [count.total() for count in counts]
    mean_length = sum(lengths) / len(lengths) if any(lengths) else 1.0
    norms = [k1 * (1 - b + b * length / mean_length) for length in lengths]
    scores = [0.0] * len(counts)
    for word, times in Counter(tokens(query)).items():
        holding = sum(1 for count in counts if word in count)
        idf = math.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
        for index, count in enumerate(counts):
            frequency = count[word]
            if frequency:
                scores[index] += times * idf * frequency / (frequency + norms[index])
    return scores


def overlap_scores(query: str, documents: Sequence[str]) -> list[float]:
    """Fraction (0 to 1) of the query's distinct words that the document holds; 0.0 for a query without words."""
    wanted = set(tokens(query))
    return [len(wanted.intersection(tokens(document))) / len(wanted) if wanted else 0.0 for document in documents]


def length_scores(documents: Sequence[str]) -> list[float]:
    """Number of characters (Unicode code points) of each document: the scorer that only knows "longer is better"."""
    return [float(len(document)) for document in documents]
