"""Many texts cut into words at once: maximal runs of letters, digits and underscores, lower-cased. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from harness.metrics.rows import within

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

WORD = re.compile(r"\w+")


class Words(NamedTuple):
    """The words of some texts in their order.

    ``letters`` holds the code points of all texts, lower-cased, a line feed around each; ``begins`` and ``ends``, of shape (words,), say
    where a word stands there, ``counts``, of shape (texts,), how many words a text has. Equal words have equal ``keys``.
    """

    letters: NDArray[np.uint32]
    begins: Integers
    ends: Integers
    counts: Integers
    keys: NDArray[np.uint32]


def tokens(text: str) -> list[str]:
    """The words of one text. No stemming and no stop words; an empty text has no words."""
    return WORD.findall(text.lower())


def cut(texts: Sequence[str]) -> Words:
    """The words of the texts: those that ``tokens`` gives."""
    lowered = [text.lower() for text in texts]
    letters = np.frombuffer("\n".join(["", *lowered, ""]).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    inside = _in_words(int(letters.max(initial=0)).bit_length())[letters]
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    begins, ends = edges[::2], edges[1::2]
    limits = 1 + np.cumsum([0, *map(len, lowered)]) + np.arange(len(lowered) + 1)
    counts = np.diff(np.searchsorted(begins, limits))
    first, last, size = letters[begins], letters[ends - 1], (ends - begins).astype(np.uint32)
    return Words(letters, begins, ends, counts, first << np.uint32(21) ^ last << np.uint32(10) ^ size)


def same(words: Words, some: Integers, others: Integers) -> NDArray[np.bool_]:
    """Whether two words are the same, pair by pair: those at the places ``some`` and those at ``others``."""
    sizes = words.ends[some] - words.begins[some]
    alike = sizes == words.ends[others] - words.begins[others]
    sizes = np.where(alike, sizes, 1)
    place = within(sizes)
    one, other = (words.letters[np.repeat(words.begins[those], sizes) + place] for those in (some, others))
    unlike: Integers = np.add.reduceat(one != other, np.cumsum(sizes) - sizes, dtype=np.int64)
    equal: NDArray[np.bool_] = alike & (unlike == 0)
    return equal


@cache
def _in_words(bits: int) -> NDArray[np.bool_]:
    """Whether a character belongs to a word, by code point, for those of so many bits."""
    table = np.zeros(1 << bits, dtype=np.bool_)
    for run in WORD.finditer("".join(map(chr, range(min(1 << bits, sys.maxunicode + 1))))):
        table[run.start() : run.end()] = True
    return table
