"""The held-out rows that are shipped: the evaluation groups, the parity and perf pairs, and the proof that training saw neither."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ladders.quickstart.sets import Group, Pool

CANDIDATES = (10, 15)
GROUPS_BY_KIND = {"python-section": 30, "python-term": 30, "wordnet-word": 40}
NEAR, LEXICAL = 2, 4
GROUPS_A_PAGE = 2
PAIRS_BY_LENGTH = {"short": 12, "medium": 24, "long": 12}
LONG_WORDS = (110, 130, 150, 170, 190, 210, 240, 270, 300, 340, 400, 500)

Row = dict[str, Any]


def evaluation_rows(pools: Sequence[Pool], seed: int) -> list[Row]:
    """The groups as they are written to ``groups.jsonl``, in an order drawn by chance."""
    dice = random.Random(f"{seed} evaluation")
    rows: list[Row] = []
    for pool in pools:
        taken: Counter[str] = Counter()
        for group in dice.sample(pool.groups, len(pool.groups)):
            kind, page, *_ = group.query_id.split(":")
            full = taken[kind] == GROUPS_BY_KIND[kind] or taken[page] == GROUPS_A_PAGE
            if full or (kind == "python-section" and len(group.gains) < 2):
                continue
            taken.update((kind, page))
            rows.append(_row(group, pool, dice))
    dice.shuffle(rows)
    return rows


def _row(group: Group, pool: Pool, dice: random.Random) -> Row:
    """One group with all its relevant texts, some hard negatives, and others of about the same length drawn from the pool.

    An "other" is, of eight drawn, the one whose length is nearest to that of a relevant text: length should say little.
    """
    size = dice.randint(*CANDIDATES)
    chosen = {pool.texts[key]: key for key in group.gains}
    hard = [*group.near[:NEAR], *dice.sample(group.lexical[:10], min(LEXICAL, len(group.lexical[:10])))]
    for key in hard:
        chosen.setdefault(pool.texts[key], key)
    keys = list(pool.texts)
    related = {*group.gains, *group.near, *group.lexical}
    while len(chosen) < size:
        wanted = len(pool.texts[dice.choice(list(group.gains))])
        drawn = [key for key in dice.sample(keys, 8) if key not in related]
        key = min(drawn, key=lambda name: abs(len(pool.texts[name]) - wanted))
        chosen.setdefault(pool.texts[key], key)
    candidates = [{"id": key, "text": text, "gain": group.gains.get(key, 0)} for text, key in chosen.items()]
    dice.shuffle(candidates)
    return {"query_id": group.query_id, "query": group.query, "candidates": candidates}


def pair_rows(python: Pool, words: Pool, seed: int) -> list[Row]:
    """The pairs of ``pairs.jsonl``: relevant and BM25 hits by turns; the long documents are runs of one page's passages."""
    dice = random.Random(f"{seed} pairs")
    groups = [group for group in dice.sample(python.groups, len(python.groups)) if group.lexical]
    pages: Counter[str] = Counter()
    rows: list[Row] = []
    for group in groups:
        page = group.query_id.split(":")[1]
        medium = len(rows) < PAIRS_BY_LENGTH["medium"]
        if pages[page] == (3 if medium else 6):
            continue
        key = group.lexical[0] if len(rows) % 2 else next(iter(group.gains))
        text = python.texts[key] if medium else _run(python, key, LONG_WORDS[len(rows) - PAIRS_BY_LENGTH["medium"]])
        if text:
            pages[page] += 1
            rows.append({"query": group.query, "document": text})
        if len(rows) == PAIRS_BY_LENGTH["medium"] + PAIRS_BY_LENGTH["long"]:
            break
    for number, group in enumerate(words.groups[: PAIRS_BY_LENGTH["short"]]):
        key = group.lexical[0] if number % 2 else next(iter(group.gains))
        rows.append({"query": group.query, "document": words.texts[key]})
    dice.shuffle(rows)
    return rows


def _run(pool: Pool, key: str, least_words: int) -> str:
    """Passages of one page from ``key`` on until there are ``least_words`` words; "" when the page ends before."""
    start, page = key.rsplit(":", 1)[1], key.rsplit(":", 1)[0]
    parts: list[str] = []
    number = int(start)
    while f"{page}:{number}" in pool.texts and len(" ".join(parts).split()) < least_words:
        parts.append(pool.texts[f"{page}:{number}"])
        number += 1
    text = " ".join(parts)
    return text if len(text.split()) >= least_words else ""


def held_out_texts(groups: Iterable[Row], pairs: Iterable[Row]) -> set[str]:
    """Every query, candidate and document of the shipped rows, in lower case."""
    texts = {text for row in groups for text in (row["query"], *(each["text"] for each in row["candidates"]))}
    texts |= {text for row in pairs for text in row.values()}
    return {text.lower() for text in texts}


def without_leaks(pool: Pool, held_out: set[str]) -> Pool:
    """``pool`` without the texts and queries in which a held-out text occurs, and without groups that lose their best text."""
    found = _leaking(held_out, [*pool.texts.values(), *(group.query for group in pool.groups)])
    texts = {key: text for key, text in pool.texts.items() if text not in found}
    groups = [
        Group(
            group.query_id,
            group.query,
            {key: gain for key, gain in group.gains.items() if key in texts},
            tuple(key for key in group.near if key in texts),
            tuple(key for key in group.lexical if key in texts),
        )
        for group in pool.groups
        if group.query not in found and all(key in texts for key, gain in group.gains.items() if gain == 2)
    ]
    left = "\n".join([*texts.values(), *(group.query for group in groups)]).lower()
    assert not any(text in left for text in held_out), "a held-out text occurs in a training text"
    return Pool(groups, texts)


def _leaking(held_out: set[str], texts: Sequence[str]) -> set[str]:
    everything = "\n".join(texts).lower()
    return {text for wanted in held_out if wanted in everything for text in texts if wanted in text.lower()}


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """One JSON object a line, UTF-8."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")
