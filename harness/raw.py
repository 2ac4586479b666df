"""The raw samples of each stage as sealed beside its measurements. Numbers of ``measurements.json`` are derived from these.

Long on purpose, as ``records``: one page says what a stage can leave.

Arrays of logits are not here: ``reference.f32`` and ``artifact.f32`` are flat little-endian float32, one number a pair.
Monotonic times are milliseconds of ``CLOCK_MONOTONIC``, the same clock for parent and child.
"""

from __future__ import annotations

from typing import Literal

from harness.records import Record, Value

Span = tuple[float, float]
"""Monotonic ms of a beginning and an end."""


class ArtifactRef(Record, frozen=True):
    """``artifact.json``: the tree digest of the artifact that this step ran."""

    format: Literal[1]
    digest: str


class BlockedRaw(Record, frozen=True):
    """``blocked.json``: why a worker has no number, in one sentence."""

    format: Literal[1]
    reason: str


class Probe(Record, frozen=True):
    """One call with generated ids. ``fault`` is empty when the logits had the right shape and were finite."""

    batch: int
    length: int
    fault: str


class Search(Record, frozen=True):
    """Nodes kept in fp32 beyond the block list, because the fp16 graph had ``fault`` without them.

    ``repaired`` is false when no set was found within the ``trials``; ``minimal`` when leaving any one node out brings a fault back.
    """

    fault: str
    kept: tuple[str, ...]
    operators: tuple[str, ...]
    trials: int
    repaired: bool
    minimal: bool


class Conversion(Record, frozen=True):
    """How fp32 became another precision. ``clipped_*`` count constants beyond what the converter keeps; ``kept_nodes`` stay fp32."""

    name: str
    options: dict[str, Value]
    clipped_high: int
    clipped_low: int
    kept_nodes: tuple[str, ...]
    search: Search | None = None


class Optimisation(Record, frozen=True):
    """What was done to the exported graph before conversion: level, the runtime that did it, what was left out, nodes before and after."""

    level: str
    by: str
    left_out: tuple[str, ...]
    nodes_before: int
    nodes_after: int


class Repeat(Record, frozen=True):
    """A second export of the same checkpoint: both digests, and what differs in words, empty when nothing does."""

    first: str
    second: str
    difference: str


class Export(Record, frozen=True):
    """The fp32 graph that the artifact is or was converted from: bytes of all its files, digest, and how it came to be."""

    bytes: int
    digest: str
    optimisation: Optimisation | None
    repeat: Repeat | None


class HeadMatch(Record, frozen=True):
    """A head tensor of the checkpoint and the tensor of the graph it was compared with; ``gap_ratio`` is over its largest value."""

    tensor: str
    matched: str
    gap_ratio: float | None


class SessionFacts(Record, frozen=True):
    """A loaded session: milliseconds to load, providers in order, and the options that change speed or results.

    ``placement`` counts nodes by the provider they were assigned to and operator type; null where the runtime does not tell.
    """

    load_ms: float
    providers: tuple[str, ...]
    options: dict[str, Value]
    placement: dict[str, dict[str, int]] | None = None


class BuildRaw(Record, frozen=True):
    """``build.json`` of L0. ``session`` is null and ``load_error`` says why when the artifact did not load.

    ``export_from`` is the artifact folder of an earlier target of the same plan whose fp32 export was taken instead of a new one.
    ``activations`` are operators between the last matrix product and the output that make a raw logit something else; null where
    the graph cannot be read. ``executed`` counts the operators, by type, of the graph that the runtime executes in the end; null where
    it did not load or does not tell. ``head_note`` says why ``head`` is empty, or what of the checkpoint's head it leaves out.
    """

    format: Literal[1]
    source: Literal["exported", "prebuilt"]
    exporter: str | None
    export_from: str | None
    warnings: tuple[str, ...]
    phases_s: dict[str, float]
    half_range_constants: int | None
    conversion: Conversion | None
    checker_faults: tuple[str, ...]
    session: SessionFacts | None
    load_error: str
    probes: tuple[Probe, ...]
    tokenizer_inputs: tuple[str, ...]
    head: tuple[HeadMatch, ...]
    head_note: str
    export: Export | None = None
    activations: tuple[str, ...] | None = None
    executed: dict[str, int] | None = None


class GrowthRaw(Record, frozen=True):
    """Calls of ``shapes`` (batch, tokens) in mixed order: after call number i (from 1), ``rss_bytes[i - 1]`` were resident."""

    shapes: tuple[tuple[int, int], ...]
    order: tuple[int, ...]
    rss_bytes: tuple[int, ...]


class PerfRaw(Record, frozen=True):
    """``samples.json`` of L1: every call's milliseconds. ``events_ms`` are monotonic times; ``shapes`` the micro-batches of a call.

    ``ended_by`` says what ended the steady calls: the ``interval`` of the median was narrow enough, or a cap was met. ``switches``
    are the process's involuntary context switches by the first steady call and by the end of the last, null where the system does not
    count them; ``growth`` is null where no call was asked for or the system does not tell.
    """

    format: Literal[1]
    session: SessionFacts
    load_ms: float
    first_call_ms: float
    warm_up_ms: tuple[float, ...]
    steady_ms: tuple[float, ...]
    pairs_per_call: int
    truncated: int
    shapes: tuple[tuple[int, int], ...]
    events_ms: dict[str, float]
    ended_by: Literal["interval", "calls", "seconds"] = "calls"
    switches: tuple[int, int] | None = None
    growth: GrowthRaw | None = None


