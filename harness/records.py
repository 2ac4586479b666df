"""Every value that is sealed, as frozen structs, and its one JSON form. Long on purpose: one page says what a root can hold.

JSON is UTF-8, keys sorted, two-space indent, one newline at the end, and never holds NaN or infinity: a number that is
not finite is stored as ``null`` with a note. Reading demands that one spelling, so it refuses unknown keys, missing keys,
duplicate keys, a bool where an int belongs, and NaN.

Digests are written ``blake3:<64 hex>``. Times are UTC, RFC 3339, ``Z``. Paths are relative to the root.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NoReturn, TypeVar

import msgspec

from harness.errors import RecordError

Tier = Literal["L0", "L1", "L2", "L3"]
TIERS: tuple[Tier, ...] = ("L0", "L1", "L2", "L3")
TIER_NAMES: dict[Tier, str] = {"L0": "build", "L1": "perf", "L2": "parity", "L3": "rerank"}

Verdict = Literal["PASS", "FAIL", "BLOCKED", "INCONCLUSIVE", "NOT_RUN"]
Precision = Literal["fp32", "fp16", "int8"]
Value = int | float | str | bool | None

T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen value whose JSON form refuses unknown keys."""


# --- limits and options: what a ladder asks ---------------------------------------------------------------------------


class Limit(Record, frozen=True, omit_defaults=True):
    """What one measurement must meet. At least one bound is given; ``exactly`` excludes the other two."""

    at_most: float | None = None
    at_least: float | None = None
    exactly: int | float | bool | str | None = None


Limits = dict[str, Limit]

PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]
PositiveInts = Annotated[tuple[PositiveInt, ...], msgspec.Meta(min_length=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
MEMORY_LIMIT_BYTES = 16 * 2**30
"""Resident bytes that a step may take where its ladder says nothing: a reranker of 560 million parameters takes about 8 GiB to export."""
OperatorName = Annotated[str, msgspec.Meta(pattern="^[A-Za-z][A-Za-z0-9]*$")]


class HalfOptions(Record, frozen=True):
    """fp16: operator types that stay in fp32 (null: the converter's own list), and whether inputs and outputs keep their dtype."""

    block: tuple[OperatorName, ...] | None = None
    keep_io: bool = True


class IntegerOptions(Record, frozen=True):
    """int8: ``dynamic`` measures activations at each call, ``static`` once on the first ``pairs`` of ``calibration`` (JSONL)."""

    method: Literal["dynamic", "static"] = "dynamic"
    per_channel: bool = False
    calibration: str | None = None
    pairs: PositiveInt = 32


class BuildOptions(Record, frozen=True):
    """L0: how the artifact is made. ``shape`` is ``dynamic`` or a fixed ``[batch, sequence]``."""

    exporter: Literal["torchscript", "torch_export"] = "torchscript"
    opset: Annotated[int, msgspec.Meta(ge=11, le=23)] = 17
    shape: Literal["dynamic"] | tuple[PositiveInt, PositiveInt] = "dynamic"
    integers: Literal["int64", "int32"] = "int64"
    optimize: Literal["none", "basic", "fused"] = "none"
    external_data: bool = False
    repeat_export: bool = False
    fp16: HalfOptions = HalfOptions()
    int8: IntegerOptions = IntegerOptions()
    time_limit_s: Seconds = 900.0
    memory_limit_bytes: PositiveInt = MEMORY_LIMIT_BYTES


class PairedOptions(Record, frozen=True):
    """L1 beside something else: fresh pairs of sessions, and call pairs in each. A session is one sample, a call is none."""

    sessions: Annotated[int, msgspec.Meta(ge=6)] = 22
    calls: Annotated[int, msgspec.Meta(ge=2)] = 50


class SessionOptions(Record, frozen=True):
    """How a target's sessions are made, in every tier: what changes their speed and is no part of the artifact.

    ``spinning`` lets idle threads of the pool wait for work in a loop (fast, but two such pools take each other's cores).
    ``cpus`` are the processors that the step's process may use, by number; null leaves them to the system.
    """

    spinning: bool = True
    memory_arena: bool = True
    graph_optimization: Literal["all", "extended", "basic", "none"] = "all"
    inter_op_threads: PositiveInt = 1
    cpus: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)] | None = None


