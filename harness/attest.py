"""Statements about a root (in-toto Statement v1): make them and write them beside the root. ``vouch.py`` checks them.

The subject is always one: the SHA-256 of ``SEAL``, whose one line commits to the manifest and so to every byte. Two predicates:

    test-result v0.1          the producer: what came of each step under the sealed plan
    verification_summary v1   a reviewer: the verdict that verify reached, under the sealed ladder or the reviewer's own

A result is PASSED only for a PASS; WARNED is a PASS with targets that the ladder deferred, or with an L3 that is a functional smoke
test; anything else is FAILED.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from evidence.manifest import SEAL_NAME, digest_of, render_seal
from harness import dsse, judge_rerank, records
from harness.errors import AskedWrongly
from harness.records import TIERS, Qualification, gate_folder, step_folder, to_json

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
SUMMARY = "https://slsa.dev/verification_summary/v1"
BASE = "https://qualify.invalid"
"""Where the URIs of this project's own names begin. ``.invalid`` belongs to nobody, so nobody can ever answer for them."""
VERDICT = f"{BASE}/attestation/verdict/v1"
"""The extension field of both predicates: what their words PASSED and FAILED leave out."""
REVIEW = f"{BASE}/attestation/review/v1"
"""The extension field of a summary that ``qualify review`` wrote: its verdict, its policy, and the ids of its blockers."""

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Judged(NamedTuple):
    """What a statement speaks of: the root (``blake3:``), the ladder judged under, and the claim that the samples give.

    ``broken`` lists the rules (Q-...) that the sealed claim breaks; with any, nothing is PASSED.
    """

    root_digest: str
    ladder: bytes
    claim: Qualification
    broken: tuple[str, ...] = ()


class Input(NamedTuple):
    """An attestation that a summary relied on: its file's name and SHA-256."""

    name: str
    sha256: str


# --- making -----------------------------------------------------------------------------------------------------------


def test_result(judged: Judged, plan: bytes) -> dict[str, Any]:
    """The producer's statement. Every planned step, gate and lock stands in a list; what is not PASS is among the failed.

    A *warned* test is one that passed with a warning: an L3 on too few groups for a claim of accuracy is one.
    """
    claim = judged.claim
    smoke = {step_folder("L3", name).removeprefix("steps/") for name in judge_rerank.claimed(claim)}
    steps = {
        step_folder(tier, target.name).removeprefix("steps/"): target.tiers[tier]
        for target in claim.targets
        for tier in TIERS
        if tier in target.tiers
    }
    steps |= {gate_folder(gate.name).replace("/", "."): gate.verdict for gate in claim.gates}
    if claim.lock is not None:
        steps["lock"] = claim.lock.verdict
    predicate = {
        "result": _result(claim),
        "configuration": [_descriptor(records.LADDER, judged.ladder), _descriptor(records.PLAN, plan)],
        "passedTests": [name for name, verdict in steps.items() if verdict == "PASS" and name not in smoke],
        "warnedTests": [
            *(name for name, verdict in steps.items() if verdict == "PASS" and name in smoke),
            *(f"deferred.{name}" for name in claim.coverage.deferred),
        ],
        "failedTests": [name for name, verdict in steps.items() if verdict != "PASS"],
        VERDICT: _extension(judged),
    }
    return _statement(judged.root_digest, TEST_RESULT, predicate)


def summary(
    judged: Judged,
    verifier: str,
    time_verified: str,
    inputs: tuple[Input, ...],
    review: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A reviewer's statement. ``verifier`` is a URI (see ``verifier_id``), ``time_verified`` RFC 3339 UTC.

    With a ``review``, only one that approves is PASSED.
    """
    passed = judged.claim.verdict == "PASS" and not judged.broken
    passed = passed and (review is None or review["verdict"] == "APPROVE")
    predicate = {
        "verifier": {"id": verifier},
        "timeVerified": time_verified,
        "resourceUri": f"{BASE}/root/{judged.root_digest}",
        "policy": {"uri": f"{BASE}/ladder/{digest_of(judged.ladder)}", **_descriptor(records.LADDER, judged.ladder)},
        "inputAttestations": [{"name": item.name, "digest": {"sha256": item.sha256}} for item in inputs],
        "verificationResult": "PASSED" if passed else "FAILED",
        "verifiedLevels": [f"QUALIFY_{judged.claim.coverage.goal}" if passed else "FAILED"],
        VERDICT: _extension(judged),
        **({REVIEW: dict(review)} if review is not None else {}),
    }
    return _statement(judged.root_digest, SUMMARY, predicate)


def verifier_id(name: str) -> str:
    """A reviewer's name as the URI that a summary asks for; a URI stays as it is. Raises ``AskedWrongly``."""
    if _URI.fullmatch(name):
        return name
    if _NAME.fullmatch(name):
        return f"{BASE}/verifier/{name}"
    raise AskedWrongly(
        f"--attest-as: expected a name of letters, digits, . _ and - or a URI, got {name!r};"
        " for example reviewer or mailto:reviewer@example.org"
    )


def encode(statement: dict[str, Any], key: CryptoSigner | None) -> bytes:
    """The file of a statement: signed, an envelope; else the statement alone."""
    body = to_json(statement)
    return body if key is None else dsse.sign(body, PAYLOAD_TYPE, key)


def place_beside(root: Path) -> Path:
    """``<ROOT>.intoto.json``: where a statement goes when nothing else is said."""
    named = root if root.name not in {"", ".."} else root.resolve()
    return named.with_name(f"{named.name}.intoto.json")


def check_place(out: Path, root: Path) -> None:
    """Raise ``AskedWrongly`` for a place that is taken, or that is in the root: a root is never changed."""
    if out.exists() or out.is_symlink():
        raise AskedWrongly(
            f"{out}: expected a file that does not exist, got an existing one; name another or remove it"
        )
    if out.resolve().is_relative_to(root.resolve()):
        raise AskedWrongly(f"{out}: expected a file outside of the root, got one in it; a root is never changed")


def _statement(root_digest: str, predicate_type: str, predicate: dict[str, Any]) -> dict[str, Any]:
    return {
        "_type": STATEMENT,
        "subject": [{"name": SEAL_NAME, "digest": {"sha256": seal_sha256(root_digest)}}],
        "predicateType": predicate_type,
        "predicate": predicate,
    }


def seal_sha256(root_digest: str) -> str:
    """A seal has one spelling, so its bytes follow from the digest that the verifier compared; no file is read again."""
    return hashlib.sha256(render_seal(root_digest)).hexdigest()


def _descriptor(name: str, data: bytes) -> dict[str, Any]:
    return {
        "name": name,
        "digest": {"sha256": hashlib.sha256(data).hexdigest(), "blake3": digest_of(data).removeprefix("blake3:")},
    }


def _result(claim: Qualification) -> str:
    if claim.verdict != "PASS":
        return "FAILED"
    return "PASSED" if claim.coverage.complete and not judge_rerank.claimed(claim) else "WARNED"


def _extension(judged: Judged) -> dict[str, Any]:
    return {
        "root": judged.root_digest,
        "verdict": judged.claim.verdict,
        "coverage": msgspec.to_builtins(judged.claim.coverage),
        "targets": {target.name: target.tiers for target in judged.claim.targets},
        "smoke": [*dict.fromkeys(judge_rerank.claimed(judged.claim).values())],
        "broken": list(judged.broken),
    }
