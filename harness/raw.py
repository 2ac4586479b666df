"""The raw samples of each stage as sealed beside its measurements. Numbers of ``measurements.json`` are derived from these.

Arrays of logits are not here: ``reference.f32`` and ``artifact.f32`` are flat little-endian float32, one number a pair.
Monotonic times are milliseconds of ``CLOCK_MONOTONIC``, the same clock for parent and child.
"""

from __future__ import annotations

from typing import Literal

from harness.records import Record, Value


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


class Conversion(Record, frozen=True):
    """How fp32 became another precision. ``clipped_*`` count constants beyond what the converter keeps; ``kept_nodes`` stay fp32."""

    name: str
    options: dict[str, Value]
    clipped_high: int
    clipped_low: int
    kept_nodes: tuple[str, ...]


class HeadMatch(Record, frozen=True):
    """A head tensor of the checkpoint and the tensor of the graph it was compared with; ``gap_ratio`` is over its largest value."""

    tensor: str
    matched: str
    gap_ratio: float | None


class SessionFacts(Record, frozen=True):
    """A loaded session: milliseconds to load, providers in order, and the options that change speed or results."""

    load_ms: float
    providers: tuple[str, ...]
    options: dict[str, Value]


class BuildRaw(Record, frozen=True):
    """``build.json`` of L0. ``session`` is null and ``load_error`` says why when the artifact did not load.

    ``export_from`` is the artifact folder of an earlier target of the same plan whose fp32 export was taken instead of a new one.
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


class PerfRaw(Record, frozen=True):
    """``samples.json`` of L1: every call's milliseconds. ``events_ms`` are monotonic times; ``shapes`` the micro-batches of a call."""

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


class MemoryRaw(Record, frozen=True):
    """``memory.json`` of L1: resident bytes of the process tree, sampled by the parent, at monotonic times."""

    format: Literal[1]
    interval_ms: float
    at_ms: tuple[float, ...]
    rss_bytes: tuple[int, ...]


class ParityRaw(Record, frozen=True):
    """``logits.json`` of L2. ``token_mismatches`` are indices of pairs whose tensors differ between the two paths.

    ``reference_from`` is the earlier step of the same plan whose reference and second tokenisation were taken, null where they are new.
    """

    format: Literal[1]
    shape: tuple[int]
    dtype: Literal["<f4"]
    truncated: int
    longest_tokens: int
    max_length: int
    token_mismatches: tuple[int, ...]
    reference_from: str | None
    providers: tuple[str, ...]


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


class QueryScores(Record, frozen=True):
    """The metrics of one query for one scorer, expected over ties."""

    ndcg_at_10: float
    mrr_at_10: float
    average_precision: float


class QueryRow(Record, frozen=True):
    """One query of L3; null where a group has no positive or a score is not finite. ``judged`` groups count in the means."""

    query_id: str
    candidates: int
    positives: int
    judged: bool
    artifact: QueryScores | None
    reference: QueryScores | None


class PerQuery(Record, frozen=True):
    """``per_query.json`` of L3, in the order of the groups."""

    format: Literal[1]
    rows: tuple[QueryRow, ...]
