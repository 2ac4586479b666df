from __future__ import annotations

import errno
import hashlib
import io
from pathlib import Path
from typing import Any

import pytest

from evidence.manifest import digest_of, render_seal
from harness import attest, files
from harness.errors import AskedWrongly, NotSealed
from harness.records import Coverage, Qualification, TargetClaim, Verdict, to_json

ROOT = "blake3:" + "7d3f" * 16
LADDER, PLAN = b"ladder\n", b"plan\n"


def judged(verdict: Verdict = "PASS", deferred: str | None = None, broken: tuple[str, ...] = ()) -> attest.Judged:
    """A claim about one target to L1, whose L1 has ``verdict``; and one that is deferred, if it is."""
    reached = ("cpu-fp32",) if verdict == "PASS" else ()
    targets = [
        TargetClaim(
            name="cpu-fp32",
            verdict=verdict,
            reached="L0",
            deferred=None,
            tiers={"L0": "PASS", "L1": verdict},
            reason="",
        )
    ]
    if deferred:
        targets.append(
            TargetClaim(name="cuda-fp16", verdict="NOT_RUN", reached=None, deferred=deferred, tiers={}, reason=deferred)
        )
    missed = () if reached else ("cpu-fp32",)
    left_out = ("cuda-fp16",) if deferred else ()
    claim = Qualification(
        format=1,
        ladder="mine",
        plan_digest=digest_of(PLAN),
        candidate_digest="blake3:" + "a" * 64,
        verdict=verdict,
        targets=tuple(targets),
        coverage=Coverage(
            goal="L1", reached=reached, missed=missed, deferred=left_out, complete=bool(reached) and not deferred
        ),
        started_at="2026-11-30T14:12:05.120Z",
        ended_at="2026-11-30T14:13:02.480Z",
    )
    return attest.Judged(ROOT, LADDER, claim, broken)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_the_subject_of_a_statement_is_the_sha256_of_the_bytes_of_the_seal() -> None:
    for statement in (
        attest.test_result(judged(), PLAN),
        attest.summary(judged(), "urn:me", "2026-11-30T15:00:00Z", ()),
    ):
        assert statement["_type"] == "https://in-toto.io/Statement/v1"
        assert statement["subject"] == [{"name": "SEAL", "digest": {"sha256": sha256(render_seal(ROOT))}}]


def test_a_test_result_names_every_step_and_pins_ladder_and_plan() -> None:
    statement = attest.test_result(judged(), PLAN)
    predicate = statement["predicate"]
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert predicate["result"] == "PASSED"
    assert predicate["passedTests"] == ["L0-build.cpu-fp32", "L1-perf.cpu-fp32"]
    assert (predicate["warnedTests"], predicate["failedTests"]) == ([], [])
    assert predicate["configuration"] == [
        {"name": name, "digest": {"sha256": sha256(data), "blake3": digest_of(data).removeprefix("blake3:")}}
        for name, data in (("ladder.yaml", LADDER), ("plan.json", PLAN))
    ]


@pytest.mark.parametrize("verdict", ["FAIL", "BLOCKED", "INCONCLUSIVE", "NOT_RUN"])
def test_nothing_but_a_pass_is_passed_and_the_verdict_itself_stands_beside_it(verdict: Verdict) -> None:
    predicate = attest.test_result(judged(verdict), PLAN)["predicate"]
    assert predicate["result"] == "FAILED"
    assert predicate["failedTests"] == ["L1-perf.cpu-fp32"]
    said = predicate["https://qualify.invalid/attestation/verdict/v1"]
    assert (said["verdict"], said["root"]) == (verdict, ROOT)
    assert said["targets"] == {"cpu-fp32": {"L0": "PASS", "L1": verdict}}
    summary = attest.summary(judged(verdict), "urn:me", "2026-11-30T15:00:00Z", ())["predicate"]
    assert (summary["verificationResult"], summary["verifiedLevels"]) == ("FAILED", ["FAILED"])


def test_a_pass_with_a_deferred_target_is_warned_not_passed() -> None:
    predicate = attest.test_result(judged(deferred="no GPU here"), PLAN)["predicate"]
    assert (predicate["result"], predicate["warnedTests"]) == ("WARNED", ["deferred.cuda-fp16"])


