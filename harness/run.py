"""Climb a ladder: resolve, plan, run each step in a child, judge it, seal the root, whatever the verdict.

Everything that can be refused is refused before the staging folder exists; from then on nothing is lost: a step that
crashes is BLOCKED, an interrupt ends the climb but what was measured is sealed all the same.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from evidence import manifest, seal
from harness import candidate, data, judge, ladder, launch, plan, records
from harness.environment import observe
from harness.errors import AskedWrongly, NotSealed, RecordError, Unavailable
from harness.records import (
    DataFact,
    HubData,
    Inputs,
    Lineage,
    Measurements,
    Outcome,
    Plan,
    PlannedStep,
    PlannedTarget,
    PrebuiltArtifact,
    Qualification,
    Record,
    Request,
    Tier,
    Verdict,
    from_json,
    to_json,
)

INTERRUPTED = "interrupted by the user"


class Watcher(Protocol):
    """Who is told how the climb goes; ``report.live.Live`` shows it."""

    def step_started(self, target: str, tier: Tier) -> None:
        """A child starts."""

    def progress(self, target: str, tier: Tier, done: int, total: int, what: str) -> None:
        """``done`` of ``total`` units of ``what`` are done in the running step."""

    def step_ended(self, target: str, tier: Tier, outcome: Outcome) -> None:
        """The step has its verdict."""


class Prepared(Record, frozen=True):
    """All that a climb needs and that could be refused: nothing was measured yet, nothing was written."""

    plan: Plan
    ladder_bytes: bytes
    ladder_folder: Path
    model_folder: Path
    prebuilt: dict[str, Path]
    files: dict[str, bytes]


class Climbed(Record, frozen=True):
    """A sealed climb: where the root is, its digest, the harness's claim."""

    root: Path
    digest: str
    claim: Qualification
    interrupted: bool


def now() -> str:
    """UTC, RFC 3339 with milliseconds and ``Z``."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def prepare(ladder_path: Path, model: str | None = None) -> Prepared:
    """Read, resolve and plan. Raises LadderError, CandidateError or Unavailable; writes nothing but the hub client's cache."""
    try:
        ladder_bytes = ladder_path.read_bytes()
    except OSError as error:
        raise AskedWrongly(
            f"{ladder_path}: expected a ladder file, got {error.strerror}; give the path of a YAML ladder"
        ) from error
    asked = ladder.parse(ladder_bytes, ladder_path.name)
    base = ladder_path.parent
    name, revision, model_base = _model(asked, model, base)
    resolved = candidate.resolve(name, revision, model_base)
    paths = {t.name: base / t.artifact for t in asked.targets if t.artifact is not None and t.deferred is None}
    prebuilt: dict[str, PrebuiltArtifact] = {target: candidate.prebuilt(path) for target, path in paths.items()}
    inputs, files = _inputs(asked, base)
    made = plan.make(asked, ladder_bytes, resolved.candidate, inputs, prebuilt)
    return Prepared(
        plan=made,
        ladder_bytes=ladder_bytes,
        ladder_folder=base,
        model_folder=resolved.folder,
        prebuilt=paths,
        files=files,
    )


def _model(asked: ladder.Ladder, override: str | None, base: Path) -> tuple[str, str | None, Path]:
    """The model to resolve: the ladder's, or ``--model DIR`` or ``--model ID@REVISION`` (relative to where the user stands)."""
    if override is None:
        return asked.candidate.model, asked.candidate.revision, base
    if Path(override).is_dir() or override.startswith((".", "/")):
        return override if override.startswith((".", "/")) else f"./{override}", None, Path()
    name, _, revision = override.partition("@")
    return name, revision or asked.candidate.revision, base


def _inputs(asked: ladder.Ladder, base: Path) -> tuple[Inputs, dict[str, bytes]]:
    """The data to score, read and bounded now so that the plan can pin it. A dataset that cannot be had blocks L3 alone."""
    files: dict[str, bytes] = {}
    pairs: DataFact | None = None
    groups: DataFact | None = None
    blocked: str | None = None
    if asked.tiers.L1 is not None or asked.tiers.L2 is not None:
        own = asked.tiers.L2.pairs if asked.tiers.L2 is not None else None
        found = data.builtin_pairs()
        if own is not None:
            found = (*data.read_pairs(_read(base / own, own), own), *found)
        files[records.PAIRS] = data.render_pairs(found)
        pairs = data.pair_facts(found, source=f"built-in and {own}" if own else "built-in")
    if asked.tiers.L3 is not None:
        options = asked.tiers.L3
        try:
            if isinstance(options.data, HubData):
                raw = launch.load_dataset(options.data, options.groups, options.candidates)
                source = f"{options.data.dataset}@{options.data.revision}:{options.data.split}"
            else:
                raw, source = _read(base / options.data, options.data), options.data
            read = data.read_groups(raw, source)
            bounded = data.bound(read, options.groups, options.candidates)
            files[records.GROUPS] = data.render_groups(bounded)
            groups = data.group_facts(
                bounded,
                source=source,
                available=len(read),
                max_groups=options.groups,
                max_candidates=options.candidates,
            )
        except Unavailable as error:
            blocked = str(error)
    return Inputs(pairs=pairs, groups=groups, groups_blocked=blocked), files


