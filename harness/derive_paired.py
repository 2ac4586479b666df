"""L1 beside something else: the samples of call pairs -> ratios against the baseline's artifact, and against PyTorch eager.

The baseline's ``MANIFEST.b3`` is an input of the plan (``records.BASELINE``), pinned by its BLAKE3, which is that root's digest. It names
every file of the baseline's artifacts with their hash: so a reader of the new root alone sees that what was timed beside was sealed there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from evidence.manifest import Entry, FormatError, parse_digests, tree_digest
from harness import derive_notes
from harness.derive_raw import Read, make, raw_bytes, raw_record
from harness.derive_session import check_session
from harness.errors import RecordError
from harness.raw import PairedRaw, SessionPair
from harness.records import BASELINE, Measurement, PairedOptions, Request

BASELINE_FILE, EAGER_FILE = "paired.json", "eager.json"
AGAINST_BASELINE = ("ratio_p50", "ratio_p95", "ratio_pairs_per_s", "ratio_cpu")
AGAINST_EAGER = "ratio_eager"
NO_BASELINE = "no baseline was given: qualify run --baseline ROOT"
NO_EAGER = "it was not asked for: eager"

_ARTIFACT = re.compile(r"((?:preserved/[0-9a-f]{16}/)?artifacts/([^/]+))/(.+)")
_Pairs = Sequence[SessionPair]


class Sealed(NamedTuple):
    """The artifact of one target of a root: its folder in that root, and its tree digest."""

    folder: str
    digest: str


def artifacts_of(manifest: bytes) -> dict[str, Sealed]:
    """What artifact each target has, by the root's manifest. Raises ``RecordError`` for bytes that are no manifest."""
    try:
        digests = parse_digests(manifest)
    except FormatError as error:
        raise RecordError(f"{BASELINE}: expected the manifest of a root, got: {error.faults[0].message}") from error
    files: dict[tuple[str, str], list[Entry]] = {}
    for path, digest in digests.items():
        if match := _ARTIFACT.fullmatch(path):
            folder, target, name = match.groups()
            files.setdefault((target, folder), []).append(Entry(name, digest))
    return {target: Sealed(folder, tree_digest(entries)) for (target, folder), entries in files.items()}


def lacks(target: str, artifacts: dict[str, Sealed]) -> str:
    """The reason why there is nothing to compare a target with."""
    return f"the baseline has no artifact of {target} (it has {', '.join(sorted(artifacts)) or 'none'})"


def measurements(request: Request, read: Read) -> list[Measurement]:
    """The ratios; null, with why, where there is nothing to compare with. Raises ``RecordError`` for samples that are not those planned."""
    return [*_against_baseline(request, read), *_against_eager(request, read)]


def _against_baseline(request: Request, read: Read) -> Iterator[Measurement]:
    from harness.metrics import paired

    why, raw = NO_BASELINE, None
    if request.inputs.baseline is not None:
        artifacts = artifacts_of(raw_bytes(read, BASELINE))
        beside = artifacts.get(request.target.name)
        why = lacks(request.target.name, artifacts)
        if beside is not None:
            raw = _raw(request, read, BASELINE_FILE, beside.digest)
            why = raw.fault
    if raw is None or raw.fault:
        yield from (make(name, None, note=why) for name in AGAINST_BASELINE)
        return
    yield _ratio("ratio_p50", raw.sessions, paired.log_median_ratio)
    p95 = _ratio("ratio_p95", raw.sessions, lambda own, other: paired.log_quantile_ratio(own, other, 0.95))
    yield _with(p95, derive_notes.paired(raw.sessions))
    yield _ratio("ratio_pairs_per_s", raw.sessions, lambda own, other: paired.log_total_ratio(other, own))
    yield _of_cpu(raw.sessions)


def _against_eager(request: Request, read: Read) -> Iterator[Measurement]:
    from harness.metrics import paired

    options = request.options.L1
    if options is None or not options.eager:
        yield make(AGAINST_EAGER, None, note=NO_EAGER)
        return
    raw = _raw(request, read, EAGER_FILE, None)
    if raw.fault:
        yield make(AGAINST_EAGER, None, note=raw.fault)
    else:
        ratio = _ratio(AGAINST_EAGER, raw.sessions, lambda own, other: paired.log_median_ratio(other, own))
        yield _with(ratio, derive_notes.paired(raw.sessions))


def _with(found: Measurement, note: str) -> Measurement:
    return msgspec.structs.replace(found, note="; ".join(filter(None, (found.note, note))))