def test_a_summary_says_who_when_under_which_policy_and_to_which_level() -> None:
    relied = (attest.Input("root.intoto.json", "0" * 64),)
    statement = attest.summary(judged(), "mailto:me@example.org", "2026-11-30T15:00:00.000Z", relied)
    predicate: dict[str, Any] = statement["predicate"]
    extension = predicate.pop("https://qualify.invalid/attestation/verdict/v1")
    assert statement["predicateType"] == "https://slsa.dev/verification_summary/v1"
    assert predicate == {
        "verifier": {"id": "mailto:me@example.org"},
        "timeVerified": "2026-11-30T15:00:00.000Z",
        "resourceUri": f"https://qualify.invalid/root/{ROOT}",
        "policy": {
            "uri": f"https://qualify.invalid/ladder/{digest_of(LADDER)}",
            "name": "ladder.yaml",
            "digest": {"sha256": sha256(LADDER), "blake3": digest_of(LADDER).removeprefix("blake3:")},
        },
        "inputAttestations": [{"name": "root.intoto.json", "digest": {"sha256": "0" * 64}}],
        "verificationResult": "PASSED",
        "verifiedLevels": ["QUALIFY_L1"],
    }
    assert extension["coverage"]["complete"] is True


def test_a_claim_that_does_not_hold_is_failed_whatever_the_samples_say() -> None:
    predicate = attest.summary(judged(broken=("Q-METRIC",)), "urn:me", "2026-11-30T15:00:00Z", ())["predicate"]
    assert predicate["verificationResult"] == "FAILED"
    assert predicate["https://qualify.invalid/attestation/verdict/v1"]["broken"] == ["Q-METRIC"]


def test_an_unsigned_statement_is_plain_json() -> None:
    statement = attest.test_result(judged(), PLAN)
    assert attest.encode(statement, None) == to_json(statement)


def test_a_name_becomes_a_uri_and_a_uri_stays_one() -> None:
    assert attest.verifier_id("reviewer") == "https://qualify.invalid/verifier/reviewer"
    for uri in ("mailto:me@example.org", "https://example.org/ci?x=1#y", "urn:me"):
        assert attest.verifier_id(uri) == uri
    for name in ("", "two words", "-x", "a/b", "mailto:me\n", "::error::", "x\x1b[31m"):
        with pytest.raises(
            AskedWrongly, match=r"^--attest-as: expected a name of letters, digits, \. _ and - or a URI, got "
        ):
            attest.verifier_id(name)


def test_a_statement_stands_beside_the_root_however_the_root_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs/a/steps").mkdir(parents=True)
    assert attest.place_beside(tmp_path / "runs/a") == tmp_path / "runs/a.intoto.json"
    monkeypatch.chdir(tmp_path / "runs/a")
    assert attest.place_beside(Path()) == tmp_path / "runs/a.intoto.json"
    monkeypatch.chdir(tmp_path / "runs/a/steps")
    assert attest.place_beside(Path("..")) == tmp_path / "runs/a.intoto.json"


def test_a_statement_is_never_written_over_a_file_or_into_the_root(tmp_path: Path) -> None:
    root, there = tmp_path / "root", tmp_path / "there"
    root.mkdir()
    there.write_text("mine", encoding="utf-8")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    taken = "expected a file that does not exist, got an existing one; name another or remove it"
    for place in (there, tmp_path / "dangling"):
        with pytest.raises(AskedWrongly) as caught:
            attest.check_place(place, root)
        assert str(caught.value) == f"{place}: {taken}"
    inside = root / ".." / "root" / "a.json"
    with pytest.raises(AskedWrongly) as caught:
        attest.check_place(inside, root)
    assert str(caught.value) == f"{inside}: expected a file outside of the root, got one in it; a root is never changed"
    with pytest.raises(AskedWrongly, match=f"{taken}$"):
        files.write_new(there, b"other")
    assert there.read_text(encoding="utf-8") == "mine"


def test_a_statement_that_cannot_be_written_whole_is_not_left_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        NotSealed, match=r"expected a file that can be written, got No such file or directory; name another$"
    ):
        files.write_new(tmp_path / "no" / "a.json", b"x")

    class Full(io.BytesIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    def full(path: Path, mode: str) -> Full:
        path.touch(exist_ok=False)
        return Full()

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(NotSealed, match="got No space left on device"):
        files.write_new(tmp_path / "a.json", b"x")
    assert not (tmp_path / "a.json").exists()
