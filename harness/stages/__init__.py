"""Stages: the code that measures a step. One line of the table a tier."""

from __future__ import annotations

from collections.abc import Callable

from harness.records import Tier
from harness.stages.build import build
from harness.stages.job import Job
from harness.stages.parity import parity
from harness.stages.perf import perf
from harness.stages.rerank import rerank

STAGES: dict[Tier, Callable[[Job], None]] = {"L0": build, "L1": perf, "L2": parity, "L3": rerank}
