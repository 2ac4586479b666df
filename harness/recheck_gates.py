"""Gates and lock of a root, judged again; for ``recheck``. Pure."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from evidence.manifest import Fault
from harness import quality, records
from harness.derive_raw import Read
from harness.differences import differences
from harness.errors import QualifyError
from harness.records import GateClaim, GateOutcome, LockClaim
from harness.redact import REDACTED
from harness.root import RootRecords


def beside(found: RootRecords, read: Read) -> tuple[tuple[GateClaim, ...], LockClaim | None, list[Fault]]:
    """Gates and lock, judged again: the verdict of a gate from how its command ended, the differences from lock and packages."""
    faults: list[Fault] = []
    outcomes: dict[str, GateOutcome] = {}
    for gate in found.plan.gates:
        left = found.gates.get(gate.name)
        if left is None:  # that it may be missing is E-GATE, which evidence looked at
            continue
        path = f"{records.gate_folder(gate.name)}/gate.json"
        reason = quality.gate_reason(left.exit, gate.time_limit_s) if left.exit is not None else left.reason
        derived = msgspec.structs.replace(
            left,
            name=gate.name,
            verdict=quality.gate_verdict(left.exit),
            reason=reason,
            redactions=_redactions(gate.name, read),
        )
        faults += differences("Q-GATE", path, msgspec.to_builtins(left), msgspec.to_builtins(derived))
        outcomes[gate.name] = derived
    lock = None
    if found.plan.lock is not None:
        try:
            text = read(records.LOCK).decode("utf-8")
            lock = quality.lock_claim(found.plan.lock, text, found.environment.packages)
        except (QualifyError, ValueError, LookupError) as error:
            faults.append(Fault("Q-LOCK", records.LOCK, f"{records.LOCK}: expected a file of pins, got: {error}"))
    return quality.gate_claims(found.plan.gates, outcomes), lock, faults


def _redactions(gate: str, read: Read) -> int:
    """How often the logs say [REDACTED]. A command that could not be started, or was interrupted at once, left none."""
    count = 0
    for stream in ("stdout", "stderr"):
        with suppress(LookupError):
            count += read(f"{records.gate_folder(gate)}/{stream}.log").count(REDACTED.encode())
    return count
