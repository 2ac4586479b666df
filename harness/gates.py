"""Run the gates of a ladder: commands of the user's own repository, before L0, each with a time limit, its logs sealed without secrets."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from evidence.meaning import INTERRUPTED
from evidence.seal import write_new
from harness import launch, process, quality
from harness.clock import now
from harness.records import Exit, GateOutcome, QualityGate, gate_folder, to_json
from harness.redact import is_secret_name, scrub


def run(gate: QualityGate, staging: Path, ladder_folder: Path, plan_digest: str) -> GateOutcome:
    """Run one gate and write ``gates/<name>/``. An interrupt ends the command and is an outcome too."""
    folder = gate_folder(gate.name)
    started, ended, reason, redactions = now(), None, "", 0
    with tempfile.TemporaryDirectory(prefix="qualify-") as scratch:
        logs = Path(scratch).resolve()
        try:
            ended = _command(gate, ladder_folder, logs)
            reason = quality.gate_reason(ended, gate.time_limit_s)
        except KeyboardInterrupt:
            reason = INTERRUPTED
        except OSError as error:
            what = gate.command[0] if (ladder_folder / gate.folder).is_dir() else f"folder {gate.folder}"
            reason = f"could not be started: {what}: {error.strerror}; correct the gate, or install what it calls"
        words = launch.machine_paths(root=staging, scratch=logs) | {str(ladder_folder.resolve()): "LADDER"}
        for stream in ("stdout", "stderr"):
            if (logs / stream).exists():
                redactions += launch.seal_log(logs / stream, staging, f"{folder}/{stream}.log", words)
    outcome = GateOutcome(
        format=1,
        name=gate.name,
        verdict=quality.gate_verdict(ended),
        reason=scrub(reason, words)[0],
        plan_digest=plan_digest,
        started_at=started,
        ended_at=now(),
        exit=ended,
        redactions=redactions,
    )
    write_new(staging, f"{folder}/gate.json", to_json(outcome))
    return outcome


def run_all(
    gates: tuple[QualityGate, ...],
    staging: Path,
    ladder_folder: Path,
    plan_digest: str,
    told: Callable[[str, GateOutcome | None], None],
) -> dict[str, GateOutcome]:
    """Run every gate, also after one that did not pass, until an interrupt. ``told`` hears of each start (None) and end."""
    found: dict[str, GateOutcome] = {}
    for gate in gates:
        told(gate.name, None)
        found[gate.name] = run(gate, staging, ladder_folder, plan_digest)
        told(gate.name, found[gate.name])
        if found[gate.name].reason == INTERRUPTED:
            break
    return found


def _command(gate: QualityGate, ladder_folder: Path, logs: Path) -> Exit:
    kept = {name: value for name, value in os.environ.items() if not is_secret_name(name)}
    return process.run(
        gate.command,
        environment=kept,
        folder=logs,
        time_limit_s=gate.time_limit_s,
        started=lambda _pid: None,
        on_line=None,
        where=ladder_folder / gate.folder,
    )
