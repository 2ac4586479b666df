"""The records of one root, read through a function that returns verified bytes. No file is opened here."""

from __future__ import annotations

from collections.abc import Callable, Collection

from harness import records
from harness.records import (
    Environment,
    Lineage,
    Measurements,
    Outcome,
    Plan,
    Qualification,
    Record,
    Request,
    Tier,
    from_json,
    step_folder,
)

Read = Callable[[str], bytes]
"""Root-relative path to bytes whose hash was just compared with the manifest."""


class StepRecords(Record, frozen=True):
    """What one step left: its request, outcome and measurements (null when the child ended before it had any)."""

    request: Request | None
    outcome: Outcome
    measurements: Measurements | None


class RootRecords(Record, frozen=True):
    """Every record of a root. ``steps`` is keyed by ``(target, tier)`` in plan order and holds only steps that have a folder."""

    plan: Plan
    claim: Qualification
    environment: Environment
    lineage: Lineage
    steps: dict[tuple[str, Tier], StepRecords]


def load(read: Read, paths: Collection[str]) -> RootRecords:
    """Read all records of a root. Raises ``RecordError`` naming the file that is not what it should be."""
    plan = from_json(read(records.PLAN), Plan, records.PLAN)
    steps: dict[tuple[str, Tier], StepRecords] = {}
    for target in plan.targets:
        for step in target.steps:
            folder = step_folder(step.tier, target.name)
            if f"{folder}/outcome.json" in paths:
                steps[target.name, step.tier] = _step(read, paths, folder)
    return RootRecords(
        plan=plan,
        claim=from_json(read(records.CLAIM), Qualification, records.CLAIM),
        environment=from_json(read(records.ENVIRONMENT), Environment, records.ENVIRONMENT),
        lineage=from_json(read(records.LINEAGE), Lineage, records.LINEAGE),
        steps=steps,
    )


def _step(read: Read, paths: Collection[str], folder: str) -> StepRecords:
    request, outcome, measured = (f"{folder}/{name}.json" for name in ("request", "outcome", "measurements"))
    return StepRecords(
        request=from_json(read(request), Request, request) if request in paths else None,
        outcome=from_json(read(outcome), Outcome, outcome),
        measurements=from_json(read(measured), Measurements, measured) if measured in paths else None,
    )