class SweepOptions(Record, frozen=True):
    """L1: every combination is a cell, called ``calls`` times in shuffled order. Without ``threads``, the target's number."""

    candidates: PositiveInts
    max_length: PositiveInts
    batch_size: PositiveInts
    threads: PositiveInts | None = None
    calls: PositiveInt = 10


class LoadOptions(Record, frozen=True):
    """L1: for each number in ``concurrency``, so many threads call one session ``calls`` times each, one call after another.

    With ``arrival_per_s``, ``arrivals`` calls come at random times of that rate besides, served by as many threads as the largest
    number of ``concurrency``.
    """

    concurrency: PositiveInts
    calls: PositiveInt = 60
    arrival_per_s: Seconds | None = None
    arrivals: PositiveInt = 100
    deadlock_s: Seconds = 60.0


class PerfOptions(Record, frozen=True):
    """L1: one call scores ``candidates`` pairs in micro-batches of at most ``batch_size``, each cut at ``max_length`` tokens.

    Steady calls go on until the 95% interval of their median is at most ``interval`` of it wide, once there are ``min_calls``, and
    end in any case at ``calls``, or when they have taken ``seconds``.

    ``paired`` says how it is timed in turn with the baseline's artifact, and with PyTorch where ``eager`` asks for it.
    """

    candidates: PositiveInt = 32
    batch_size: PositiveInt = 16
    max_length: PositiveInt = 512
    warm_up: PositiveInt = 5
    calls: PositiveInt = 500
    min_calls: PositiveInt = 72
    interval: Seconds = 0.02
    seconds: Seconds = 120.0
    growth_calls: Count = 100
    end_to_end_calls: Count = 0
    sweep: SweepOptions | None = None
    load: LoadOptions | None = None
    paired: PairedOptions = PairedOptions()
    eager: bool = False
    time_limit_s: Seconds = 900.0
    memory_limit_bytes: PositiveInt = MEMORY_LIMIT_BYTES


class ParityOptions(Record, frozen=True):
    """L2: the built-in pairs and those of ``pairs`` (JSONL of query and document) through PyTorch fp32 and the artifact.

    ``invariance_pairs`` of them, none longer than ``invariance_tokens`` where enough are so short, are scored again in other
    batches, paddings, orders and threads.
    """

    pairs: str | None = None
    batch_size: PositiveInt = 16
    max_length: PositiveInt = 512
    noise: Annotated[float, msgspec.Meta(ge=0)] = 1e-4
    invariance_pairs: Annotated[int, msgspec.Meta(ge=8)] = 24
    invariance_tokens: PositiveInt = 64
    deadlock_s: Seconds = 60.0
    time_limit_s: Seconds = 900.0
    memory_limit_bytes: PositiveInt = MEMORY_LIMIT_BYTES


class TrecFiles(Record, frozen=True):
    """The files of a TREC collection, relative to the ladder: texts by id, judgements, and a run that gives the candidates."""

    queries: str
    docs: str
    qrels: str
    run: str


class DataSource(Record, frozen=True):
    """Groups that need more than a file's name: one of ``dataset`` (a hub's), ``mteb`` (a task), ``trec`` and ``file`` (parquet).

    A row of a dataset or of the file holds ``query`` and lists of ``positive`` and ``negative`` texts, or, where ``documents`` is given,
    a list of texts and a list of their ``gains``. ``revision`` pins a dataset, and the one that an mteb task loads.
    """

    dataset: str | None = None
    mteb: str | None = None
    trec: TrecFiles | None = None
    file: str | None = None
    revision: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}$")] | None = None
    split: str = "test"
    config: str | None = None
    query: str = "query"
    positive: str = "positive"
    negative: str = "negative"
    documents: str | None = None
    gains: str = "gains"


