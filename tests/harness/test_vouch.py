from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from securesystemslib.signer import SSlibKey

from evidence.manifest import Fault, render_seal
from harness.attest import PAYLOAD_TYPE, VERDICT
from harness.vouch import Found, Vouched, check
from tests.support.keys import KeyPair

ROOT = "blake3:" + "7d3f" * 16
SEAL = hashlib.sha256(render_seal(ROOT)).hexdigest()
LADDER = b"ladder\n"
POLICY = hashlib.sha256(LADDER).hexdigest()
PASS = Found("PASS", "PASS", LADDER)
TEST_RESULT = {
    "_type": "https://in-toto.io/Statement/v1",
    "subject": [{"name": "SEAL", "digest": {"sha256": SEAL}}],
    "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
    "predicate": {"result": "PASSED", "configuration": [], "passedTests": ["L0-build.cpu-fp32"]},
}
SUMMARY = {
    **TEST_RESULT,
    "predicateType": "https://slsa.dev/verification_summary/v1",
    "predicate": {
        "verifier": {"id": "urn:reviewer"},
        "policy": {"uri": "urn:ladder", "digest": {"sha256": POLICY}},
        "verificationResult": "PASSED",
    },
}


Says = Callable[..., "str | Vouched"]


@pytest.fixture
def says(keys: KeyPair, trusted: tuple[SSlibKey, ...]) -> Says:
    """What a signed statement (or payload) vouches for, or its faults in one text."""

    def look(
        statement: Any,
        payload_type: str = PAYLOAD_TYPE,
        found: Found | None = PASS,
        root: str | None = ROOT,
    ) -> str | Vouched:
        payload = statement if isinstance(statement, bytes) else json.dumps(statement).encode()
        result = check(keys.sign(payload, payload_type), "a.json", trusted, root, found)
        if isinstance(result, Vouched):
            return result
        return " | ".join(f"{fault.rule} {fault.message}" for fault in result)

    return look


def changed(statement: dict[str, Any], *path: str | int, to: Any) -> dict[str, Any]:
    made = copy.deepcopy(statement)
    place: Any = made
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return made


def rules(found: Vouched | tuple[Fault, ...]) -> list[str]:
    assert not isinstance(found, Vouched)
    return [fault.rule for fault in found]


def test_a_signed_test_result_of_this_root_vouches_for_it(keys: KeyPair, trusted: tuple[SSlibKey, ...]) -> None:
    data = keys.sign(json.dumps(TEST_RESULT).encode())
    assert check(data, "a.json", trusted, ROOT, PASS) == Vouched(
        file="a.json",
        sha256=hashlib.sha256(data).hexdigest(),
        key=trusted[0].keyid,
        kind="test result",
        result="PASSED",
        verifier=None,
    )


def test_a_signed_summary_of_this_root_vouches_for_it_and_says_whose_it_is(says: Says) -> None:
    found = says(SUMMARY)
    assert isinstance(found, Vouched)
    assert (found.kind, found.result, found.verifier) == ("verification summary", "PASSED", "urn:reviewer")


def test_a_warned_result_is_one_of_a_pass(says: Says) -> None:
    assert isinstance(says(changed(TEST_RESULT, "predicate", "result", to="WARNED")), Vouched)


def test_unknown_fields_and_further_digests_are_ignored(says: Says) -> None:
    statement = changed(TEST_RESULT, "subject", 0, "digest", "sha512", to="0" * 128)
    assert isinstance(says({**statement, "later": {"x": 1}}), Vouched)


def test_the_subject_must_be_this_root_and_only_it(says: Says) -> None:
    where = f"A-SUBJECT a.json payload#/subject: expected one subject, sha256 {SEAL} of SEAL, got"
    other = {"digest": {"sha256": "0" * 64}}
    cases: list[tuple[list[Any], str]] = [
        ([], "0 subjects"),
        ([other], f"{'0' * 64}: it speaks of another root"),
        ([{"digest": {"blake3": SEAL}}], "no sha256: it speaks of another root"),
        ([{"digest": {"sha256": SEAL.upper()}}], f"{SEAL.upper()}: it speaks of another root"),
        ([TEST_RESULT["subject"][0], other], "2 subjects"),  # type: ignore[index]
    ]
    for subject, got in cases:
        for statement in (TEST_RESULT, SUMMARY):
            assert says({**statement, "subject": subject}) == f"{where} {got}"


def test_a_root_without_a_manifest_is_vouched_for_by_nothing(says: Says) -> None:
    assert says(TEST_RESULT, root=None, found=None) == (
        "A-SUBJECT a.json payload#/subject: expected a root with a manifest to compare with, got none"
    )


