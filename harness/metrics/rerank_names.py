"""The names of L3's metrics: ``ndcg_at_10``, ``recall_at_3_drop``, ``map_worst``, ``sentinel.random.map``. Pure; no import of numpy.

The catalogue lists every name with the cut-off 10; any other from 1 to 9999 is written in its place and is measured when a limit
names it. A *ranking metric* is one that depends on how candidates are ranked, so it can be said of any scorer; the others
(``groups``, ``rerank_pairs_per_s``) are of the data or of the speed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

K = 10
"""The cut-off that is always measured."""

SENTINELS = ("constant", "random", "reversed", "length", "nan")
"""Scorers that know nothing of relevance. What one of them can pass decides nothing."""

SCORERS = (
    "reference",
    "source_order",
    "random",
    "oracle",
    "constant",
    "length",
    "reversed",
    "nan",
    "word_overlap",
    "bm25",
)
"""The rows beside the model, the parameter of ``row_ndcg_at_10``."""

MEANS: dict[str, tuple[str, str]] = {
    "ndcg_at_10": ("nDCG", "nDCG@10, linear gains"),
    "mrr_at_10": ("MRR", "reciprocal rank of the first relevant within 10"),
    "map": ("MAP", "average precision over the whole list"),
    "recall_at_10": ("recall", "share of the relevant that are within the first 10"),
    "precision_at_10": ("precision", "share of the first 10 that are relevant"),
    "hit_at_10": ("hit rate", "hit: 1 with a relevant one within the first 10, else 0"),
}
"""Metrics that are a mean over queries: unit and meaning."""

KINDS: dict[str, str] = {
    "": "mean {what}, expected over ties",
    "_best": "mean {what}, every tie in the best order",
    "_worst": "mean {what}, every tie in the worst order",
    "_drop": "PyTorch's {what}, less the artifact's, paired by query",
}
"""What can follow the name of a mean."""

_AGREEMENT: dict[str, tuple[str, str]] = {
    "ndcg_at_10_over_random": ("nDCG", "nDCG@10 less its expectation under random order"),
    "ndcg_at_10_over_sentinels": (
        "nDCG",
        "nDCG@10 less that of the best sentinel: constant, random, reversed or length",
    ),
    "kendall_tau_b_by_query": ("correlation", "mean over queries of Kendall's tau-b with PyTorch's ranking"),
    "overlap_at_10": ("share", "mean share of the first 10 that are among PyTorch's first 10; at 1, top-1 agreement"),
}

RANKING: dict[str, tuple[str, str]] = {
    **{
        name + kind: (unit, words.format(what=what))
        for kind, words in KINDS.items()
        for name, (unit, what) in MEANS.items()
    },
    **_AGREEMENT,
}
"""Every ranking metric at the cut-off 10: unit and meaning."""

HEADLINE = ("ndcg_at_10", "mrr_at_10", "map")
"""What the rows beside the model show."""

_CUT = re.compile(r"((?:row_)?(?:ndcg|mrr|recall|precision|hit|overlap)_at_)([1-9][0-9]{0,3})((?:_[a-z]+)*)")


def pattern(name: str) -> str:
    """The name at any cut-off, as a regular expression."""
    return name.replace(f"_at_{K}", "_at_[1-9][0-9]{0,3}")


SENTINEL = re.compile(rf"sentinel\.({'|'.join(SENTINELS)})\.({'|'.join(map(pattern, RANKING))})")
"""A sentinel's value of a ranking metric; the groups are the two."""


class Cut(NamedTuple):
    """A name at a cut-off: the catalogue's name for it, and k; ``None`` where the metric has none."""

    base: str
    k: int | None


def cut(name: str) -> Cut:
    """``recall_at_3_drop`` is ``recall_at_10_drop`` at 3; a name without a cut-off is itself. A parameter after a dot stays off."""
    plain = name.partition(".")[0]
    found = _CUT.fullmatch(plain)
    return Cut(plain, None) if found is None else Cut(f"{found[1]}{K}{found[3]}", int(found[2]))


def is_ranking(name: str) -> bool:
    """Whether a metric can be said of any scorer: ``ndcg_at_5_drop`` can, ``groups`` and ``row_map.bm25`` cannot."""
    return "." not in name and cut(name).base in RANKING


def is_drop(name: str) -> bool:
    """Whether a metric is a difference to PyTorch, which has a width to be compared with what is allowed."""
    return is_ranking(name) and name.endswith("_drop")


_WORDS = {
    "ndcg": "nDCG",
    "mrr": "MRR",
    "map": "MAP",
    "overlap": "overlap",
    "kendall_tau_b_by_query": "Kendall tau-b by query",
}


def spoken(name: str) -> str:
    """A ranking metric as people call it: ``nDCG@5 drop``, ``MAP``, ``recall@3 worst``."""
    if name in _WORDS:
        return _WORDS[name]
    base, _, kind = name.partition("_at_")
    k, _, kind = kind.partition("_") if kind else ("", "", "")
    if not k:
        base, _, kind = name.partition("_")
    return f"{_WORDS.get(base, base)}{f'@{k}' if k else ''}{' ' if kind else ''}{kind.replace('_', ' ')}"


def asked(limits: Iterable[str]) -> tuple[str, ...]:
    """The ranking metrics that some limits need: those named, also for a sentinel."""
    plain = (found[2] if (found := SENTINEL.fullmatch(name)) else name for name in limits)
    return tuple(dict.fromkeys(name for name in plain if is_ranking(name)))


def cuts(limits: Iterable[str]) -> tuple[int, ...]:
    """The cut-offs to measure: 10, and those that limits name (``row_map.bm25`` names none), smallest first."""
    named = (cut(name if not (found := SENTINEL.fullmatch(name)) else found[2]).k for name in limits)
    return tuple(sorted({K, *(k for k in named if k is not None)}))


def names(cutoffs: Iterable[int]) -> tuple[str, ...]:
    """Every ranking metric at these cut-offs, in the order of the catalogue; overlap at 1 too."""
    every = sorted(set(cutoffs))
    found: list[str] = []
    for base in RANKING:
        ks = sorted({1, *every}) if base.startswith("overlap") else every
        found += [base.replace(f"_at_{K}", f"_at_{k}") for k in ks] if f"_at_{K}" in base else [base]
    return tuple(found)
