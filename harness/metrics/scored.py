"""Scorers on the same groups: the value that each ranking metric has in each group, for any scorer in the artifact's place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from harness.metrics import rerank_names
from harness.metrics.agreement import kendall_tau_b, overlap
from harness.metrics.ranking import Spread, spreads
from harness.metrics.rerank_names import K, cut

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Scores = Sequence[Floats]

_SPREAD = {"_best": 1, "_worst": 2}


@dataclass(frozen=True)
class Bench:
    """Judged groups with PyTorch's scores and what every difference is taken to. A row of scores is of shape (candidates,).

    ``best_sentinel`` is by cut-off the nDCG of the sentinel whose mean is greatest, float64 of shape (groups,).
    """

    gains: Scores
    reference: Scores
    cuts: tuple[int, ...]
    of_reference: Mapping[str, Spread]
    of_random: Mapping[str, Spread]
    best_sentinel: Mapping[int, Floats]

    @classmethod
    def of(
        cls,
        gains: Sequence[ArrayLike],
        reference: Sequence[ArrayLike],
        sentinels: Mapping[str, Sequence[ArrayLike]],
        cuts: Sequence[int],
    ) -> Bench:
        """Take the metrics of PyTorch and of the sentinels, of which random order always has a value."""
        by_sentinel = [spreads(scores, gains, cuts) for scores in sentinels.values()]
        best: dict[int, Floats] = {}
        for k in cuts:
            rows = [found[f"ndcg_at_{k}"].expected for found in by_sentinel]
            best[k] = max((row for row in rows if np.isfinite(row).all()), key=lambda row: float(row.sum()))
        random = dict(zip(sentinels, by_sentinel, strict=True))["random"]
        return cls(_floats(gains), _floats(reference), tuple(cuts), spreads(reference, gains, cuts), random, best)

    def repeated(self, times: int) -> Bench:
        """The groups that many times, one after another."""

        def tiled(found: Mapping[str, Spread]) -> dict[str, Spread]:
            return {name: Spread(*(np.tile(side, times) for side in spread)) for name, spread in found.items()}

        return Bench(
            gains=list(self.gains) * times,
            reference=list(self.reference) * times,
            cuts=self.cuts,
            of_reference=tiled(self.of_reference),
            of_random=tiled(self.of_random),
            best_sentinel={k: np.tile(row, times) for k, row in self.best_sentinel.items()},
        )

    def counted(self, name: str) -> NDArray[np.bool_]:
        """The groups, bool of shape (groups,), that stand in the mean of a metric: those where the order matters to it."""
        plain = name.rpartition(".")[2] if name.startswith("sentinel.") else name.partition(".")[0].removeprefix("row_")
        k = cut(plain).k
        if plain.startswith("overlap_at_") and k is not None:
            orders = [row if np.isfinite(row).all() else np.arange(float(len(row))) for row in self.reference]
            return ~np.isnan(overlap(orders, orders, k))
        family = next((name for name in self.of_random if plain == name or plain.startswith(f"{name}_")), None)
        if family is None:
            return np.ones(len(self.gains), dtype=np.bool_)
        return self.of_random[family].best > self.of_random[family].worst

    def columns(self, scores: Sequence[ArrayLike], names: Sequence[str]) -> dict[str, Floats]:
        """The named ranking metrics of a scorer, each float64 of shape (groups,); NaN where a score is not finite."""
        own = spreads(scores, self.gains, self.cuts)
        alike = {name for name in names if name.startswith("overlap_at_") or name == "kendall_tau_b_by_query"}
        found = {name: _alike(self.reference, _floats(scores), name) for name in alike}
        return {name: found[name] if name in found else self._column(own, name) for name in names}

    def _column(self, own: Mapping[str, Spread], name: str) -> Floats:
        for kind, place in _SPREAD.items():
            if name.endswith(kind):
                return own[name.removesuffix(kind)][place]
        if name.endswith("_drop"):
            family = name.removesuffix("_drop")
            return self.of_reference[family].expected - own[family].expected
        if name.endswith("_over_random"):
            family = name.removesuffix("_over_random")
            return own[family].expected - self.of_random[family].expected
        if name.endswith("_over_sentinels"):
            return own[name.removesuffix("_over_sentinels")].expected - self.best_sentinel[cut(name).k or K]
        return own[name].expected


def agreements(reference: Sequence[ArrayLike], scores: Sequence[ArrayLike], cuts: Sequence[int]) -> dict[str, Floats]:
    """How alike two scorers rank: Kendall's tau-b and the overlap of the first k, each float64 of shape (groups,)."""
    names = [name for name in rerank_names.names(cuts) if name.startswith(("overlap_at_", "kendall_"))]
    one, other = _floats(reference), _floats(scores)
    return {name: _alike(one, other, name) for name in names}


def _alike(reference: Scores, scores: Scores, name: str) -> Floats:
    k = cut(name).k
    return kendall_tau_b(reference, scores) if k is None else overlap(reference, scores, k)


def _floats(rows: Sequence[ArrayLike]) -> list[Floats]:
    return [np.asarray(row, dtype=np.float64) for row in rows]
