"""Cases that are not PASS as SARIF 2.1.0 (OASIS), for code scanning and for editors that show it.

FAIL is an ``error``; BLOCKED and INCONCLUSIVE are a ``warning``; NOT_RUN is a ``note``. Places are paths within the root.
"""

from __future__ import annotations

import importlib.metadata
import re
from typing import Any

from harness.metrics import catalogue
from harness.records import Verdict
from harness.report.cases import Account, Case
from harness.report.escape import json_text, visible

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: dict[Verdict, str] = {"FAIL": "error", "BLOCKED": "warning", "INCONCLUSIVE": "warning", "NOT_RUN": "note"}
_WORDS = {
    "step": "A tier of a target that gave no finding.",
    "check": "A check of the bundle that could not run.",
    "gate": "A command of the user's own repository that ran before the first step.",
    "lock": "The installed packages against the lock.",
    "package": "An installed package against the lock.",
    "deferred": "A target that was not climbed.",
    "identity": "A part of the identity that a policy forbids to change.",
    "review": "A question of qualify review; see docs/reference/review.md.",
    "cover": "A target that the roots should bring to its goal together, or a root that counts for no ladder.",
}
_SAFE = re.compile(r"[^A-Za-z0-9._/-]")


def render(account: Account) -> bytes:
    """The log, one run, ASCII JSON with sorted keys. The same root gives the same bytes."""
    open_ = [case for case in account.cases if case.verdict != "PASS"]
    rules = sorted({case.rule for case in open_})
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "qualify",
                        "semanticVersion": importlib.metadata.version("qualify"),
                        "rules": [_rule(rule) for rule in rules],
                    }
                },
                "automationDetails": {"id": f"qualify/{visible(account.ladder)}/"},
                "properties": {
                    "ladder": visible(account.ladder),
                    "rootDigest": visible(account.digest),
                    "smoke": [
                        visible(label) for label in dict.fromkeys(filter(None, (c.smoke for c in account.cases)))
                    ],
                },
                "results": [_result(account, case, rules.index(case.rule)) for case in open_],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }
    return f"{json_text(log)}\n".encode("ascii")


def _rule(rule: str) -> dict[str, Any]:
    known = catalogue.find(rule) or catalogue.METRICS.get(rule)
    words = _WORDS.get(rule.partition(".")[0], "A rule of the verifier; see evidence/FORMAT.md.")
    meaning = known.meaning if known is not None else words
    return {"id": visible(rule), "shortDescription": {"text": visible(meaning)}}


def _result(account: Account, case: Case, rule: int) -> dict[str, Any]:
    place = f"{case.suite} {case.group}"
    return {
        "ruleId": visible(case.rule),
        "ruleIndex": rule,
        "level": _LEVELS[case.verdict],
        "kind": "fail",
        "message": {"text": visible(f"{place}: {case.verdict}: {case.name}: {case.said}")},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _SAFE.sub("_", case.path)},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [
                    {"fullyQualifiedName": visible(f"{account.ladder}/{case.suite}/{case.tier or case.group}")}
                ],
            }
        ],
        "partialFingerprints": {"case/v1": visible(f"{account.ladder}/{place}/{case.name}")},
        "properties": {"verdict": case.verdict, "target": visible(case.suite)},
    }
