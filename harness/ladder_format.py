"""The structs of a ladder file, format 1. No rule is here that looks at two keys at once; ``ladder_keys`` says what each key means."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from harness.records import (
    BuildOptions,
    Limits,
    Lock,
    ParityOptions,
    PerfOptions,
    Precision,
    QualityGate,
    Record,
    RerankOptions,
    SessionOptions,
    Tier,
)

Provider = Literal["cpu", "cuda", "tensorrt", "directml", "qnn", "migraphx", "openvino"]
Name = Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]{0,63}$")]

HUB_ID = re.compile(r"(?=.{1,96}\Z)[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)?")
"""The name of a repository on a hub: ``org/name`` or ``name``."""


class AdapterReference(Record, frozen=True):
    """Where a LoRA adapter is: a folder (starts with ``./``, ``../`` or ``/``), or a hub id with the 40-hex commit."""

    model: str
    revision: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}$")] | None = None


class CandidateReference(Record, frozen=True):
    """Where the candidate is: a folder (starts with ``./``, ``../`` or ``/``), or a hub id with the 40-hex commit; and its adapter."""

    model: str
    revision: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}$")] | None = None
    adapter: AdapterReference | None = None


class BuildTier(BuildOptions, frozen=True):
    """L0: how the artifact is made, and what it must be."""

    limits: Limits = msgspec.field(default_factory=dict)


class PerfTier(PerfOptions, frozen=True):
    """L1: what is timed, and how fast and small it must be."""

    limits: Limits = msgspec.field(default_factory=dict)


class ParityTier(ParityOptions, frozen=True):
    """L2: which pairs are compared with PyTorch, and how close they must be."""

    limits: Limits = msgspec.field(default_factory=dict)


class RerankTier(RerankOptions, frozen=True):
    """L3: which groups are ranked, and how well."""

    limits: Limits = msgspec.field(default_factory=dict)


class Tiers(Record, frozen=True):
    """One table for each tier up to the goal."""

    L0: BuildTier
    L1: PerfTier | None = None
    L2: ParityTier | None = None
    L3: RerankTier | None = None


class TargetLimits(Record, frozen=True):
    """Limits of one target; a metric named here replaces the tier's limit of that metric whole."""

    L0: Limits = msgspec.field(default_factory=dict)
    L1: Limits = msgspec.field(default_factory=dict)
    L2: Limits = msgspec.field(default_factory=dict)
    L3: Limits = msgspec.field(default_factory=dict)


class Target(Record, frozen=True):
    """What the candidate is qualified for: a precision on an execution provider. ``parse`` fills in a name that is not given."""

    precision: Precision
    provider: Provider = "cpu"
    threads: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 2
    name: Name = ""
    session: SessionOptions = SessionOptions()
    artifact: str | None = None
    deferred: str | None = None
    limits: TargetLimits = msgspec.field(default_factory=TargetLimits)


RecordName = Literal["host", "user"]
"""What names a machine or a person, and so is recorded only where the ladder asks for it."""


class Ladder(Record, frozen=True):
    """A ladder: a candidate, the targets it is meant for, and what each tier demands."""

    format: Literal[1]
    name: Name
    candidate: CandidateReference
    tiers: Tiers
    targets: Annotated[tuple[Target, ...], msgspec.Meta(min_length=1)]
    goal: Tier = "L3"
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)] = 0
    gates: tuple[QualityGate, ...] = msgspec.field(default_factory=tuple)
    lock: Lock | None = None
    record: tuple[RecordName, ...] = msgspec.field(default_factory=tuple)


def is_folder(model: str) -> bool:
    """Whether a model's name means a folder: it starts with ``./``, ``../`` or ``/``, or is ``.`` or ``..``."""
    return model in {".", ".."} or model.startswith(("./", "../", "/"))


def is_hub_id(name: str) -> bool:
    """Whether a name can be that of a repository on a hub. The client refuses ``..`` and ``--`` too."""
    return HUB_ID.fullmatch(name) is not None and ".." not in name and "--" not in name
