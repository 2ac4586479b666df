"""Ladder x candidate x data -> ``Plan``: every value that a stage will use and every limit it is judged by, fixed beforehand. Pure.

The same ladder bytes, candidate and inputs give the same plan, byte for byte: the verifier makes it again and compares. What
cannot be carried out is refused here, before the first second of work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn, TypeVar

import msgspec

from evidence.manifest import digest_of
from harness import ladder
from harness.derive_paired import AGAINST_BASELINE
from harness.errors import LadderError
from harness.ladder_format import Ladder, Target
from harness.metrics.catalogue import LOAD_LIMITS, fixed_limits
from harness.records import (
    BuildOptions,
    Candidate,
    Inputs,
    IntegerOptions,
    ParityOptions,
    PerfOptions,
    Plan,
    PlannedStep,
    PlannedTarget,
    PrebuiltArtifact,
    Record,
    Request,
    RerankOptions,
    SweepOptions,
    Tier,
    TierOptions,
    step_folder,
)

DEFAULT_MAX_LENGTH = 512
"""Tokens a pair is cut at when the ladder says nothing and the candidate takes as many."""
LEFT_OUT = "left to another climb: this one was asked for {} alone"
"""Why a target that ``only`` does not name is not climbed."""
SHORTEST_LENGTH = 8
"""Fewer tokens hold no pair: up to 4 are special, and either side needs some."""

Scored = TypeVar("Scored", PerfOptions, ParityOptions, RerankOptions)
Kind = TypeVar("Kind", bound=Record)


def make(
    asked: Ladder,
    ladder_bytes: bytes,
    candidate: Candidate,
    inputs: Inputs,
    prebuilt: Mapping[str, PrebuiltArtifact],
    only: Sequence[str] = (),
) -> Plan:
    """Fix the plan. ``prebuilt`` is by target name; ``only`` names the targets to climb, all without it.

    Raises ``LadderError`` for what the candidate or the data do not allow.
    """
    defaults = ladder.defaults(ladder_bytes)
    asked, only = restrict(asked, only)
    options = _options(asked, candidate, defaults)
    _check_inputs(asked, options, inputs)
    return Plan(
        format=1,
        ladder=asked.name,
        ladder_digest=digest_of(ladder_bytes),
        seed=asked.seed,
        goal=asked.goal,
        candidate=candidate,
        options=options,
        inputs=inputs,
        targets=tuple(_target(asked, target, options, prebuilt, candidate) for target in asked.targets),
        defaults=defaults,
        only=only,
        gates=asked.gates,
        lock=asked.lock,
    )


def restrict(asked: Ladder, only: Sequence[str]) -> tuple[Ladder, tuple[str, ...]]:
    """The ladder with every target deferred that ``only`` does not name, and those names in the ladder's order.

    Naming every target that can be climbed is the same as naming none. Raises ``LadderError`` for a name that is not there.
    """
    climbed = [target.name for target in asked.targets if target.deferred is None]
    for name in only:
        if name not in climbed:
            got = f"{name!r}, which the ladder defers" if name in {t.name for t in asked.targets} else repr(name)
            _refuse(asked, "targets", f"one of {', '.join(climbed) or 'none'}", got, "name a target of the ladder")
    kept = tuple(name for name in climbed if name in only)
    if not kept or len(kept) == len(climbed):
        return asked, ()
    why = LEFT_OUT.format(", ".join(kept))
    targets = tuple(
        target if target.deferred is not None or target.name in kept else msgspec.structs.replace(target, deferred=why)
        for target in asked.targets
    )
    return msgspec.structs.replace(asked, targets=targets), kept


def left_out(made: Plan) -> tuple[str, ...]:
    """The targets that are deferred only because ``only`` does not name them: another climb is to have them."""
    why = LEFT_OUT.format(", ".join(made.only))
    return tuple(target.name for target in made.targets if made.only and target.deferred == why)


def request(made: Plan, plan_digest: str, target: PlannedTarget, tier: Tier, artifact: str) -> Request:
    """What a worker is asked for one step of a plan; ``artifact`` is the root-relative folder that holds the target's artifact."""
    return Request(
        format=1,
        tier=tier,
        target=target,
        candidate=made.candidate,
        options=made.options,
        inputs=made.inputs,
        seed=made.seed,
        plan_digest=plan_digest,
        step=step_folder(tier, target.name),
        artifact=artifact,
    )


def _options(asked: Ladder, candidate: Candidate, defaults: Collection[str]) -> TierOptions:
    tiers = asked.tiers
    build = _without_limits(tiers.L0, BuildOptions)
    if not isinstance(build.shape, str):
        _check_length(asked, "tiers.L0.shape", build.shape[1], candidate)
    _check_calibration(asked, build.int8)

    def fitted(tier: str, options: Scored) -> Scored:
        """Batch size and length that graph and candidate take: a default gives way, a value of the ladder is refused."""
        fixed = {} if isinstance(build.shape, str) else {"batch_size": build.shape[0], "max_length": build.shape[1]}
        wanted = {"max_length": min(DEFAULT_MAX_LENGTH, candidate.max_length)} | fixed
        open_ = {name for name in wanted if f"/tiers/{tier}/{name}" in defaults}
        for name in sorted(set(wanted) - open_):
            where, value = f"tiers.{tier}.{name}", getattr(options, name)
            if name in fixed and value != fixed[name]:
                expected = f"{fixed[name]}, as the fixed shape [{fixed['batch_size']}, {fixed['max_length']}]"
                _refuse(asked, where, expected, str(value), "change one of the two")
            if name == "max_length":
                _check_length(asked, where, value, candidate)
        return msgspec.structs.replace(options, **{name: wanted[name] for name in open_})

    if tiers.L1 is not None and tiers.L1.sweep is not None:
        _check_sweep(asked, tiers.L1.sweep, build, candidate)
    return TierOptions(
        L0=build,
        L1=fitted("L1", _without_limits(tiers.L1, PerfOptions)) if tiers.L1 else None,
        L2=fitted("L2", _without_limits(tiers.L2, ParityOptions)) if tiers.L2 else None,
        L3=fitted("L3", _without_limits(tiers.L3, RerankOptions)) if tiers.L3 else None,
    )


