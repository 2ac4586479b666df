"""What a comparison of two roots must meet: YAML bytes to a ``Policy``, or one line that says where and what. Pure.

A policy is read as strictly as a ladder: unknown keys, empty tables, ``null``, duplicate keys and a metric that is not in the catalogue
are refused. A policy without gates would let everything through, so it is refused too.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import msgspec

from harness import fields, strict_yaml
from harness.errors import PolicyError
from harness.fields import refuse, show, suggest
from harness.metrics import catalogue
from harness.metrics.direction import better
from harness.records import Record

FORMAT = 1
PER_CENT = "^(0|[1-9][0-9]*)([.][0-9]+)?%$"

Amount = float | Annotated[str, msgspec.Meta(pattern=PER_CENT)]
"""In the metric's unit, or per cent of the baseline's value, as text: ``10%``."""

Identity = Literal[
    "model", "adapter", "options", "limits", "dataset", "pairs", "artifact", "machine", "packages", "harness"
]
RULES = ("max_degradation", "min_improvement", "at_most", "at_least", "must_not_change", "must_be_comparable")


class Pin(Record, frozen=True):
    """A root pinned in a file of the user's repository: where it is, relative to that file, and the digest that it must have."""

    path: Annotated[str, msgspec.Meta(pattern=r"\S")]
    digest: Annotated[str, msgspec.Meta(pattern="^blake3:[0-9a-f]{64}$")]


class Gate(Record, frozen=True):
    """Rules for one metric, or one part of the identity, on the targets that match ``target`` (``*`` and ``?`` stand for any text)."""

    metric: Annotated[str, msgspec.Meta(pattern=r"\S")] | None = None
    identity: Identity | None = None
    target: Annotated[str, msgspec.Meta(pattern=r"\S")] = "*"
    max_degradation: Amount | None = None
    min_improvement: Amount | None = None
    at_most: float | None = None
    at_least: float | None = None
    must_not_change: bool | None = None
    must_be_comparable: bool | None = None

    def rules(self) -> dict[str, float | str | bool]:
        """Each rule that is given, in the order of ``RULES``."""
        found = {name: getattr(self, name) for name in RULES}
        return {name: value for name, value in found.items() if value is not None}


class Policy(Record, frozen=True):
    """Gates, and what a reviewer adds: the pinned baseline, a ladder to judge under, and targets that may be deferred."""

    format: Literal[1]
    name: Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]{0,63}$")]
    gates: Annotated[tuple[Gate, ...], msgspec.Meta(min_length=1)]
    baseline: Pin | None = None
    ladder: Annotated[str, msgspec.Meta(pattern=r"\S")] | None = None
    accept_deferred: tuple[Annotated[str, msgspec.Meta(pattern=r"\S")], ...] = ()


class PinFile(Record, frozen=True):
    """A file that pins a baseline and says nothing else."""

    baseline: Pin


KEYS: dict[str, dict[str, str]] = {
    "Policy": {
        "format": "Version of this format; 1.",
        "name": "What the policy is called, in every report.",
        "gates": "What must hold, at least one. Each gives a verdict for every target that it matches.",
        "baseline": "The root to compare with, pinned by digest. A baseline given on the command line takes its place.",
        "ladder": "A ladder, relative to this file, under whose limits `qualify review` judges the root again.",
        "accept_deferred": "Targets that a root may leave out as deferred; `qualify review` asks for all others.",
    },
    "Pin": {
        "path": "Where the root is, relative to this file.",
        "digest": "The root digest that it must have.",
    },
    "Gate": {
        "metric": "The metric that is judged. Exactly one of `metric` and `identity` is given.",
        "identity": "The part of the identity that must not change.",
        "target": "The targets it holds for; `*` and `?` stand for any text.",
        "max_degradation": "How much worse the candidate may be: in the metric's unit, or per cent of the baseline (`10%`).",
        "min_improvement": "How much better the candidate must be, likewise.",
        "at_most": "The candidate's value must not be above it, whatever the baseline's is.",
        "at_least": "The candidate's value must not be below it.",
        "must_not_change": "`true`: both sides must have the same value.",
        "must_be_comparable": "`true`: the two values must mean the same thing (same data, bounds, unit and, for L1, machine class).",
    },
}
"""One sentence on every key, by struct: the source of the JSON Schema's descriptions and of docs/reference/diff.md."""

_POLICY = msgspec.inspect.type_info(Policy)
_PIN_FILE = msgspec.inspect.type_info(PinFile)