class Stated(Record, frozen=True):
    """A session of a pair: its facts, and the shapes of the micro-batches of a call."""

    facts: SessionFacts
    shapes: tuple[tuple[int, int], ...]


class SessionPair(Record, frozen=True):
    """One fresh session of either side, called in turn; ``candidate_first`` says who went first in each call pair.

    ``*_cpu_ms`` is the processor time of the side's whole process in each call, all threads together; ``span_ms`` the monotonic times
    before the first call that counts and after the last.
    """

    candidate: Stated
    other: Stated
    span_ms: Span
    candidate_loaded_first: bool
    candidate_first: tuple[bool, ...]
    candidate_ms: tuple[float, ...]
    other_ms: tuple[float, ...]
    candidate_cpu_ms: tuple[float, ...]
    other_cpu_ms: tuple[float, ...]


class PairedRaw(Record, frozen=True):
    """``paired.json`` (the other side is the baseline's artifact) and ``eager.json`` (PyTorch) of L1. Threads of both sides do not spin.

    ``other_artifact`` is the tree digest of the baseline's artifact, null for PyTorch. ``fault`` says why there are no samples.
    """

    format: Literal[1]
    fault: str
    other_artifact: str | None
    pairs_per_call: int
    warm_up: int
    sessions: tuple[SessionPair, ...]


class MemoryRaw(Record, frozen=True):
    """``memory.json`` of L1: resident bytes of the process tree, sampled by the parent, at monotonic times.

    ``high_water_bytes`` is the kernel's own count of the most that the child had resident; null where it does not tell.
    """

    format: Literal[1]
    interval_ms: float
    at_ms: tuple[float, ...]
    rss_bytes: tuple[int, ...]
    high_water_bytes: int | None = None


class MachineRaw(Record, frozen=True):
    """``machine.json`` of L1: the processors ``cpus`` at monotonic times, as the parent read them. A series is null where unknown.

    ``busy_ms``, ``idle_ms`` and ``stolen_ms`` are processor time since boot, summed over ``cpus``; ``own_ms`` is that of the step's
    processes and of the parent; ``pressure_ms`` is how long some task waited for a processor. ``busy_processes`` counts others that
    used more than 5% of a processor between the first reading and the last.
    """

    format: Literal[1]
    interval_ms: float
    cpus: tuple[int, ...]
    at_ms: tuple[float, ...]
    busy_ms: tuple[float, ...] | None
    idle_ms: tuple[float, ...] | None
    stolen_ms: tuple[float, ...] | None
    own_ms: tuple[float, ...] | None
    load_1min: tuple[float, ...] | None
    mhz: tuple[float, ...] | None
    pressure_ms: tuple[float, ...] | None
    busy_processes: int | None


class SweepCell(Record, frozen=True):
    """One cell of a sweep: what was asked, the micro-batches (pairs, tokens) that it made, and the ms of each call.

    ``memory_ms`` is the time span, monotonic, of a call on a session of its own.
    """

    candidates: int
    max_length: int
    batch_size: int
    threads: int
    shapes: tuple[tuple[int, int], ...]
    samples_ms: tuple[float, ...]
    memory_ms: Span


class SweepRaw(Record, frozen=True):
    """``sweep.json`` of L1: a session for each number of threads, and every cell of it called once a round, in the round's own order.

    ``rounds`` holds, session by session and round by round, the cells by index in the order in which they were called; ``spans_ms`` the
    monotonic times around the rounds of each session.
    """

    format: Literal[1]
    sessions: tuple[SessionFacts, ...]
    cells: tuple[SweepCell, ...]
    rounds: tuple[tuple[int, ...], ...]
    spans_ms: tuple[Span, ...]


class Level(Record, frozen=True):
    """Calls of several threads on one session: by thread, when each began and ended (monotonic ms); null for one that did not end."""

    callers: int
    begin_ms: tuple[tuple[float, ...], ...]
    end_ms: tuple[tuple[float | None, ...], ...]
    error: str


class Arrivals(Record, frozen=True):
    """Calls that arrive at stated times whether or not the last one is done: scheduled, begun and ended, in monotonic ms."""

    servers: int
    scheduled_ms: tuple[float, ...]
    begin_ms: tuple[float | None, ...]
    end_ms: tuple[float | None, ...]
    error: str


class LoadRaw(Record, frozen=True):
    """``load.json`` of L1.

    ``load.f32`` holds the logits of ``pairs`` from one thread, then of every level, caller and call, then of every arrival, NaN where
    none came.
    """

    format: Literal[1]
    session: SessionFacts
    pairs: int
    levels: tuple[Level, ...]
    arrivals: Arrivals | None


