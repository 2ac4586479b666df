"""The table that shows the peers' values beside ours: they are theirs, cut where ours are, and empty where they have none."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rerank_table import cells, peers
from harness.metrics.ranking import spreads

GAINS = [[0.0] * 11 + [1.0], [0.0, 2.0, 1.0], [0.0] * 9 + [1.0, 1.0]]
SCORES = [[float(-place) for place in range(len(row))] for row in GAINS]
"""No ties. The first group's relevant document is twelfth, beyond the cut of MRR."""


def test_both_peers_give_our_means_where_nothing_is_tied() -> None:
    ours = {name: float(np.mean(side[0])) for name, side in spreads(SCORES, GAINS, [10]).items()}
    assert ours["mrr_at_10"] == pytest.approx((0 + 1 / 2 + 1 / 10) / 3)
    found = peers(SCORES, GAINS)
    for name in ("ndcg_at_10", "mrr_at_10", "map"):
        assert found.pytrec_eval[name] == pytest.approx(ours[name]), name
        assert found.mteb[name] == pytest.approx(ours[name], abs=5e-5), name  # it rounds to four places


def test_an_expectation_has_no_values_of_the_peers_beside_it() -> None:
    nothing = [[0.0] * len(row) for row in GAINS]
    made = cells(nothing, GAINS, scored=False)
    assert [made[place] for place in (1, 2, 4, 5, 7, 8)] == [""] * 6
    assert cells(SCORES, GAINS)[3:6] == ["0.2000"] * 3
    assert all(cells(nothing, GAINS))