class RerankOptions(Record, frozen=True):
    """L3: the bounded set. ``data`` is a JSONL or parquet file beside the ladder, or a source; the bounds are part of the result."""

    data: str | DataSource
    digest: Annotated[str, msgspec.Meta(pattern="^blake3:[0-9a-f]{64}$")] | None = None
    groups: PositiveInt | None = None
    candidates: Annotated[int, msgspec.Meta(ge=2)] | None = None
    pairs: PositiveInt | None = None
    select: Literal["first", "seeded", "stratified"] = "first"
    negatives: Literal["first", "seeded"] = "first"
    unjudged: Literal["keep", "drop"] = "keep"
    batch_size: PositiveInt = 32
    max_length: PositiveInt = 512
    resamples: PositiveInt = 10_000
    time_limit_s: Seconds = 1800.0
    memory_limit_bytes: PositiveInt = MEMORY_LIMIT_BYTES


class TierOptions(Record, frozen=True):
    """The options of all tiers up to the goal; a tier above the goal is absent."""

    L0: BuildOptions
    L1: PerfOptions | None = None
    L2: ParityOptions | None = None
    L3: RerankOptions | None = None


GateName = Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]{0,63}$")]


class QualityGate(Record, frozen=True):
    """A command of the user's own repository that must end well before L0: no shell, ``folder`` relative to the ladder."""

    name: GateName
    command: Annotated[tuple[Annotated[str, msgspec.Meta(pattern=r"\S")], ...], msgspec.Meta(min_length=1)]
    folder: str = "."
    time_limit_s: Seconds = 600.0


class Lock(Record, frozen=True):
    """A file of pins, relative to the ladder, that the installed packages are compared with."""

    file: Annotated[str, msgspec.Meta(pattern=r"\S")]
    parity: Literal["recorded", "versions", "exact"] = "versions"


# --- the candidate ----------------------------------------------------------------------------------------------------


class FileFact(Record, frozen=True):
    """One file of the candidate: path relative to the model folder, size, BLAKE3 (64 hex)."""

    path: str
    bytes: int
    blake3: str


class Adapter(Record, frozen=True):
    """A LoRA adapter, pinned: what it is called, the tree digest of its files alone, and what its config and tensors say.

    ``revision`` is 40 hex for a hub id and null for a folder. ``target_modules`` and ``modules_to_save`` are sorted, as the config
    states them; ``layers`` counts those that it holds two factors for, ``head`` names the classifier's tensors that it holds whole.
    """

    model: str
    revision: str | None
    digest: str
    rank: int
    alpha: float
    target_modules: tuple[str, ...]
    modules_to_save: tuple[str, ...]
    layers: int
    head: tuple[str, ...]
    parameters: int
    weight_dtypes: dict[str, int]


class Candidate(Record, frozen=True, omit_defaults=True):
    """The pinned model: what it is called, every file by digest, and the facts the plan depends on.

    ``digest`` is the tree digest of ``files``, those of an adapter under ``adapter/``. ``parameters`` counts elements in the safetensors
    header, with an adapter those of the merged model. ``revision`` is 40 hex for a hub model and null for a folder.
    """

    model: str
    revision: str | None
    digest: str
    files: tuple[FileFact, ...]
    architecture: str
    model_type: str
    num_labels: int
    parameters: int
    weight_dtypes: dict[str, int]
    max_length: int
    type_vocab_size: int
    pad_token_id: int
    padding_side: Literal["left", "right"]
    adapter: Adapter | None = None


# --- the plan ---------------------------------------------------------------------------------------------------------


class TaskFact(Record, frozen=True):
    """What mteb says of the task that was read: the name of its main score, and the languages of the subset (``eng-Latn``)."""

    main_score: str
    languages: tuple[str, ...]


class DataFact(Record, frozen=True):
    """Data that will be scored, pinned: file in the root, digest (``blake3:``), where it came from, rows and bounds.

    ``counts`` is what was counted by kind, of groups alone; ``notes`` says the same in sentences, with the rule for each. ``task`` is
    given where the groups are those of an mteb task.
    """

    path: str
    digest: str
    source: str
    rows: int
    bounds: dict[str, Value] = {}
    counts: dict[str, int] = {}
    notes: tuple[str, ...] = ()
    task: TaskFact | None = None


