"""The options of the command that climbs once more what a plan climbed. Words in capitals stand for places that no record holds. Pure."""

from __future__ import annotations

from pathlib import PurePosixPath

from harness import ladder
from harness.ladder_format import is_folder
from harness.records import Candidate, Plan

FOLDER, BASELINE = "DIR", "BASELINE"


def model(candidate: Candidate) -> list[str]:
    """``--model`` for a candidate: the hub's id at its commit, or a folder, whose place only its owner knows."""
    return ["--model", f"{candidate.model}@{candidate.revision}" if candidate.revision is not None else FOLDER]


def other_model(candidate: Candidate, ladder_bytes: bytes) -> list[str]:
    """``--model`` where the ladder names another candidate than the one that was climbed; nothing where it names that one."""
    asked = ladder.parse(ladder_bytes).candidate
    named = asked.model
    if PurePosixPath(named).is_absolute():  # as candidate.locate writes it down
        named = PurePosixPath(named).name
    if (named, asked.revision) == (candidate.model, candidate.revision):
        return []
    return ["--model", candidate.model] if is_folder(candidate.model) else model(candidate)


def rest(plan: Plan) -> list[str]:
    """``--target`` for each that was asked for, where not all were, and ``--baseline`` where L1 was compared with one."""
    words = [word for name in plan.only for word in ("--target", name)]
    if plan.inputs.baseline is not None:
        words += ["--baseline", BASELINE, "--baseline-digest", plan.inputs.baseline.digest]
    return words
