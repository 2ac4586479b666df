"""From texts to groups of a query and candidates: which pages and synsets are held out, what is relevant, which negatives are hard.

Relevance is by construction, not by human judges. A query is a section's heading (``python-section``), the first
sentence of a description (``python-term``) or a question about a word (``wordnet-word``). Gain 2: the first passage
below that heading, the first passage of the rest of that description, the definition of that word. Gain 1: later
passages of the same section or description, the definitions of the word's hypernym and of two hyponyms.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ladders.quickstart.corpus import Entry, Synset, passages, sentences

EVALUATION_SHARE = 0.15
FAQ_EVALUATION_SHARE = 0.34
PAIR_SHARE = 0.04
SHORTEST_GLOSS_WORDS = 4
_VAGUE_TITLES = {
    "build and c api changes", "new, improved, and deprecated modules", "changes in the python api", "other language changes",
}  # fmt: skip


@dataclass(frozen=True)
class Group:
    """A query, the ids of its relevant texts with their gains, and ids of hard negatives, of the neighbourhood and by BM25."""

    query_id: str
    query: str
    gains: dict[str, int]
    near: tuple[str, ...]
    lexical: tuple[str, ...]


@dataclass(frozen=True)
class Pool:
    """Groups and every text that they may use, by id."""

    groups: list[Group]
    texts: dict[str, str]


class Bm25:
    """BM25 (k1 = 1.2, b = 0.75, idf = ln(1 + (N - n + 0.5) / (n + 0.5))) over fixed texts, by an index: for mining negatives."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(words(text)) for text in texts]
        lengths = np.array([count.total() for count in counts], dtype=np.float64)
        norms = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for row, count in enumerate(counts):
            for word, times in count.items():
                postings[word].append((row, times))
        self._size = len(texts)
        self._weights = {}
        for word, found in postings.items():
            rows, times = np.array(found).T
            idf = math.log(1 + (self._size - len(rows) + 0.5) / (len(rows) + 0.5))
            self._weights[word] = (rows, idf * times / (times + norms[rows]))

    def best(self, query: str, count: int) -> list[int]:
        """Rows of the ``count`` best texts, best first, without those that share no word with the query."""
        scores = np.zeros(self._size)
        for word in sorted(
            set(words(query)) & self._weights.keys()
        ):  # sorted: one order of the sums, whatever the hash seed
            rows, weights = self._weights[word]
            scores[rows] += weights
        return [int(row) for row in np.argsort(-scores, kind="stable")[:count] if scores[row] > 0]


def words(text: str) -> list[str]:
    """Lower-case runs of letters and digits."""
    return re.findall(r"[a-z0-9]+", text.lower())


def split_pages(entries: Sequence[Entry], seed: int) -> dict[str, str]:
    """Page name to ``train``, ``evaluation`` or ``pairs``; the same shares of every top folder, but of the FAQ a third for evaluation."""
    by_folder: dict[str, list[str]] = defaultdict(list)
    for page in sorted({entry.page for entry in entries}):
        by_folder[page.split("/", maxsplit=1)[0]].append(page)
    parts = {}
    for folder, pages in sorted(by_folder.items()):
        random.Random(f"{seed} {folder}").shuffle(pages)
        held = round(len(pages) * (FAQ_EVALUATION_SHARE if folder == "faq" else EVALUATION_SHARE))
        extra = round(len(pages) * PAIR_SHARE)
        for number, page in enumerate(pages):
            parts[page] = "evaluation" if number < held else "pairs" if number < held + extra else "train"
    return parts


def python_pool(entries: Sequence[Entry], seed: int) -> Pool:
    """All groups that these entries give. A text that occurs twice is kept once, where it stands first."""
    texts: dict[str, str] = {}
    by_page: dict[str, list[str]] = defaultdict(list)
    by_title: dict[str, set[str]] = defaultdict(set)
    asked: list[tuple[Entry, str, list[str]]] = []
    seen: set[str] = set()
    for entry in entries:
        query, parts = _query_and_passages(entry)
        ids = []
        for text in parts:
            if text.lower() not in seen:
                seen.add(text.lower())
                ids.append(f"python:{entry.page}:{len(by_page[entry.page])}")
                by_page[entry.page].append(ids[-1])
                texts[ids[-1]] = text
        by_title[entry.title] |= set(ids)
        if query and ids:
            asked.append((entry, query, ids))
    keys = list(texts)
    index = Bm25(list(texts.values()))
    groups = []
    for entry, query, ids in asked:
        if query.lower() in seen:
            continue
        seen.add(query.lower())
        own = by_title[entry.title]
        page = [key for key in by_page[entry.page] if key not in own]
        near = random.Random(f"{seed} {ids[0]}").sample(page, min(8, len(page)))
        lexical = [keys[row] for row in index.best(query, 24) if keys[row] not in own]
        gains = {key: 2 if place == 0 else 1 for place, key in enumerate(ids[:4])}
        name = f"python-{entry.kind}:{ids[0].removeprefix('python:')}"
        groups.append(Group(name, query, gains, tuple(near), tuple(lexical)))
    return Pool(groups, texts)


