"""What ``qualify verify`` does with all that a reviewer may bring: a digest, a ladder, attestations and the keys to trust.

Three questions, kept apart. Is the root intact, and does its claim hold (``answer``)? Whose is it: ``none`` (it agrees with
itself), ``pinned`` (it has the digest that was given), ``attested`` (a trusted key signed for its seal)? And the verdict, under
the sealed plan or the reviewer's own ladder. No option makes it check less; each adds a way to end with another code than 0.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from evidence.manifest import DIGEST, Fault
from evidence.report import AUTHENTICITY
from harness import attest, derive, dsse, own_ladder, records, vouch
from harness.account import of_review
from harness.answer import EXIT_NOT_INTACT, Checked, check
from harness.clock import now
from harness.errors import AskedWrongly
from harness.judge import exit_code
from harness.judge_rerank import smoke
from harness.ladder import parse
from harness.own_ladder import Under
from harness.recheck import Rejudged
from harness.records import Verdict
from harness.report.cases import Account
from harness.root import merged
from harness.vouch import Vouched

if TYPE_CHECKING:
    from securesystemslib.signer import SSlibKey

Authenticity = Literal["pinned", "attested"]
EXIT_UNDETERMINED = 30
ATTESTED = "a key that you trust signed for this very root; it vouches for what was sealed, not that it is the root you were told of"
HOW = {
    "pinned": "give --expect DIGEST, a root digest that you have from elsewhere",
    "attested": "give --attestation FILE, and --trust PUBLIC.pem of somebody whose word counts",
}


class Asked(NamedTuple):
    """What the reviewer brought, read and found usable before the root is looked at."""

    root: Path
    expect: str | None
    ladder: tuple[str, bytes] | None
    attestations: tuple[tuple[str, bytes], ...]
    trusted: tuple[SSlibKey, ...]
    required: frozenset[Authenticity]


class Reviewed(NamedTuple):
    """What was found: the root itself, the reviewer's ladder (None without one), who vouches, and the faults of attestations."""

    asked: Asked
    checked: Checked
    under: Under | None
    vouched: tuple[Vouched, ...]
    faults: tuple[Fault, ...]

    @property
    def reached(self) -> frozenset[Authenticity]:
        """How the root is known to be whose it should be. One does not imply the other."""
        if not self.checked.opened.report.ok:
            return frozenset()
        found: set[Authenticity] = set()
        if self.checked.opened.report.authenticity == "pinned":
            found.add("pinned")
        if self.vouched and not self.faults:
            found.add("attested")
        return frozenset(found)

    @property
    def missing(self) -> tuple[Authenticity, ...]:
        """What ``--require`` asked for and was not reached."""
        return tuple(sorted(self.asked.required - self.reached))

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that counts: under the reviewer's ladder if there is one. None while anything is in the way of one."""
        judged = self.checked.judged
        if judged is None or not judged.holds or self.faults or self.missing or not self.checked.opened.report.ok:
            return None
        return self.under.verdict if self.under is not None else judged.verdict

    @property
    def exit_code(self) -> int:
        """20 for any fault, 30 for a check that could not run or an authenticity not reached, else by the verdict."""
        if self.verdict is not None:
            return exit_code(self.verdict)
        if self.faults or self.checked.faults:
            return EXIT_NOT_INTACT
        return EXIT_UNDETERMINED


def ask(
    root: Path,
    expect: str | None,
    ladder: Path | None,
    attestations: tuple[Path, ...],
    trust: tuple[Path, ...],
    required: tuple[Authenticity, ...],
) -> Asked:
    """Read all that was brought. Raises ``AskedWrongly``, or ``Unavailable`` where no signature can be checked."""
    check_expect(expect)
    if bool(attestations) != bool(trust):
        lacks, given = ("--trust", "--attestation") if attestations else ("--attestation", "--trust")
        raise AskedWrongly(
            f"{given}: expected {lacks} beside it, got none; a signature only counts by a key that you trust"
        )
    own = (ladder.name, _read(ladder, "a ladder")) if ladder is not None else None
    if own is not None:
        parse(own[1], own[0])
    return Asked(
        root=root,
        expect=expect,
        ladder=own,
        attestations=tuple((str(path), _read(path, "an attestation")) for path in attestations),
        trusted=tuple(map(dsse.public_key, trust)),
        required=frozenset(required),
    )


def check_expect(expect: str | None) -> None:
    """Refuse what is no root digest. Raises ``AskedWrongly``."""
    if expect is not None and not DIGEST.fullmatch(expect):
        raise AskedWrongly(f"--expect: expected blake3: and 64 lower-case hex digits, got {expect!r}; copy it whole")


def review(asked: Asked, progress: Callable[[int, int], None] | None = None) -> Reviewed:
    """Verify, judge again, lay the reviewer's ladder beside it, check who vouches. Raises ``LadderError`` for a bad ladder."""
    checked = check(asked.root, asked.expect, progress)
    judged = checked.judged
    under = judge_under(checked, *asked.ladder) if asked.ladder is not None else None
    found = None
    if judged is not None and judged.holds:
        sealed = checked.opened.read(records.LADDER)
        found = vouch.Found(
            judged.verdict, under.verdict if under else judged.verdict, under.ladder if under else sealed
        )
    vouched: list[Vouched] = []
    faults: list[Fault] = []
    for name, data in asked.attestations:
        said = vouch.check(data, name, asked.trusted, checked.opened.report.digest, found)
        if isinstance(said, Vouched):
            vouched.append(said)
        else:
            faults += said
    return Reviewed(asked, checked, under, tuple(vouched), tuple(sorted(faults)))