def parse(data: bytes, where: str = "policy.yaml") -> Policy:
    """Read a policy. ``where`` is the file's name in messages. Raises ``PolicyError``."""
    try:
        plain = strict_yaml.load(data)
        if isinstance(plain, dict) and type(plain.get("format")) is int and plain["format"] != FORMAT:
            refuse("format", str(FORMAT), show(plain["format"]), "this version of qualify reads no other")
        fields.check(plain, _POLICY)
        policy = msgspec.convert(plain, Policy, strict=True)
        for index, gate in enumerate(policy.gates):
            _check(gate, f"gates[{index}]")
    except (strict_yaml.YamlError, fields.FieldError) as error:
        raise PolicyError(f"{where}: {error}") from error
    return policy


def parse_pin(data: bytes, where: str) -> Pin:
    """The baseline that a file pins: a policy with ``baseline``, or a file with that key alone. Raises ``PolicyError``."""
    try:
        plain = strict_yaml.load(data)
        if isinstance(plain, dict) and set(plain) <= {"baseline"}:
            fields.check(plain, _PIN_FILE)
            return msgspec.convert(plain, PinFile, strict=True).baseline
    except (strict_yaml.YamlError, fields.FieldError) as error:
        raise PolicyError(f"{where}: {error}") from error
    pin = parse(data, where).baseline
    if pin is None:
        raise PolicyError(
            f"{where}: baseline: expected a table with path, digest, got nothing; add the key, or name a root"
        )
    return pin


def amount(value: float | str, base: float) -> float | None:
    """An allowance in the metric's unit. None for per cent of nothing: a baseline of 0, or one that is not finite."""
    if not isinstance(value, str):
        return value
    share = float(value.removesuffix("%")) / 100
    return share * abs(base) if base != 0 and math.isfinite(base) else None


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of format 1. Rules over two keys, and the names of metrics, are ``parse``'s alone."""
    from harness.ladder_schema import DIALECT, without_null

    built: dict[str, Any] = without_null(msgspec.json.schema(Policy))
    definitions = built["$defs"]
    for name, keys in KEYS.items():
        for key, description in keys.items():
            definitions[name]["properties"][key]["description"] = description.replace("`", "")
    top: dict[str, Any] = definitions.pop("Policy")
    return {"$schema": DIALECT} | top | {"title": "qualify policy, format 1", "$defs": definitions}


def _check(gate: Gate, where: str) -> None:
    """What needs two keys, or the catalogue."""
    if (gate.metric is None) == (gate.identity is None):
        refuse(
            where, "one of metric and identity", "both" if gate.metric is not None else "neither", "name what is judged"
        )
    rules = gate.rules()
    if not rules:
        refuse(
            where, f"at least one of {', '.join(RULES)}", "none", "a gate without a rule would decide nothing; add one"
        )
    for name in ("must_not_change", "must_be_comparable"):
        if rules.get(name) is False:
            refuse(f"{where}.{name}", "true", "false", "a rule that asks for nothing decides nothing; remove it")
    for name in ("max_degradation", "min_improvement"):
        value = rules.get(name)
        if isinstance(value, float | int) and value < 0:
            refuse(
                f"{where}.{name}", "a number of at least 0, or per cent", show(value), "write the size of the change"
            )
    if gate.at_most is not None and gate.at_least is not None and gate.at_least > gate.at_most:
        refuse(
            where,
            "bounds that a value can meet",
            f"at_least {gate.at_least:g} above at_most {gate.at_most:g}",
            "swap them",
        )
    if gate.identity is not None:
        others = sorted(rules.keys() - {"must_not_change"})
        if others:
            refuse(
                f"{where}.{others[0]}",
                "must_not_change alone, since it is about the identity",
                "another rule",
                "remove it",
            )
        return
    assert gate.metric is not None
    _check_metric(gate.metric, rules, where)


def _check_metric(name: str, rules: dict[str, float | str | bool], where: str) -> None:
    metric = catalogue.find(name)
    if metric is None:
        base = name.partition(".")[0]
        known = catalogue.METRICS.get(catalogue.base(name))
        if known is not None and known.parameter:
            refuse(f"{where}.metric", f"{base}.<{known.parameter}>", show(name))
        refuse(
            f"{where}.metric",
            "a metric of the catalogue",
            show(name),
            suggest(base, catalogue.METRICS) or "see docs/reference/ladder.md",
        )
    numeric = [rule for rule in rules if rule in RULES[:4]]
    if numeric and metric.kind in (str, bool):
        word = "text" if metric.kind is str else "true or false"
        refuse(
            f"{where}.{numeric[0]}",
            f"must_not_change, since {name} is {word}",
            "a rule for numbers",
            "write must_not_change",
        )
    for rule in ("max_degradation", "min_improvement"):
        if rule in rules and better(name) == "neither":
            refuse(
                f"{where}.{rule}",
                "a metric of which less or more is better",
                f"{show(name)}, of which neither is",
                "use at_most, at_least or must_not_change",
            )