class Inputs(Record, frozen=True):
    """The data of the root. ``groups`` is null with ``groups_blocked`` set when the dataset could not be had.

    ``calibration`` are the pairs that a static int8 conversion measures activations on; ``lock`` pins the packages.
    ``baseline`` is the manifest of the root that L1 is compared with: its digest is the root digest, its rows are the files it names.
    """

    pairs: DataFact | None
    groups: DataFact | None
    groups_blocked: str | None = None
    calibration: DataFact | None = None
    lock: DataFact | None = None
    baseline: DataFact | None = None


class PrebuiltArtifact(Record, frozen=True):
    """An ONNX file that is checked instead of built: its name, and every file by digest (the graph and its external data)."""

    name: str
    files: tuple[FileFact, ...]


class PlannedStep(Record, frozen=True):
    """One tier on one target with the limits it will be judged by; built-in limits included."""

    tier: Tier
    limits: Limits
    time_limit_s: float
    memory_limit_bytes: int = MEMORY_LIMIT_BYTES


class PlannedTarget(Record, frozen=True):
    """One target: precision, execution provider, threads; steps in tier order; none when deferred."""

    name: str
    precision: Precision
    provider: str
    threads: int
    artifact: PrebuiltArtifact | None
    deferred: str | None
    steps: tuple[PlannedStep, ...]
    session: SessionOptions = SessionOptions()


class Plan(Record, frozen=True, omit_defaults=True):
    """All that will be done and judged, fixed before the first stage runs. Its digest stands in every step's record.

    ``defaults`` lists, as JSON pointers into the ladder, the values the ladder did not give. ``only`` names the targets that
    this climb was asked for where it was not asked for all; the others are deferred, so its coverage is partial. ``gates`` run
    before L0.
    """

    format: Literal[1]
    ladder: str
    ladder_digest: str
    seed: int
    goal: Tier
    candidate: Candidate
    options: TierOptions
    inputs: Inputs
    targets: tuple[PlannedTarget, ...]
    defaults: tuple[str, ...]
    only: tuple[str, ...] = ()
    gates: tuple[QualityGate, ...] = ()
    lock: Lock | None = None


# --- one step ---------------------------------------------------------------------------------------------------------


class Request(Record, frozen=True):
    """What a worker is asked: one tier on one target. Paths are relative to the root; the model's place is not sealed."""

    format: Literal[1]
    tier: Tier
    target: PlannedTarget
    candidate: Candidate
    options: TierOptions
    inputs: Inputs
    seed: int
    plan_digest: str
    step: str
    artifact: str

    @property
    def planned(self) -> PlannedStep:
        """The step as it was planned: its limits, time and memory."""
        return next(step for step in self.target.steps if step.tier == self.tier)


class Measurement(Record, frozen=True):
    """A number with its unit. ``value`` is null when it is unknown or not finite, and ``note`` then says why.

    ``interval`` is a 95% confidence interval; a limit is judged on it where it is given.
    """

    metric: str
    value: Value
    unit: str
    interval: tuple[float, float] | None = None
    samples: int | None = None
    note: str = ""


class Measurements(Record, frozen=True):
    """The measurements of one step, in the order of the catalogue."""

    format: Literal[1]
    tier: Tier
    target: str
    measurements: tuple[Measurement, ...]


class Finding(Record, frozen=True):
    """A limit judged: ``text`` is one sentence with value, limit and unit."""

    metric: str
    limit: Limit
    value: Value
    interval: tuple[float, float] | None
    verdict: Verdict
    text: str


class Exit(Record, frozen=True, omit_defaults=True):
    """How a child process ended. ``seconds`` is its wall time as the parent saw it.

    ``over_memory_bytes`` is what its tree had resident when it was ended for that, absent where it kept to its memory limit.
    """

    code: int | None
    signal: str | None
    timed_out: bool
    seconds: float
    over_memory_bytes: int | None = None


class Outcome(Record, frozen=True):
    """One step: what was found and what came of it. ``artifact_digest`` is null when no artifact was there to run."""

    format: Literal[1]
    tier: Tier
    target: str
    verdict: Verdict
    reason: str
    plan_digest: str
    candidate_digest: str
    artifact_digest: str | None
    started_at: str | None
    ended_at: str | None
    exit: Exit | None
    redactions: int
    findings: tuple[Finding, ...]


