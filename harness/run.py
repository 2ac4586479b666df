"""Climb a ladder: resolve, plan, run each step in a child, judge it, seal the root, whatever the verdict.

Everything that can be refused is refused before the staging folder exists; from then on nothing is lost: a step that
crashes is BLOCKED, an interrupt ends the climb but what was measured is sealed all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from evidence import manifest, seal
from evidence.meaning import INTERRUPTED
from harness import adapter, candidate, data, gates, judge, ladder, launch, plan, quality, records, sources, step
from harness.baseline import Baseline
from harness.clock import now
from harness.environment import observe
from harness.errors import AskedWrongly, NotSealed, Stopped, Unavailable
from harness.held import held
from harness.prebuilt import pin
from harness.preserve import Past
from harness.records import (
    DataFact,
    DataSource,
    Inputs,
    Outcome,
    Plan,
    PlannedStep,
    PrebuiltArtifact,
    Qualification,
    Record,
    Request,
    Tier,
    to_json,
)
from harness.sources import read_bytes
from harness.step import Watcher

LEFT = "what was measured is in {}: look at it if you need to, remove it with qualify rm"


class Prepared(Record, frozen=True):
    """All that a climb needs and that could be refused: nothing was measured yet, nothing was written.

    ``sources`` are the ladder's file and the data that it names beside itself.
    """

    plan: Plan
    ladder_bytes: bytes
    ladder_folder: Path
    model_folder: Path
    adapter_folder: Path | None
    prebuilt: dict[str, Path]
    files: dict[str, bytes]
    baseline: Baseline | None = None
    sources: tuple[Path, ...] = ()
    record: tuple[str, ...] = ()


class Climbed(Record, frozen=True):
    """A sealed climb: where the root is, its digest, the harness's claim."""

    root: Path
    digest: str
    claim: Qualification
    interrupted: bool


def prepare(
    ladder_path: Path, model: str | None = None, only: Sequence[str] = (), beside: Baseline | None = None
) -> Prepared:
    """Read, resolve and plan, ``only`` these targets if any, L1 compared with ``beside``; writes nothing but the hub client's cache.

    Raises LadderError, CandidateError or Unavailable.
    """
    ladder_bytes = read_ladder(ladder_path)
    asked = ladder.parse(ladder_bytes, ladder_path.name)
    climbed = plan.restrict(asked, only)[0].targets  # refuses a name before a model is fetched
    base = ladder_path.parent
    name, revision, model_base = _model(asked, model, base)
    resolved = candidate.resolve(name, revision, model_base, headless=asked.candidate.adapter is not None)
    if asked.candidate.adapter is not None:
        resolved = adapter.add(resolved, asked.candidate.adapter, base)
    paths = {t.name: base / t.artifact for t in climbed if t.artifact is not None and t.deferred is None}
    prebuilt: dict[str, PrebuiltArtifact] = {target: pin(path) for target, path in paths.items()}
    inputs, files = _inputs(asked, base)
    if beside is not None:
        if asked.tiers.L1 is None:
            raise AskedWrongly(
                f"--baseline {beside.root}: expected a ladder that climbs L1, got one with the goal {asked.goal}; leave it out"
            )
        inputs = msgspec.structs.replace(inputs, baseline=beside.fact)
        files[records.BASELINE] = beside.manifest
    made = plan.make(asked, ladder_bytes, resolved.candidate, inputs, prebuilt, only)
    return Prepared(
        plan=made,
        ladder_bytes=ladder_bytes,
        ladder_folder=base,
        model_folder=resolved.folder,
        adapter_folder=resolved.adapter,
        prebuilt=paths,
        files=files,
        baseline=beside,
        sources=(ladder_path, *(base / name for name in _named(asked))),
        record=asked.record,
    )


def _named(asked: ladder.Ladder) -> Iterator[str]:
    """The files of data, pairs and pins that a ladder names. Weights are none: the plan pins each by its digest."""
    tiers = asked.tiers
    found = [asked.lock.file if asked.lock is not None else None, tiers.L0.int8.calibration]
    found.append(tiers.L2.pairs if tiers.L2 is not None else None)
    ranked = tiers.L3.data if tiers.L3 is not None else None
    trec = ranked.trec if isinstance(ranked, DataSource) else None
    found += [ranked] if isinstance(ranked, str) else []
    found += [trec.queries, trec.docs, trec.qrels, trec.run] if trec is not None else []
    return (name for name in found if name is not None)


def read_ladder(path: Path) -> bytes:
    """The bytes of a ladder file. Raises AskedWrongly."""
    try:
        return sources.file_bytes(path)
    except OSError as error:
        raise AskedWrongly(
            f"{path}: expected a ladder file, got {error.strerror}; give the path of a YAML ladder"
        ) from error


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
            found = (*data.read_pairs(read_bytes(base / own, own, "a JSONL file"), own), *found)
        files[records.PAIRS] = data.render_pairs(found)
        pairs = data.pair_facts(found, source=f"built-in and {own}" if own else "built-in")
    calibration = _calibration(asked, base, files)
    if asked.tiers.L3 is not None:
        try:
            found_groups, groups = sources.load(asked.tiers.L3, asked.seed, base)
            files[records.GROUPS] = data.render_groups(found_groups)
        except Unavailable as error:
            blocked = str(error)
    lock = _lock(asked, base, files)
    return Inputs(pairs=pairs, groups=groups, groups_blocked=blocked, calibration=calibration, lock=lock), files


