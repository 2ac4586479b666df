"""The questions of a review, each answered from records that verified. Pure; ``approval`` says what follows from the answers.

``paths`` are those of the root: evidence that a blocker shows is a file that is there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from evidence.manifest import Fault
from harness import records
from harness.approval import Asked, Kind
from harness.gate import Gates
from harness.history import History, Line
from harness.metrics import catalogue
from harness.records import TIERS, GateClaim, LockClaim, Qualification, Superseded, Verdict, gate_folder, step_folder

Paths = Collection[str]


def integrity(asked: Asked, faults: Sequence[Fault], *, whole: bool, why: str = "") -> None:
    """Whether the root is intact and its claim is what its samples give; ``why`` says what could not be told."""
    for fault in faults:
        asked.say(
            f"integrity {fault.rule} {fault.path}",
            met=False,
            kind="integrity",
            text=f"{fault.rule} {fault.message}",
            evidence=fault.path or "the root",
            closes="a root that was sealed by qualify run and not changed since; this one cannot be mended",
        )
    asked.say(
        "integrity",
        met=whole and not faults,
        kind="integrity" if faults else "undetermined",
        text="the root does not verify"
        if faults
        else ": ".join(filter(None, ("not every check of the root could run", why))),
        evidence="qualify verify",
        closes="a root that verifies",
    )


def steps(asked: Asked, claim: Qualification, accepted: Sequence[str], paths: Paths) -> None:
    """Every step of every target; a deferred target only where the policy accepts it."""
    for target in claim.targets:
        if target.deferred is not None:
            asked.say(
                f"coverage {target.name}",
                met=target.name in accepted,
                kind="undetermined",
                text=f"{target.name} is deferred: {target.deferred}",
                evidence="plan.json",
                closes="climb it, or list it under accept_deferred in the policy",
            )
            continue
        stopped = False
        for tier in TIERS:
            found = target.tiers.get(tier)
            if found is None or stopped:
                continue
            stopped = found != "PASS"
            asked.say(
                f"step {tier} {target.name}",
                met=found == "PASS",
                kind=_kind(found),
                text=f"{tier} of {target.name} is {found}: {target.reason}",
                evidence=there(paths, f"{step_folder(tier, target.name)}/outcome.json"),
                closes=CLOSES.get(found, "climb it"),
            )
    asked.say(
        "coverage",
        met=not claim.coverage.missed and bool(claim.coverage.reached),
        kind="undetermined",
        text=f"not every target reached {claim.coverage.goal}: missed {', '.join(claim.coverage.missed) or 'all'}",
        evidence="qualification.json",
        closes="a root in which every target that is not deferred reaches the goal",
    )


def whole(asked: Asked, claim: Qualification, paths: Paths) -> None:
    """What is judged beside the targets: each quality gate, the lock; and the verdict of the whole, so that nothing else is approved."""
    for gate in claim.gates:
        asked.say(
            f"quality gate {gate.name}",
            met=gate.verdict == "PASS",
            kind=_kind(gate.verdict),
            text=_gate(gate),
            evidence=there(paths, f"{gate_folder(gate.name)}/gate.json"),
            closes="a root whose gate ends with exit code 0"
            if gate.verdict == "FAIL"
            else "a root in which that gate ran",
        )
    if claim.lock is not None:
        asked.say(
            "lock",
            met=claim.lock.verdict == "PASS",
            kind=_kind(claim.lock.verdict),
            text=_lock(claim.lock),
            evidence=there(paths, records.LOCK),
            closes="a root made where the installed packages are those of the lock",
        )
    if claim.verdict == "PASS" or not asked.blockers:  # else what is in the way has been said
        asked.say(
            "verdict",
            met=claim.verdict == "PASS",
            kind=_kind(claim.verdict),
            text=f"the verdict of the root is {claim.verdict}",
            evidence=records.CLAIM,
            closes="a root that is PASS",
        )


def _gate(gate: GateClaim) -> str:
    return f"the quality gate {gate.name} is {gate.verdict}{': ' if gate.reason else ''}{gate.reason}"


def _lock(lock: LockClaim) -> str:
    count = len(lock.differences)
    if not count:
        return f"the lock {lock.file} is {lock.verdict}: the root was not made under it"
    more = f" (and {count - 1} more)" if count > 1 else ""
    return f"the lock {lock.file} is {lock.verdict} ({lock.parity}): {lock.differences[0].text}{more}"


def _kind(found: Verdict) -> Kind:
    return "merit" if found == "FAIL" else "undetermined"


def there(paths: Paths, path: str) -> str:
    """Where a file of a root is: in its place, with what is carried of an earlier root, or, as it has none, the claim that says so."""
    if path in paths:
        return path
    carried = sorted(other for other in paths if other.startswith("preserved/") and other.endswith(f"/{path}"))
    return carried[0] if carried else records.CLAIM


CLOSES = {
    "FAIL": "a root in which that figure meets its limit",
    "BLOCKED": "a root in which that step has its numbers; outcome.json and stderr.log say why it has none",
    "INCONCLUSIVE": "more samples, so that the interval lies on one side of the limit",
    "NOT_RUN": "climb it",
}


def gates(asked: Asked, found: Gates, paths: Paths) -> None:
    """Every gate of the policy that could be laid over the comparison."""
    for gate in found.gates:
        asked.say(
            gate.id,
            met=gate.verdict == "OK",
            kind="merit" if gate.verdict == "REGRESSION" else "undetermined",
            text=f"{gate.verdict}: {gate.what} on {gate.target}, {gate.rule}: {gate.reason}",
            evidence=_evidence(gate.what, gate.target, paths),
            closes="a candidate that meets the rule"
            if gate.verdict == "REGRESSION"
            else "figures on both sides that can be compared, and samples enough to tell",
        )


def _evidence(what: str, target: str, paths: Paths) -> str:
    metric = catalogue.find(what)
    if metric is None:
        return f"{records.PLAN}, {records.ENVIRONMENT}"
    return there(paths, f"{step_folder(metric.tier, target)}/measurements.json")


def freshness(asked: Asked, digest: str | None, current: Line | None, name: str) -> None:
    """Whether the baseline is the current root of its folder."""
    asked.say(
        "fresh baseline",
        met=current is not None and current.digest == digest,
        kind="undetermined",
        text=f"{name} is not the current root of its folder"
        + (f": {current.name} ({current.digest}) is" if current is not None else "; none is"),
        evidence="qualify history of the baseline's folder",
        closes="compare with the current root, or pin the one that is meant where no later one lies beside it",
    )


def siblings(asked: Asked, found: History, digest: str, baseline: str | None) -> None:
    """Whether the root is the current one of its folder, and whether each root beside it that failed is accounted for."""
    own = next((line for line in found.lines if line.digest == digest), None)
    subject = (own.ladder, own.model) if own is not None else None
    asked.say(
        "current root",
        met=own is not None and own.state == "current",
        kind="undetermined",
        text=f"the root is {own.state if own is not None else 'not there'} in its folder, not the current one",
        evidence="qualify history of its folder",
        closes="review the root that is current",
    )
    for line in _unaccounted(found.lines, subject, {digest, baseline}):
        whole = line.state != "not intact"
        what = (line.verdict or "of another version of qualify") if whole else "not intact"
        asked.say(
            f"account {line.digest if whole else line.name}",
            met=line.state == "superseded",
            kind="undetermined",
            text=f"{line.name} beside it is {what}, and no root says that it replaces it",
            evidence=f"../{line.name}",
            closes=f"qualify run LADDER --supersede {line.name} --reason TEXT, so that the lineage says what became of it"
            if whole
            else "restore it from where it came, or remove it and say so",
        )


def replaced(supersedes: Iterable[Superseded], found: History) -> Iterator[str]:
    """What the root says that it replaces, a sentence each, and whether that lies beside it for a reviewer to look at."""
    beside = {line.digest: line for line in found.lines}
    for old in supersedes:
        line = beside.get(old.digest)
        here = "it is not beside this root" if line is None else f"it is {line.name} beside this root, {_state(line)}"
        yield f"replaces {old.digest} ({old.reason}): {here}"


def _state(line: Line) -> str:
    return line.verdict or line.state


def _unaccounted(lines: Iterable[Line], subject: tuple[str, str] | None, known: set[str | None]) -> Iterator[Line]:
    """Roots of the same ladder and model that are not PASS, replaced or not, and those of which nothing can be told."""
    for line in lines:
        ours = line.verdict is None or ((line.ladder, line.model) == subject and line.verdict != "PASS")
        if ours and line.digest not in known:
            yield line


def needs_baseline(rules: Mapping[str, object]) -> bool:
    """Whether a gate's rules ask for two sides."""
    return bool(rules.keys() - {"at_most", "at_least"})