class GateOutcome(Record, frozen=True):
    """One gate (``gates/<name>/gate.json``): how its command ended. ``exit`` is null when it could not be started or was interrupted."""

    format: Literal[1]
    name: GateName
    verdict: Verdict
    reason: str
    plan_digest: str
    started_at: str
    ended_at: str
    exit: Exit | None
    redactions: int


# --- the claim --------------------------------------------------------------------------------------------------------


class TargetClaim(Record, frozen=True):
    """What became of one target: the highest tier that passed (null if none) and the verdict of each planned tier."""

    name: str
    verdict: Verdict
    reached: Tier | None
    deferred: str | None
    tiers: dict[str, Verdict]
    reason: str


class Coverage(Record, frozen=True):
    """Which targets reached the goal. ``complete`` is true only when every target of the ladder did."""

    goal: Tier
    reached: tuple[str, ...]
    missed: tuple[str, ...]
    deferred: tuple[str, ...]
    complete: bool


class GateClaim(Record, frozen=True):
    """What became of one gate."""

    name: str
    verdict: Verdict
    reason: str


class LockClaim(Record, frozen=True):
    """The installed packages against the lock: every difference that its ``parity`` looks at, PASS where it only records them."""

    file: str
    parity: str
    verdict: Verdict
    differences: tuple[Finding, ...]


class Qualification(Record, frozen=True, omit_defaults=True):
    """The harness's claim about a climb (``qualification.json``). ``verify`` judges again and compares."""

    format: Literal[1]
    ladder: str
    plan_digest: str
    candidate_digest: str
    verdict: Verdict
    targets: tuple[TargetClaim, ...]
    coverage: Coverage
    started_at: str
    ended_at: str
    gates: tuple[GateClaim, ...] = ()
    lock: LockClaim | None = None


class Superseded(Record, frozen=True):
    """An earlier root that this one replaces: its root digest, and why."""

    digest: Annotated[str, msgspec.Meta(pattern="^blake3:[0-9a-f]{64}$")]
    reason: Annotated[str, msgspec.Meta(min_length=1)]


class Preserved(Record, frozen=True):
    """An earlier root from which steps are carried: its root digest, and their folders (``step_folder``), sorted."""

    origin: Annotated[str, msgspec.Meta(pattern="^blake3:[0-9a-f]{64}$")]
    steps: tuple[str, ...]


class Lineage(Record, frozen=True):
    """What this root replaces, and what it carries of earlier roots. Both are empty for a root that stands alone."""

    format: Literal[1]
    supersedes: tuple[Superseded, ...] = ()
    preserved: tuple[Preserved, ...] = ()


class Environment(Record, frozen=True):
    """A stated list of facts about machine, packages and commits; host and user name only where the ladder asks."""

    format: Literal[1]
    facts: dict[str, Value]
    packages: dict[str, str]


# --- JSON -------------------------------------------------------------------------------------------------------------


def measured(
    metric: str,
    value: Value,
    unit: str,
    *,
    interval: tuple[float, float] | None = None,
    samples: int | None = None,
    note: str = "",
) -> Measurement:
    """Make a measurement; a NaN or infinity becomes null with a note, an interval with one is dropped."""
    if isinstance(value, float) and not math.isfinite(value):
        return Measurement(metric=metric, value=None, unit=unit, samples=samples, note=note or f"not finite: {value}")
    if interval is not None and not all(map(math.isfinite, interval)):
        interval = None
    return Measurement(metric=metric, value=value, unit=unit, interval=interval, samples=samples, note=note)


def to_json(value: Any) -> bytes:
    """The one JSON spelling of a record. Raises ``ValueError`` when a NaN or infinity is in it."""
    quick = _quick(value)
    if quick is not None and b"null" not in quick:  # as null stands there what is null, and what is no number
        return quick
    plain = msgspec.to_builtins(value)
    return (json.dumps(plain, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=True) + "\n").encode("ascii")


