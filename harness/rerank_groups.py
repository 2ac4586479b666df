"""The sealed groups of L3, read once, and the scorers that need no model: what they give to every candidate. Pure.

Sentinels know nothing of relevance: what one of them can pass decides nothing. One more of them, ``reversed``, is PyTorch's ranking
upside down, not the source's, which may well have the relevant candidates last. The other scorers may know something: of the
words, of the order of the source, or of the judgements themselves.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from harness import data
from harness.records import GROUPS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.metrics.rows import Rows


@lru_cache(maxsize=1)
def read_groups(raw: bytes) -> Groups:
    """The groups of a root, by their bytes: every target of a root, and every derivation of a step, looks at the same."""
    return Groups(data.read_groups(raw, GROUPS))


class Groups:
    """Groups with their gains, those that can be judged, and the scorers that need no model, as ``Rows``."""

    def __init__(self, groups: tuple[data.Group, ...]) -> None:
        self.groups = groups

    @cached_property
    def gains(self) -> Rows:
        """The gains of each group's candidates."""
        import numpy as np

        from harness.metrics.rows import Rows

        flat = np.array([doc.gain for group in self.groups for doc in group.candidates], dtype=np.float64)
        return Rows(flat, [len(group.candidates) for group in self.groups])

    @cached_property
    def judged(self) -> NDArray[np.int64]:
        """Places of the groups with a positive and a negative candidate."""
        import numpy as np

        positives = self.gains.count(self.gains.flat > 0)
        return np.flatnonzero((positives > 0) & (positives < self.gains.sizes))

    @cached_property
    def scorers(self) -> dict[str, Rows]:
        """By name what each scorer gives. Random and constant are one tie over the whole group: the same expectation."""
        import numpy as np

        from harness.metrics import lexical

        gains = self.gains
        length, overlap, bm25 = (np.empty(gains.flat.size) for _ in range(3))
        for place, group in enumerate(self.groups):
            its = slice(gains.starts[place], gains.starts[place + 1])
            texts = [doc.text for doc in group.candidates]
            found = lexical.matches(group.query, texts)
            length[its], overlap[its], bm25[its] = (
                lexical.length_scores(texts),
                lexical.overlap(found),
                lexical.bm25(found),
            )
        nothing = gains.like(np.zeros(gains.flat.size))
        within = np.arange(gains.flat.size) - np.repeat(gains.starts[:-1], gains.sizes)
        return {
            "constant": nothing,
            "random": nothing,
            "length": gains.like(length),
            "nan": gains.like(np.full(gains.flat.size, np.nan)),
            "source_order": gains.like(-within),
            "oracle": gains,
            "word_overlap": gains.like(overlap),
            "bm25": gains.like(bm25),
        }