def _ratio(name: str, sessions: _Pairs, of: Callable[[Sequence[float], Sequence[float]], float]) -> Measurement:
    return _over_sessions(name, [of(pair.candidate_ms, pair.other_ms) for pair in sessions])


def _over_sessions(name: str, logs: Sequence[float]) -> Measurement:
    from harness.metrics import paired

    found, count = paired.ratio(logs), len(logs)
    if found is None or found.low is None or found.high is None:
        return make(name, None, samples=count, note=f"needs at least {paired.FEWEST_SESSIONS} pairs of sessions")
    return make(name, found.value, interval=(found.low, found.high), samples=count)


def _of_cpu(sessions: _Pairs) -> Measurement:
    from harness.metrics import paired

    sides = [(pair.candidate_cpu_ms, pair.other_cpu_ms) for pair in sessions]
    if min(ms for pair in sides for side in pair for ms in side) <= 0:
        return make(
            "ratio_cpu", None, samples=len(sessions), note="the clock of processor time here is too coarse for a call"
        )
    return _over_sessions("ratio_cpu", [paired.log_median_ratio(own, other) for own, other in sides])


def _raw(request: Request, read: Read, name: str, digest: str | None) -> PairedRaw:
    """The samples, as they were planned: as many, in the order that the seed draws, of the sessions that were asked for."""
    path = f"{request.step}/{name}"
    raw = raw_record(read, path, PairedRaw)
    options = request.options.L1
    assert options is not None
    if raw.other_artifact != digest:
        raise RecordError(
            f"{path}: expected {digest}, the artifact that the baseline's manifest names, got {raw.other_artifact}"
        )
    if raw.fault:
        return raw
    if (raw.pairs_per_call, raw.warm_up) != (options.candidates, options.warm_up):
        raise RecordError(
            f"{path}: expected calls of {options.candidates} pairs after {options.warm_up} to warm up, as planned, got"
            f" {raw.pairs_per_call} after {raw.warm_up}"
        )
    _check_order(path, raw.sessions, options.paired, request.seed)
    _check_sessions(path, request, raw)
    return raw


def _check_sessions(path: str, request: Request, raw: PairedRaw) -> None:
    """Every pair of sessions is of the plan's options, and like the first but for the time that loading took."""
    session = msgspec.structs.replace(request.target.session, spinning=False)
    target = msgspec.structs.replace(request.target, session=session)
    first = raw.sessions[0]
    for number, pair in enumerate(raw.sessions):
        check_session(f"{path}: candidate {number}", target, pair.candidate.facts)
        if raw.other_artifact is not None:
            check_session(f"{path}: other {number}", target, pair.other.facts)
        elif pair.other.facts.options.get("intra_op_threads") != target.threads:
            raise RecordError(
                f"{path}: other {number}: expected PyTorch on {target.threads} threads, got {pair.other.facts.options}"
            )
        for name, side, as_first in (
            ("candidate", pair.candidate, first.candidate),
            ("other", pair.other, first.other),
        ):
            if sum(rows for rows, _ in side.shapes) < raw.pairs_per_call:
                raise RecordError(
                    f"{path}: {name} {number}: expected shapes of {raw.pairs_per_call} pairs a call, got {side.shapes}"
                )
            alike = msgspec.structs.replace(side.facts, load_ms=as_first.facts.load_ms)
            if (alike, side.shapes) != (as_first.facts, as_first.shapes) or not side.facts.load_ms > 0:
                raise RecordError(f"{path}: {name} {number}: expected a session like the first, got another: {side}")


def _check_order(path: str, sessions: _Pairs, asked: PairedOptions, seed: int) -> None:
    from harness.metrics import paired

    loaded = paired.turns(seed, 0, asked.sessions)
    drawn = [(first, paired.turns(seed, 1 + place, asked.calls)) for place, first in enumerate(loaded)]
    if [(pair.candidate_loaded_first, pair.candidate_first) for pair in sessions] != drawn:
        raise RecordError(
            f"{path}: expected {asked.sessions} pairs of sessions of {asked.calls} call pairs in the order that seed {seed} draws,"
            f" got {len(sessions)} of another order; the root is not whole"
        )
    for pair in sessions:
        if not len(pair.candidate_cpu_ms) == len(pair.other_cpu_ms) == asked.calls:
            raise RecordError(
                f"{path}: expected the processor time of {asked.calls} calls of either side, got another number"
            )
        counts = len(pair.candidate_ms), len(pair.other_ms)
        if counts != (asked.calls, asked.calls) or min(*pair.candidate_ms, *pair.other_ms) <= 0:
            raise RecordError(
                f"{path}: expected {asked.calls} calls of either side, each above 0 ms, got {counts[0]} and {counts[1]}"
            )
