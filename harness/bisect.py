"""``qualify bisect``: which node of a target's graph is the first to leave the fp32 graph, on a pair of the root.

The root is verified first. Graphs and tokens are the sealed ones, copied by verified bytes; the search itself runs in a child, since it
needs onnx and onnxruntime. A root without a second fp32 graph needs the model: the child then exports it again, as the plan says.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from evidence.seal import write_new
from harness import answer, candidate, launch, process
from harness.adapter import add, reference
from harness.candidate import Resolved, first_position
from harness.derive_raw import raw_floats, raw_record
from harness.derive_tokens import Tensors, read_tensors
from harness.errors import AskedWrongly, Unavailable
from harness.raw import BlockedRaw, ParityRaw
from harness.records import (
    MEMORY_LIMIT_BYTES,
    BuildOptions,
    Candidate,
    PlannedTarget,
    Precision,
    Record,
    artifact_folder,
    from_json,
    step_folder,
    to_json,
)

if TYPE_CHECKING:
    from harness.launch import Progress

GRAPH = "model.onnx"
TOLERANCE: dict[Precision, float] = {"fp32": 1e-3, "fp16": 0.05, "int8": 0.6}
"""How far a tensor may be from the fp32 graph's, over its largest value. Rounding adds up over the layers: these are above what is
seen in sound graphs of 12 layers and below what a wrong weight does."""
TIME_LIMIT_S = 1800.0


class Again(Record, frozen=True):
    """What to export the reference from again: the candidate, and the options of L0."""

    candidate: Candidate
    options: BuildOptions


class BisectAsked(Record, frozen=True):
    """``asked.json``: what the child is given, beside ``reference/`` and ``candidate/`` with a ``model.onnx`` each.

    With ``again``, ``reference/`` is not there yet: the child exports it.
    """

    format: Literal[1]
    ids: tuple[int, ...]
    segments: tuple[int, ...]
    first_position: int
    pad_token_id: int
    padding_side: str
    tolerance: float
    threads: int
    again: Again | None = None


class Suspect(Record, frozen=True):
    """The first node whose output is not that of the fp32 graph. ``gap`` is over its largest value, null when not finite."""

    node: str
    operator: str
    output: str
    module: str
    place: int
    why: str
    gap: float | None


class BisectFound(Record, frozen=True):
    """``found.json``: how many nodes the graph has and how many had a counterpart, the largest gap of those that passed, the suspect."""

    format: Literal[1]
    nodes: int
    compared: int
    largest_gap: float
    first: Suspect | None


class Bisected(Record, frozen=True):
    """The answer: what was compared with what, on which pair, and what was found."""

    root: str
    target: str
    reference: str
    pair: int
    tokens: int
    tolerance: float
    found: BisectFound

    @property
    def exit_code(self) -> int:
        """10 when a node was found, 0 when none left its tolerance."""
        return 10 if self.found.first is not None else 0


def resolve(model: str, adapter: str | None) -> Resolved:
    """A folder or ``ID@REVISION``, and the adapter of that model in the same words. Raises as ``candidate.resolve`` does."""
    named = reference(model)
    found = candidate.resolve(named.model, named.revision, Path(), headless=adapter is not None)
    return found if adapter is None else add(found, reference(adapter), Path())


def bisect(
    root: Path,
    target: str,
    pair: int | None,
    tolerance: float | None,
    on_progress: Progress,
    model: Resolved | None = None,
) -> Bisected:
    """Verify the root and search. With ``model``, what it is compared with is exported again from there.

    Raises ``NotIntact``, ``AskedWrongly``, or ``Unavailable`` when a graph cannot be made or run.
    """
    checked = answer.check(root)
    plan = checked.records.plan
    paths = checked.opened.paths
    asked_of = _target(plan.targets, target, paths)
    sides = {"candidate": asked_of}
    if model is None:
        sides["reference"] = _reference(plan.targets, asked_of, paths)
    else:
        _check_model(plan.candidate, model.candidate)
    tensors, chosen = _tokens(checked, asked_of, pair)
    allowed = TOLERANCE[asked_of.precision] if tolerance is None else tolerance
    asked = BisectAsked(
        format=1,
        ids=tuple(tensors.ids[chosen].tolist()),
        segments=tuple(tensors.segments[chosen].tolist()),
        first_position=first_position(plan.candidate),
        pad_token_id=plan.candidate.pad_token_id,
        padding_side=plan.candidate.padding_side,
        tolerance=allowed,
        threads=asked_of.threads,
        again=None if model is None else Again(candidate=plan.candidate, options=plan.options.L0),
    )
    with tempfile.TemporaryDirectory(prefix="qualify-") as scratch:
        folder = Path(scratch).resolve()
        write_new(folder, "asked.json", to_json(asked))
        for side, of in sides.items():
            inside = f"{artifact_folder(of.name)}/"
            for path in paths:
                if path.startswith(inside):
                    write_new(folder, f"{side}/{path.removeprefix(inside)}", checked.opened.read(path))
        found = _search(folder, asked_of.threads, on_progress, model)
    return Bisected(
        root=str(root),
        target=target,
        reference=sides["reference"].name if model is None else "a new export of the model",
        pair=chosen,
        tokens=len(asked.ids),
        tolerance=allowed,
        found=found,
    )


def _target(targets: tuple[PlannedTarget, ...], name: str, paths: Collection[str]) -> PlannedTarget:
    """The target of that name, whose graph is in the root."""
    for target in targets:
        if target.name == name:
            if f"{artifact_folder(name)}/{GRAPH}" not in paths:
                raise AskedWrongly(f"--target {name}: expected its artifact in the root, got none; its L0 built none")
            return target
    raise AskedWrongly(f"--target: expected one of {', '.join(target.name for target in targets)}, got {name}")


def _reference(targets: tuple[PlannedTarget, ...], asked: PlannedTarget, paths: Collection[str]) -> PlannedTarget:
    """Another target's fp32 graph, an export rather than a prebuilt one."""
    there = [
        target
        for target in targets
        if target.precision == "fp32"
        and target.name != asked.name
        and f"{artifact_folder(target.name)}/{GRAPH}" in paths
    ]
    if not there:
        raise AskedWrongly(
            f"--target {asked.name}: expected the graph of another fp32 target in the root to compare with, got none;"
            " give the model with --model and it is exported again"
        )
    return min(there, key=lambda target: target.artifact is not None)


