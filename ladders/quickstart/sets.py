"""From texts to query-candidate groups: which pages and synsets are held out, what is relevant, and which negatives are hard.

Relevance is by construction, not by human judges. A group's query is a section heading (`python-section`), the first
sentence of a description (`python-term`), or a question about a word (`wordnet-word`). Gain 2: the first passage below
that heading, the rest of that description, the definition of that word. Gain 1: later passages of the same section or
description, the definitions of the word's direct hypernym and hyponyms. Gain 0: passages of the same page or sister
words, BM25 hits for the query, and random texts.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from corpus import Entry, Synset, passages, sentences

EVALUATION_SHARE = 0.15
PAIR_SHARE = 0.04
CANDIDATES = (10, 15)
_VAGUE_TITLES = {
    "introduction", "overview", "examples", "example", "notes", "summary", "references", "other", "usage", "basic usage",
    "classes", "functions", "exceptions", "acknowledgements", "optimizations", "build and c api changes", "new features",
    "improved modules", "deprecated", "removed", "porting to python", "background", "description", "constants",
}  # fmt: skip


@dataclass(frozen=True)
class Group:
    """A query, its relevant texts with their gains, and texts that are not relevant, hardest kinds first; all keyed by text id."""

    query_id: str
    query: str
    gains: dict[str, int]
    near: tuple[str, ...]
    lexical: tuple[str, ...]


class Bm25:
    """BM25 (k1 = 1.2, b = 0.75, idf = ln(1 + (N - n + 0.5) / (n + 0.5))) over a fixed list of texts, for finding hard negatives."""

    def __init__(self, texts: list[str]) -> None:
        counts = [Counter(words(text)) for text in texts]
        lengths = np.array([sum(count.values()) for count in counts], dtype=np.float64)
        norm = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
        postings: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for row, count in enumerate(counts):
            for word, times in count.items():
                postings[word][0].append(row)
                postings[word][1].append(times)
        self._size = len(texts)
        self._weights = {}
        for word, (rows, times) in postings.items():
            index, times_array = np.array(rows), np.array(times)
            idf = math.log(1 + (self._size - len(rows) + 0.5) / (len(rows) + 0.5))
            self._weights[word] = (index, idf * times_array * 2.2 / (times_array + norm[index]))

    def best(self, query: str, count: int) -> list[int]:
        """Row numbers of the `count` best texts, best first, without texts that share no word with the query."""
        scores = np.zeros(self._size)
        for word in set(words(query)):
            if word in self._weights:
                rows, weights = self._weights[word]
                scores[rows] += weights
        order = np.argsort(-scores, kind="stable")[:count]
        return [int(row) for row in order if scores[row] > 0]


def words(text: str) -> list[str]:
    """Lower-case runs of letters and digits."""
    return re.findall(r"[a-z0-9]+", text.lower())


def split_pages(entries: list[Entry], seed: int) -> dict[str, str]:
    """Page name to `train`, `evaluation` or `pairs`, drawn from each top folder alike; of the FAQ a third is evaluation."""
    by_folder: dict[str, list[str]] = defaultdict(list)
    for page in sorted({entry.page for entry in entries}):
        by_folder[page.split("/")[0]].append(page)
    parts = {}
    for folder, pages in sorted(by_folder.items()):
        random.Random(f"{seed} {folder}").shuffle(pages)
        held = round(len(pages) * (0.34 if folder == "faq" else EVALUATION_SHARE))
        extra = round(len(pages) * PAIR_SHARE)
        for number, page in enumerate(pages):
            parts[page] = "evaluation" if number < held else "pairs" if number < held + extra else "train"
    return parts


def python_groups(entries: list[Entry], seed: int) -> tuple[list[Group], dict[str, str]]:
    """Groups from the given pages and every text of them by id. Texts that occur twice are kept once."""
    texts, own, by_page, by_title, seen = {}, [], defaultdict(list), defaultdict(set), set()
    for number, entry in enumerate(entries):
        query, parts = _query_and_passages(entry)
        ids = []
        for rank, text in enumerate(parts):
            if text.lower() not in seen:
                seen.add(text.lower())
                ids.append(f"python:{entry.page}:{number}:{rank}")
                texts[ids[-1]] = text
        by_page[entry.page] += ids
        by_title[entry.title] |= set(ids)
        own.append((entry, query, ids))
    keys = list(texts)
    index = Bm25([texts[key] for key in keys])
    groups, asked = [], set()
    for entry, query, ids in own:
        if not query or not ids or query.lower() in asked or query.lower() in seen:
            continue
        asked.add(query.lower())
        dice = random.Random(f"{seed} {ids[0]}")
        relatives = by_title[entry.title]
        page = [key for key in by_page[entry.page] if key not in relatives]
        lexical = [keys[row] for row in index.best(query, 24)]
        groups.append(
            Group(
                f"python-{entry.kind}:{entry.page}:{ids[0].split(':')[2]}",
                query,
                {key: 2 if place == 0 else 1 for place, key in enumerate(ids[:4])},
                tuple(dice.sample(page, min(8, len(page)))),
                tuple(key for key in lexical if key not in relatives),
            )
        )
    return groups, texts


def _query_and_passages(entry: Entry) -> tuple[str, list[str]]:
    """The query that an entry gives ("" for none) and its passages without the query's own sentence."""
    title = entry.title.strip()
    if entry.kind == "section":
        fits = len(title.split()) >= 3 and title.lower() not in _VAGUE_TITLES and not re.match(r"[\w.]+( -)", title)
        return (title if fits else ""), passages(entry.paragraphs)
    first, *rest = sentences(entry.paragraphs[0])
    parts = passages([*([" ".join(rest)] if rest else []), *entry.paragraphs[1:]])
    if 5 <= len(first.split()) <= 24 and parts:
        return first, parts
    return "", passages(entry.paragraphs)


