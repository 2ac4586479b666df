"""Scorers without a model, to stand beside a reranker: BM25, word overlap, length.

Each gives one float per document of a group (higher = ranked earlier). Many groups are scored together, some megabytes of text at a
time: what is done to every character or word is then done by numpy at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from harness.metrics.rows import within
from harness.metrics.words import Words, cut, same, tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

_LETTERS = 1 << 19  # characters looked at together: they and their words fit a processor's cache


class Lexical(NamedTuple):
    """What the scorers give to every document, float64 of shape (documents of all groups,), group after group.

    ``length`` is the number of characters (Unicode code points): the scorer that only knows "longer is better". ``overlap`` is the
    fraction (0 to 1) of the query's distinct words that the document holds; 0.0 for a query without words.

    ``bm25`` takes the documents of the group alone for the collection, not the whole corpus. Robertson & Zaragoza 2009, "The
    Probabilistic Relevance Framework: BM25 and Beyond", eq. 3.15 without the constant factor k1 + 1, which changes no order. The idf
    is the variant that is never negative, ``ln(1 + (N - n + 0.5) / (n + 0.5))`` (as in Lucene): a word in every document of a small
    group must not count against a document. A word that stands twice in the query counts twice. 0.0 when the query has no word.
    """

    length: Floats
    overlap: Floats
    bm25: Floats


def score(queries: Sequence[str], documents: Sequence[Sequence[str]], k1: float = 1.2, b: float = 0.75) -> Lexical:
    """Score the documents of each query."""
    wanted = [_counted(tokens(query)) for query in queries]
    sizes = np.array([len(its) for its in documents], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    found = Lexical(*np.zeros((3, int(sizes.sum()))))
    found.length[:] = [len(text) for its in documents for text in its]
    for groups in _parts(wanted, documents):
        part = _Part.of([wanted[group] for group in groups], [documents[group] for group in groups])
        places = np.repeat(starts[groups], part.sizes) + within(part.sizes)
        found.overlap[places], found.bm25[places] = part.scores(k1, b)
    return found


def bm25_scores(query: str, documents: Sequence[str], k1: float = 1.2, b: float = 0.75) -> list[float]:
    """BM25 of one query's documents; empty for no documents."""
    found: list[float] = score([query], [documents], k1, b).bm25.tolist()
    return found


def overlap_scores(query: str, documents: Sequence[str]) -> list[float]:
    """Word overlap of one query's documents."""
    found: list[float] = score([query], [documents]).overlap.tolist()
    return found


def length_scores(documents: Sequence[str]) -> list[float]:
    """Length of each document."""
    found: list[float] = score([""], [documents]).length.tolist()
    return found


def _counted(words: list[str]) -> dict[str, int]:
    """As a ``Counter``, which takes longer to make than a query is long."""
    found: dict[str, int] = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return found


def _parts(wanted: Sequence[dict[str, int]], documents: Sequence[Sequence[str]]) -> Iterator[list[int]]:
    """The places of groups that are looked at together, those with the most distinct words in the query first."""
    part: list[int] = []
    letters = 0
    for group in sorted(range(len(wanted)), key=lambda place: len(wanted[place]), reverse=True):
        part.append(group)
        letters += sum(map(len, documents[group]))
        if letters >= _LETTERS:
            yield part
            part, letters = [], 0
    if part:
        yield part


class _Part(NamedTuple):
    """Some groups, the number of distinct query words falling, and all their words: those of the documents, then those of the queries.

    ``times`` is how often each distinct word stands in its query; ``sizes`` the documents and ``asked`` the distinct words of each
    group; ``lengths`` the words of each document.
    """

    words: Words
    times: Floats
    sizes: Integers
    asked: Integers
    lengths: Integers

    @classmethod
    def of(cls, wanted: Sequence[dict[str, int]], documents: Sequence[Sequence[str]]) -> _Part:
        texts = [text for its in documents for text in its]
        words = cut([*texts, *map(" ".join, wanted)])
        return cls(
            words,
            np.array([times for its in wanted for times in its.values()], dtype=np.float64),
            np.array(list(map(len, documents)), dtype=np.int64),
            np.array(list(map(len, wanted)), dtype=np.int64),
            words.counts[: len(texts)],
        )

    def scores(self, k1: float, b: float) -> tuple[Floats, Floats]:
        """Overlap and BM25 of each document: the first word of every query, then the second of those that have one, and so on."""
        group = np.repeat(np.arange(len(self.sizes)), self.sizes)  # of each document
        words = _per_group(self.lengths, group, self.sizes)
        mean = words / np.maximum(self.sizes, 1)
        norms = k1 * (1 - b + b * self.lengths / np.where(words > 0, mean, 1.0)[group])
        held, bm25 = np.zeros((2, len(group)))
        first = np.cumsum(self.asked) - self.asked
        for number in range(int(self.asked.max(initial=0))):
            groups = int(np.count_nonzero(self.asked > number))
            sizes, its = self.sizes[:groups], group[: int(self.sizes[:groups].sum())]
            frequency = self._frequency(first[:groups] + number, words[:groups], len(its))
            holding = _per_group(frequency > 0, its, sizes)
            odds = 1 + (sizes - holding + 0.5) / (holding + 0.5)
            idf = np.array([math.log(one) for one in odds.tolist()])
            weight = np.repeat(self.times[first[:groups] + number] * idf, sizes)
            bm25[: len(its)] += weight * frequency / (frequency + norms[: len(its)])
            held[: len(its)] += frequency > 0
        return held / np.maximum(self.asked, 1)[group], bm25

    def _frequency(self, asked: Integers, words: Integers, documents: int) -> Floats:
        """How often one word of each query stands in each document of its group; ``words`` says how many the group has."""
        query = int(self.lengths.sum()) + asked
        near = np.flatnonzero(self.words.keys[: int(words.sum())] == np.repeat(self.words.keys[query], words))
        group = np.searchsorted(np.cumsum(words), near, side="right")
        held = near[same(self.words, near, query[group])]
        document = np.searchsorted(np.cumsum(self.lengths), held, side="right")
        return np.bincount(document, minlength=documents).astype(np.float64)


def _per_group(values: NDArray[np.generic], group: Integers, sizes: Integers) -> Integers:
    """Sums of whole numbers over the documents of each group."""
    return np.bincount(group, weights=values, minlength=len(sizes)).astype(np.int64)