def _lock(asked: ladder.Ladder, base: Path, files: dict[str, bytes]) -> DataFact | None:
    """The file that pins the packages, put into ``files``; None where none is named."""
    if asked.lock is None:
        return None
    named = asked.lock.file
    try:
        content = sources.read_bytes(base / named, named, "a file of pins")
        rows = len(quality.pins(content.decode("utf-8"), named))
    except UnicodeDecodeError as error:
        raise AskedWrongly(
            f"{named}: expected UTF-8 text, got {error.reason}; name the file that pins the packages"
        ) from error
    files[records.LOCK] = content
    return DataFact(path=records.LOCK, digest=manifest.digest_of(content), source=named, rows=rows)


def _calibration(asked: ladder.Ladder, base: Path, files: dict[str, bytes]) -> DataFact | None:
    """The bounded pairs that a static int8 conversion measures activations on, put into ``files``; None where none are asked for."""
    options = asked.tiers.L0.int8
    if options.calibration is None:
        return None
    found = data.read_pairs(
        read_bytes(base / options.calibration, options.calibration, "a JSONL file"), options.calibration
    )
    bounded = found[: options.pairs]
    files[records.CALIBRATION] = data.render_pairs(bounded)
    facts = data.pair_facts(bounded, source=options.calibration)
    return msgspec.structs.replace(facts, path=records.CALIBRATION, bounds={"pairs": options.pairs})


def climb(prepared: Prepared, out: Path, watcher: Watcher, past: Past | None = None) -> Climbed:
    """Run every step of the plan that is not carried, judge, seal and publish at ``out``, which must not exist.

    Raises AskedWrongly when ``out`` is taken or being made, NotSealed when the disk does not take the root, Stopped when an
    interrupt finds no step to end.
    """
    with held(out):
        try:
            staging = seal.stage(out)
        except seal.SealError as error:
            raise AskedWrongly(str(error)) from error
        return _sealed(prepared, staging, out, watcher, past or Past())


def _sealed(prepared: Prepared, staging: Path, out: Path, watcher: Watcher, past: Past) -> Climbed:
    try:
        return _climb(prepared, staging, out, watcher, past)
    except KeyboardInterrupt as error:
        left = f"{out} is there, look at it with qualify verify" if out.exists() else f"no root was made: {LEFT}"
        raise Stopped(f"{out}: interrupted before it was sealed and shown; {left.format(staging)}") from error
    except (seal.SealError, OSError) as error:
        raise NotSealed(
            f"{out}: expected to seal the climb, got: {error}; mend the cause; {LEFT.format(staging)}, and run again"
        ) from error


def _climb(prepared: Prepared, staging: Path, out: Path, watcher: Watcher, past: Past) -> Climbed:
    started = now()
    plan_bytes = to_json(prepared.plan)
    plan_digest = manifest.digest_of(plan_bytes)
    write = _writer(staging)
    write(records.LADDER, prepared.ladder_bytes)
    write(records.PLAN, plan_bytes)
    environment = observe(
        prepared.ladder_folder,
        every_package=prepared.plan.lock is not None,
        sources=prepared.sources,
        record=prepared.record,
    )
    write(records.ENVIRONMENT, to_json(environment))
    for path, content in prepared.files.items():
        write(path, content)
    told = watcher.gate
    left = gates.run_all(prepared.plan.gates, staging, prepared.ladder_folder, plan_digest, told)
    claims = quality.gate_claims(prepared.plan.gates, left)
    interrupted = any(gate.reason == INTERRUPTED for gate in left.values())
    outcomes: dict[tuple[str, Tier], Outcome] = {}
    carried: list[tuple[str, Tier]] = []
    for target in prepared.plan.targets if quality.passed(claims) else ():
        for planned in target.steps:
            key = target.name, planned.tier
            if (origin := past.origin(key)) is not None:
                carried.append(key)
                outcome = past.carry(staging, target.name, planned)
                said = outcome.reason or f"preserved from {origin}"
                watcher.step_ended(*key, msgspec.structs.replace(outcome, exit=None, reason=said))
            else:
                artifact = records.artifact_place(past.lineage(carried), target.name)
                request = plan.request(prepared.plan, plan_digest, target, planned.tier, artifact)
                outcome = _run(prepared, staging, request, planned, watcher)
                interrupted = outcome.reason == INTERRUPTED
            outcomes[key] = outcome
            if outcome.verdict != "PASS":
                break
        if interrupted:
            break
    write(records.LINEAGE, to_json(past.lineage(carried)))
    lock = None
    if prepared.plan.lock is not None:
        lock = quality.lock_claim(prepared.plan.lock, prepared.files[records.LOCK].decode(), environment.packages)
    claim = judge.qualification(prepared.plan, plan_digest, outcomes, started, now(), claims, lock)
    write(records.CLAIM, to_json(claim))
    digest = seal.seal(staging, out)
    return Climbed(root=out, digest=digest, claim=claim, interrupted=interrupted)


def _run(prepared: Prepared, staging: Path, request: Request, planned: PlannedStep, watcher: Watcher) -> Outcome:
    name = request.target.name
    places = launch.Places(
        root=staging,
        model=prepared.model_folder,
        prebuilt=prepared.prebuilt.get(name),
        adapter=prepared.adapter_folder,
        baseline=prepared.baseline.artifact(name) if prepared.baseline is not None else None,
    )
    return step.run(request, planned.limits, places, watcher)


def _writer(staging: Path) -> Callable[[str, bytes], None]:
    def write(path: str, content: bytes) -> None:
        seal.write_new(staging, path, content)

    return write