@pytest.mark.parametrize(
    "kind",
    ["https://slsa.dev/provenance/v1", "https://in-toto.io/attestation/test-result/v0.2", "", "::error::x"],
)
def test_another_predicate_type_is_refused(says: Says, kind: str) -> None:
    expected = "https://in-toto.io/attestation/test-result/v0.1 or https://slsa.dev/verification_summary/v1"
    assert says({**TEST_RESULT, "predicateType": kind}) == (
        f"A-PREDICATE a.json payload#/predicateType: expected {expected}, got {kind!r}"
    )


def test_a_predicate_without_the_fields_of_its_type_is_refused(says: Says) -> None:
    where = "A-PREDICATE a.json payload#/predicate: expected a"
    cases: list[tuple[dict[str, Any], str]] = [
        ({**TEST_RESULT, "predicate": {}}, "test result, got Object missing required field `result`"),
        (
            changed(TEST_RESULT, "predicate", "result", to="passed"),
            "test result, got Invalid enum value 'passed' - at `$.result`",
        ),
        (
            changed(SUMMARY, "predicate", "verificationResult", to="WARNED"),
            "verification summary, got Invalid enum value 'WARNED' - at `$.verificationResult`",
        ),
        (
            changed(SUMMARY, "predicate", "verifier", to={}),
            "verification summary, got Object missing required field `id` - at `$.verifier`",
        ),
        (
            {**SUMMARY, "predicate": TEST_RESULT["predicate"]},
            "verification summary, got Object missing required field `verifier`",
        ),
    ]
    for statement, message in cases:
        assert says(statement) == f"{where} {message}"


def test_another_payload_type_is_refused_though_it_was_signed(says: Says) -> None:
    assert says(TEST_RESULT, "application/json") == (
        "A-PAYLOAD a.json#/payloadType: expected application/vnd.in-toto+json, got 'application/json'"
    )


def test_a_payload_that_is_no_statement_is_refused_though_it_was_signed(says: Says) -> None:
    text = json.dumps(TEST_RESULT).encode()
    where = "A-PAYLOAD a.json payload: expected an in-toto statement, got"
    assert says(text.replace(b'"subject":', b'"subject": [], "subject":')) == f"{where} duplicate key 'subject'"
    assert says(text.replace(b'"result":', b'"result": "FAILED", "result":')) == f"{where} duplicate key 'result'"
    assert says({**TEST_RESULT, "subject": [{"name": "SEAL"}]}) == (
        f"{where} Object missing required field `digest` - at `$.subject[0]`"
    )
    assert says(b"\xff\xfe{}") == (f"{where} 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte")
    assert says({**TEST_RESULT, "_type": "https://in-toto.io/Statement/v0.1"}) == (
        "A-PAYLOAD a.json payload#/_type: expected https://in-toto.io/Statement/v1, got 'https://in-toto.io/Statement/v0.1'"
    )


@pytest.mark.parametrize("verdict", ["FAIL", "BLOCKED", "INCONCLUSIVE", "NOT_RUN"])
def test_a_result_that_is_not_what_was_found_here_is_refused(says: Says, verdict: Any) -> None:
    found = Found(verdict, verdict, LADDER)
    for statement in (TEST_RESULT, SUMMARY):
        assert says(statement, found=found) == (
            f"A-RESULT a.json: expected what was found here, which is {verdict}, got PASSED"
        )
    assert isinstance(says(changed(TEST_RESULT, "predicate", "result", to="FAILED"), found=found), Vouched)
    assert isinstance(says(changed(SUMMARY, "predicate", "verificationResult", to="FAILED"), found=found), Vouched)


@pytest.mark.parametrize("result", ["PASSED", "WARNED"])
def test_a_result_that_its_own_lists_gainsay_is_refused(says: Says, result: str) -> None:
    said = changed(TEST_RESULT, "predicate", "result", to=result)
    assert says(changed(said, "predicate", "failedTests", to=["L2-parity.cpu-fp16", "lock"])) == (
        f"A-RESULT a.json payload#/predicate: expected no failedTests of a result that is {result}, "
        "got L2-parity.cpu-fp16, lock"
    )
    nothing = f"A-RESULT a.json payload#/predicate: expected passedTests of a result that is {result}, got none"
    assert says(changed(said, "predicate", "passedTests", to=[])) == nothing
    del said["predicate"]["passedTests"]
    assert says(said) == nothing