_ENCODER = msgspec.json.Encoder(order="sorted")
_OTHERWISE = re.compile(rb"0\.0000[0-9]*,?\n"), re.compile(rb"e-?[0-9]+,?\n")
"""Numbers that msgspec spells otherwise than ``json``: below 1e-4, and from 1e16 on. In this spelling each ends its line.

Two patterns: one that begins with a character is looked for in a seventh of the time of one that begins with either of two.
"""


def _quick(value: Any) -> bytes | None:
    """``to_json`` in a tenth of the time, with null also for a NaN or infinity; None where that may be another spelling."""
    try:
        data = msgspec.json.format(_ENCODER.encode(value), indent=2) + b"\n"
    except (ValueError, TypeError, OverflowError, RecursionError, msgspec.MsgspecError):
        return None
    if not data.isascii() or b"\x7f" in data:  # json writes what is not printable ASCII as an escape
        return None
    return None if any(pattern.search(data) for pattern in _OTHERWISE) else data


def parse_json(data: bytes) -> Any:
    """JSON in any spelling as plain values. Raises ``ValueError`` (duplicate key, NaN, not UTF-8, no JSON) or ``RecursionError``."""
    return json.loads(data.decode("utf-8"), object_pairs_hook=_no_duplicates, parse_constant=_no_constant)


def from_json(data: bytes, kind: type[T], where: str) -> T:
    """Read a record from bytes. Raises ``RecordError`` with the place; see the module's docstring for what is refused."""
    try:
        value = msgspec.json.decode(data, type=kind)
        if _quick(value) == data:  # then it has its one spelling, so no key twice and no NaN
            return value
    except (ValueError, RecursionError, msgspec.MsgspecError):
        pass  # what is wrong with it is said below
    try:
        value = msgspec.convert(parse_json(data), kind, strict=True)
        if to_json(value) != data:
            message = "another spelling of it (keys missing, unsorted, or other white space)"
            raise ValueError(message)
        return value
    except (UnicodeDecodeError, RecursionError, ValueError) as error:  # msgspec.ValidationError is a ValueError
        message = f"{where}: expected a {kind.__name__} record, got {error}"
        raise RecordError(message) from error


def _no_duplicates(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(name for name, _ in pairs)  # a file may hold a million: each is looked at once
        message = f"duplicate key {next(name for name, count in counts.items() if count > 1)!r}"
        raise ValueError(message)
    return found


def _no_constant(name: str) -> NoReturn:
    message = f"{name}, which JSON does not have"
    raise ValueError(message)


def step_folder(tier: Tier, target: str) -> str:
    """The root-relative folder of a step, e.g. ``steps/L0-build.cpu-fp32``."""
    return f"steps/{tier}-{TIER_NAMES[tier]}.{target}"


def gate_folder(name: str) -> str:
    """The root-relative folder of a gate."""
    return f"gates/{name}"


def artifact_folder(target: str) -> str:
    """The root-relative folder of a target's artifact; the graph is always ``model.onnx`` in it."""
    return f"artifacts/{target}"


def origin_folder(origin: str) -> str:
    """The root-relative folder, with a ``/``, of what is carried of an earlier root, by its root digest."""
    return f"preserved/{origin.removeprefix('blake3:')[:16]}/"


def artifact_place(lineage: Lineage, target: str) -> str:
    """Where a root holds a target's artifact: with the L0 that is carried, or in ``artifact_folder``."""
    build = step_folder("L0", target)
    places = (origin_folder(entry.origin) for entry in lineage.preserved if build in entry.steps)
    return next(places, "") + artifact_folder(target)


# Root-relative names of the files that every root has.
LADDER, PLAN, ENVIRONMENT, LINEAGE, CLAIM = (
    "ladder.yaml",
    "plan.json",
    "environment.json",
    "lineage.json",
    "qualification.json",
)
PAIRS, GROUPS, CALIBRATION = "inputs/pairs.jsonl", "inputs/groups.jsonl", "inputs/calibration.jsonl"
LOCK = "inputs/lock.txt"
BASELINE = "inputs/baseline.b3"