def wordnet_groups(
    synsets: dict[str, Synset], seed: int, count: int, avoid: set[str]
) -> tuple[list[Group], dict[str, str]]:
    """At most `count` groups of nouns and verbs drawn by chance, and the texts they use by id; no synset of `avoid` is used."""
    dice = random.Random(f"{seed} wordnet {count}")
    texts = {f"wordnet:{key}": _gloss(synset) for key, synset in synsets.items() if key not in avoid}
    keys = list(texts)
    index = Bm25([texts[key] for key in keys])
    groups: list[Group] = []
    drawn = [key for key in synsets if key not in avoid and _fits(synsets[key])]
    for key in dice.sample(drawn, len(drawn)):
        if len(groups) == count:
            break
        group = _word_group(synsets, key, texts, dice, lambda query: [keys[row] for row in index.best(query, 40)])
        if group:
            groups.append(group)
    used = {key for group in groups for key in (*group.gains, *group.near, *group.lexical)}
    return groups, {key: texts[key] for key in sorted(used)}


def _gloss(synset: Synset) -> str:
    return synset.definition + (f"; {synset.examples[0]}" if synset.examples else "")


def _fits(synset: Synset) -> bool:
    return bool(synset.parents) and len(synset.definition.split()) >= 5 and len(synset.lemmas[0]) > 3


def _word_group(synsets, key, texts, dice, search):  # type: ignore[no-untyped-def]
    synset = synsets[key]
    lemma = dice.choice(synset.lemmas)
    query = f"what is {lemma}" if key[0] == "n" else f"what does it mean to {lemma}"
    relatives = [*synset.parents[:1], *dice.sample(synset.children, min(2, len(synset.children)))]
    gains = {f"wordnet:{key}": 2}
    gains |= {f"wordnet:{name}": 1 for name in relatives if f"wordnet:{name}" in texts}
    family = {key, *synset.parents, *synset.children}
    sisters = [name for parent in synset.parents for name in synsets[parent].children if name not in family]
    lexical = search(f"{lemma} {' '.join(synset.lemmas)}") + search(synset.definition)

    def keep(name: str) -> bool:
        other = synsets.get(name.removeprefix("wordnet:"))
        return other is not None and other.key not in family and not set(other.lemmas) & set(synset.lemmas)

    near = [f"wordnet:{name}" for name in sisters if keep(name) and f"wordnet:{name}" in texts]
    lexical = [name for name in dict.fromkeys(lexical) if keep(name) and name in texts]
    dice.shuffle(lexical)
    if len(lexical) < 5 or f"wordnet:{key}" not in texts:
        return None
    return Group(f"wordnet-word:{key}", query, gains, tuple(dice.sample(near, min(4, len(near)))), tuple(lexical[:12]))