def test_a_result_that_warns_of_something_and_one_of_what_failed_are_what_they_say(says: Says) -> None:
    warned = changed(TEST_RESULT, "predicate", "warnedTests", to=["L3-rerank.cpu-fp32"])
    assert isinstance(says(warned), Vouched)
    failed = changed(TEST_RESULT, "predicate", to={"result": "FAILED", "failedTests": ["L0-build.cpu-fp32"]})
    assert isinstance(says(failed, found=Found("FAIL", "FAIL", LADDER)), Vouched)


@pytest.mark.parametrize("statement", [TEST_RESULT, SUMMARY], ids=["test result", "summary"])
def test_our_own_field_speaks_of_this_root_and_of_what_was_found_here(says: Says, statement: dict[str, Any]) -> None:
    own = {"root": ROOT, "verdict": "PASS", "broken": []}
    assert isinstance(says(changed(statement, "predicate", VERDICT, to=own)), Vouched)
    place, other = f"a.json payload#/predicate {VERDICT}: expected", "blake3:" + "0" * 64
    assert says(changed(statement, "predicate", VERDICT, to=own | {"root": other})) == (
        f"A-SUBJECT {place} root {ROOT}, got {other}"
    )
    assert says(changed(statement, "predicate", VERDICT, to=own | {"verdict": "FAIL"})) == (
        f"A-RESULT {place} verdict PASS, got FAIL"
    )
    assert str(says(changed(statement, "predicate", VERDICT, to={"root": ROOT}))).startswith("A-PREDICATE ")


def test_a_reviewer_who_said_failed_never_vouches_for_a_pass(says: Says) -> None:
    assert says(changed(SUMMARY, "predicate", "verificationResult", to="FAILED")) == (
        "A-RESULT a.json: expected what was found here, which is PASS, got FAILED"
    )


def test_a_test_result_is_about_the_sealed_plan_and_a_summary_about_the_ladder_that_is_used(says: Says) -> None:
    found = Found("PASS", "FAIL", LADDER)
    assert isinstance(says(TEST_RESULT, found=found), Vouched)
    assert says(SUMMARY, found=found) == "A-RESULT a.json: expected what was found here, which is FAIL, got PASSED"


def test_a_summary_under_another_ladder_says_nothing_about_this_one(says: Says) -> None:
    other = hashlib.sha256(b"another ladder\n").hexdigest()
    expected = f"a summary under the ladder that is used here, sha256 {POLICY}"
    assert says(changed(SUMMARY, "predicate", "policy", "digest", to={"sha256": other})) == (
        f"A-POLICY a.json: expected {expected}, got {other}; give that ladder with --ladder"
    )
    assert says(changed(SUMMARY, "predicate", "policy", "digest", to={})) == (
        f"A-POLICY a.json: expected {expected}, got no sha256; give that ladder with --ladder"
    )


def test_every_fault_of_a_statement_is_listed(says: Says) -> None:
    text = says({**changed(SUMMARY, "predicate", "verificationResult", to="FAILED"), "subject": []})
    assert isinstance(text, str)
    assert [part.split()[0] for part in text.split(" | ")] == ["A-RESULT", "A-SUBJECT"]


def test_an_unsigned_statement_vouches_for_nothing(trusted: tuple[SSlibKey, ...]) -> None:
    found = check(json.dumps(TEST_RESULT).encode(), "a.json", trusted, ROOT, PASS)
    assert rules(found) == ["A-UNSIGNED"]


def test_a_statement_signed_by_another_key_vouches_for_nothing(
    stranger: KeyPair, trusted: tuple[SSlibKey, ...]
) -> None:
    data = stranger.sign(json.dumps(TEST_RESULT).encode())
    assert rules(check(data, "a.json", trusted, ROOT, PASS)) == ["A-SIGNATURE"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)


@given(
    st.fixed_dictionaries({}, optional={name: JSON | st.just(value) for name, value in SUMMARY.items()})
    | st.fixed_dictionaries({}, optional={name: JSON | st.just(value) for name, value in TEST_RESULT.items()}),
    st.sampled_from([PASS, None, Found("FAIL", "FAIL", b"")]),
)
@settings(max_examples=200, deadline=None)
def test_a_signed_statement_of_any_shape_ends_in_faults_or_is_the_true_one(
    keys: KeyPair, trusted: tuple[SSlibKey, ...], statement: dict[str, Any], found: Found | None
) -> None:
    result = check(keys.sign(json.dumps(statement).encode()), "a.json", trusted, ROOT, found)
    if isinstance(result, Vouched):
        assert statement.items() >= {name: TEST_RESULT[name] for name in ("_type", "subject")}.items()
    else:
        assert result
        assert all(fault.rule.startswith("A-") for fault in result)
