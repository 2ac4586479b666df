"""What a large ranked set gives by itself, derived on two processors at once, before two roots that both hold it are judged."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from evidence.manifest import digest_of
from harness.beside import both
from harness.metrics.rerank_names import SENTINELS
from harness.rerank_groups import Groups, keep, spelled


def derive(raw: bytes, cuts: Iterable[tuple[int, ...]]) -> None:
    """Derive what groups give at some cut-offs, for ``read_groups`` to find. What is not in the one spelling is left to it."""
    digest, middle = digest_of(raw), 1 + raw.find(b"\n", len(raw) // 2)
    one, other = both(lambda: spelled(raw[:middle], digest), lambda: spelled(raw[middle:], digest))
    if one is None or other is None or {*one.counted.ids} & {*other.counted.ids}:
        return
    groups = _joined(one, other)
    sentinels, others = ([name for name in groups.scorers if (name in SENTINELS) == wanted] for wanted in (True, False))
    for k in cuts:
        found = both(partial(groups.spreads_of, sentinels, k), partial(groups.spreads_of, others, k))
        groups.known[k] = found[0] | found[1]
    keep(digest, groups)


def _joined(one: Groups, other: Groups) -> Groups:
    """The groups of both."""
    import numpy as np

    from harness.metrics.lexical import Lexical
    from harness.metrics.rows import Rows

    return Groups(
        counted=one.counted.joined(other.counted),
        gains=Rows(
            np.concatenate((one.gains.flat, other.gains.flat)), np.concatenate((one.gains.sizes, other.gains.sizes))
        ),
        lexical=Lexical(*map(np.concatenate, zip(one.lexical, other.lexical, strict=True))),
    )
