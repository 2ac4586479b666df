"""What a root says beside its targets: the quality gates of the user's own repository, and the packages against a lock. Pure.

A gate is judged by how its command ended: exit code 0 is PASS, another FAIL; a signal, the time limit, or a command that could not be
started is BLOCKED, since it said nothing. A lock is a file of pins (``name==version``, pip's constraints or requirements).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from harness.errors import LadderError
from harness.records import (
    Exit,
    Finding,
    GateClaim,
    GateOutcome,
    Limit,
    Lock,
    LockClaim,
    QualityGate,
    Verdict,
)

NOT_INSTALLED, NOT_PINNED = "not installed", "not pinned"
OURS = frozenset({"pip", "setuptools", "wheel", "qualify"})
"""Packages that make the environment, or are the harness itself: no lock need pin them."""

_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?\s*===?\s*(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*)"
)


def gate_verdict(ended: Exit | None) -> Verdict:
    """PASS, FAIL or BLOCKED; see the module's docstring."""
    if ended is None or ended.timed_out or ended.code is None:
        return "BLOCKED"
    return "PASS" if ended.code == 0 else "FAIL"


def gate_reason(ended: Exit, limit_s: float) -> str:
    """Why a gate that was started is not PASS; empty for one that is."""
    if ended.timed_out:
        return f"ended at its time limit of {limit_s:g} s; see stdout.log and stderr.log"
    if ended.code is None:
        return f"killed by {ended.signal}; see stdout.log and stderr.log"
    return f"exit code {ended.code}; see stdout.log and stderr.log" if ended.code else ""


def gate_claims(planned: Iterable[QualityGate], outcomes: Mapping[str, GateOutcome]) -> tuple[GateClaim, ...]:
    """What became of every planned gate, in order; NOT_RUN for one that left nothing."""
    found = []
    for gate in planned:
        left = outcomes.get(gate.name)
        verdict: Verdict = left.verdict if left is not None else "NOT_RUN"
        found.append(GateClaim(name=gate.name, verdict=verdict, reason=left.reason if left is not None else "not run"))
    return tuple(found)


def passed(claims: Iterable[GateClaim]) -> bool:
    """Whether the tiers are climbed: with a gate that did not pass they are not."""
    return all(claim.verdict == "PASS" for claim in claims)


def canonical(name: str) -> str:
    """A package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str, where: str) -> dict[str, tuple[tuple[str, ...], bool]]:
    """By canonical name: the versions that a lock pins, and whether one of its lines holds only on some platforms (has a marker).

    Lines that start with ``-`` are options, ``--hash`` after a pin is skipped. Raises ``LadderError`` for a line that pins nothing, and
    for a file without a pin: it would agree with everything.
    """
    found: dict[str, tuple[tuple[str, ...], bool]] = {}
    for number, line in enumerate(text.replace("\\\n", " ").splitlines(), 1):
        bare = re.sub(r"(^|\s)#.*", "", line).strip()
        if not bare or bare.startswith("-"):
            continue
        pin = _PIN.match(bare)
        rest = bare[pin.end() :].strip() if pin is not None else ""
        if pin is None or (rest and not rest.startswith((";", "--hash"))):
            raise LadderError(
                f"{where}: line {number}: expected name==version, got {bare[:80]!r}; a lock pins every version exactly"
            )
        versions, marked = found.get(canonical(pin["name"]), ((), False))
        found[canonical(pin["name"])] = (*versions, pin["version"]), marked or rest.startswith(";")
    if not found:
        raise LadderError(
            f"{where}: expected at least one name==version, got none; name the file that pins the packages"
        )
    return found


def lock_claim(lock: Lock, text: str, packages: Mapping[str, str]) -> LockClaim:
    """Every difference between a lock and the installed ``packages``. Raises ``LadderError`` for a lock that pins nothing.

    ``versions`` demands the pinned version of what is installed; ``exact`` also that all that is pinned is installed and all that is
    installed is pinned; ``recorded`` demands nothing.
    """
    pinned = pins(text, lock.file)
    installed = {canonical(name): version for name, version in packages.items()}
    found: list[Finding] = []
    for name in sorted(pinned.keys() | installed.keys()):
        versions, marked = pinned.get(name, ((), False))
        have = installed.get(name)
        if have in versions or (have is None and marked) or (not versions and name in OURS):
            continue
        kind = NOT_INSTALLED if have is None else NOT_PINNED if not versions else ""
        if lock.parity != "exact" and kind:
            continue
        found.append(_difference(name, " or ".join(versions) or NOT_PINNED, have or NOT_INSTALLED, lock))
    verdict: Verdict = "PASS" if lock.parity == "recorded" or not found else "FAIL"
    return LockClaim(file=lock.file, parity=lock.parity, verdict=verdict, differences=tuple(found))


def _difference(name: str, pinned: str, have: str, lock: Lock) -> Finding:
    verdict: Verdict = "PASS" if lock.parity == "recorded" else "FAIL"
    text = f"package {name}: expected {pinned}, as {lock.file} says, got {have}"
    limit = Limit(exactly=pinned)
    return Finding(metric=f"package.{name}", limit=limit, value=have, interval=None, verdict=verdict, text=text)
