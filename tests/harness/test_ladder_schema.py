"""The JSON Schema lets an editor complete and check a ladder: every key described, every metric named, nothing loose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from harness import ladder
from harness.metrics.catalogue import LOAD_LIMITS, METRICS, find, fixed_limits
from harness.metrics.rerank_names import SCORERS
from harness.records import TIERS, Tier

SCHEMA = ladder.schema()


def tables(node: Any) -> Iterator[dict[str, Any]]:
    """Every schema of a table, wherever it stands."""
    if isinstance(node, dict):
        if "properties" in node and node.get("type") == "object":
            yield node
        for value in node.values():
            yield from tables(value)
    elif isinstance(node, list):
        for value in node:
            yield from tables(value)


def test_it_is_a_schema_of_the_2020_dialect_and_plain_json() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["title"] == "qualify ladder, format 1"
    assert json.loads(json.dumps(SCHEMA, allow_nan=False)) == SCHEMA
    assert SCHEMA["required"] == ["format", "name", "candidate", "tiers", "targets"]


def test_no_table_takes_an_unknown_key() -> None:
    found = list(tables(SCHEMA))
    assert len(found) > 20
    assert all(table["additionalProperties"] is False for table in found)


def test_null_is_no_value() -> None:
    assert '"null"' not in json.dumps(SCHEMA)
    assert ": null" not in json.dumps(SCHEMA)


def test_every_reference_leads_somewhere() -> None:
    references = set(re.findall(r'"#/\$defs/([^"]+)"', json.dumps(SCHEMA)))
    assert references == set(SCHEMA["$defs"])


def test_every_key_is_described() -> None:
    silent = {"Tiers", "TargetLimits"}  # their keys are the tiers, which describe themselves
    for name, table in {"Ladder": SCHEMA, **SCHEMA["$defs"]}.items():
        if name not in silent:
            for key, described in table["properties"].items():
                assert described["description"], f"{name}.{key}"


@pytest.mark.parametrize("tier", TIERS)
def test_the_limits_of_a_tier_are_its_metrics_but_the_fixed_ones(tier: Tier) -> None:
    limits = SCHEMA["$defs"][f"{tier}Limits"]
    named = {name for name, metric in METRICS.items() if metric.tier == tier}
    fixed = {*fixed_limits(tier, "fp32", adapter=True), *LOAD_LIMITS}
    parametrised = {name for name in named if METRICS[name].parameter}
    assert set(limits["properties"]) == named - fixed - parametrised
    cut = {name for name in named - parametrised if "_at_10" in name}
    assert len(limits["patternProperties"]) == len(parametrised) + len(cut)
    assert limits["minProperties"] == 1


@pytest.mark.parametrize(
    "name",
    ["initializer_count.FLOAT16", "operator_count.MatMul", "initializer_count.float", "operator_count.", "nodes.x"]
    + [f"row_ndcg_at_10.{scorer}" for scorer in (*SCORERS, "bm26")]
    + [
        "row_mrr_at_3.bm25",
        "row_map.bm25",
        "row_map.map",
        "sentinel.random.map",
        "sentinel.bm25.map",
        "sentinel.random.groups",
    ]
    + ["sentinel.length.recall_at_3_drop", "sentinel.length.recall_at_0_drop"],
)
def test_a_parametrised_name_is_taken_exactly_where_the_catalogue_takes_it(name: str) -> None:
    patterns = [key for tier in TIERS for key in SCHEMA["$defs"][f"{tier}Limits"]["patternProperties"]]
    assert any(re.search(pattern, name) for pattern in patterns) == (find(name) is not None)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("ndcg_at_5", True),
        ("recall_at_100_drop", True),
        ("overlap_at_1", True),
        ("ndcg_at_3_over_random", True),
        ("hit_at_9999_worst", True),
        ("ndcg_at_0", False),
        ("ndcg_at_05", False),
        ("ndcg_at_10000", False),
        ("map_at_5", False),
        ("top_at_5", False),
    ],
)
def test_a_metric_may_be_cut_at_any_place(name: str, known: bool) -> None:
    limits = SCHEMA["$defs"]["L3Limits"]
    taken = name in limits["properties"] or any(re.search(key, name) for key in limits["patternProperties"])
    assert taken == (find(name) is not None) == known


def test_the_kind_of_a_metric_decides_its_bounds() -> None:
    parity = SCHEMA["$defs"]["L2Limits"]["properties"]
    assert set(parity["order_kept"]["properties"]) == {"exactly"}
    assert parity["order_kept"]["properties"]["exactly"]["type"] == "boolean"
    assert set(parity["max_abs_gap"]["properties"]) == {"at_most", "at_least", "exactly"}
    assert "[logit]" in parity["max_abs_gap"]["description"]
