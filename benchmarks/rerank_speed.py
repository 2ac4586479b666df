"""How long L3's figures take once the scores are there: 2,000 groups of 100 candidates, what the verifier does with a root.

    python -m benchmarks.rerank_speed [--groups N] [--candidates N]

Prints a line a part: reading the groups, scoring their texts, every metric with its interval (artifact, drops, agreement, rows of the
other scorers, sentinels, the random scorer's chance), and the rows of the queries.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from harness import data, derive_rerank
from harness.metrics.catalogue import fixed_limits
from harness.metrics.rerank_names import cuts, names
from harness.raw import ScoresRaw
from harness.records import GROUPS, Limit, Limits, RerankOptions, to_json
from harness.rerank_groups import read_groups
from tests.support.ranked import STEP, request

LIMITS: Limits = {
    **fixed_limits("L3", "fp32"),
    "ndcg_at_10_drop": Limit(at_most=0.005),
    "ndcg_at_10_over_random": Limit(at_least=0.1),
    "recall_at_5": Limit(at_least=0.1),
    "kendall_tau_b_by_query": Limit(at_least=0.9),
}
T = TypeVar("T")


def made(groups: int, candidates: int) -> dict[str, bytes]:
    """The files of a step: a good scorer, and one that differs from it by a little."""
    generator = np.random.Generator(np.random.PCG64(5))
    gains = (generator.random((groups, candidates)) < 0.05) * generator.integers(1, 4, (groups, candidates))
    gains[:, 3] = 1
    words = np.array([f"w{n}" for n in range(2000)])
    texts = [" ".join(row) for row in words[generator.integers(0, len(words), (groups * candidates, 40))]]
    rows = (
        data.Group(
            query_id=f"q{place}",
            query=" ".join(words[generator.integers(0, len(words), 6)]),
            candidates=tuple(
                data.Doc(id=f"d{n}", text=texts[place * candidates + n], gain=float(gain))
                for n, gain in enumerate(gains[place])
            ),
        )
        for place in range(groups)
    )
    reference = (gains + generator.normal(0, 1, gains.shape)).astype("<f4")
    artifact = (reference + generator.normal(0, 0.01, gains.shape)).astype("<f4")
    raw = ScoresRaw(
        format=1,
        shape=(groups * candidates,),
        dtype="<f4",
        groups=groups,
        truncated=0,
        longest_tokens=64,
        max_length=64,
        reference_seconds=1.0,
        artifact_seconds=1.0,
        reference_from=None,
        providers=("cpu",),
    )
    return {
        GROUPS: data.render_groups(rows),
        f"{STEP}/reference.f32": reference.tobytes(),
        f"{STEP}/artifact.f32": artifact.tobytes(),
        f"{STEP}/scores.json": to_json(raw),
    }


def timed(what: str, work: Callable[[], T]) -> T:
    """Do it and print its seconds: by the clock, and of processor time, which a busy neighbour does not lengthen as much."""
    begin, used = time.perf_counter(), time.process_time()
    found = work()
    print(f"{time.perf_counter() - begin:6.2f} s, {time.process_time() - used:6.2f} s of CPU  {what}")
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=2000)
    parser.add_argument("--candidates", type=int, default=100)
    asked = parser.parse_args()
    files = made(asked.groups, asked.candidates)
    step = request(LIMITS, RerankOptions(data="groups.jsonl"))  # limits that need every kind of metric
    print(f"{asked.groups:,} groups x {asked.candidates} candidates, {len(names(cuts(LIMITS)))} ranking metrics")
    groups = timed("reading the groups, BM25 and the other scorers of texts", lambda: read_groups(files[GROUPS]))
    timed("the metrics of the scorers without a model", lambda: groups.spreads(cuts(LIMITS)))
    found = timed("every metric with its interval", lambda: derive_rerank.measurements(step, files.__getitem__))
    timed("the rows of the queries", lambda: derive_rerank.per_query(step, files.__getitem__))
    with_interval = sum(m.interval is not None for m in found)
    print(f"{len(found)} measurements, {with_interval} with an interval of {10_000:,} resamples")


if __name__ == "__main__":
    main()
