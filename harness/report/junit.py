"""Cases as JUnit XML, the dialect that Jenkins' xunit plugin, GitLab and most others read.

FAIL is a ``failure``; BLOCKED and INCONCLUSIVE are an ``error``, since the tool could not tell; NOT_RUN is ``skipped``, which readers
do not take for passed. Text is made inert first (``escape.visible``), so no character is left that XML 1.0 cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from harness.judge_rerank import SMOKE
from harness.report.cases import Account, Case
from harness.report.escape import visible


def render(account: Account) -> bytes:
    """The document, UTF-8. One suite a target and tier; the same root gives the same bytes."""
    counts = _counts(account.cases)
    suites = ET.Element("testsuites", counts, name=visible(account.ladder), time=_time(sum(account.seconds.values())))
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in account.cases:
        groups.setdefault((case.suite, case.group), []).append(case)
    for (name, group), cases in groups.items():
        tier = cases[0].tier
        seconds = account.seconds.get((name, tier), 0.0) if tier is not None else 0.0
        suites.append(_suite(account, name, group, cases, seconds))
    ET.indent(suites)
    text: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _suite(account: Account, name: str, group: str, cases: list[Case], seconds: float) -> ET.Element:
    skipped = sum(case.verdict == "NOT_RUN" for case in cases)
    label = cases[0].smoke
    suite = ET.Element(
        "testsuite",
        _counts(cases),
        name=visible(f"{name} {group}{f' ({SMOKE})' if label else ''}"),
        skipped=str(skipped),
        time=_time(seconds),
        timestamp=visible(account.started_at).partition(".")[0].removesuffix("Z"),
    )
    properties = ET.SubElement(suite, "properties")
    smoke = (("smoke", label),) if label else ()
    for key, value in (("ladder", account.ladder), ("root_digest", account.digest), *smoke):
        ET.SubElement(properties, "property", name=key, value=visible(value))
    for case in cases:
        suite.append(_case(account, case))
    return suite


def _case(account: Account, case: Case) -> ET.Element:
    classname = visible(f"{account.ladder}.{case.suite}.{case.tier or case.group}")
    made = ET.Element("testcase", name=visible(case.name), classname=classname, time="0")
    kind = {"FAIL": "failure", "BLOCKED": "error", "INCONCLUSIVE": "error", "NOT_RUN": "skipped"}.get(case.verdict)
    if kind is not None:
        said = visible(case.said)
        told = (
            {"message": said, "type": case.verdict} if kind != "skipped" else {}
        )  # that dialect has no attribute there
        ET.SubElement(made, kind, told).text = f"{said}\n{visible(case.path)}"
    return made


def _counts(cases: Iterable[Case]) -> dict[str, str]:
    verdicts = [case.verdict for case in cases]
    return {
        "tests": str(len(verdicts)),
        "failures": str(verdicts.count("FAIL")),
        "errors": str(verdicts.count("BLOCKED") + verdicts.count("INCONCLUSIVE")),
    }


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"
