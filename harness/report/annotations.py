"""Cases that are not PASS as workflow commands, which a GitHub Actions runner shows beside a run: worst first, ten of a kind at most.

These lines are commands on purpose, so every word of a root in them is written out as hidden characters are, and then escaped as
the runner's toolkit does: ``%``, CR and LF in a message, and ``:`` and ``,`` too in a property.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.judge import WORST_FIRST
from harness.records import Verdict
from harness.report.cases import Account, Case
from harness.report.escape import shorten, visible

MOST = 10
"""A runner shows ten annotations of each kind a step; the rest is in the summary."""

KINDS: dict[Verdict, str] = {"FAIL": "error", "BLOCKED": "warning", "INCONCLUSIVE": "warning", "NOT_RUN": "notice"}


def render(account: Account) -> str:
    """The lines; nothing for a root in which all is PASS."""
    open_ = [case for case in account.cases if case.verdict != "PASS"]
    open_.sort(key=lambda case: WORST_FIRST.index(case.verdict))
    shown: dict[str, int] = {}
    lines: list[str] = []
    for case in open_:
        kind = KINDS[case.verdict]
        shown[kind] = shown.get(kind, 0) + 1
        if shown[kind] <= MOST:
            lines += _lines(account, case, kind)
    return "".join(f"{line}\n" for line in lines)


def _lines(account: Account, case: Case, kind: str) -> Iterator[str]:
    title = _property(shorten(f"{case.verdict} {account.ladder} {case.suite} {case.group}", 200))
    yield f"::{kind} title={title}::{_message(shorten(f'{case.name}: {case.text}', 1000))}"


def _message(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
