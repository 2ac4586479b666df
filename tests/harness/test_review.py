"""The reviewer's commands on a real root with real keys: ``verify`` with all that can be brought to it, and ``attest``."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evidence.verify import verify
from harness import attest
from harness.answer import check
from harness.cli import cli, guarded
from tests.support.keys import KeyPair
from tests.support.ladders import REPO, Said, changed, edited, qualify, writable_copy

Qualify = Callable[..., Said]
NO_LIBRARY = "import sys\nsys.modules['securesystemslib'] = None\n"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Qualify:
    """``qualify`` in this process."""

    def run(*arguments: str | Path) -> Said:
        capsys.readouterr()
        code = guarded(lambda: cli.main([str(word) for word in arguments], standalone_mode=False))
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


@pytest.fixture(scope="module")
def digest(tiny_root: Path) -> str:
    return str(verify(tiny_root).digest)


@pytest.fixture
def signed(call: Qualify, tiny_root: Path, keys: KeyPair, tmp_path: Path) -> Path:
    """The producer's signed statement about the tiny root."""
    said = call("attest", tiny_root, "--out", tmp_path / "signed.json", "--key", keys.private)
    assert said.code == 0, said.err
    return tmp_path / "signed.json"


@pytest.fixture
def stricter(tiny_root: Path, tmp_path: Path) -> Path:
    """The sealed ladder with a limit on L1 that no machine meets."""
    text = (tiny_root / "ladder.yaml").read_text(encoding="utf-8")
    path = tmp_path / "stricter.yaml"
    path.write_text(text.replace("at_most: 1e4", "at_most: 1e-6"), encoding="utf-8")
    return path


def payload(path: Path) -> Any:
    return json.loads(base64.b64decode(json.loads(path.read_text(encoding="utf-8"))["payload"]))


def rules(said: Said) -> list[str]:
    return [fault["rule"] for fault in said.json["faults"]]


def forged(root: Path, to: Path) -> Path:
    """A copy whose L2 measurements claim another gap, sealed again."""

    def less(record: Any) -> None:
        next(m for m in record["measurements"] if m["metric"] == "max_abs_gap")["value"] = 1e-9

    return changed(root, to, edited("steps/L2-parity.cpu-int8/measurements.json", less))


# --- attest and verify --attestation ----------------------------------------------------------------------------------


