"""Cases that are not PASS as workflow commands, which a GitHub Actions runner shows beside a run: worst first, ten of a kind at most.

These lines are commands on purpose, so every word of a root in them is written out as hidden characters are, and then escaped as
the runner's toolkit does: ``%``, CR and LF in a message, and ``:`` and ``,`` too in a property.
"""

from __future__ import annotations

from harness.judge import WORST_FIRST
from harness.judge_rerank import SMOKE
from harness.records import Verdict
from harness.report.cases import Account, Case
from harness.report.escape import shorten, visible

MOST = 10
"""A runner shows ten annotations of each kind a step; the rest is in the summary."""

KINDS: dict[Verdict, str] = {"FAIL": "error", "BLOCKED": "warning", "INCONCLUSIVE": "warning", "NOT_RUN": "notice"}


def render(account: Account) -> str:
    """The lines; nothing for a root in which all is PASS, but that an L3 is a functional smoke test is said once for each target."""
    open_ = [case for case in account.cases if case.verdict != "PASS"]
    open_.sort(key=lambda case: WORST_FIRST.index(case.verdict))
    shown: dict[str, int] = {}
    lines: list[str] = []
    for case in open_:
        kind = KINDS[case.verdict]
        shown[kind] = shown.get(kind, 0) + 1
        if shown[kind] <= MOST:
            lines.append(_line(account, case, kind, case.verdict, f"{case.name}: {case.said}"))
    smoke = {case.suite: case for case in account.cases if case.smoke}
    left = MOST - shown.get("notice", 0)
    lines += [_line(account, case, "notice", SMOKE, case.smoke) for case in [*smoke.values()][: max(0, left)]]
    return "".join(f"{line}\n" for line in lines)


def _line(account: Account, case: Case, kind: str, what: str, text: str) -> str:
    title = _property(shorten(f"{what} {account.ladder} {case.suite} {case.group}", 200))
    return f"::{kind} title={title}::{_message(shorten(text, 1000))}"


def _message(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
