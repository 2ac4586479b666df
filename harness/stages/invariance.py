"""The same pairs alone, in mixed batches, padded on either side, in other order, again, without segments, and from many threads.

What is scored stands in ``harness.variants``; here it is scored, for one side of the comparison.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.raw import InvarianceRaw, Variant
from harness.runtimes.batching import Layout, pad
from harness.stages.together import all_back
from harness.variants import Shape, Side, variants

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.runtimes.batching import Logits, Tensors
    from harness.runtimes.tokens import Encoded


class Asked(NamedTuple):
    """One side to be tried: its scorer, how it is fed, the tokenised pairs, which of them, and the seed of their order."""

    logits: Logits
    layout: Layout
    encoded: Encoded
    pairs: tuple[int, ...]
    seed: int
    threads: bool
    deadlock_s: float


def measure(asked: Asked, seen: Callable[[int], None]) -> tuple[InvarianceRaw, NDArray[np.float32]]:
    """Score every variant; returns the record and the logits of all variants, one after another, flat. ``seen`` counts variants."""
    import numpy as np

    layout = asked.layout
    shape = Shape(layout.fixed_batch, layout.fixed_length, "token_type_ids" in layout.inputs, asked.threads)
    side: Side = "left" if layout.padding_side == "left" else "right"
    wanted = variants(asked.pairs, side, asked.seed, shape)
    found: list[NDArray[np.float32]] = []
    unfinished, error = 0, ""
    for place, variant in enumerate(wanted):
        made = [_tensors(asked, variant, row) for row in variant.rows]
        if variant.kind == "threads":
            logits, unfinished, error = from_threads(asked.logits, made, variant.calls, asked.deadlock_s)
            found += logits
        else:
            found += [asked.logits(tensors) for tensors in made for _ in range(variant.calls)]
        seen(place + 1)
    raw = InvarianceRaw(
        format=1,
        pairs=asked.pairs,
        shape=(layout.fixed_batch, layout.fixed_length),
        variants=wanted,
        unfinished=unfinished,
        error=error,
    )
    return raw, np.concatenate(found).astype(np.float32)


def _tensors(asked: Asked, variant: Variant, row: tuple[int, ...]) -> Tensors:
    lengths = [len(asked.encoded.ids[pair]) for pair in (asked.pairs if variant.kind == "padded" else row)]
    layout = asked.layout._replace(padding_side=variant.padding)
    tensors = pad(asked.encoded, row, layout.fixed_length or max(lengths), layout)
    if variant.kind == "segments":
        tensors["token_type_ids"][:] = 0
    return tensors


def from_threads(
    logits: Logits, made: list[Tensors], calls: int, limit_s: float
) -> tuple[list[NDArray[np.float32]], int, str]:
    """A thread for each of ``made`` calls the scorer with it ``calls`` times, all at once.

    Returns the logits batch by batch, call by call, NaN for a call that did not come back; how many did not within ``limit_s``
    seconds or raised; and the first error. Threads that never come back are left behind, and the scorer is kept for them.
    """
    import numpy as np

    results: dict[tuple[int, int], NDArray[np.float32]] = {}
    together = threading.Barrier(len(made))

    def work(thread: int) -> None:
        together.wait(limit_s)
        for call in range(calls):
            results[thread, call] = logits(made[thread])

    error, _ = all_back(work, len(made), limit_s, logits)
    done = dict(results)
    missing = np.float32("nan")
    every = [(thread, call) for thread in range(len(made)) for call in range(calls)]
    found = [done[key] if key in done else np.full(_rows(made[key[0]]), missing) for key in every]
    return found, len(every) - len(done), error


def _rows(tensors: dict[str, Any]) -> int:
    return len(next(iter(tensors.values())))
