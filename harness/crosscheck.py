"""What a step says besides its samples, held against the plan, its child, the artifact and the files it was copied from. Pure.

Metrics are derived elsewhere; a statement that no metric is made of (a provider, a duration, ``reference_from``) would be sealed
and never read, so it is compared here. Each difference is a Q-RAW fault. What only the running machine could know (that a load
took 18 ms and not 17) is held to what it must fit into: docs/evidence-checks.md lists what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime

from evidence.manifest import Fault
from evidence.meaning import INTERRUPTED
from harness import crosscheck_build, crosscheck_perf, ending, made_by
from harness.derive_raw import raw_record
from harness.errors import QualifyError
from harness.raw import (
    BlockedRaw,
    BuildRaw,
    InvarianceRaw,
    ParityRaw,
    ScoresRaw,
    StagesRaw,
)
from harness.records import Exit, Outcome, ParityOptions, Request, Tier, step_folder
from harness.redact import REDACTED
from harness.root import StepRecords
from harness.where import Difference, Where, fixed, spent

CLOCKS_APART_S = 1.0
"""Wall clock and monotonic clock of one machine may disagree by this over a step: the first can be set."""

COPIED: dict[Tier, tuple[str, ...]] = {
    "L2": ("reference.f32", "invariance_reference.f32", "invariance_reference.json", "tokens.json"),
    "L3": ("reference.f32",),
}
"""Files that a step takes over whole from the one that it names as ``reference_from``."""


def step(request: Request, left: StepRecords, where: Where) -> list[Fault]:
    """The faults of one step. Never raises for what the root holds."""
    folder, ended, rule = request.step, left.outcome.exit, made_by.rule("Q-RAW", where.foreign)
    found: list[Difference] = []
    try:
        found += _outcome(request, left, where)
        if left.measurements is not None and ended is not None and ended.code == 0 and not ended.timed_out:
            found += _TIERS[request.tier](request, ended, where)
    except (QualifyError, ValueError, ArithmeticError, LookupError, TypeError) as error:
        return [Fault(rule, folder, f"{folder}: expected records that can be compared, got: {error}")]
    return [
        Fault(rule, f"{folder}/{file}", f"{folder}/{file}: {what}: expected {expected}, got {got}")
        for file, what, expected, got in found
        if expected != got
    ]


# --- the outcome and the child ----------------------------------------------------------------------------------------


def _outcome(request: Request, left: StepRecords, where: Where) -> Iterator[Difference]:
    outcome, file = left.outcome, "outcome.json"
    if left.measurements is not None:
        stated = left.measurements.tier, left.measurements.target
        yield "measurements.json", "tier and target", (request.tier, request.target.name), stated
    ended = outcome.exit
    if ended is None:
        reasons = {INTERRUPTED, request.inputs.groups_blocked if request.tier == "L3" else None}
        yield file, "reason of a step whose child did not end", True, outcome.reason in reasons
        yield file, "redactions, as the logs show", _redactions(request, where), outcome.redactions
        return
    yield file, "one of exit code and signal", True, (ended.code is None) != (ended.signal is None)
    yield file, "seconds", True, _fits(ended, outcome, request)
    blocked = f"{request.step}/blocked.json"
    said = raw_record(where.read, blocked, BlockedRaw).reason if where.sealed(blocked) is not None else None
    why = ending.why_blocked(request, ended, said, left.measurements is not None)
    yield file, "reason", why or outcome.reason, outcome.reason
    yield file, "redactions, as the logs show", _redactions(request, where), outcome.redactions


def _redactions(request: Request, where: Where) -> int:
    """How often the logs say [REDACTED]. An interrupt may come before there is a log."""
    paths = (f"{request.step}/{name}.log" for name in ("stdout", "stderr"))
    return sum(where.read(path).count(REDACTED.encode()) for path in paths if where.sealed(path) is not None)


def _fits(ended: Exit, outcome: Outcome, request: Request) -> bool:
    """Whether the child's seconds fit between the times of the step, and reach the limit where it was ended at it."""
    begin, end = (datetime.fromisoformat(str(time)) for time in (outcome.started_at, outcome.ended_at))
    within = 0 <= ended.seconds <= (end - begin).total_seconds() + CLOCKS_APART_S
    return within and (ended.seconds >= request.planned.time_limit_s or not ended.timed_out)


