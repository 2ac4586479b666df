"""The sealed groups of L3 as columns, read once, and the scorers that need no model: what they give to every candidate. Pure.

Sentinels know nothing of relevance: what one of them can pass decides nothing. One more of them, ``reversed``, is PyTorch's ranking
upside down, not the source's, which may well have the relevant candidates last. The other scorers may know something: of the
words, of the order of the source, or of the judgements themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from evidence.manifest import digest_of
from harness import data, group_facts
from harness.group_facts import Counted
from harness.metrics.rerank_names import HEADLINE, SENTINELS
from harness.records import GROUPS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.metrics.lexical import Lexical
    from harness.metrics.ranked import Spread
    from harness.metrics.rows import Rows


@dataclass(frozen=True, eq=False)
class Groups:
    """What L3 derives from groups: what is counted of them, the gains of their candidates, and what the scorers that look at texts say."""

    counted: Counted
    gains: Rows
    lexical: Lexical
    known: dict[tuple[int, ...], dict[str, dict[str, Spread]]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.counted.ids)

    @cached_property
    def judged(self) -> NDArray[np.int64]:
        """Places of the groups with a positive and a negative candidate."""
        import numpy as np

        positives = self.gains.count(self.gains.flat > 0)
        return np.flatnonzero((positives > 0) & (positives < self.gains.sizes))

    def of_judged(self, scores: Rows) -> Rows:
        """The rows of the judged groups: the very same, if these are all."""
        return scores if len(self.judged) == len(self) else scores.take(self.judged)

    @cached_property
    def scorers(self) -> dict[str, Rows]:
        """By name what each scorer gives. Random and constant are one tie over the whole group: the same expectation."""
        import numpy as np

        from harness.metrics.rows import within

        gains = self.gains
        nothing = gains.like(np.zeros(gains.flat.size))
        return {
            "constant": nothing,
            "random": nothing,
            "length": gains.like(self.lexical.length),
            "nan": gains.like(np.full(gains.flat.size, np.nan)),
            "source_order": gains.like(-within(gains.sizes)),
            "oracle": gains,
            "word_overlap": gains.like(self.lexical.overlap),
            "bm25": gains.like(self.lexical.bm25),
        }

    def spreads(self, cuts: tuple[int, ...]) -> dict[str, dict[str, Spread]]:
        """By scorer its metrics in the judged groups, of the scorers that are no sentinels only what the headline needs.

        They are the same for every target, and every root, with these groups.
        """
        if cuts not in self.known:
            self.known[cuts] = self.spreads_of(self.scorers, cuts)
        return self.known[cuts]

    def spreads_of(self, names: Iterable[str], cuts: tuple[int, ...]) -> dict[str, dict[str, Spread]]:
        """The same of some scorers, calculated."""
        from harness.metrics.ranking import FAMILIES, spreads

        headline = [family for family in FAMILIES if any(name.startswith(family) for name in HEADLINE)]
        gains = self.of_judged(self.gains)
        known: dict[int, dict[str, Spread]] = {}
        for name in names:
            scores = self.scorers[name]
            if id(scores) not in known:
                families = FAMILIES if name in SENTINELS else headline
                known[id(scores)] = spreads(self.of_judged(scores), gains, cuts, families)
        return {name: known[id(self.scorers[name])] for name in names}


_read: dict[str, Groups] = {}
"""The groups that were read last, by the digest of their bytes: all derivations of a root look at the same."""


def read_groups(raw: bytes) -> Groups:
    """The groups of a root. Raises ``LadderError``."""
    digest = digest_of(raw)
    if digest not in _read:
        found = spelled(raw, digest)
        if found is None:
            groups = data.read_groups(raw, GROUPS)
            found = columns(groups, digest_of(data.render_groups(groups)))
        keep(digest, found)
    return _read[digest]


def spelled(raw: bytes, digest: str) -> Groups | None:
    """Groups in the one spelling, whose digest this is, or a part of them; None for any other bytes."""
    groups = data.rendered_groups(raw)
    return columns(groups, digest) if groups is not None else None


def keep(digest: str, groups: Groups) -> None:
    """Have groups at hand for ``read_groups``, by the digest of their bytes."""
    _read.clear()
    _read[digest] = groups


def columns(groups: Sequence[data.Group], digest: str) -> Groups:
    """Groups as columns; ``digest`` is that of their rendering."""
    import numpy as np

    from harness.metrics import lexical
    from harness.metrics.rows import Rows

    gains = np.array([doc.gain for group in groups for doc in group.candidates], dtype=np.float64)
    return Groups(
        counted=group_facts.counted(groups, digest),
        gains=Rows(gains, [len(group.candidates) for group in groups]),
        lexical=lexical.score(
            [group.query for group in groups], [[doc.text for doc in group.candidates] for group in groups]
        ),
    )
