"""YAML bytes to a ``Ladder``, or one line that says where, what was expected, what was there and what to do. Pure.

Reading goes in three steps: ``strict_yaml`` gives plain values, ``fields`` compares them with the structs of ``ladder_format``, and
the rules here look at what needs two keys or the catalogue of metrics. The first fault is the one that is said.
"""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import msgspec

from evidence.manifest import check_path
from harness import data_rules, fields, ladder_limits, strict_yaml
from harness.errors import LadderError
from harness.fields import refuse, show
from harness.ladder_format import Ladder, Provider, Target, Tiers, is_folder, is_hub_id
from harness.ladder_schema import schema
from harness.metrics import cells
from harness.records import (
    TIERS,
    Limits,
    PerfOptions,
    SessionOptions,
    Tier,
    artifact_folder,
    gate_folder,
)

__all__ = ["PROVIDERS", "Ladder", "defaults", "limits_of", "parse", "schema", "tiers_up_to"]

FORMAT = 1
PROVIDERS: tuple[str, ...] = get_args(Provider)
"""The names a target can ask for. What each is in ONNX Runtime, and whether it is here, is the runtimes' business."""

_LADDER_TYPE = msgspec.inspect.type_info(Ladder)


def parse(data: bytes, where: str = "ladder.yaml") -> Ladder:
    """Read a ladder. ``where`` is the file's name in messages. Raises ``LadderError`` and nothing else."""
    try:
        plain = strict_yaml.load(data)
        _check_format(plain)
        fields.check(plain, _LADDER_TYPE)
        ladder = _named(msgspec.convert(plain, Ladder, strict=True))
        _check_candidate(ladder)
        _check_tiers(ladder)
        _check_targets(ladder)
        _check_gates(ladder)
    except (strict_yaml.YamlError, fields.FieldError) as error:
        message = f"{where}: {error}"
        raise LadderError(message) from error
    return ladder


def defaults(data: bytes) -> tuple[str, ...]:
    """JSON pointers of the values that a ladder did not give and that have a default, e.g. ``/tiers/L0/opset``, in the order of the format.

    A key whose default is to be absent (``artifact``, ``groups``) is no value, so it is not listed. ``data`` must parse.
    """
    plain = strict_yaml.load(data)
    found: list[str] = []
    for name, value in (("goal", "L3"), ("seed", 0)):
        found += [f"/{name}"] * (name not in plain and value is not None)
    for tier, kind in _tier_types().items():
        table = plain["tiers"].get(tier)
        if table is not None:
            found += [f"/tiers/{tier}/{name}" for name in _defaulted(kind) if name not in table]
            if tier == "L3" and isinstance(table["data"], dict):
                found += [f"/tiers/L3/data/{name}" for name in data_rules.defaulted(table["data"])]
    for index, gate in enumerate(plain.get("gates", ())):
        found += [f"/gates/{index}/{name}" for name in ("folder", "time_limit_s") if name not in gate]
    found += ["/lock/parity"] * ("lock" in plain and "parity" not in plain["lock"])
    for index, target in enumerate(plain["targets"]):
        found += [
            f"/targets/{index}/{name}" for name in ("name", "provider", "threads", "session") if name not in target
        ]
    return tuple(found)


def tiers_up_to(goal: Tier) -> tuple[Tier, ...]:
    """The tiers that are climbed, lowest first."""
    return TIERS[: TIERS.index(goal) + 1]


def limits_of(ladder: Ladder, target: Target, tier: Tier) -> Limits:
    """The limits that the ladder sets: the tier's, and the target's instead where it names the same metric."""
    table = getattr(ladder.tiers, tier)
    return {**(table.limits if table else {}), **getattr(target.limits, tier)}


def _check_format(plain: Any) -> None:
    """Before anything else: a file of a later format would only be misread as one with unknown keys."""
    if not isinstance(plain, dict):
        refuse("", fields.words(_LADDER_TYPE), "nothing" if plain is None else show(plain))
    version = plain.get("format", FORMAT)
    if type(version) is int and version != FORMAT:
        refuse("format", str(FORMAT), show(version), "this version of qualify reads no other")


def _named(ladder: Ladder) -> Ladder:
    """The ladder with a name for every target: the given one, or ``<provider>-<precision>``."""
    replace = msgspec.structs.replace
    return replace(
        ladder, targets=tuple(replace(t, name=t.name or f"{t.provider}-{t.precision}") for t in ladder.targets)
    )


def _check_candidate(ladder: Ladder) -> None:
    _check_place("candidate", ladder.candidate.model, ladder.candidate.revision)
    if ladder.candidate.adapter is not None:
        _check_place("candidate.adapter", ladder.candidate.adapter.model, ladder.candidate.adapter.revision)


