"""What L0 probes a graph with: the stage runs it, the verifier makes it again."""

from __future__ import annotations

from harness.records import BuildOptions, TierOptions

BATCHES = (1, 2, 3, 7)
LENGTHS = (1, 8, 13)
"""Probed besides the maximum; 13 is odd and prime, so no tile or power of two hides a fault."""


def longest_tokens(options: TierOptions, candidate_length: int) -> int:
    """The most tokens that any tier of the plan lets a pair have; 512 or what the candidate takes where no tier scores."""
    asked = [tier.max_length for tier in (options.L1, options.L2, options.L3) if tier is not None]
    return min(max(asked, default=512), candidate_length)


def probe_shapes(
    options: BuildOptions, fixed: tuple[int | None, int | None], prebuilt: bool, longest: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Batches and lengths to probe. What the ladder asked to be dynamic is probed as such; a prebuilt graph by its own dimensions."""
    batch, length = fixed if prebuilt else (None, None) if isinstance(options.shape, str) else options.shape
    lengths = tuple(sorted({*(n for n in LENGTHS if n <= longest), longest}))
    return (batch,) if batch else BATCHES, (length,) if length else lengths