def _check_model(planned: Candidate, given: Candidate) -> None:
    """What is exported again must be, byte for byte, what the root qualified."""
    if given.digest != planned.digest:
        what = "--model" if planned.adapter is None else "--model and --adapter"
        raise AskedWrongly(
            f"{what}: expected the candidate of the root, {planned.digest}, got {given.digest}; give the files that it was made from"
        )


def _tokens(checked: answer.Checked, target: PlannedTarget, pair: int | None) -> tuple[Tensors, int]:
    """The sealed tokens of any L2 step (all targets have the same), and the pair: the one asked for, or the worst of the target."""
    read, paths = checked.opened.read, checked.opened.paths
    steps = {
        name: step.request
        for (name, tier), step in checked.records.steps.items()
        if tier == "L2" and step.request is not None and f"{step_folder('L2', name)}/tokens.json" in paths
    }
    if not steps:
        raise AskedWrongly(f"{checked.path}: expected a step of L2, whose pairs are tokenised and sealed, got none")
    name = target.name if target.name in steps else next(iter(steps))
    _, tensors = read_tensors(steps[name], read)
    count = len(tensors.ids)
    if pair is not None and not 0 <= pair < count:
        raise AskedWrongly(f"--pair: expected a number from 0 to {count - 1}, got {pair}")
    return tensors, _worst(checked, target, count) if pair is None else pair


def _worst(checked: answer.Checked, target: PlannedTarget, count: int) -> int:
    """The pair with the first logit that is not finite, else that with the largest gap; 0 where L2 did not score this target."""
    import numpy as np

    read, step = checked.opened.read, step_folder("L2", target.name)
    if f"{step}/logits.json" not in checked.opened.paths:
        return 0
    raw_record(read, f"{step}/logits.json", ParityRaw)
    sides = [raw_floats(read, f"{step}/{side}.f32", count).astype(np.float64) for side in ("reference", "artifact")]
    gaps = np.abs(sides[0] - sides[1])
    return int(np.argmax(np.where(np.isfinite(gaps), gaps, np.inf)))


def _search(folder: Path, threads: int, on_progress: Progress, model: Resolved | None) -> BisectFound:
    places = (model.folder, model.adapter) if model is not None else (None, None)
    given = [str(place.resolve()) if place is not None else "" for place in places]
    ended = process.run(
        [sys.executable, "-P", "-m", "harness.worker", "bisect", str(folder), *given],
        environment=launch.stage_environment(os.environ, threads, folder),
        folder=folder,
        time_limit_s=TIME_LIMIT_S,
        started=lambda _pid: None,
        on_line=lambda line: launch.tell(line, on_progress),
        memory_limit_bytes=MEMORY_LIMIT_BYTES,
    )
    if (folder / "found.json").is_file():
        return from_json((folder / "found.json").read_bytes(), BisectFound, "found.json")
    blocked = folder / "blocked.json"
    if blocked.is_file():
        raise Unavailable(from_json(blocked.read_bytes(), BlockedRaw, "blocked.json").reason)
    how = "its time limit" if ended.timed_out else ended.signal or f"exit code {ended.code}"
    raise Unavailable(f"bisect: expected the search to end with an answer, got {how}")


def text(made: Bisected) -> str:
    """The answer in a few lines."""
    found, first = made.found, made.found.first
    sides = f"{made.target} against {made.reference}, pair {made.pair} ({made.tokens} tokens)"
    lines = [f"{sides}: {found.compared} of {found.nodes} nodes have a counterpart"]
    if first is None:
        lines.append(
            f"no node leaves its tolerance of {made.tolerance:g}; the largest gap is {found.largest_gap:.3g} of a tensor's largest value"
        )
    else:
        lines += [
            f"first node {first.place} of {found.nodes}: {first.node} ({first.operator})",
            f"module  {first.module or 'unknown'}",
            f"output  {first.output}",
            f"why     {first.why}; before it at most {found.largest_gap:.3g}",
        ]
    return "\n".join(lines) + "\n"
