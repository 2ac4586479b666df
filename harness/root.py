"""The records of one root, read through a function that returns verified bytes. No file is opened here.

Steps that the root carries from an earlier one are shown where they would stand had they run here, judged under this root's limits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

import msgspec

from harness import judge, records
from harness.derive_raw import Read
from harness.records import (
    Environment,
    GateOutcome,
    Lineage,
    Measurement,
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

T = TypeVar("T")


class StepRecords(Record, frozen=True):
    """What one step left: its request, outcome and measurements (null when the child ended before it had any)."""

    request: Request | None
    outcome: Outcome
    measurements: Measurements | None

    @property
    def numbers(self) -> tuple[Measurement, ...] | None:
        """The measurements themselves."""
        return None if self.measurements is None else self.measurements.measurements


class Origin(Record, frozen=True):
    """What a root holds of an earlier one beside the steps it carries: the plan they ran under, where, and its own lineage."""

    plan: Plan
    environment: Environment
    lineage: Lineage


class RootRecords(Record, frozen=True):
    """Every record of a root. ``steps`` is keyed by ``(target, tier)`` in plan order and holds only steps that are there.

    ``preserved`` gives, for each step that is carried, the digest of the root in which it ran, and ``origins`` its records.
    """

    plan: Plan
    claim: Qualification
    environment: Environment
    lineage: Lineage
    steps: dict[tuple[str, Tier], StepRecords]
    preserved: dict[tuple[str, Tier], str] = msgspec.field(default_factory=dict)
    origins: dict[str, Origin] = msgspec.field(default_factory=dict)
    gates: dict[str, GateOutcome] = msgspec.field(default_factory=dict)

    def ran_under(self, step: tuple[str, Tier]) -> tuple[Plan, Environment]:
        """The plan and the environment in which a step ran: those of its origin where it is carried."""
        origin = self.origins.get(self.preserved.get(step, ""))
        return (self.plan, self.environment) if origin is None else (origin.plan, origin.environment)


def load(read: Read, paths: Collection[str]) -> RootRecords:
    """Read all records of a root. Raises ``RecordError`` naming the file that is not what it should be."""
    plan = from_json(read(records.PLAN), Plan, records.PLAN)
    lineage = from_json(read(records.LINEAGE), Lineage, records.LINEAGE)
    read, paths = merged(lineage, read, paths)
    carried = {folder: entry.origin for entry in lineage.preserved for folder in entry.steps}
    steps: dict[tuple[str, Tier], StepRecords] = {}
    preserved: dict[tuple[str, Tier], str] = {}
    for target in plan.targets:
        for step in target.steps:
            folder = step_folder(step.tier, target.name)
            if f"{folder}/outcome.json" in paths:
                left = step_records(read, paths, folder)
                if folder in carried:
                    preserved[target.name, step.tier] = carried[folder]
                    judged = judge.again(left.outcome, step.limits, left.numbers)
                    left = StepRecords(request=left.request, outcome=judged, measurements=left.measurements)
                steps[target.name, step.tier] = left
    return RootRecords(
        plan=plan,
        claim=from_json(read(records.CLAIM), Qualification, records.CLAIM),
        environment=from_json(read(records.ENVIRONMENT), Environment, records.ENVIRONMENT),
        lineage=lineage,
        steps=steps,
        preserved=preserved,
        origins={entry.origin: _origin(read, records.origin_folder(entry.origin)) for entry in lineage.preserved},
        gates={gate.name: _gate(read, path) for gate in plan.gates if (path := _gate_path(gate.name)) in paths},
    )


def _gate_path(name: str) -> str:
    return f"{records.gate_folder(name)}/gate.json"


def _gate(read: Read, path: str) -> GateOutcome:
    return from_json(read(path), GateOutcome, path)


def merged(
    lineage: Lineage, read: Callable[[str], T], paths: Collection[str]
) -> tuple[Callable[[str], T], Collection[str]]:
    """The root as if every step that it carries had run here: their files, and artifacts, also by the paths they would then have.

    ``read`` gives the bytes of a path, or anything else of it.
    """
    moved: dict[str, str] = {}
    for entry in lineage.preserved:
        place = records.origin_folder(entry.origin)
        moved |= {
            path.removeprefix(place): path
            for path in paths
            if path.startswith((f"{place}steps/", f"{place}artifacts/"))
        }
    return (lambda path: read(moved.get(path, path))), frozenset(paths) | moved.keys()


def _origin(read: Read, place: str) -> Origin:
    plan, environment, lineage = (place + path for path in (records.PLAN, records.ENVIRONMENT, records.LINEAGE))
    return Origin(
        plan=from_json(read(plan), Plan, plan),
        environment=from_json(read(environment), Environment, environment),
        lineage=from_json(read(lineage), Lineage, lineage),
    )


def step_records(read: Read, paths: Collection[str], folder: str) -> StepRecords:
    """The records of one step as they are sealed. Raises ``RecordError``."""
    request, outcome, measured = (f"{folder}/{name}.json" for name in ("request", "outcome", "measurements"))
    return StepRecords(
        request=from_json(read(request), Request, request) if request in paths else None,
        outcome=from_json(read(outcome), Outcome, outcome),
        measurements=from_json(read(measured), Measurements, measured) if measured in paths else None,
    )
