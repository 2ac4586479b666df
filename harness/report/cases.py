"""What was judged, one case each, for the formats of other tools: JUnit, SARIF, annotations of a CI job. Pure.

A case is a finding, a step without findings, or a check of the bundle. Nothing is PASS by default: a step that did not run, a
deferred target and a check that could not run have cases of their own, which are not PASS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness.judge_rerank import smoke
from harness.records import TIER_NAMES, TIERS, Outcome, Qualification, Tier, Verdict, gate_folder, step_folder
from harness.report import wording

BUNDLE = "evidence"
"""The suite of the checks of the bundle itself; no target has this name and a case without a tier."""


_GROUPS = {"gate": "gate", "lock": "packages", "package": "packages", "deferred": "deferred"}
_GROUPS |= {"identity": "identity", "review": "review", "cover": "coverage"}


class Case(NamedTuple):
    """One thing that was judged. ``suite`` is a target or ``BUNDLE``, ``path`` the root-relative evidence.

    ``rule`` is what a tool groups by: a metric without its parameter, a rule of the verifier, or the verdict of a whole step.
    ``smoke`` says why the step is a functional smoke test; empty where it is none.
    """

    suite: str
    tier: Tier | None
    name: str
    rule: str
    verdict: Verdict
    text: str
    path: str
    smoke: str = ""

    @property
    def said(self) -> str:
        """The text, and behind it that the step is a smoke test, where it is one."""
        return "; ".join(filter(None, (self.text, self.smoke)))

    @property
    def group(self) -> str:
        """E.g. ``L2 parity``; what the rule says for one that is of no tier."""
        return (
            f"{self.tier} {TIER_NAMES[self.tier]}"
            if self.tier is not None
            else _GROUPS.get(self.rule.partition(".")[0], BUNDLE)
        )


class Account(NamedTuple):
    """All cases of one root, and what they are of: ladder, root digest, when the climb began and how long it took in seconds."""

    ladder: str
    digest: str
    started_at: str
    seconds: dict[tuple[str, Tier], float]
    cases: tuple[Case, ...]


def of_claim(claim: Qualification, outcomes: Mapping[tuple[str, Tier], Outcome]) -> Iterator[Case]:
    """Every gate, every package that differs from the lock, every finding of every target, in the order of the plan."""
    for gate in claim.gates:
        yield Case(gate.name, None, "gate", "gate", gate.verdict, gate.reason, f"{gate_folder(gate.name)}/gate.json")
    if claim.lock is not None:
        words = f"{len(claim.lock.differences)} packages differ ({claim.lock.parity})"
        yield Case("lock", None, claim.lock.file, "lock", claim.lock.verdict, words, "inputs/lock.txt")
        for found in claim.lock.differences:
            yield Case("lock", None, found.metric, "package", found.verdict, found.text, "inputs/lock.txt")
    for target in claim.targets:
        if target.deferred is not None:
            yield Case(target.name, None, "deferred", "deferred", "NOT_RUN", target.deferred, "plan.json")
        for tier in (tier for tier in TIERS if tier in target.tiers):
            outcome = outcomes.get((target.name, tier))
            yield from _step(target.name, tier, target.tiers[tier], outcome)


def _step(target: str, tier: Tier, verdict: Verdict, outcome: Outcome | None) -> Iterator[Case]:
    path = step_folder(tier, target)
    if outcome is None or verdict == "NOT_RUN":
        yield Case(target, tier, "step", "step", "NOT_RUN", wording.MEANINGS["NOT_RUN"], path)
        return
    label = smoke(outcome.findings) if tier == "L3" else ""
    for finding in outcome.findings:
        rule = finding.metric.partition(".")[0]
        yield Case(
            target, tier, finding.metric, rule, finding.verdict, finding.text, f"{path}/measurements.json", label
        )
    if not outcome.findings:
        yield Case(target, tier, "step", "step", verdict, outcome.reason, f"{path}/outcome.json")


def of_verification(answer: Mapping[str, Any]) -> Iterator[Case]:
    """Each check of the bundle, and each fault, from the answer of ``review.answer``."""
    for check in answer["checks"]:
        verdict: Verdict = "PASS" if check["ran"] else "BLOCKED"
        yield Case(BUNDLE, None, check["check"], "check", verdict, check["note"], "MANIFEST.b3")
    for fault in answer["faults"]:
        where = fault["path"] or "MANIFEST.b3"
        yield Case(BUNDLE, None, f"{fault['rule']} {where}", fault["rule"], "FAIL", fault["message"], where)
