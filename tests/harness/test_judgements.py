"""Gates, reviews and coverage as JUnit and SARIF: one case a judgement, none passed that is not OK, valid by their schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import xmlschema

from tests.harness.test_account import SARIF, XSD, schema
from tests.support.ladders import TARGETS as THREE
from tests.support.ladders import Said, changed, edited, qualify, writable_copy, write_ladder

pytestmark = pytest.mark.slow

POLICY = """format: 1
name: release
gates:
  - {metric: payload_bytes, target: cpu-fp32, max_degradation: 1%}
  - {metric: payload_bytes, target: cpu-int8, at_most: 1}
  - {metric: payload_bytes, target: gone, at_most: 1}
  - {identity: model, must_not_change: true}
"""


def told(folder: Path, *words: str | Path) -> tuple[Said, dict[str, str], dict[str, str]]:
    """How a command ended; each JUnit case and what stands in it (``passed`` for nothing); each SARIF result and its level."""
    said = qualify(*words, "--junit", folder / "junit.xml", "--sarif", folder / "findings.sarif")
    text = (folder / "junit.xml").read_text(encoding="utf-8")
    xmlschema.XMLSchema(str(schema(XSD))).validate(text)
    cases = {
        f"{case.get('classname')} {case.get('name')}": child.tag
        if (child := next(iter(case), None)) is not None
        else "passed"
        for case in ET.fromstring(text).iter("testcase")
    }
    log: Any = json.loads((folder / "findings.sarif").read_text(encoding="ascii"))
    jsonschema.Draft7Validator(json.loads(schema(SARIF).read_text(encoding="utf-8"))).validate(log)
    (run,) = log["runs"]
    names = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [names[result["ruleIndex"]] for result in run["results"]] == [result["ruleId"] for result in run["results"]]
    levels = {result["partialFingerprints"]["case/v1"]: result["level"] for result in run["results"]}
    return said, cases, levels


def test_each_rule_of_a_policy_is_a_case_on_each_target(tiny_root: Path, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    said, cases, levels = told(tmp_path, "diff", tiny_root, tiny_root, "--policy", tmp_path / "policy.yaml")
    assert said.code == 10
    assert cases == {
        "tiny.cpu-fp32.L0 payload_bytes max_degradation 1%": "passed",
        "tiny.cpu-int8.L0 payload_bytes at_most 1": "failure",
        "tiny.gone.L0 payload_bytes at_most 1": "error",
        "tiny.*.identity model must_not_change": "passed",
    }
    assert levels == {
        "tiny/cpu-int8 L0 build/payload_bytes at_most 1": "error",
        "tiny/gone L0 build/payload_bytes at_most 1": "warning",
    }


def test_a_comparison_without_a_policy_has_no_case(tiny_root: Path, tmp_path: Path) -> None:
    said = qualify("diff", tiny_root, tiny_root, "--junit", tmp_path / "junit.xml")
    assert (said.code, list(tmp_path.iterdir())) == (64, [])
    assert said.err == (
        "qualify: diff: expected --policy with --junit and --sarif, got none, so nothing is judged; give one\n"
    )


def test_each_question_of_a_review_is_a_case(tiny_root: Path, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "runs").mkdir()
    later = edited("qualification.json", lambda claim: claim.update(ended_at="2036-01-01T00:00:00Z"))
    root = changed(tiny_root, tmp_path / "runs" / "today", later)
    review = ("review", root, "--policy", tmp_path / "policy.yaml", "--baseline", tiny_root)
    said, cases, levels = told(tmp_path, *review)
    answer = json.loads((tmp_path / "runs/today.review.json").read_bytes())
    assert said.code == 10
    assert len(cases) == len(answer["met"]) + len(answer["blockers"])
    assert [name for name, what in cases.items() if what == "failure"] == [
        "tiny.review.review gate payload_bytes cpu-int8 at_most 1"
    ]
    assert "tiny.review.review gate payload_bytes gone at_most 1" in [n for n, what in cases.items() if what == "error"]
    assert cases["tiny.review.review integrity"] == "passed"
    assert len(levels) == len(answer["blockers"])


def test_a_root_that_is_rejected_is_a_failure_by_its_fault(tiny_root: Path, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    root = writable_copy(tiny_root, tmp_path / "broken")
    (root / "environment.json").write_bytes(b"{}\n")
    review = ("review", root, "--policy", tmp_path / "policy.yaml", "--baseline", tiny_root)
    said, cases, levels = told(tmp_path, *review)
    assert said.code == 20
    assert set(cases.values()) == {"failure"}
    assert set(levels.values()) == {"error"}


def test_each_target_of_a_ladder_is_a_case_and_so_is_a_root_that_counts_for_none(
    tiny_root: Path, tiny_model: Path, tmp_path: Path
) -> None:
    deferred = THREE.replace("precision: int8", "deferred: later, precision: int8")
    path = write_ladder(tmp_path / "other", tiny_model, deferred)
    said, cases, levels = told(tmp_path, "cover", tiny_root, "--ladder", path)
    assert said.code == 30
    refused = next(name for name in cases if name.startswith("tiny.evidence.coverage "))
    assert cases == {
        "tiny.tiny.coverage cpu-fp32": "error",
        "tiny.tiny.coverage cpu-fp16": "error",
        "tiny.tiny.coverage cpu-int8": "skipped",
        refused: "error",
    }
    assert sorted(levels.values()) == ["note", "warning", "warning", "warning"]


@pytest.mark.parametrize("what", ["junit", "sarif"])
def test_a_file_that_is_there_is_refused_before_anything_is_read(what: str, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("mine", encoding="utf-8")
    for words in (
        ("diff", "a", "b", "--policy", "p"),
        ("review", "a", "--policy", "p"),
        ("cover", "a", "--ladder", "l"),
    ):
        said = qualify(*words, f"--{what}", there)
        assert (said.code, there.read_text(encoding="utf-8")) == (64, "mine")
        assert said.err.startswith(f"qualify: {there}: expected a path that does not exist"), said.err
