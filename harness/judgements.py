"""Gates of a comparison, a review and a coverage as cases, for JUnit and SARIF. Pure.

REGRESSION, a blocker on merit and one of integrity are FAIL. What could not be told is INCONCLUSIVE, or BLOCKED (INCOMPARABLE, a target
that nobody climbed, an undetermined blocker), so that no reader takes it for passed.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.approval import Review
from harness.cover import EXIT_NOT_INTACT, Covered, State
from harness.diff_values import Diff
from harness.gate import Gated, Gates, GateVerdict
from harness.metrics import catalogue
from harness.records import CLAIM, PLAN, Verdict, step_folder
from harness.report.cases import BUNDLE, Account, Case

NO_TIME = "1970-01-01T00:00:00Z"
_GATES: dict[GateVerdict, Verdict] = {
    "REGRESSION": "FAIL",
    "INCOMPARABLE": "BLOCKED",
    "INCONCLUSIVE": "INCONCLUSIVE",
    "OK": "PASS",
}
_STATES: dict[State, Verdict] = {
    "PASS": "PASS",
    "FAIL": "FAIL",
    "BLOCKED": "BLOCKED",
    "INCONCLUSIVE": "INCONCLUSIVE",
    "NOT_RUN": "NOT_RUN",
    "DEFERRED": "NOT_RUN",
    "MISSING": "BLOCKED",
}


def of_gates(found: Diff, gates: Gates) -> Account:
    """A case for each rule of a policy on each target."""
    side = found.candidate
    return Account(side.ladder, side.digest, side.ended_at, {}, tuple(map(_gate, gates.gates)))


def _gate(gate: Gated) -> Case:
    metric = catalogue.find(gate.what)
    name, verdict = f"{gate.what} {gate.rule}", _GATES[gate.verdict]
    if metric is None:
        return Case(gate.target, None, name, f"identity.{gate.what}", verdict, gate.reason, PLAN)
    path = f"{step_folder(metric.tier, gate.target)}/measurements.json"
    return Case(gate.target, metric.tier, name, gate.what.partition(".")[0], verdict, gate.reason, path)


def of_review(review: Review) -> Account:
    """A case for each question that was asked, by its id."""
    cases = [_question(name, "PASS", "", CLAIM) for name in review.met]
    for blocker in review.blockers:
        verdict: Verdict = "BLOCKED" if blocker.kind == "undetermined" else "FAIL"
        cases.append(_question(blocker.id, verdict, f"{blocker.text}; closes: {blocker.closes}", blocker.evidence))
    ladder, digest = review.ladder or "a root that cannot be read", str(review.digest)
    return Account(ladder, digest, review.reviewed_at, {}, tuple(cases))


def _question(name: str, verdict: Verdict, text: str, path: str) -> Case:
    return Case("review", None, name, f"review.{name.partition(' ')[0]}", verdict, text, path)


def of_cover(found: Covered) -> Account:
    """A case for each target of each ladder, and for each root that counts for none."""
    names = ", ".join(ladder.name for ladder in found.ladders)
    return Account(names, "several roots", NO_TIME, {}, tuple(_covered(found)))


def _covered(found: Covered) -> Iterator[Case]:
    for ladder in found.ladders:
        for target in ladder.targets:
            verdict = _STATES[target.state]
            yield Case(ladder.name, None, target.name, "cover.target", verdict, target.reason, CLAIM)
    for root in found.refused:
        verdict = "FAIL" if root.exit_code == EXIT_NOT_INTACT else "BLOCKED"
        yield Case(BUNDLE, None, root.root, "cover.root", verdict, root.reason, CLAIM)
