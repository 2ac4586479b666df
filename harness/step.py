"""Run one step in its child and judge it. Whatever happens, it leaves ``outcome.json``."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from evidence import seal
from evidence.meaning import INTERRUPTED
from harness import judge, launch
from harness.clock import now
from harness.errors import RecordError
from harness.records import GateOutcome, Limits, Measurements, Outcome, Request, Tier, from_json, to_json
from harness.redact import REDACTED


class Watcher(Protocol):
    """Who is told how the climb goes; ``report.live.Live`` shows it."""

    def gate(self, name: str, outcome: GateOutcome | None) -> None:
        """A gate starts (None), or ended."""

    def step_started(self, target: str, tier: Tier) -> None:
        """A child starts."""

    def progress(self, target: str, tier: Tier, done: int, total: int, what: str) -> None:
        """``done`` of ``total`` units of ``what`` are done in the running step."""

    def step_ended(self, target: str, tier: Tier, outcome: Outcome) -> None:
        """The step has its verdict."""


def run(request: Request, limits: Limits, places: launch.Places, watcher: Watcher) -> Outcome:
    """Run and judge one step. An interrupt ends the child and is an outcome too."""
    target, folder, root = request.target.name, request.step, places.root
    watcher.step_started(target, request.tier)
    started, ended_as, reason = now(), None, ""
    try:
        if request.tier == "L3" and request.inputs.groups_blocked is not None:
            reason = request.inputs.groups_blocked
        else:
            ended_as, _ = launch.run_step(
                request, places, lambda done, total, what: watcher.progress(target, request.tier, done, total, what)
            )
            reason = launch.why_blocked(root, request, ended_as)
    except KeyboardInterrupt:
        reason = INTERRUPTED
    ended = now()
    found = None if reason else _measurements(root, folder)
    findings = judge.judge(limits, found.measurements) if found is not None else ()
    verdict = judge.step_verdict(findings)
    outcome = Outcome(
        format=1,
        tier=request.tier,
        target=target,
        verdict=verdict,
        reason=reason or judge.outcome_reason(verdict, findings),
        plan_digest=request.plan_digest,
        candidate_digest=request.candidate.digest,
        artifact_digest=launch.artifact_digest_of(root, request),
        started_at=started,
        ended_at=ended,
        exit=ended_as,
        redactions=_redactions(root, folder),
        findings=findings,
    )
    seal.write_new(root, f"{folder}/outcome.json", to_json(outcome))
    watcher.step_ended(target, request.tier, outcome)
    return outcome


def _redactions(root: Path, folder: str) -> int:
    """How often the sealed logs say [REDACTED], also those of a step that was interrupted: none where it left no log."""
    logs = (root / folder / f"{stream}.log" for stream in launch.STREAMS)
    return sum(log.read_bytes().count(REDACTED.encode()) for log in logs if log.is_file())


def _measurements(root: Path, folder: str) -> Measurements | None:
    path = root / folder / "measurements.json"
    try:
        return from_json(path.read_bytes(), Measurements, f"{folder}/measurements.json")
    except (OSError, RecordError):
        return None
