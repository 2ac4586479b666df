"""Whether an attestation that somebody signed vouches for a root. Beside the rules of ``dsse``:

    A-PAYLOAD    the signed payload is an in-toto statement, version 1, in JSON
    A-SUBJECT    its one subject is the SHA-256 of this root's ``SEAL``
    A-PREDICATE  its predicate is a test-result v0.1 or a verification_summary v1, with the fields used here
    A-POLICY     a summary was reached under the ladder that is used here
    A-RESULT     it says what was found here: PASSED (or WARNED) of a PASS, FAILED of anything else, and nothing in it says otherwise

Reads no files. Never raises for what an attestation holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from evidence.manifest import Fault
from harness import dsse
from harness.attest import PAYLOAD_TYPE, STATEMENT, SUMMARY, TEST_RESULT, VERDICT, seal_sha256
from harness.dsse import AttestationError, refuse
from harness.records import Verdict, parse_json

if TYPE_CHECKING:
    from securesystemslib.signer import SSlibKey

NAMES = {TEST_RESULT: "test result", SUMMARY: "verification summary"}


class Found(NamedTuple):
    """What this verification found of an intact root: verdicts under the sealed plan and under ``ladder``, the one used here."""

    sealed: Verdict
    used: Verdict
    ladder: bytes


class Vouched(NamedTuple):
    """An attestation that holds: its file and that file's SHA-256, the key (SHA-256 of its DER form), what kind it is and says."""

    file: str
    sha256: str
    key: str
    kind: str
    result: str
    verifier: str | None


class _Subject(msgspec.Struct, frozen=True):
    digest: dict[str, str]


class _Statement(msgspec.Struct, frozen=True, rename={"type": "_type", "predicate_type": "predicateType"}):
    """Unknown fields are ignored here and below, as the specification asks of a reader."""

    type: str
    subject: tuple[_Subject, ...]
    predicate_type: str
    predicate: dict[str, Any] = {}


class _Own(msgspec.Struct, frozen=True):
    """What our own extension field repeats in our words."""

    root: str
    verdict: str


class _TestResult(msgspec.Struct, frozen=True, rename="camel"):
    result: Literal["PASSED", "WARNED", "FAILED"]
    passed_tests: tuple[str, ...] = ()
    failed_tests: tuple[str, ...] = ()
    own: _Own | None = msgspec.field(default=None, name=VERDICT)


class _Verifier(msgspec.Struct, frozen=True):
    id: str


class _Policy(msgspec.Struct, frozen=True):
    digest: dict[str, str]


class _Summary(msgspec.Struct, frozen=True, rename="camel"):
    verifier: _Verifier
    policy: _Policy
    verification_result: Literal["PASSED", "FAILED"]
    own: _Own | None = msgspec.field(default=None, name=VERDICT)

    @property
    def result(self) -> str:
        """As a test result calls it."""
        return self.verification_result


def check(
    data: bytes, where: str, trusted: tuple[SSlibKey, ...], root_digest: str | None, found: Found | None
) -> Vouched | tuple[Fault, ...]:
    """What an attestation vouches for, or every rule it breaks. ``found`` is None for a root that could not be judged."""
    try:
        opened = dsse.open_signed(data, where, trusted)
        statement = _statement(opened, where)
        said = _predicate(statement, where)
    except AttestationError as error:
        return (error.fault,)
    faults = [*_subject(statement, said, where, root_digest)]
    if found is not None:
        faults += _result(where, said, found)
    if faults:
        return tuple(sorted(faults))
    kind = NAMES[statement.predicate_type]
    verifier = said.verifier.id if isinstance(said, _Summary) else None
    return Vouched(where, hashlib.sha256(data).hexdigest(), opened.key, kind, said.result, verifier)


def _statement(opened: dsse.Opened, where: str) -> _Statement:
    """A-PAYLOAD."""
    if opened.payload_type != PAYLOAD_TYPE:
        raise refuse("A-PAYLOAD", f"{where}#/payloadType", PAYLOAD_TYPE, repr(opened.payload_type))
    try:
        statement = msgspec.convert(parse_json(opened.payload), _Statement, strict=True)
    except (ValueError, RecursionError) as error:
        raise refuse("A-PAYLOAD", f"{where} payload", "an in-toto statement", str(error)) from error
    if statement.type != STATEMENT:
        raise refuse("A-PAYLOAD", f"{where} payload#/_type", STATEMENT, repr(statement.type))
    return statement


def _subject(
    statement: _Statement, said: _TestResult | _Summary, where: str, root_digest: str | None
) -> Iterator[Fault]:
    """A-SUBJECT. One subject: a statement about several roots would say PASSED of which?"""
    place = f"{where} payload#/subject"
    if root_digest is None:
        yield refuse("A-SUBJECT", place, "a root with a manifest to compare with", "none").fault
        return
    expected = f"one subject, sha256 {seal_sha256(root_digest)} of SEAL"
    if len(statement.subject) != 1:
        yield refuse("A-SUBJECT", place, expected, f"{len(statement.subject)} subjects").fault
    elif statement.subject[0].digest.get("sha256") != seal_sha256(root_digest):
        got = statement.subject[0].digest.get("sha256", "no sha256")
        yield refuse("A-SUBJECT", place, expected, f"{got}: it speaks of another root").fault
    if said.own is not None and said.own.root != root_digest:
        yield refuse("A-SUBJECT", f"{where} payload#/predicate {VERDICT}", f"root {root_digest}", said.own.root).fault


def _predicate(statement: _Statement, where: str) -> _TestResult | _Summary:
    """A-PREDICATE."""
    kind, place = statement.predicate_type, f"{where} payload#/predicate"
    if kind not in NAMES:
        raise refuse("A-PREDICATE", f"{place}Type", " or ".join(NAMES), repr(kind))
    try:
        if kind == TEST_RESULT:
            return msgspec.convert(statement.predicate, _TestResult, strict=True)
        return msgspec.convert(statement.predicate, _Summary, strict=True)
    except msgspec.ValidationError as error:
        raise refuse("A-PREDICATE", place, f"a {NAMES[kind]}", str(error)) from error


def _result(where: str, said: _TestResult | _Summary, found: Found) -> Iterator[Fault]:
    """A-POLICY, A-RESULT. A result that its own lists, or our own field, gainsay is no word to rely on."""
    verdict = found.sealed
    if isinstance(said, _Summary):
        ladder, policy = hashlib.sha256(found.ladder).hexdigest(), said.policy.digest.get("sha256", "no sha256")
        if policy != ladder:
            expected = f"a summary under the ladder that is used here, sha256 {ladder}"
            yield refuse("A-POLICY", where, expected, f"{policy}; give that ladder with --ladder").fault
            return
        verdict = found.used
    if (said.result != "FAILED") != (verdict == "PASS"):
        yield refuse("A-RESULT", where, f"what was found here, which is {verdict}", f"{said.result}").fault
    elif isinstance(said, _TestResult) and said.result != "FAILED":
        place = f"{where} payload#/predicate"
        if said.failed_tests:
            expected, got = f"no failedTests of a result that is {said.result}", ", ".join(said.failed_tests)
            yield refuse("A-RESULT", place, expected, got).fault
        if not said.passed_tests:
            yield refuse("A-RESULT", place, f"passedTests of a result that is {said.result}", "none").fault
    if said.own is not None and said.own.verdict != verdict:
        yield refuse("A-RESULT", f"{where} payload#/predicate {VERDICT}", f"verdict {verdict}", said.own.verdict).fault
