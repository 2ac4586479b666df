"""The JSON Schema of a ladder, so that an editor completes and checks one while it is written.

msgspec gives the structure; descriptions come from ``ladder_keys.KEYS`` and the metrics of each tier from the catalogue.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness import data_rules
from harness.ladder_format import HUB_ID, Ladder
from harness.ladder_keys import KEYS
from harness.metrics import catalogue
from harness.metrics.rerank_names import pattern
from harness.records import TIERS, Tier

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of format 1. It accepts every ladder that ``parse`` accepts; rules over two keys are ``parse``'s alone."""
    built: dict[str, Any] = without_null(msgspec.json.schema(Ladder))
    definitions = built["$defs"]
    for name, keys in KEYS.items():
        for key, description in keys.items():
            definitions[name]["properties"][key]["description"] = description.replace("`", "")
    for tier, table in zip(TIERS, ("BuildTier", "PerfTier", "ParityTier", "RerankTier"), strict=True):
        definitions[f"{tier}Limits"] = _limits(tier)
        reference = {"$ref": f"#/$defs/{tier}Limits"}
        definitions[table]["properties"]["limits"] = reference | {"description": KEYS[table]["limits"]}
        definitions["TargetLimits"]["properties"][tier] = dict(reference)
    for name in ("CandidateReference", "AdapterReference"):
        definitions[name]["properties"]["model"]["pattern"] = r"^(\.{0,2}/.*|\.{1,2}|[A-Za-z0-9_][A-Za-z0-9._/-]*)$"
    source = definitions["DataSource"]
    source["properties"]["dataset"]["pattern"] = f"^{HUB_ID.pattern.replace(chr(92) + 'Z', '$')}$"
    source["properties"]["file"]["pattern"] = r"\.parquet$"
    source["oneOf"] = [{"required": [kind]} for kind in data_rules.SOURCES]
    del definitions["Limit"]
    top: dict[str, Any] = definitions.pop("Ladder")
    return {"$schema": DIALECT} | top | {"title": "qualify ladder, format 1", "$defs": definitions}


def _limits(tier: Tier) -> dict[str, Any]:
    """The limits table of one tier: every metric that a ladder can set, with its unit and the bounds that fit its kind."""
    fixed = catalogue.fixed_limits(tier, "fp32", adapter=True) | catalogue.LOAD_LIMITS
    plain: dict[str, Any] = {}
    patterns: dict[str, Any] = {}
    for name, metric in catalogue.METRICS.items():
        if metric.tier != tier or name in fixed:
            continue
        described = _limit(metric.kind) | {"description": f"{metric.meaning} [{metric.unit}]"}
        anywhere = pattern(name) if tier == "L3" else name
        if metric.parameter:
            patterns[f"^{anywhere}\\.({catalogue.PARAMETERS[metric.parameter].pattern})$"] = described
            continue
        plain[name] = described
        if anywhere != name:  # the editor completes the name at 10 and takes it at any other cut-off
            patterns[f"^{anywhere}$"] = described
    return {
        "title": f"limits of {tier}",
        "type": "object",
        "properties": plain,
        "patternProperties": patterns,
        "additionalProperties": False,
        "minProperties": 1,
    }


def _limit(kind: type) -> dict[str, Any]:
    """A limit on a metric whose values are ``kind``: a number takes bounds or ``exactly``, anything else only ``exactly``."""
    word = {str: "string", bool: "boolean"}.get(kind, "number")
    notes = {key: text.replace("`", "") for key, text in KEYS["Limit"].items()}
    bounds = ("exactly",) if word != "number" else ("at_most", "at_least", "exactly")
    shape: dict[str, Any] = {
        "type": "object",
        "properties": {bound: {"type": word, "description": notes[bound]} for bound in bounds},
        "additionalProperties": False,
        "minProperties": 1,
    }
    if word == "number":
        shape["if"] = {"required": ["exactly"]}
        shape["then"] = {"maxProperties": 1}
    return shape


def without_null(node: Any) -> Any:
    """The same schema where a key is either given a value or left out: ``null`` is no value of a ladder."""
    if isinstance(node, list):
        return [without_null(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {
        key: without_null(value)
        for key, value in node.items()
        if not (key == "default" and (value in (None, "", ()) or isinstance(value, dict)))
    }
    options = made.get("anyOf")
    if isinstance(options, list):
        kept = [item for item in options if item != {"type": "null"}]
        if len(kept) == 1:
            del made["anyOf"]
            made |= kept[0]
        else:
            made["anyOf"] = kept
    return made
