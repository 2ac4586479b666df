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

    Floats = NDArray[np.float64]


@lru_cache(maxsize=1)
def read_groups(raw: bytes) -> Groups:
    """The groups of a root, by their bytes: every target of a root, and every derivation of a step, looks at the same."""
    return Groups(data.read_groups(raw, GROUPS))


class Groups:
    """Groups with their gains, those that can be judged, and the scorers that need no model; rows of shape (candidates,), float64."""

    def __init__(self, groups: tuple[data.Group, ...]) -> None:
        self.groups = groups

    @cached_property
    def gains(self) -> list[Floats]:
        """The gains of each group's candidates."""
        import numpy as np

        return [np.array([doc.gain for doc in group.candidates]) for group in self.groups]

    @cached_property
    def judged(self) -> list[int]:
        """Places of the groups with a positive and a negative candidate."""
        return [place for place, row in enumerate(self.gains) if 0 < (row > 0).sum() < len(row)]

    @cached_property
    def scorers(self) -> dict[str, list[Floats]]:
        """By name what each scorer gives. Random and constant are one tie over the whole group: the same expectation."""
        import numpy as np

        from harness.metrics import lexical

        texts = [[doc.text for doc in group.candidates] for group in self.groups]
        found = [lexical.matches(group.query, row) for group, row in zip(self.groups, texts, strict=True)]
        nothing = [np.zeros(len(row)) for row in texts]
        return {
            "constant": nothing,
            "random": nothing,
            "length": [np.array(lexical.length_scores(row)) for row in texts],
            "nan": [np.full(len(row), np.nan) for row in texts],
            "source_order": [-np.arange(float(len(row))) for row in texts],
            "oracle": self.gains,
            "word_overlap": [np.array(lexical.overlap(row)) for row in found],
            "bm25": [np.array(lexical.bm25(row)) for row in found],
        }