def _check_place(where: str, model: str, revision: str | None) -> None:
    """A folder without a revision, or a hub id with one."""
    if is_folder(model):
        if revision is not None:
            refuse(
                f"{where}.revision",
                "none, since the model is a folder",
                show(revision),
                "a folder is pinned by digest; remove it",
            )
        return
    if not is_hub_id(model):
        refuse(
            f"{where}.model",
            "a folder (./, ../ or /) or a hub id (org/name)",
            show(model),
            f"for a folder write {show('./' + model)}",
        )
    if revision is None:
        do = f"pin the commit, or write {show('./' + model)} for a folder"
        refuse(f"{where}.revision", f"40 hex digits, since {show(model)} is a hub id", "nothing", do)


def _check_tiers(ladder: Ladder) -> None:
    climbed = tiers_up_to(ladder.goal)
    for tier in TIERS:
        table, where = getattr(ladder.tiers, tier), f"tiers.{tier}"
        if table is None and tier in climbed:
            refuse(where, f"a table, since the goal is {ladder.goal}", "nothing", "add it or lower the goal")
        if table is not None and tier not in climbed:
            refuse(where, f"no tier above the goal {ladder.goal}", "a table", "remove it or raise the goal")
        if table is not None:
            ladder_limits.check(table.limits, tier, f"{where}.limits")
    if ladder.tiers.L1 is not None:
        _check_lists(ladder.tiers.L1)
    if ladder.tiers.L3 is not None:
        data_rules.check(ladder.tiers.L3)


def _check_lists(options: PerfOptions) -> None:
    """A cell or level that stands twice would give two figures of one name."""
    for name, table in (("sweep", options.sweep), ("load", options.load)):
        for field in table.__struct_fields__ if table is not None else ():
            numbers = getattr(table, field)
            if isinstance(numbers, tuple) and len(set(numbers)) != len(numbers):
                refuse(
                    f"tiers.L1.{name}.{field}",
                    "each number once",
                    ", ".join(map(str, numbers)),
                    "remove what stands twice",
                )


def _check_targets(ladder: Ladder) -> None:
    seen: dict[str, int] = {}
    for index, target in enumerate(ladder.targets):
        where, name = f"targets[{index}]", target.name
        if name in seen:
            refuse(
                f"{where}.name",
                "each target's name once",
                f"{show(name)}, as targets[{seen[name]}]",
                "name this target",
            )
        seen[name] = index
        if check_path(f"{artifact_folder(name)}/model.onnx"):
            refuse(f"{where}.name", "a name that every file system takes", show(name), "choose another")
        _check_session(target, where)
        for tier in TIERS:
            overrides, here = getattr(target.limits, tier), f"{where}.limits.{tier}"
            if overrides and tier not in tiers_up_to(ladder.goal):
                refuse(here, f"no tier above the goal {ladder.goal}", "a table", "remove it or raise the goal")
            ladder_limits.check(overrides, tier, here)
        for tier in tiers_up_to(ladder.goal) if target.deferred is None else ():
            ladder_limits.check_enough(limits_of(ladder, target, tier), tier, name)
        if ladder.tiers.L1 is not None and target.deferred is None:
            _check_measured(ladder, target, ladder.tiers.L1)


def _check_session(target: Target, where: str) -> None:
    other = msgspec.structs.replace(target.session, cpus=None)
    if target.provider == "openvino" and other != SessionOptions():
        expected = "only cpus, since OpenVINO has none of the others"
        refuse(f"{where}.session", expected, "an option of ONNX Runtime", "remove it")


def _check_measured(ladder: Ladder, target: Target, options: PerfOptions) -> None:
    """A limit on what L1 is not asked to measure would only be BLOCKED in the end."""
    for metric in limits_of(ladder, target, "L1"):
        lacks = cells.missing(metric, options, target.threads)
        if lacks is not None:
            expected = f"{lacks}, for the limit on {metric} of {target.name}"
            refuse("tiers.L1", expected, "none", "ask for it, or remove the limit")


def _check_gates(ladder: Ladder) -> None:
    names = [gate.name for gate in ladder.gates]
    for index, gate in enumerate(ladder.gates):
        where = f"gates[{index}]"
        if names.index(gate.name) != index:
            refuse(f"{where}.name", "each gate's name once", show(gate.name), "name this gate otherwise")
        if check_path(f"{gate_folder(gate.name)}/gate.json"):
            refuse(f"{where}.name", "a name that every file system takes", show(gate.name), "choose another")


def _tier_types() -> dict[str, type]:
    return {name: get_args(kind)[0] if get_args(kind) else kind for name, kind in get_type_hints(Tiers).items()}


def _defaulted(kind: type) -> list[str]:
    """Names of a tier's options that have a default which is a value."""
    found = msgspec.structs.fields(kind)
    return [field.name for field in found if field.default is not None and field.default is not msgspec.NODEFAULT]