def _without_limits(table: Record, kind: type[Kind]) -> Kind:
    return kind(**{name: getattr(table, name) for name in kind.__struct_fields__})


def _check_length(asked: Ladder, where: str, length: int, candidate: Candidate) -> None:
    if length > candidate.max_length:
        _refuse(
            asked,
            where,
            f"at most {candidate.max_length} tokens, all that {candidate.model} takes",
            str(length),
            "lower it",
        )
    if length < SHORTEST_LENGTH:
        _refuse(asked, where, f"at least {SHORTEST_LENGTH} tokens, room for a pair", str(length), "raise it")


def _check_sweep(asked: Ladder, sweep: SweepOptions, build: BuildOptions, candidate: Candidate) -> None:
    """The cells must be ones that graph and candidate take."""
    for length in sweep.max_length:
        _check_length(asked, "tiers.L1.sweep.max_length", length, candidate)
    if not isinstance(build.shape, str) and (sweep.batch_size, sweep.max_length) != tuple((n,) for n in build.shape):
        batch, length = build.shape
        got = f"batch_size {list(sweep.batch_size)} and max_length {list(sweep.max_length)}"
        do = "a graph of one shape can be swept over candidates and threads only"
        _refuse(asked, "tiers.L1.sweep", f"[{batch}] and [{length}], as the fixed shape", got, do)


def _check_calibration(asked: Ladder, options: IntegerOptions) -> None:
    """Static conversion needs pairs, and pairs that nothing would use are a mistake."""
    where, static = "tiers.L0.int8.calibration", options.method == "static"
    if static and options.calibration is None:
        _refuse(asked, where, "a JSONL of query and document, since the method is static", "nothing", "name one")
    if not static and options.calibration is not None:
        _refuse(
            asked, where, "none, since the method is dynamic", options.calibration, "remove it or set method: static"
        )


def _check_inputs(asked: Ladder, options: TierOptions, inputs: Inputs) -> None:
    if (asked.lock is None) != (inputs.lock is None):
        got = "none" if inputs.lock is None else "one that the ladder does not name"
        _refuse(asked, "inputs.lock", "the file that lock.file names", got, "read it first")
    if (options.L1 or options.L2) and inputs.pairs is None:
        _refuse(asked, "inputs.pairs", "pairs for L1 and L2", "none", "read them first")
    if options.L0.int8.calibration is not None and inputs.calibration is None:
        _refuse(asked, "inputs.calibration", "the pairs of tiers.L0.int8.calibration", "none", "read them first")
    _check_compared(asked, options, inputs)
    if options.L3 is None:
        return
    if inputs.groups is None:
        if inputs.groups_blocked is None:
            _refuse(asked, "inputs.groups", "groups for L3, or why there are none", "neither", "read them first")
    elif options.L3.digest not in {None, inputs.groups.digest}:
        do = "the data or the bounds are not those that were pinned; correct the ladder or the file"
        _refuse(asked, "tiers.L3.digest", str(options.L3.digest), inputs.groups.digest, do)


def _check_compared(asked: Ladder, options: TierOptions, inputs: Inputs) -> None:
    """A limit on a ratio to something that will not be there could only end as BLOCKED."""
    climbed = [target for target in asked.targets if target.deferred is None] if options.L1 else []
    limited = {name for target in climbed for name in ladder.limits_of(asked, target, "L1")}
    for name in sorted(limited & set(AGAINST_BASELINE)):
        if inputs.baseline is None:
            do = "give --baseline ROOT, or remove the limit"
            _refuse(asked, f"L1 limit {name}", "a baseline to compare with", "none", do)


def _target(
    asked: Ladder,
    target: Target,
    options: TierOptions,
    prebuilt: Mapping[str, PrebuiltArtifact],
    candidate: Candidate,
) -> PlannedTarget:
    adapter = candidate.adapter is not None
    steps = tuple(
        PlannedStep(
            tier=tier,
            limits={
                **ladder.limits_of(asked, target, tier),
                **fixed_limits(tier, target.precision, adapter=adapter),
                **(LOAD_LIMITS if tier == "L1" and options.L1 and options.L1.load else {}),
            },
            time_limit_s=getattr(options, tier).time_limit_s,
            memory_limit_bytes=getattr(options, tier).memory_limit_bytes,
        )
        for tier in ladder.tiers_up_to(asked.goal)
    )
    deferred = None if target.deferred is None else " ".join(target.deferred.split())
    wants_artifact = target.artifact is not None and deferred is None
    if wants_artifact and target.name not in prebuilt:
        _refuse(asked, f"target {target.name}", "the digests of its artifact", "none", "read the file first")
    return PlannedTarget(
        name=target.name,
        precision=target.precision,
        provider=target.provider,
        threads=target.threads,
        artifact=prebuilt[target.name] if wants_artifact else None,
        deferred=deferred,
        steps=steps if deferred is None else (),
        session=target.session,
    )


def _refuse(asked: Ladder, where: str, expected: str, got: str, do: str) -> NoReturn:
    message = f"ladder {asked.name}: {where}: expected {expected}, got {got}; {do}"
    raise LadderError(message)