def _read(path: Path, named: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AskedWrongly(
            f"{named}: expected a JSONL file beside the ladder, got {error.strerror}; correct the path in the ladder"
        ) from error


def climb(prepared: Prepared, out: Path, watcher: Watcher) -> Climbed:
    """Run every step of the plan, judge, seal and publish at ``out``, which must not exist.

    Raises AskedWrongly when ``out`` is taken, NotSealed when the disk does not take the root.
    """
    try:
        staging = seal.stage(out)
    except seal.SealError as error:
        raise AskedWrongly(str(error)) from error
    try:
        return _climb(prepared, staging, out, watcher)
    except (seal.SealError, OSError) as error:
        raise NotSealed(
            f"{out}: expected to seal the climb, got: {error}; what was measured is in {staging}: "
            "mend the cause, look at it if you need to, remove it with qualify rm, and run again"
        ) from error


def _climb(prepared: Prepared, staging: Path, out: Path, watcher: Watcher) -> Climbed:
    started = now()
    plan_bytes = to_json(prepared.plan)
    plan_digest = manifest.digest_of(plan_bytes)
    write = _writer(staging)
    write(records.LADDER, prepared.ladder_bytes)
    write(records.PLAN, plan_bytes)
    write(records.ENVIRONMENT, to_json(observe(prepared.ladder_folder)))
    write(records.LINEAGE, to_json(Lineage(format=1)))
    for path, content in prepared.files.items():
        write(path, content)
    outcomes: dict[tuple[str, Tier], Outcome] = {}
    interrupted = False
    for target in prepared.plan.targets:
        for step in target.steps:
            outcome = _step(prepared, staging, plan_digest, target, step, watcher)
            outcomes[target.name, step.tier] = outcome
            interrupted = outcome.reason == INTERRUPTED
            if outcome.verdict != "PASS":
                break
        if interrupted:
            break
    claim = judge.qualification(prepared.plan, plan_digest, outcomes, started, now())
    write(records.CLAIM, to_json(claim))
    digest = seal.seal(staging, out)
    return Climbed(root=out, digest=digest, claim=claim, interrupted=interrupted)


def _writer(staging: Path) -> Callable[[str, bytes], None]:
    def write(path: str, content: bytes) -> None:
        seal.write_new(staging, path, content)

    return write


def _step(
    prepared: Prepared, staging: Path, plan_digest: str, target: PlannedTarget, step: PlannedStep, watcher: Watcher
) -> Outcome:
    """Run and judge one step; always leaves ``outcome.json``."""
    made = prepared.plan
    folder = records.step_folder(step.tier, target.name)
    request = Request(
        format=1,
        tier=step.tier,
        target=target,
        candidate=made.candidate,
        options=made.options,
        inputs=made.inputs,
        seed=made.seed,
        plan_digest=plan_digest,
        step=folder,
        artifact=records.artifact_folder(target.name),
    )
    watcher.step_started(target.name, step.tier)
    started, ended, ended_as, redactions, reason = now(), None, None, 0, ""
    try:
        if step.tier == "L3" and made.inputs.groups_blocked is not None:
            reason = made.inputs.groups_blocked
        else:
            places = launch.Places(
                root=staging, model=prepared.model_folder, prebuilt=prepared.prebuilt.get(target.name)
            )
            ended_as, redactions = launch.run_step(
                request, places, lambda done, total, what: watcher.progress(target.name, step.tier, done, total, what)
            )
            reason = launch.why_blocked(staging, request, ended_as)
    except KeyboardInterrupt:
        reason = INTERRUPTED
    ended = now()
    found = None if reason else _measurements(staging, folder)
    findings = judge.judge(step.limits, found.measurements) if found is not None else ()
    verdict = judge.step_verdict(findings)
    outcome = Outcome(
        format=1,
        tier=step.tier,
        target=target.name,
        verdict=verdict,
        reason=reason or judge.outcome_reason(verdict, findings),
        plan_digest=plan_digest,
        candidate_digest=made.candidate.digest,
        artifact_digest=launch.artifact_digest_of(staging, request),
        started_at=started,
        ended_at=ended,
        exit=ended_as,
        redactions=redactions,
        findings=findings,
    )
    seal.write_new(staging, f"{folder}/outcome.json", to_json(outcome))
    watcher.step_ended(target.name, step.tier, outcome)
    return outcome


def _measurements(staging: Path, folder: str) -> Measurements | None:
    path = staging / folder / "measurements.json"
    try:
        return from_json(path.read_bytes(), Measurements, f"{folder}/measurements.json")
    except (OSError, RecordError):
        return None


def exit_code(verdict: Verdict) -> int:
    """DESIGN section 6: 0 qualified, 10 no on merit, 30 undetermined."""
    return {"PASS": 0, "FAIL": 10}.get(verdict, 30)