# --- L2 and L3 --------------------------------------------------------------------------------------------------------


def _parity(request: Request, ended: Exit, where: Where) -> Iterator[Difference]:
    from harness.derive_tokens import read_tensors
    from harness.variants import subset

    raw = raw_record(where.read, f"{request.step}/logits.json", ParityRaw)
    yield from crosscheck_perf.same_session("logits.json", raw.session, request, where)
    yield spent("logits.json", [raw.session.load_ms / 1000], ended)
    yield from _reference(request, raw.reference_from, where)
    for side, shape in (("artifact", fixed(request, where)), ("reference", (None, None))):
        found = raw_record(where.read, f"{request.step}/invariance_{side}.json", InvarianceRaw)
        yield f"invariance_{side}.json", "shape", shape, found.shape
        yield (
            f"invariance_{side}.json",
            "an error only of a call that did not come back",
            True,
            (not found.error or found.unfinished > 0),
        )
    tokens = f"{request.step}/tokens.i32"
    for other in where.plan.targets:  # one tokenizer, one set of pairs, one length
        theirs = where.sealed(f"{step_folder('L2', other.name)}/tokens.i32")
        yield "tokens.i32", f"blake3, as of {other.name}", theirs or where.sealed(tokens), where.sealed(tokens)
    stages = f"{step_folder('L0', request.target.name)}/stages.json"
    with suppress(LookupError):
        where.read(stages)
        lengths = read_tensors(request, where.read)[1].lengths.tolist()
        chosen = subset(lengths, request.options.L2 or ParityOptions(), request.seed)
        yield "logits.json", f"pairs of {stages}", chosen, raw_record(where.read, stages, StagesRaw).pairs


def _rerank(request: Request, ended: Exit, where: Where) -> Iterator[Difference]:
    raw, file = raw_record(where.read, f"{request.step}/scores.json", ScoresRaw), "scores.json"
    options = request.options.L3
    yield file, "max_length", options.max_length if options is not None else None, raw.max_length
    yield file, "lengths within max_length", True, 0 < raw.longest_tokens <= raw.max_length
    cut = raw.longest_tokens == raw.max_length or raw.truncated == 0
    yield file, "truncated pairs", True, 0 <= raw.truncated <= raw.shape[0] and cut
    tried = raw_record(where.read, f"{step_folder('L0', request.target.name)}/build.json", BuildRaw).session
    yield file, "providers, as in L0", tried.providers if tried is not None else (), raw.providers
    new = raw.reference_from is None
    yield spent(file, [raw.artifact_seconds, raw.reference_seconds if new else 0.0], ended)
    yield from _reference(request, raw.reference_from, where)
    theirs = where.same(f"{raw.reference_from}/{file}") if not new else None
    if theirs is not None:
        other = raw_record(lambda _path: theirs, f"{raw.reference_from}/{file}", ScoresRaw)
        yield file, f"reference_seconds, as in {raw.reference_from}", other.reference_seconds, raw.reference_seconds


def _reference(request: Request, source: str | None, where: Where) -> Iterator[Difference]:
    """A reference that was taken over is, byte for byte, that of the same tier on another planned target."""
    if source is None:
        return
    tier = request.tier
    others = {step_folder(tier, other.name) for other in where.plan.targets if other.name != request.target.name}
    yield _RECORD[tier], "reference_from", True, source in others
    for name in COPIED[tier] if source in others else ():
        yield name, f"blake3, as in {source}", where.sealed(f"{source}/{name}"), where.sealed(f"{request.step}/{name}")


_RECORD: dict[Tier, str] = {"L2": "logits.json", "L3": "scores.json"}
_TIERS: dict[Tier, Callable[[Request, Exit, Where], Iterator[Difference]]] = {
    "L0": crosscheck_build.build,
    "L1": crosscheck_perf.perf,
    "L2": _parity,
    "L3": _rerank,
}
