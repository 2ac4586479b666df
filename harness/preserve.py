"""Carry steps of an earlier root into a new one, or refuse to, before anything runs. The rules are in ``lineage``.

The earlier root is verified and judged again first, and only read: its files are copied byte for byte, each compared with the
digest that its manifest gives, beside its ``SEAL`` and ``MANIFEST.b3``.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from evidence.manifest import MANIFEST_NAME, SEAL_NAME
from evidence.records import RECORDS
from evidence.seal import SealError
from evidence.verify import VerifiedRoot, open_root
from harness import judge, lineage, records
from harness.environment import observe
from harness.errors import AskedWrongly, NotIntact, RecordError
from harness.files import hash_file
from harness.lineage import Step
from harness.recheck import rejudge
from harness.records import Environment, Lineage, Outcome, Plan, PlannedStep, Preserved, Superseded, Tier
from harness.root import RootRecords


class Reuse(NamedTuple):
    """An earlier root, and the origin (root digest) of each of its steps that is carried."""

    opened: VerifiedRoot
    found: RootRecords
    origins: Mapping[Step, str]


class Past(NamedTuple):
    """What a new root replaces, what it may carry, and what the one who climbs should know of it, a sentence each."""

    supersedes: tuple[Superseded, ...] = ()
    reuse: Reuse | None = None
    notes: tuple[str, ...] = ()

    def origin(self, step: Step) -> str | None:
        """The digest of the root that a step is carried from; None for one that runs."""
        return self.reuse.origins.get(step) if self.reuse is not None else None

    def lineage(self, carried: Collection[Step]) -> Lineage:
        """The record of a climb that came to carry these steps: a target that stopped early carries fewer than it might."""
        steps: dict[str, list[str]] = {}
        for target, tier in carried:
            origin = str(self.origin((target, tier)))
            steps.setdefault(origin, []).append(records.step_folder(tier, target))
        kept = tuple(Preserved(origin=origin, steps=tuple(sorted(steps[origin]))) for origin in sorted(steps))
        return Lineage(format=1, supersedes=self.supersedes, preserved=kept)

    def carry(self, staging: Path, target: str, step: PlannedStep) -> Outcome:
        """Copy one carried step, its origin's records, and with L0 the artifact, into ``staging``; the step judged under this plan.

        Raises SealError when a file is not as it was verified, OSError.
        """
        assert self.reuse is not None
        opened, found, origins = self.reuse
        key: Step = (target, step.tier)
        place = records.origin_folder(origins[key])
        within = place if key in found.preserved else ""
        wanted = tuple(f"{within}{folder}/" for folder in _folders(target, step.tier))
        paths = [path.removeprefix(within) for path in opened.paths if path.startswith(wanted)]
        if not (staging / place).exists():
            paths += RECORDS
            _copy(opened, within + MANIFEST_NAME, staging / place / MANIFEST_NAME, origins[key].removeprefix("blake3:"))
            _copy(opened, within + SEAL_NAME, staging / place / SEAL_NAME, None)
        for path in paths:
            _copy(opened, within + path, staging / place / path, opened.digests[within + path])
        left = found.steps[key]
        return judge.again(left.outcome, step.limits, left.numbers)


class Asked(NamedTuple):
    """The options of ``qualify run`` that are about earlier roots."""

    supersede: Path | None = None
    reason: str | None = None
    preserve: Path | None = None
    rerun: Sequence[str] = ()

    def check(self) -> None:
        """Refuse options that make no sense without each other. Raises AskedWrongly."""
        supersede, reason, preserve, rerun = self
        if supersede is not None and not (reason or "").strip():
            raise AskedWrongly(f"--supersede {supersede}: expected --reason TEXT, got none; say why it is replaced")
        if supersede is None and reason is not None:
            raise AskedWrongly("--reason: expected it with --supersede ROOT, got it alone; name the root")
        if preserve is not None and not rerun:
            raise AskedWrongly(f"--preserve {preserve}: expected --rerun TIER[:TARGET], got none; say what runs again")
        if preserve is None and rerun:
            raise AskedWrongly(f"--rerun {rerun[0]}: expected it with --preserve ROOT, got it alone; name the root")


def look_back(asked: Asked, plan: Plan, ladder_folder: Path) -> Past:
    """Look at the earlier roots, before anything runs. Raises AskedWrongly for one that may not be replaced, or carried from.

    A root that is both is rehashed once.
    """
    supersede, reason, preserve, rerun = asked
    old: tuple[Superseded, ...] = ()
    opened = intact(supersede, "--supersede") if supersede is not None else None
    notes: tuple[str, ...] = ()
    if supersede is not None and opened is not None:
        old = (superseded(supersede, reason or "", plan, opened),)
        notes = _other_candidate(supersede, plan, opened)
    if preserve is None:
        return Past(old, notes=notes)
    same = supersede is not None and supersede.resolve() == preserve.resolve()
    return Past(old, reuse(preserve, rerun, plan, observe(ladder_folder), opened if same else None), notes)


def _other_candidate(root: Path, plan: Plan, opened: VerifiedRoot) -> tuple[str, ...]:
    """That the root to be replaced is of other files: a retrained model may replace the old answer, but a slip should be seen."""
    was = records.from_json(opened.read(records.PLAN), Plan, f"{root}/{records.PLAN}").candidate
    now = plan.candidate
    if was.digest == now.digest:
        return ()
    both = f"{was.model} {was.digest}; this climb is of {now.model} {now.digest}"
    return (f"--supersede {root}: it is of another candidate, {both}, and replaces it all the same",)


def superseded(root: Path, reason: str, plan: Plan, opened: VerifiedRoot | None = None) -> Superseded:
    """The record of what is replaced, ``opened`` where it is verified already. A failed climb may be replaced too.

    Raises AskedWrongly unless it is a root of this ladder.
    """
    opened = opened or intact(root, "--supersede")
    there = records.from_json(opened.read(records.PLAN), Plan, f"{root}/{records.PLAN}")
    for what, was, now in (
        ("ladder", there.ladder, plan.ladder),
        ("model", there.candidate.revision and there.candidate.model, plan.candidate.revision and plan.candidate.model),
    ):
        if was != now and not (what == "model" and None in {was, now}):
            raise AskedWrongly(
                f"--supersede {root}: expected a root of {what} {now}, got {was}; only the same question can be answered anew"
            )
    return Superseded(digest=str(opened.digest), reason=reason.strip())


def reuse(
    root: Path, rerun: Sequence[str], plan: Plan, environment: Environment, opened: VerifiedRoot | None = None
) -> Reuse:
    """What may be carried from ``root`` under ``plan``: every step that it has and that ``rerun`` does not name.

    ``opened`` is the root where it is verified already.

    Raises AskedWrongly when any of these may not stand for a step that would run now; NotIntact for a root that does not verify.
    """
    named = lineage.to_rerun(rerun, plan)
    opened = opened or intact(root, "--preserve")
    judged = rejudge(opened.read, opened.paths, opened.digests, opened.sizes)
    if judged.records is None or not judged.holds:
        got = judged.faults[0].message if judged.faults else judged.why
        said = f"--preserve {root}: expected a root whose claim its samples bear out, got: {got}; see qualify verify"
        raise NotIntact(said, 20 if judged.faults else 30)
    found, own = judged.records, str(opened.digest)
    planned = [(target.name, step.tier) for target in plan.targets for step in target.steps]
    origins = {step: found.preserved.get(step, own) for step in planned if step in found.steps and step not in named}
    lineage.check_builds(named, origins)
    for step in origins:
        _check(root, found, step, plan, environment)
    check_withdrawn(f"--preserve {root}", own, origins, opened)
    return Reuse(opened, found, origins)


def intact(root: Path, option: str, digest: str | None = None) -> VerifiedRoot:
    """The root that an option names, rehashed. Raises ``NotIntact``, and ``AskedWrongly`` where there is no folder."""
    if not root.is_dir():
        raise AskedWrongly(f"{option} {root}: expected the folder of a root, got none; check the path")
    opened = open_root(root, digest)
    if not opened.report.ok:
        faults = opened.report.faults
        got = faults[0].message if faults else "one that could not be checked wholly"
        said = f"{option} {root}: expected a root that is intact, got: {got}; see qualify verify"
        raise NotIntact(said, 20 if faults else 30)
    return opened


def _check(root: Path, found: RootRecords, step: Step, plan: Plan, environment: Environment) -> None:
    """Refuse a step that has no number, or whose samples rely on something that is otherwise now."""
    name, tier = step
    left = found.steps[step]
    where, add = f"--preserve {root}: {tier} on {name}", f"add --rerun {tier}:{name}"
    if left.measurements is None or judge.broke(left.outcome):
        raise AskedWrongly(f"{where}: expected a step with numbers, got {left.outcome.verdict}; {add}")
    there_plan, there_environment = found.ran_under(step)
    here, there = (
        lineage.relied_on(made, facts, next(t for t in made.targets if t.name == name), tier)
        for made, facts in ((plan, environment), (there_plan, there_environment))
    )
    for what, one, other in lineage.disagreements(here, there):
        raise AskedWrongly(f"{where}: expected {what} {judge.show_value(one)}, got {judge.show_value(other)}; {add}")


def check_withdrawn(where: str, own: str, origins: Mapping[Step, str], opened: VerifiedRoot) -> None:
    """Refuse a root that another beside it replaces, and a step that it carries from one such, unless the other carries it too.

    What is read here is not verified: it can only cause a refusal.
    """
    wanted = {(origin, records.step_folder(tier, target)) for (target, tier), origin in origins.items()}
    for path in sorted(opened.folder.absolute().parent.glob(f"*/{records.LINEAGE}")):
        try:
            beside = records.from_json(path.read_bytes(), Lineage, str(path))
        except (OSError, RecordError):
            continue
        kept = {(entry.origin, folder) for entry in beside.preserved for folder in entry.steps}
        for old in beside.supersedes:
            if old.digest == own or any(origin == old.digest for origin, _ in wanted - kept):
                raise AskedWrongly(
                    f"{where}: expected evidence that no other root replaces, got that of {old.digest}, which "
                    f"{path.parent.name} beside it replaces ({old.reason}); give that one, or run without"
                )


def _folders(target: str, tier: Tier) -> tuple[str, ...]:
    """What is carried with a step: its folder, and with L0 the artifact."""
    own = records.step_folder(tier, target)
    return (own, records.artifact_folder(target)) if tier == "L0" else (own,)


def _copy(opened: VerifiedRoot, path: str, to: Path, digest: str | None) -> None:
    """Copy a file that may be large. ``SEAL`` has no digest of its own: the new root's verification reads it."""
    to.parent.mkdir(parents=True, exist_ok=True)
    with (opened.folder / path).open("rb") as read, to.open("xb") as write:
        shutil.copyfileobj(read, write, 1 << 20)
    if digest is not None and (got := hash_file(to)) != digest:
        raise SealError(f"{opened.folder / path}: expected blake3 {digest}, as it was verified, got {got}")
