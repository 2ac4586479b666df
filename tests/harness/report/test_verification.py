from __future__ import annotations

import unicodedata
from typing import Any

from rich.cells import cell_len

from harness.report.verification import verify_text
from tests.support.roots import DIGEST

ANSWER: dict[str, Any] = {
    "root": "runs/x",
    "digest": DIGEST,
    "intact": True,
    "verdict": "PASS",
    "sealed_verdict": "PASS",
    "smoke": [],
    "authenticity": "pinned",
    "authenticity_means": "the root is the one whose digest you gave; it is as trustworthy as the place you had it from",
    "attestations": [],
    "ladder": None,
    "checks": [{"check": name, "ran": True, "note": ""} for name in ("seal", "hashes")],
    "faults": [],
}
LADDER: dict[str, Any] = {
    "name": "mine",
    "digest": DIGEST,
    "verdict": "FAIL",
    "targets": [
        {
            "name": "cpu-fp32",
            "verdict": "FAIL",
            "reason": "L1: p50_ms: expected at most 40.0, got 50.0",
            "deferred": None,
        },
        {"name": "cpu-fp16", "verdict": "PASS", "reason": "", "deferred": None},
        {"name": "cuda-fp16", "verdict": "NOT_RUN", "reason": "no GPU", "deferred": "no GPU"},
    ],
    "differences": [
        {"target": "cpu-fp32", "tier": "L1", "name": "p50_ms", "sealed": "at most 50", "own": "none", "blocks": False},
        {"target": "", "tier": "L3", "name": "groups", "sealed": "60", "own": "600", "blocks": True},
    ],
}


def lines(**changes: Any) -> list[str]:
    text = verify_text({**ANSWER, **changes})
    assert max(map(cell_len, text.splitlines())) <= 90
    assert all(char == "\n" or unicodedata.category(char) not in {"Cc", "Cf", "Zl", "Zp"} for char in text)
    return text.splitlines()


def test_a_verification_says_verdict_checks_trust_and_digest() -> None:
    assert lines() == [
        "✓ PASS: intact, and judged again from its raw samples it says the same",
        "root     runs/x",
        "",
        "checked  seal, hashes",
        "trust    pinned: the root is the one whose digest you gave; it is as trustworthy",
        "         as the place you had it from",
        "",
        f"digest  {DIGEST}",
    ]


def test_a_verification_lists_every_fault_before_the_checks() -> None:
    faults = [{"rule": f"E-{n}", "path": f"f{n}", "message": "expected a, got \x1b[31mb"} for n in range(3)]
    found = lines(faults=faults, verdict=None, intact=False)
    assert found[0] == "✗ NOT INTACT: 3 faults; rely on nothing in this root"
    assert [line for line in found if line.startswith("E-")] == ["E-0      f0", "E-1      f1", "E-2      f2"]


def test_a_fault_of_an_attestation_is_not_called_one_of_the_root() -> None:
    faults = [{"rule": "A-SUBJECT", "path": "a.json", "message": "expected this root, got another"}]
    assert lines(faults=faults, verdict=None)[0] == (
        "✗ NOT ATTESTED: 1 fault of what should vouch for the root; the root itself is intact"
    )


def test_a_check_that_did_not_run_leaves_it_undetermined() -> None:
    checks = [{"check": "judged again", "ran": False, "note": "too large for the memory here"}]
    found = lines(checks=checks, verdict=None)
    assert found[0].startswith("? UNDETERMINED")
    assert "skipped  judged again: too large for the memory here" in found


def test_a_check_that_ran_with_a_remark_has_its_own_line() -> None:
    assert "checked  hashes: slow" in lines(checks=[{"check": "hashes", "ran": True, "note": "slow"}])


def test_the_reviewers_ladder_shows_each_target_and_each_difference() -> None:
    found = lines(ladder=LADDER, verdict="FAIL")
    assert found[0] == "✗ FAIL: intact, and judged under your ladder; under the sealed plan PASS"
    place = found.index("         cpu-fp32: FAIL, L1: p50_ms: expected at most 40.0, got 50.0")
    assert found[place + 1 : place + 6] == [
        "         cpu-fp16: PASS",
        "         cuda-fp16: NOT RUN, deferred: no GPU",
        "differs  cpu-fp32 L1 p50_ms: sealed at most 50, yours none",
        "         L3 groups: sealed 60, yours 600; BLOCKED, the root measured something",
        "         else",
    ]


def test_a_ladder_that_differs_in_nothing_says_so() -> None:
    same = {**LADDER, "differences": []}
    assert "differs  in nothing: the same limits and options as the sealed plan" in lines(ladder=same)


def test_who_signed_stands_below_what_that_means() -> None:
    signed = {
        "file": "a.json",
        "kind": "verification summary",
        "result": "PASSED",
        "verifier": "urn:me\x1b",
        "key": "ab",
    }
    found = lines(attestations=[signed])
    assert r"signed   a.json: verification summary PASSED by urn:me\x1b, key sha256 ab" in found
    unnamed = lines(attestations=[{**signed, "kind": "test result", "verifier": None}])
    assert "signed   a.json: test result PASSED, key sha256 ab" in unnamed


def test_a_functional_smoke_test_is_called_one() -> None:
    label = "functional smoke: 6 judged groups, and an interval needs 30; no claim of accuracy"
    assert f"smoke {label}" in " ".join(" ".join(lines(smoke=[label])).split())