def judge_under(checked: Checked, name: str, ladder: bytes) -> Under | None:
    """A root judged under the reviewer's ladder, measured again where that says; None where there is nothing to judge.

    Raises ``LadderError`` for a bad ladder.
    """
    judged = checked.judged
    if judged is None or judged.records is None or judged.undetermined:
        return None
    read, _ = merged(judged.records.lineage, checked.opened.read, checked.opened.paths)
    return own_ladder.judge_under(judged, ladder, name, lambda request: derive.measure(request, read))


def summarise(reviewed: Reviewed, name: str) -> dict[str, Any] | str:
    """The reviewer's statement, or why there is none.

    There is none while the verification itself did not end in a verdict: a copy with one flipped byte has the seal of the
    genuine root, and a FAILED over that seal would condemn the genuine one. A claim that the sealed samples do not give is no
    such thing: it is in the sealed bytes, so it is said, and it is FAILED.
    """
    verifier = attest.verifier_id(name)
    checked = reviewed.checked
    if not checked.opened.report.ok:
        return "the root did not verify, and its seal may be that of a sound one"
    if reviewed.faults:
        return "an attestation given here does not hold, which is no fault of the root"
    if reviewed.missing:
        return f"it is not {' and '.join(reviewed.missing)}, as was required"
    judged = checked.judged
    assert judged is not None
    if judged.undetermined:
        return judged.why
    if judged.claim is None:
        return "the records cannot be read, so there is no verdict"
    claim = reviewed.under.claim if reviewed.under is not None else judged.claim
    broken = tuple(sorted({fault.rule for fault in judged.faults}))
    inputs = tuple(attest.Input(Path(item.file).name, item.sha256) for item in reviewed.vouched)
    sealed = reviewed.under.ladder if reviewed.under is not None else checked.opened.read(records.LADDER)
    return attest.summary(attest.Judged(str(checked.opened.digest), sealed, claim, broken), verifier, now(), inputs)


def produce(root: Path, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """The producer's statement about an intact root. Raises ``NotIntact`` for any other."""
    checked = check(root, None, progress)
    checked.records  # noqa: B018 - raises unless the root is intact and its claim holds
    read, judged = checked.opened.read, checked.judged
    assert judged is not None
    assert judged.claim is not None
    said = attest.Judged(str(checked.opened.digest), read(records.LADDER), judged.claim)
    return attest.test_result(said, read(records.PLAN))


def answer(reviewed: Reviewed) -> dict[str, Any]:
    """The answer of ``qualify verify``; docs/reference/verify.md says what each field is."""
    checked, report = reviewed.checked, reviewed.checked.opened.report
    judged, faults = checked.judged, tuple(sorted((*checked.faults, *reviewed.faults)))
    checks = [{"check": check.name, "ran": check.ran, "note": check.note} for check in report.checks]
    note = "" if judged is not None else "the bundle did not verify"
    checks.append({"check": "judged again from the raw samples", "ran": judged is not None, "note": note})
    if judged is not None and judged.undetermined:
        checks.append({"check": "the same as this version of qualify would have it", "ran": False, "note": judged.why})
    if reviewed.asked.ladder is not None:
        note = "" if reviewed.under is not None else "there is nothing to judge"
        checks.append({"check": "judged under your ladder", "ran": reviewed.under is not None, "note": note})
    checks += [
        {"check": name, "ran": False, "note": f"required, but not reached; {HOW[name]}"} for name in reviewed.missing
    ]
    reached: list[str] = sorted(reviewed.reached)
    means = [ATTESTED if name == "attested" else AUTHENTICITY[name] for name in reached or ["none"]]
    return {
        "root": str(checked.path),
        "digest": report.digest,
        "intact": report.ok and not checked.faults,
        "verdict": reviewed.verdict,
        "sealed_verdict": judged.verdict if judged is not None and judged.holds else None,
        "smoke": _smoke(judged) if judged is not None and judged.holds else [],
        "authenticity": reached[0] if reached else "none",
        "authenticity_means": "; ".join(means),
        "reached": reached,
        "attestations": [item._asdict() for item in reviewed.vouched],
        "ladder": _ladder(reviewed.under) if reviewed.under is not None else None,
        "checks": checks,
        "faults": [{"rule": fault.rule, "path": fault.path, "message": fault.message} for fault in faults],
        "undetermined": [
            {"rule": fault.rule, "path": fault.path, "message": fault.message}
            for fault in (judged.undetermined if judged is not None else ())
        ],
        "exit_code": reviewed.exit_code,
    }


def account(reviewed: Reviewed, answered: dict[str, Any]) -> Account:
    """Every case of a verification, for the formats of other tools; ``answered`` is its ``answer``."""
    under = (reviewed.under.claim, reviewed.under.outcomes) if reviewed.under is not None else None
    return of_review(reviewed.checked, answered, under)


def _smoke(judged: Rejudged) -> list[str]:
    """Why an L3 of the root is a functional smoke test, each reason once."""
    steps = judged.records.steps.values() if judged.records is not None else ()
    return list(dict.fromkeys(filter(None, (smoke(step.outcome.findings) for step in steps))))


def _ladder(under: Under) -> dict[str, Any]:
    return {
        "name": under.name,
        "digest": under.digest,
        "verdict": under.verdict,
        "differences": msgspec.to_builtins(under.differences),
        "targets": msgspec.to_builtins(under.claim.targets),
        "coverage": msgspec.to_builtins(under.claim.coverage),
    }


def _read(path: Path, what: str) -> bytes:
    """The start of a file, at most one byte more than anything that is accepted here."""
    try:
        with path.open("rb") as file:
            return file.read(dsse.ENVELOPE_LIMIT_BYTES + 1)
    except OSError as error:
        raise AskedWrongly(f"{path}: expected {what}, got {error.strerror}; correct the path") from error