def _query_and_passages(entry: Entry) -> tuple[str, list[str]]:
    """The query that an entry gives ("" for none), and its passages, without the sentence that became the query."""
    title = entry.title.strip()
    if entry.kind == "section":
        asks = len(title.split()) >= 3 and title.lower() not in _VAGUE_TITLES and " - " not in title
        return (title if asks else ""), passages(entry.paragraphs)
    first, *rest = sentences(entry.paragraphs[0])
    parts = passages([" ".join(rest), *entry.paragraphs[1:]])
    if 5 <= len(first.split()) <= 24 and parts:
        return first, parts
    return "", passages(entry.paragraphs)


def wordnet_pool(synsets: Mapping[str, Synset], seed: int, count: int, avoid: Collection[str]) -> Pool:
    """At most ``count`` groups about nouns and verbs drawn by chance, and the texts they use; no text id of ``avoid`` is used."""
    dice = random.Random(f"{seed} {count}")
    every = {f"wordnet:{key}": _gloss(synset) for key, synset in synsets.items()}
    texts = {key: text for key, text in every.items() if key not in avoid and len(text.split()) >= SHORTEST_GLOSS_WORDS}
    keys = list(texts)
    index = Bm25(list(texts.values()))

    def search(query: str) -> list[str]:
        return [keys[row] for row in index.best(query, 40)]

    drawn = [key for key, synset in synsets.items() if f"wordnet:{key}" in texts and _is_askable(synset)]
    groups: list[Group] = []
    for key in dice.sample(drawn, len(drawn)):
        if len(groups) == count:
            break
        group = _word_group(synsets, synsets[key], texts, dice, search)
        if len(group.lexical) >= 5:
            groups.append(group)
    used = sorted({key for group in groups for key in (*group.gains, *group.near, *group.lexical)})
    return Pool(groups, {key: texts[key] for key in used})


def _gloss(synset: Synset) -> str:
    return synset.definition + (f"; {synset.examples[0]}" if synset.examples else "")


def _is_askable(synset: Synset) -> bool:
    return bool(synset.parents) and len(synset.definition.split()) >= 5 and len(synset.lemmas[0]) > 3


def _word_group(
    synsets: Mapping[str, Synset],
    synset: Synset,
    texts: Mapping[str, str],
    dice: random.Random,
    search: Callable[[str], list[str]],
) -> Group:
    lemma = dice.choice(synset.lemmas)
    query = f"what is {lemma}" if synset.key[0] == "n" else f"what does it mean to {lemma}"
    relatives = [*synset.parents[:1], *dice.sample(synset.children, min(2, len(synset.children)))]
    gains = {f"wordnet:{synset.key}": 2}
    gains |= {f"wordnet:{key}": 1 for key in relatives if f"wordnet:{key}" in texts}
    family = {synset.key, *synset.parents, *synset.children}

    def is_other(name: str) -> bool:
        key = name.removeprefix("wordnet:")
        return name in texts and key not in family and not set(synsets[key].lemmas) & set(synset.lemmas)

    sisters = [f"wordnet:{key}" for parent in synset.parents for key in synsets[parent].children]
    near = [name for name in dict.fromkeys(sisters) if is_other(name)]
    hits = search(" ".join(synset.lemmas)) + search(synset.definition)
    lexical = [name for name in dict.fromkeys(hits) if is_other(name)]
    near, lexical = dice.sample(near, min(4, len(near))), dice.sample(lexical, min(8, len(lexical)))
    return Group(f"wordnet-word:{synset.key}", query, gains, tuple(near), tuple(lexical))
