"""Scorers on the same groups: the value that each ranking metric has in each group, for any scorer in the artifact's place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from harness.metrics import rerank_names
from harness.metrics.agreement import kendall_tau_b, overlap
from harness.metrics.ranked import Spread
from harness.metrics.ranking import FAMILIES, spreads
from harness.metrics.rerank_names import K, cut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from harness.metrics.rows import Rows

    Floats = NDArray[np.float64]

_SPREAD = {"_best": 1, "_worst": 2}


@dataclass(frozen=True)
class Bench:
    """Judged groups with PyTorch's scores and what every difference is taken to.

    ``best_sentinel`` is by cut-off the nDCG of the sentinel whose mean is greatest, float64 of shape (groups,).
    """

    gains: Rows
    reference: Rows
    cuts: tuple[int, ...]
    of_reference: Mapping[str, Spread]
    of_random: Mapping[str, Spread]
    best_sentinel: Mapping[int, Floats]

    @classmethod
    def of(cls, gains: Rows, reference: Rows, known: Mapping[str, Mapping[str, Spread]], cuts: Sequence[int]) -> Bench:
        """``known`` holds the metrics of PyTorch (``reference``) and of the sentinels, of which random order always has a value."""
        best: dict[int, Floats] = {}
        for k in cuts:
            rows = [known[name][f"ndcg_at_{k}"].expected for name in rerank_names.SENTINELS]
            best[k] = max((row for row in rows if np.isfinite(row).all()), key=lambda row: float(row.sum()))
        return cls(gains, reference, tuple(cuts), known["reference"], known["random"], best)

    def repeated(self, times: int) -> Bench:
        """The groups that many times, one after another."""

        def tiled(found: Mapping[str, Spread]) -> dict[str, Spread]:
            return {name: Spread(*(np.tile(side, times) for side in spread)) for name, spread in found.items()}

        return Bench(
            gains=self.gains.repeated(times),
            reference=self.reference.repeated(times),
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
            finite = np.repeat(self.reference.finite(), self.reference.sizes)
            orders = self.reference.like(np.where(finite, self.reference.flat, np.arange(float(finite.size))))
            return ~np.isnan(overlap(orders, orders, k))
        family = next((name for name in self.of_random if plain == name or plain.startswith(f"{name}_")), None)
        if family is None:
            return np.ones(len(self.gains), dtype=np.bool_)
        return self.of_random[family].best > self.of_random[family].worst

    def columns(
        self,
        scores: Rows,
        names: Sequence[str],
        own: Mapping[str, Spread] | None = None,
        alike: Mapping[str, Floats] | None = None,
    ) -> dict[str, Floats]:
        """The named ranking metrics of a scorer, each float64 of shape (groups,); NaN where a score is not finite.

        ``own`` is what ``spreads`` gives of the scorer and ``alike`` what ``agreements`` does, where they are known.
        """
        found = {
            name: alike[name] if alike is not None else _alike(self.reference, scores, name)
            for name in names
            if name.startswith("overlap_at_") or name == "kendall_tau_b_by_query"
        }
        families = [family for family in FAMILIES if any(name.startswith(f"{family}_at_") for name in names)]
        if own is None and found.keys() < set(names):
            own = spreads(scores, self.gains, self.cuts, families)
        return {name: found[name] if name in found else self._column(own or {}, name) for name in names}

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


def agreements(reference: Rows, scores: Rows, cuts: Sequence[int]) -> dict[str, Floats]:
    """How alike two scorers rank: Kendall's tau-b and the overlap of the first k, each float64 of shape (groups,)."""
    names = [name for name in rerank_names.names(cuts) if name.startswith(("overlap_at_", "kendall_"))]
    return {name: _alike(reference, scores, name) for name in names}


def _alike(reference: Rows, scores: Rows, name: str) -> Floats:
    k = cut(name).k
    return kendall_tau_b(reference, scores) if k is None else overlap(reference, scores, k)
