"""What a policy may say, and every refusal with its whole message."""

from __future__ import annotations

import json

import pytest

from harness import policy
from harness.errors import PolicyError
from harness.metrics import catalogue, direction
from harness.policy import Gate, Pin

HEAD = "format: 1\nname: release\ngates:\n"


def parse(gates: str) -> policy.Policy:
    return policy.parse((HEAD + gates).encode())


def test_every_metric_of_the_catalogue_says_once_which_way_it_improves() -> None:
    """A new metric belongs into one of the sets of harness/metrics/direction.py."""
    stated = [*direction.LESS, *direction.MORE, *direction.NEITHER]
    assert sorted(stated) == sorted(catalogue.METRICS)


def test_a_parameter_does_not_change_the_direction() -> None:
    assert direction.better("gap_after.export") == "less"
    assert direction.better("initializer_bytes.FLOAT") == "neither"
    assert direction.better("no_such_metric") == "neither"


def test_every_rule_can_be_written() -> None:
    found = parse(
        "  - {metric: p50_ms, target: 'cpu-*', max_degradation: 10%}\n"
        "  - {metric: ndcg_at_10, max_degradation: 0.005, at_least: 0.6}\n"
        "  - {metric: payload_bytes, min_improvement: 50%, at_most: 8e6}\n"
        "  - {metric: opset, must_not_change: true, must_be_comparable: true}\n"
        "  - {identity: dataset, must_not_change: true}\n"
    )
    assert [gate.rules() for gate in found.gates] == [
        {"max_degradation": "10%"},
        {"max_degradation": 0.005, "at_least": 0.6},
        {"min_improvement": "50%", "at_most": 8e6},
        {"must_not_change": True, "must_be_comparable": True},
        {"must_not_change": True},
    ]
    assert found.gates[0] == Gate(metric="p50_ms", target="cpu-*", max_degradation="10%")


@pytest.mark.parametrize(
    ("gates", "message"),
    [
        ("  []\n", "gates: expected a list of at least 1, got an empty list"),
        (
            "  - {metric: p50_ms}\n",
            (
                "gates[0]: expected at least one of max_degradation, min_improvement, at_most, at_least, must_not_change, "
                "must_be_comparable, got none; a gate without a rule would decide nothing; add one"
            ),
        ),
        (
            "  - {max_degradation: 1}\n",
            "gates[0]: expected one of metric and identity, got neither; name what is judged",
        ),
        (
            "  - {metric: p50, max_degradation: 1}\n",
            "gates[0].metric: expected a metric of the catalogue, got 'p50'; did you mean 'p50_ms'?",
        ),
        (
            "  - {metric: operator_count, at_most: 1}\n",
            "gates[0].metric: expected operator_count.<operator type>, got 'operator_count'",
        ),
        (
            "  - {metric: p50_ms, max_degradaton: 1}\n",
            (
                "gates[0]: expected only the keys metric, identity, target, max_degradation, min_improvement, at_most, at_least, "
                "must_not_change, must_be_comparable, got 'max_degradaton'; did you mean 'max_degradation'?"
            ),
        ),
        (
            "  - {metric: p50_ms, max_degradation: -0.5}\n",
            "gates[0].max_degradation: expected a number of at least 0, or per cent, got -0.5; write the size of the change",
        ),
        (
            "  - {metric: p50_ms, max_degradation: 10 %}\n",
            "gates[0].max_degradation: expected a finite number or per cent such as 10%, got '10 %'",
        ),
        (
            "  - {metric: opset, max_degradation: 1}\n",
            (
                "gates[0].max_degradation: expected a metric of which less or more is better, got 'opset', of which neither is; "
                "use at_most, at_least or must_not_change"
            ),
        ),
        (
            "  - {metric: order_kept, max_degradation: 1}\n",
            (
                "gates[0].max_degradation: expected must_not_change, since order_kept is true or false, got a rule for numbers; "
                "write must_not_change"
            ),
        ),
        (
            "  - {metric: p50_ms, must_not_change: false}\n",
            "gates[0].must_not_change: expected true, got false; a rule that asks for nothing decides nothing; remove it",
        ),
        (
            "  - {metric: p50_ms, at_least: 2, at_most: 1}\n",
            "gates[0]: expected bounds that a value can meet, got at_least 2 above at_most 1; swap them",
        ),
        (
            "  - {identity: packages, at_most: 1}\n",
            "gates[0].at_most: expected must_not_change alone, since it is about the identity, got another rule; remove it",
        ),
        (
            "  - {metric: p50_ms, identity: model, must_not_change: true}\n",
            "gates[0]: expected one of metric and identity, got both; name what is judged",
        ),
    ],
)
def test_what_a_policy_cannot_mean_is_refused(gates: str, message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parse(gates)
    assert str(refused.value) == f"policy.yaml: {message}"


def test_a_policy_without_gates_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"gates: expected a list, got nothing; add the key"):
        policy.parse(b"format: 1\nname: empty\n")
    with pytest.raises(
        PolicyError, match=r"policy.yaml: format: expected 1, got 2; this version of qualify reads no other"
    ):
        policy.parse(b"format: 2\nname: later\n")


def test_a_baseline_is_pinned_in_a_policy_or_in_a_file_of_its_own() -> None:
    pin = "baseline: {path: ../roots/march, digest: 'blake3:" + "a" * 64 + "'}\n"
    expected = Pin(path="../roots/march", digest="blake3:" + "a" * 64)
    assert policy.parse_pin(pin.encode(), "baseline.yaml") == expected
    whole = HEAD + "  - {metric: p50_ms, at_most: 1}\n" + pin
    assert policy.parse_pin(whole.encode(), "policy.yaml") == expected
    with pytest.raises(PolicyError) as refused:
        policy.parse_pin((HEAD + "  - {metric: p50_ms, at_most: 1}\n").encode(), "policy.yaml")
    assert str(refused.value) == (
        "policy.yaml: baseline: expected a table with path, digest, got nothing; add the key, or name a root"
    )
    with pytest.raises(PolicyError, match=r"baseline.digest: expected blake3: and 64 hex digits, got 'latest'"):
        policy.parse_pin(b"baseline: {path: x, digest: latest}\n", "baseline.yaml")


def test_an_allowance_of_nothing_is_none() -> None:
    assert policy.amount("10%", 50.0) == 5.0
    assert policy.amount("10%", -50.0) == 5.0
    assert policy.amount(0.3, 0.0) == 0.3
    assert policy.amount("10%", 0.0) is None


def test_the_schema_describes_every_key() -> None:
    found = policy.schema()
    assert set(found["properties"]) == set(policy.KEYS["Policy"])
    assert set(found["$defs"]["Gate"]["properties"]) == set(policy.KEYS["Gate"])
    assert found["properties"]["gates"]["minItems"] == 1


def test_the_schema_is_printed() -> None:
    from click.testing import CliRunner

    from harness.cli import cli

    said = CliRunner().invoke(cli, ["schema", "--policy"], standalone_mode=False)
    assert json.loads(said.output)["$defs"].keys() == policy.schema()["$defs"].keys()