def test_the_commands_of_the_how_to_work_as_they_stand(tiny_root: Path, tmp_path: Path) -> None:
    text = (REPO / "docs/how-to-attest.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- run: .*? -->\n```sh\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 4
    (tmp_path / "runs").mkdir()
    writable_copy(tiny_root, tmp_path / "runs/candidate")
    (tmp_path / "qualify").write_text(f'#!/bin/sh\nexec {sys.executable} -m harness.cli "$@"\n', encoding="utf-8")
    (tmp_path / "qualify").chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "trust    attested: a key that you trust signed for this very root" in done.stdout
    assert payload(tmp_path / "review.intoto.json")["predicate"]["verificationResult"] == "PASSED"


def test_attest_writes_beside_the_root_never_in_it_and_says_what(
    call: Qualify, tiny_root: Path, tmp_path: Path
) -> None:
    root = writable_copy(tiny_root, tmp_path / "root")
    said = call("attest", root, "--json")
    assert said.code == 0, said.err
    assert said.json["attestation"] == f"{root}.intoto.json"
    assert (said.json["result"], said.json["key"]) == ("WARNED", None)  # its L3 is a functional smoke test
    statement = json.loads((tmp_path / "root.intoto.json").read_text(encoding="utf-8"))
    assert f"sha256:{statement['subject'][0]['digest']['sha256']}" == said.json["subject"]
    assert len(statement["predicate"]["passedTests"]) == 9
    assert statement["predicate"]["warnedTests"] == [f"L3-rerank.cpu-{name}" for name in ("fp32", "fp16", "int8")]
    assert statement["predicate"]["failedTests"] == []
    assert verify(root).ok
    again = call("attest", root)
    assert (again.code, again.out) == (64, "")
    assert "expected a file that does not exist" in again.err
    assert call("attest", root, "--out", root / "a.json").code == 64


def test_attest_says_nothing_of_a_root_that_is_not_intact(call: Qualify, tiny_root: Path, tmp_path: Path) -> None:
    root = writable_copy(tiny_root, tmp_path / "root")
    (root / "plan.json").write_bytes(b"{}\n")
    for broken in (root, forged(tiny_root, tmp_path / "forged")):
        said = call("attest", broken)
        assert (said.code, said.out) == (20, "")
        assert said.err.startswith(f"qualify: {broken}: expected an intact root, got: ")
    assert list(tmp_path.glob("*.intoto.json")) == []


def test_a_root_is_attested_by_a_trusted_key_only(
    call: Qualify, tiny_root: Path, signed: Path, keys: KeyPair, stranger: KeyPair
) -> None:
    good = call("verify", tiny_root, "--attestation", signed, "--trust", keys.public, "--json")
    assert (good.code, good.json["authenticity"], good.json["verdict"]) == (0, "attested", "PASS")
    assert [item["result"] for item in good.json["attestations"]] == ["WARNED"]
    wrong = call("verify", tiny_root, "--attestation", signed, "--trust", stranger.public, "--json")
    assert (wrong.code, wrong.json["authenticity"], wrong.json["verdict"]) == (20, "none", None)
    assert (rules(wrong), wrong.json["intact"], wrong.json["attestations"]) == (["A-SIGNATURE"], True, [])
    both = call(
        "verify", tiny_root, "--attestation", signed, "--trust", stranger.public, "--trust", keys.public, "--json"
    )
    assert both.code == 0


def test_an_unsigned_statement_and_one_about_another_root_never_attest(
    call: Qualify, tiny_root: Path, keys: KeyPair, signed: Path, tmp_path: Path
) -> None:
    assert call("attest", tiny_root, "--out", tmp_path / "bare.json").code == 0
    said = call("verify", tiny_root, "--attestation", tmp_path / "bare.json", "--trust", keys.public, "--json")
    assert (said.code, rules(said), said.json["authenticity"]) == (20, ["A-UNSIGNED"], "none")
    other = changed_root(tiny_root, tmp_path / "other")
    said = call("verify", other, "--attestation", signed, "--trust", keys.public, "--json")
    both = ["A-SUBJECT"] * 2  # the subject, and what it says of the root
    assert (said.code, rules(said), said.json["authenticity"]) == (20, both, "none")
    text = call("verify", other, "--attestation", signed, "--trust", keys.public).out
    assert text.startswith("✗ NOT ATTESTED: 2 faults of what should vouch for the root; the root itself is intact\n")


def changed_root(root: Path, to: Path) -> Path:
    """An equally sound root with another seal: one fact of the environment differs."""
    return changed(root, to, edited("environment.json", lambda record: record["packages"].update(zzz="1")))


def test_one_attestation_that_does_not_hold_spoils_those_that_do(
    call: Qualify, tiny_root: Path, signed: Path, keys: KeyPair, tmp_path: Path
) -> None:
    (tmp_path / "junk.json").write_bytes(b"{}")
    words = ["--attestation", signed, "--attestation", tmp_path / "junk.json", "--trust", keys.public, "--json"]
    said = call("verify", tiny_root, *words)
    assert (said.code, rules(said), said.json["authenticity"]) == (20, ["A-ENVELOPE"], "none")


def test_a_root_that_is_not_intact_is_never_attested(
    call: Qualify, tiny_root: Path, signed: Path, keys: KeyPair, tmp_path: Path
) -> None:
    root = writable_copy(tiny_root, tmp_path / "root")
    (root / "environment.json").write_bytes(b"{}\n")
    said = call("verify", root, "--attestation", signed, "--trust", keys.public, "--json")
    assert (said.code, said.json["authenticity"], said.json["reached"]) == (20, "none", [])
    assert rules(said) == ["E-HASH"]


# --- --require --------------------------------------------------------------------------------------------------------


def test_what_is_required_and_not_reached_ends_30_and_says_what_to_do(
    call: Qualify, tiny_root: Path, signed: Path, keys: KeyPair, digest: str
) -> None:
    trusted = ["--attestation", signed, "--trust", keys.public]
    pinned = ["--expect", digest]
    cases: list[tuple[list[Any], list[str], int]] = [
        (["--require", "pinned"], [], 30),
        (["--require", "attested"], [], 30),
        (["--require", "pinned", *pinned], ["pinned"], 0),
        (["--require", "attested", *trusted], ["attested"], 0),
        (["--require", "pinned", *trusted], ["attested"], 30),
        (["--require", "attested", *pinned], ["pinned"], 30),
        (["--require", "pinned", "--require", "attested", *pinned, *trusted], ["attested", "pinned"], 0),
    ]
    for words, reached, code in cases:
        said = call("verify", tiny_root, *words, "--json")
        assert (said.code, said.json["exit_code"], said.json["reached"]) == (code, code, reached), words
        assert said.json["verdict"] == ("PASS" if code == 0 else None)
    text = call("verify", tiny_root, "--require", "attested").out
    assert text.startswith("? UNDETERMINED: no fault was found, but not every check could run\n")
    assert (
        "attested: required, but not reached; give --attestation FILE, and --trust PUBLIC.pem of somebody whose word counts"
        in " ".join(text.split())
    )


def test_a_root_that_is_not_intact_ends_20_whatever_is_required(call: Qualify, tiny_root: Path, tmp_path: Path) -> None:
    root = writable_copy(tiny_root, tmp_path / "root")
    (root / "environment.json").write_bytes(b"{}\n")
    assert call("verify", root, "--require", "pinned").code == 20


# --- --ladder ---------------------------------------------------------------------------------------------------------


def test_the_reviewers_limits_decide_and_every_limit_that_differs_is_listed(
    call: Qualify, tiny_root: Path, stricter: Path
) -> None:
    same = call("verify", tiny_root, "--ladder", tiny_root / "ladder.yaml", "--json")
    assert (same.code, same.json["verdict"], same.json["ladder"]["differences"]) == (0, "PASS", [])
    said = call("verify", tiny_root, "--ladder", stricter, "--json")
    assert (said.code, said.json["verdict"], said.json["sealed_verdict"]) == (10, "FAIL", "PASS")
    assert [(d["target"], d["tier"], d["name"], d["sealed"], d["own"]) for d in said.json["ladder"]["differences"]] == [
        (target, "L1", "p50_ms", "at most 10,000.0", "at most 1e-06") for target in ("cpu-fp32", "cpu-fp16", "cpu-int8")
    ]
    text = call("verify", tiny_root, "--ladder", stricter).out
    assert text.startswith("✗ FAIL: intact, and judged under your ladder; under the sealed plan PASS\n")
    assert "differs  cpu-fp32 L1 p50_ms: sealed at most 10,000.0, yours at most 1e-06\n" in text


def test_the_claim_still_counts_under_the_reviewers_ladder(call: Qualify, tiny_root: Path, tmp_path: Path) -> None:
    said = call("verify", forged(tiny_root, tmp_path / "forged"), "--ladder", tiny_root / "ladder.yaml", "--json")
    assert (said.code, rules(said), said.json["verdict"]) == (20, ["Q-METRIC"], None)


# --- --attest-as ------------------------------------------------------------------------------------------------------


def test_the_reviewers_verdict_is_written_and_vouches_under_the_ladder_it_was_reached_by(
    call: Qualify, tiny_root: Path, stricter: Path, keys: KeyPair, signed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "review.json"
    said = call(
        "verify", tiny_root, "--attest-as", "reviewer", "--out", out, "--key", keys.private,
        "--attestation", signed, "--trust", keys.public, "--json",
    )  # fmt: skip
    assert (said.code, said.json["summary"]) == (0, str(out))
    predicate = payload(out)["predicate"]
    assert (predicate["verificationResult"], predicate["verifiedLevels"]) == ("PASSED", ["QUALIFY_L3"])
    assert [item["name"] for item in predicate["inputAttestations"]] == ["signed.json"]
    good = call("verify", tiny_root, "--attestation", out, "--trust", keys.public, "--json")
    assert (good.code, good.json["attestations"][0]["verifier"]) == (0, f"{attest.BASE}/verifier/reviewer")

    words = ["--ladder", stricter, "--attest-as", "urn:me", "--out", tmp_path / "no.json", "--key", keys.private]
    assert call("verify", tiny_root, *words).code == 10
    assert payload(tmp_path / "no.json")["predicate"]["verificationResult"] == "FAILED"
    trusted = ["--attestation", tmp_path / "no.json", "--trust", keys.public, "--json"]
    refused = call("verify", tiny_root, *trusted)
    assert (refused.code, rules(refused)) == (20, ["A-POLICY"])
    agreed = call("verify", tiny_root, "--ladder", stricter, *trusted)
    assert (agreed.code, agreed.json["authenticity"], agreed.json["verdict"]) == (10, "attested", "FAIL")


def test_a_claim_that_does_not_hold_is_said_and_is_failed(call: Qualify, tiny_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "review.json"
    said = call("verify", forged(tiny_root, tmp_path / "forged"), "--attest-as", "reviewer", "--out", out)
    assert said.code == 20
    predicate = json.loads(out.read_text(encoding="utf-8"))["predicate"]
    assert predicate["verificationResult"] == "FAILED"
    assert predicate[attest.VERDICT]["broken"] == ["Q-METRIC"]


def test_no_summary_condemns_a_sound_root_for_a_broken_copy_or_for_another_file(
    call: Qualify, tiny_root: Path, keys: KeyPair, tmp_path: Path
) -> None:
    copy = writable_copy(tiny_root, tmp_path / "copy")
    (copy / "environment.json").write_bytes(b"{}\n")
    (tmp_path / "junk.json").write_bytes(b"{}")
    out = tmp_path / "review.json"
    junk = ["--attestation", tmp_path / "junk.json", "--trust", keys.public]
    cases: list[tuple[Path, list[Any], int, str]] = [
        (copy, [], 20, "the root did not verify, and its seal may be that of a sound one"),
        (tiny_root, junk, 20, "an attestation given here does not hold, which is no fault of the root"),
        (tiny_root, ["--require", "pinned"], 30, "it is not pinned, as was required"),
    ]
    for root, words, code, why in cases:
        said = call("verify", root, *words, "--attest-as", "reviewer", "--out", out, "--json")
        assert (said.code, said.json["summary"]) == (code, None)
        assert said.err == f"qualify: {out}: not written: {why}\n"
        assert not out.exists()


# --- asked wrongly ----------------------------------------------------------------------------------------------------


def test_what_cannot_be_carried_out_is_refused_in_one_line_before_anything_is_hashed(
    call: Qualify, keys: KeyPair, tmp_path: Path
) -> None:
    there, nowhere = tmp_path / "there", tmp_path / "nowhere"
    there.write_text("format: 2\n", encoding="utf-8")
    cases: dict[str, list[Any]] = {
        "--attestation: expected --trust beside it, got none; a signature only counts by a key that you trust": [
            "--attestation", there,
        ],
        "--trust: expected --attestation beside it, got none; a signature only counts by a key that you trust": [
            "--trust", keys.public,
        ],
        "--expect: expected blake3: and 64 lower-case hex digits, got 'blake3:00'; copy it whole": [
            "--expect", "blake3:00",
        ],
        f"{nowhere}: expected a ladder, got No such file or directory; correct the path": ["--ladder", nowhere],
        f"{nowhere}: expected an attestation, got No such file or directory; correct the path": [
            "--attestation", nowhere, "--trust", keys.public,
        ],
        f"{there}: expected a file that does not exist, got an existing one; name another or remove it": [
            "--attest-as", "me", "--out", there,
        ],
        "verify: expected --attest-as NAME and --out FILE together, got one or --key alone; give both": [
            "--attest-as", "me",
        ],
    }  # fmt: skip
    for message, words in cases.items():
        said = call("verify", nowhere, *words)
        assert (said.code, said.out, said.err) == (64, "", f"qualify: {message}\n")
    said = call("verify", nowhere, "--ladder", there)
    assert said.code == 64
    assert said.err.startswith("qualify: there: format: expected 1, got 2")


def test_all_but_signatures_works_without_the_library(
    tiny_root: Path, keys: KeyPair, signed: Path, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_LIBRARY, encoding="utf-8")
    path = str(tmp_path)
    assert qualify("verify", tiny_root, PYTHONPATH=path).code == 0
    assert qualify("attest", tiny_root, "--out", tmp_path / "bare.json", PYTHONPATH=path).code == 0
    commands: list[list[str | Path]] = [
        ["verify", tiny_root, "--attestation", signed, "--trust", keys.public],
        ["attest", tiny_root, "--out", tmp_path / "b.json", "--key", keys.private],
    ]
    for words in commands:
        said = qualify(*words, PYTHONPATH=path)
        assert (said.code, said.out) == (30, "")
        assert said.err.endswith("got none; pip install 'qualify[attest]'\n")


@pytest.mark.parametrize(("mode", "code"), [("ab", "E-SIZE"), ("r+b", "E-CHANGED")], ids=["longer", "other-bytes"])
def test_a_root_that_is_written_to_while_it_is_looked_at_ends_20_in_one_line(
    tiny_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str, code: str
) -> None:
    root = writable_copy(tiny_root, tmp_path / "root")

    def write(done: int, total: int) -> None:
        if done == total:
            with (root / "steps/L1-perf.cpu-fp32/samples.json").open(mode) as file:
                file.write(b" ")

    assert guarded(lambda: check(root, None, write).exit_code) == 20
    said = capsys.readouterr().err
    assert said.startswith(
        f"qualify: {root}: expected a root that verifies, got {code} steps/L1-perf.cpu-fp32/samples.json"
    )
    assert said.endswith("; verify it again when nothing writes to it\n")
    assert said.count("\n") == 1


def test_a_huge_file_given_as_an_attestation_is_not_read_whole(call: Qualify, tiny_root: Path, keys: KeyPair) -> None:
    said = call("verify", tiny_root, "--attestation", "/dev/zero", "--trust", keys.public, "--json")
    assert (said.code, rules(said)) == (20, ["A-ENVELOPE"])
    assert said.json["faults"][0]["message"] == "/dev/zero: expected at most 4194304 bytes, got 4194305"


# --- hostile text -----------------------------------------------------------------------------------------------------

HOSTILE = "a\x1b[2K\r✓ PASS\u202e\n::error::forged\n::set-output name=x::y ##[error]forged"


@pytest.fixture(params=["true", ""], ids=["GitHub Actions", "terminal"])
def actions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setenv("GITHUB_ACTIONS", request.param)
    return bool(request.param)


def inert(text: str, *, actions: bool) -> bool:
    """Nothing moves a cursor, hides or reorders; and no line is a command where a runner reads them."""
    quiet = all(char == "\n" or unicodedata.category(char) not in {"Cc", "Cf", "Zl", "Zp"} for char in text)
    return quiet and not (actions and re.search(r"^\s*::|##\[", text, re.MULTILINE))


def test_names_and_reasons_in_a_hostile_root_are_shown_inert(
    call: Qualify, tiny_root: Path, tmp_path: Path, *, actions: bool
) -> None:
    root = writable_copy(tiny_root, tmp_path / "root")
    (root / HOSTILE).write_bytes(b"x")
    (root / "SEAL").write_bytes(HOSTILE.encode())
    (root / "MANIFEST.b3").write_bytes(HOSTILE.encode() + b"\n" + (root / "MANIFEST.b3").read_bytes())
    for words in ([], ["--json"]):
        said = call("verify", root, *words)
        assert said.code == 20
        assert "forged" in said.out
        assert inert(said.out + said.err, actions=actions or "--json" in words)
    for command in ("show", "attest"):
        said = call(command, root)
        assert said.code == 20
        assert inert(said.out + said.err, actions=actions)


def test_words_in_records_and_attestations_of_a_sound_root_are_shown_inert(
    call: Qualify, tiny_root: Path, keys: KeyPair, tmp_path: Path, *, actions: bool
) -> None:
    edit = edited("steps/L2-parity.cpu-int8/outcome.json", lambda record: record.update(reason=HOSTILE))
    root = changed(tiny_root, tmp_path / "root", edit)
    for name, payload_type in (("type.json", HOSTILE), ("payload.json", attest.PAYLOAD_TYPE)):
        statement = {"_type": HOSTILE, "subject": [], "predicateType": HOSTILE, HOSTILE: 1}
        (tmp_path / name).write_bytes(keys.sign(json.dumps(statement).encode(), payload_type))
        for words in ([], ["--json"]):
            trusted = ["--attestation", tmp_path / name, "--trust", keys.public]
            said = call("verify", root, *trusted, *words)
            assert said.code == 20
            assert {"Q-FINDING", "A-PAYLOAD"} <= set(re.findall(r"[QA]-[A-Z]+", said.out))
            assert inert(said.out + said.err, actions=actions or "--json" in words)


def test_a_root_that_needs_more_memory_than_there_is_ends_undetermined_and_is_no_fault_of_ours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def more() -> int:
        raise MemoryError

    assert guarded(more, wants_json=True) == 30
    said = capsys.readouterr()
    assert said.err == (
        "qualify: expected memory for what has to be read, got no more: not possible here; use a larger machine\n"
    )
    assert json.loads(said.out)["error"]["exit_code"] == 30


def test_the_traceback_of_our_own_fault_is_shown_inert(capsys: pytest.CaptureFixture[str], *, actions: bool) -> None:
    def fault() -> int:
        raise KeyError(HOSTILE) from ValueError(HOSTILE)

    assert guarded(fault) == 70
    assert inert(capsys.readouterr().err, actions=actions)