class RerankCall(Record, frozen=True):
    """One request from text to ranking: ms in all, of which tokenising and scoring; documents by position, best first, with logits."""

    total_ms: float
    tokenise_ms: float
    score_ms: float
    documents: int
    ranked: tuple[int, ...]
    logits: tuple[float | None, ...]


class RerankCallsRaw(Record, frozen=True):
    """``end_to_end.json`` of L1: requests through ``rerank(query, documents, top_k)``, one after another, within the times ``span_ms``."""

    format: Literal[1]
    warm_up: int
    span_ms: Span
    calls: tuple[RerankCall, ...]


class ParityRaw(Record, frozen=True):
    """``logits.json`` of L2. A pair that a side could not score has NaN in its logits and the error under its index in ``refused_*``.

    ``reference_from`` is the earlier step of the same plan whose reference, its invariance and second tokenisation were taken,
    null where they are new.
    """

    format: Literal[1]
    shape: tuple[int]
    dtype: Literal["<f4"]
    reference_from: str | None
    session: SessionFacts
    refused_reference: dict[str, str]
    refused_artifact: dict[str, str]


class TokensRaw(Record, frozen=True):
    """``tokens.json`` of L2: the shape of ``tokens.i32``, and what a second path through the tokenizer says.

    ``tokens.i32`` is flat little-endian int32: for each pair its tokens, its tokens before truncation, those cut at the start
    of its texts and those cut at the end (-1 where what is left is neither); then for each token of all pairs its id; its
    segment; its text (0 query, 1 document, -1 neither).

    ``template`` is what a pair must look like: ids before the query, between the texts, after the document; null where the
    tokenizer names no separator. ``mismatches`` are indices of pairs that the second path encodes otherwise.
    """

    format: Literal[1]
    pairs: int
    tokens: int
    dtype: Literal["<i4"]
    tokenizer: str
    truncation_side: Literal["left", "right"]
    padding_id: int | None
    template: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None
    mismatches: tuple[int, ...]


VariantKind = Literal["alone", "batch", "order", "padded", "repeat", "segments", "threads"]


class Variant(Record, frozen=True):
    """The pairs of the subset scored in one way; ``skipped`` says why it was not, and then there are no rows.

    Each of ``rows`` is a batch, by index of the pair, and is called ``calls`` times in turn; a pair may stand in several. The
    logits are batch by batch, call by call.
    """

    kind: VariantKind
    padding: Literal["left", "right"]
    rows: tuple[tuple[int, ...], ...] = ()
    calls: int = 1
    skipped: str = ""


class InvarianceRaw(Record, frozen=True):
    """``invariance_reference.json`` and ``invariance_artifact.json`` of L2; the logits of all variants, one after another, are in ``.f32``.

    ``shape`` is the batch and length that the scorer is fixed to, null where it takes any. ``unfinished`` counts the calls from
    several threads that did not come back in time or raised; ``error`` is the first of what they raised.
    """

    format: Literal[1]
    pairs: tuple[int, ...]
    shape: tuple[int | None, int | None]
    variants: tuple[Variant, ...]
    unfinished: int
    error: str


class StagesRaw(Record, frozen=True):
    """``stages.json`` of L0: the logits of some pairs after each step of the build, on ONNX Runtime's CPU provider, in ``stages.f32``.

    ``taken_from`` is the L0 step of another target, with the same export, from which all but the last step was copied.
    """

    format: Literal[1]
    pairs: tuple[int, ...]
    steps: tuple[Literal["export", "optimise", "convert"], ...]
    taken_from: str | None


class ScoresRaw(Record, frozen=True):
    """``scores.json`` of L3: sizes of the two score files, and the seconds that scoring took, tokenisation apart.

    ``reference_from`` is the earlier step of the same plan whose reference was taken (with its seconds), null where it is new.
    """

    format: Literal[1]
    shape: tuple[int]
    dtype: Literal["<f4"]
    groups: int
    truncated: int
    longest_tokens: int
    max_length: int
    reference_seconds: float
    artifact_seconds: float
    reference_from: str | None
    providers: tuple[str, ...]


class QueryScores(Record, frozen=True, gc=False):
    """The metrics of one query for one scorer by name (``ndcg_at_10``, ``map``), expected over ties.

    ``worst`` and ``best`` hold those that ties leave open: the value of the worst and of the best order of the ties.
    """

    expected: dict[str, float]
    worst: dict[str, float]
    best: dict[str, float]


class QueryRow(Record, frozen=True, gc=False):
    """One query of L3; null where a group has no positive or a score is not finite. ``judged`` groups count in the means.

    ``agreement`` is by name how alike artifact and reference rank; a name is absent where nothing can be said (overlap at k with at
    most k candidates).
    """

    query_id: str
    candidates: int
    positives: int
    judged: bool
    artifact: QueryScores | None
    reference: QueryScores | None
    agreement: dict[str, float]


class PerQuery(Record, frozen=True):
    """``per_query.json`` of L3, in the order of the groups."""

    format: Literal[1]
    rows: tuple[QueryRow, ...]
