"""Which files a root may hold below its steps and artifacts, and which a step must: one table. Pure.

The format names the records of a root and the places of everything else (``evidence/FORMAT.md``); what a step may leave there is
said here. A file that neither names was read by nobody, so nothing is known of it: it is a fault (Q-FILE), and so is a step
without a file that it cannot have been without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase

from evidence.manifest import Fault
from harness import made_by
from harness.records import Outcome, Plan, PlannedTarget, Tier, origin_folder, step_folder
from harness.root import RootRecords

STARTED = ("request.json", "stdout.log", "stderr.log")
"""What the parent writes for every child that it ran to an end."""

EVERY_TIER = (*STARTED, "outcome.json", "artifact.json", "blocked.json", "measurements.json")

RAW: dict[Tier, tuple[str, ...]] = {
    "L0": ("build.json", "stages.json", "stages.f32", "adapter.json"),
    "L1": (
        "samples.json", "memory.json", "machine.json", "sweep.json", "load.json", "load.f32", "end_to_end.json",
        "paired.json", "eager.json",
    ),
    "L2": (
        "logits.json", "reference.f32", "artifact.f32", "tokens.json", "tokens.i32", "adapter.json", "adapter.f32",
        "invariance_reference.json", "invariance_reference.f32", "invariance_artifact.json", "invariance_artifact.f32",
    ),
    "L3": ("scores.json", "reference.f32", "artifact.f32", "per_query.json"),
}  # fmt: skip
"""Raw samples by tier. A STAGE THAT SEALS ANOTHER FILE NAMES IT HERE, as a pattern of ``fnmatch`` if there may be several
(``sweep-*.json``), and what derives its numbers must read it: a file that is only listed is not checked."""

LOG_BYTES = 1_000_000
"""The most of a stream that is kept of a child; what lies between its two halves is left out, and the log says so."""

LIMITS_BYTES = {
    "*.log": 4 * LOG_BYTES + 1_000,  # what is no UTF-8 is written out, a byte as four characters
    "steps/*": 1 << 28,  # 67 million float32, or the rows of 50,000 queries at twenty cut-offs
    "artifacts/*/model.onnx": 1 << 31,  # protobuf allows no more; weights beside it are not read here, only hashed
    "inputs/*": 1 << 32,  # 50,000 queries of 100 documents of 800 characters
}
"""The most bytes that a file may have to be read whole, by pattern of its path; the first that fits counts."""

GRAPH, WEIGHTS = "model.onnx", "model.onnx.data"
"""What an artifact that was built here is made of; a prebuilt one has the names that the plan pins."""


def too_large(sizes: Mapping[str, int]) -> tuple[Fault, ...]:
    """Each file with more bytes than one is read of; also of what is carried from an earlier root. Said before any is read."""
    return tuple(
        Fault("Q-FILE", path, f"{path}: expected at most {limit} bytes, got {size}; it is not read")
        for path, size in sizes.items()
        if size > LOG_BYTES and (limit := _limit_bytes(path)) is not None and size > limit
    )


def _limit_bytes(path: str) -> int | None:
    place = path.split("/", 2)[-1] if path.startswith("preserved/") else path
    return next((limit for pattern, limit in LIMITS_BYTES.items() if fnmatchcase(place, pattern)), None)


def unknown(found: RootRecords, paths: Collection[str], foreign: bool) -> Iterator[Fault]:
    """Each sealed path that nothing names; of what is carried from an earlier root too. Another version may name others."""
    rule = made_by.rule("Q-FILE", foreign)
    for place, plan in _places(found):
        targets = {target.name: target for target in plan.targets}
        folders = {step_folder(step.tier, t.name): step.tier for t in plan.targets for step in t.steps}
        for path in sorted(path for path in paths if path.startswith(place)):
            top, _, rest = path.removeprefix(place).partition("/")
            inner, _, name = rest.partition("/")
            if top == "steps" and f"steps/{inner}" in folders:  # that there is no other folder is E-STEP
                tier = folders[f"steps/{inner}"]
                if not any(fnmatchcase(name, pattern) for pattern in (*EVERY_TIER, *RAW[tier])):
                    yield Fault(rule, path, f"{path}: expected only files that {tier} leaves, got this")
            elif top == "artifacts" and inner in targets:  # that there is no other target is E-ARTIFACT
                names = artifact_names(targets[inner])
                if name not in names:
                    yield Fault(rule, path, f"{path}: expected only the artifact ({', '.join(names)}), got this")


def missing(folder: str, outcome: Outcome, paths: Collection[str]) -> Iterator[Fault]:
    """What a step cannot have been without: a child that ended left its request and its logs."""
    for path in (f"{folder}/{name}" for name in STARTED) if outcome.exit is not None else ():
        if path not in paths:
            yield Fault("Q-FILE", path, f"{path}: expected this file, since the step ran, got none")


def artifact_names(target: PlannedTarget) -> tuple[str, ...]:
    """The names of all files that an artifact of this target may have, the graph's first."""
    pinned = target.artifact
    if pinned is None:
        return GRAPH, WEIGHTS
    return GRAPH, *(fact.path for fact in pinned.files if fact.path != pinned.name)


def _places(found: RootRecords) -> Iterator[tuple[str, Plan]]:
    """The root itself and each origin: where its files stand, and the plan that names them."""
    yield "", found.plan
    for origin, its in found.origins.items():
        yield origin_folder(origin), its.plan
