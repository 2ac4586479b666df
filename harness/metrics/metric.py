"""One metric, as the catalogue lists it. Pure; no import of numpy."""

from __future__ import annotations

from typing import NamedTuple

from harness.records import Tier


class Metric(NamedTuple):
    """One metric: the tier that measures it, its unit, what kind of value it has and one sentence on what it is.

    A ``condition`` is no property of the artifact but of the moment it was measured in: breaking its limit decides nothing. What is
    ``timed`` comes of how long calls took, so a machine that was not fit to measure makes it worse; a condition that is timed says
    how well the figure is known.
    """

    tier: Tier
    unit: str
    kind: type
    meaning: str
    parameter: str = ""
    condition: bool = False
    timed: bool = False
