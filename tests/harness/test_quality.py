from __future__ import annotations

import pytest

from harness import quality
from harness.errors import LadderError
from harness.records import Exit, GateClaim, Limit, Lock, QualityGate, Verdict

LOCK = """\
# made by hand
--index-url https://example.org/simple
Torch==2.13.0
numpy==2.4.6 ; python_version >= "3.11"
numpy==1.26.4 ; python_version < "3.11"
ruamel.yaml[jinja2]==0.18.0 \\
    --hash=sha256:aa
colorama==0.4.6 ; sys_platform == "win32"  # only there
"""


def end(code: int | None = 0, signal: str | None = None, *, timed_out: bool = False) -> Exit:
    return Exit(code=code, signal=signal, timed_out=timed_out, seconds=1.0)


@pytest.mark.parametrize(
    ("ended", "verdict", "reason"),
    [
        (end(0), "PASS", ""),
        (end(1), "FAIL", "exit code 1; see stdout.log and stderr.log"),
        (end(None, "SIGKILL"), "BLOCKED", "killed by SIGKILL; see stdout.log and stderr.log"),
        (
            end(None, "SIGKILL", timed_out=True),
            "BLOCKED",
            "ended at its time limit of 5 s; see stdout.log and stderr.log",
        ),
    ],
    ids=["passed", "failed", "killed", "timed out"],
)
def test_a_gate_is_judged_by_how_its_command_ended(ended: Exit, verdict: Verdict, reason: str) -> None:
    assert (quality.gate_verdict(ended), quality.gate_reason(ended, 5.0)) == (verdict, reason)


def test_a_gate_that_could_not_be_started_is_blocked_and_one_that_left_nothing_was_not_run() -> None:
    assert quality.gate_verdict(None) == "BLOCKED"
    claims = quality.gate_claims([QualityGate(name="lint", command=("true",))], {})
    assert claims == (GateClaim(name="lint", verdict="NOT_RUN", reason="not run"),)
    assert not quality.passed(claims)


def test_pins_are_read_with_extras_hashes_markers_and_comments() -> None:
    assert quality.pins(LOCK, "lock.txt") == {
        "torch": (("2.13.0",), False),
        "numpy": (("2.4.6", "1.26.4"), True),
        "ruamel-yaml": (("0.18.0",), False),
        "colorama": (("0.4.6",), True),
    }


@pytest.mark.parametrize(
    "line", ["torch>=2", "torch", "torch==2.*", "torch @ https://example.org/t.whl", "torch==2, <3"]
)
def test_a_line_that_pins_nothing_exactly_is_refused(line: str) -> None:
    with pytest.raises(LadderError) as caught:
        quality.pins(f"numpy==1\n{line}\n", "lock.txt")
    assert str(caught.value) == (
        f"lock.txt: line 2: expected name==version, got {line!r}; a lock pins every version exactly"
    )


def test_a_lock_without_a_pin_is_refused_since_it_would_agree_with_everything() -> None:
    with pytest.raises(LadderError, match=r"^empty.txt: expected at least one name==version, got none"):
        quality.pins("# nothing\n", "empty.txt")


def differences(parity: str, **packages: str) -> tuple[Verdict, list[str]]:
    lock = Lock(file="lock.txt", parity=parity)  # type: ignore[arg-type]
    found = quality.lock_claim(lock, LOCK, {name.replace("_", "-"): version for name, version in packages.items()})
    return found.verdict, [finding.text for finding in found.differences]


def test_versions_looks_at_what_is_installed_and_pinned() -> None:
    assert differences("versions", torch="2.13.0", numpy="1.26.4", other="1") == ("PASS", [])
    assert differences("versions", torch="2.12.0", Ruamel_Yaml="0.18.0") == (
        "FAIL",
        ["package torch: expected 2.13.0, as lock.txt says, got 2.12.0"],
    )


def test_exact_also_looks_at_what_is_missing_and_what_is_not_pinned() -> None:
    assert differences("exact", torch="2.13.0", numpy="2.4.6", other="1", pip="25", qualify="0.1.0") == (
        "FAIL",
        [
            "package other: expected not pinned, as lock.txt says, got 1",
            "package ruamel-yaml: expected 0.18.0, as lock.txt says, got not installed",
        ],
    )


def test_recorded_lists_the_differences_and_decides_nothing() -> None:
    verdict, found = differences("recorded", torch="2.12.0")
    assert (verdict, len(found)) == ("PASS", 1)


def test_a_difference_is_a_finding_with_limit_and_value() -> None:
    (found,) = quality.lock_claim(Lock(file="l"), "torch==2\n", {"torch": "3"}).differences
    assert (found.metric, found.limit, found.value, found.verdict) == ("package.torch", Limit(exactly="2"), "3", "FAIL")
