"""The questions of a review and what follows from the answers; each kind of blocker, and what an earlier review leaves."""

from __future__ import annotations

from msgspec.structs import replace

from evidence.manifest import Fault
from harness import approval, questions
from harness.approval import Asked, Blocker, Review
from harness.gate import Gated, Gates
from harness.history import History, Line
from harness.records import Coverage, Qualification, Superseded, TargetClaim, Verdict

DIGEST = "blake3:" + "a" * 64
PATHS = frozenset({"steps/L1-perf.cpu/outcome.json", "steps/L1-perf.cpu/measurements.json", "qualification.json"})


def claim(verdict: Verdict = "PASS", deferred: str | None = None) -> Qualification:
    tiers: dict[str, Verdict] = {"L0": "PASS", "L1": verdict, "L2": "PASS" if verdict == "PASS" else "NOT_RUN"}
    return Qualification(
        format=1,
        ladder="tiny",
        plan_digest=DIGEST,
        candidate_digest=DIGEST,
        verdict=verdict,
        targets=(
            TargetClaim(
                name="cpu",
                verdict=verdict,
                reached="L2" if verdict == "PASS" else "L0",
                deferred=deferred,
                tiers=tiers if deferred is None else {},
                reason="" if verdict == "PASS" else "L1: p50_ms: expected at most 1, got 2 ms",
            ),
        ),
        coverage=Coverage(
            goal="L2",
            reached=("cpu",) if verdict == "PASS" and deferred is None else (),
            missed=() if verdict == "PASS" else ("cpu",),
            deferred=("cpu",) if deferred else (),
            complete=verdict == "PASS" and deferred is None,
        ),
        started_at="2026-01-01T00:00:00Z",
        ended_at="2026-01-01T00:00:00Z",
    )


def line(name: str, digest: str, state: str = "older", verdict: Verdict | None = "PASS") -> Line:
    return Line(name=name, digest=digest, state=state, ladder="tiny", model="model", verdict=verdict)  # type: ignore[arg-type]


def review(asked: Asked, earlier: Review | None = None) -> Review:
    missed = approval.unasked(asked, earlier)
    blockers, met = asked.result(earlier)
    verdict, code = approval.verdict(blockers)
    return Review(
        format=1,
        root="root",
        digest=DIGEST,
        ladder="tiny",
        model="model",
        policy="release",
        policy_digest=DIGEST,
        baseline=None,
        verdict=verdict,
        exit_code=code,
        blockers=blockers,
        met=met,
        notes=(),
        reviewed_at="2026-01-01T00:00:00Z",
        earlier=None if earlier is None else approval.since(earlier, "0" * 64, blockers, met, missed),
    )


def test_what_holds_everywhere_is_approved() -> None:
    asked = Asked()
    questions.integrity(asked, (), whole=True)
    questions.steps(asked, claim(), (), PATHS)
    found = review(asked)
    assert (found.verdict, found.exit_code, found.blockers) == ("APPROVE", 0, ())
    assert found.met == ("integrity", "step L0 cpu", "step L1 cpu", "step L2 cpu", "coverage")


def test_a_fault_of_the_bundle_or_the_claim_is_rejected() -> None:
    for fault in (Fault("E-HASH", "plan.json", "plan.json: expected x"), Fault("Q-METRIC", "steps/x", "p50_ms")):
        asked = Asked()
        questions.integrity(asked, (fault,), whole=fault.rule.startswith("Q"))
        found = review(asked)
        assert (found.verdict, found.exit_code) == ("REJECT", 20)
        assert found.blockers[0].evidence == fault.path
        assert found.blockers[0].text == f"{fault.rule} {fault.message}"


def test_a_check_that_could_not_run_is_undetermined_and_no_approval() -> None:
    asked = Asked()
    questions.integrity(asked, (), whole=False)
    found = review(asked)
    assert (found.verdict, found.exit_code) == ("REQUEST_CHANGES", 30)
    assert found.blockers[0].text == "not every check of the root could run"


def test_the_first_step_that_did_not_pass_is_the_blocker_of_its_target() -> None:
    asked = Asked()
    questions.steps(asked, claim("FAIL"), (), PATHS)
    found = review(asked)
    assert (found.verdict, found.exit_code) == ("REQUEST_CHANGES", 10)
    assert [blocker.id for blocker in found.blockers] == ["step L1 cpu", "coverage"]
    assert found.blockers[0] == Blocker(
        id="step L1 cpu",
        kind="merit",
        text="L1 of cpu is FAIL: L1: p50_ms: expected at most 1, got 2 ms",
        evidence="steps/L1-perf.cpu/outcome.json",
        closes="a root in which that figure meets its limit",
    )
    for verdict in ("BLOCKED", "INCONCLUSIVE"):
        asked = Asked()
        questions.steps(asked, claim(verdict), (), PATHS)
        assert review(asked).exit_code == 30


def test_a_deferred_target_is_a_blocker_unless_the_policy_accepts_it() -> None:
    for accepted, met in (((), False), (("cpu",), True)):
        asked = Asked()
        questions.steps(asked, claim(deferred="no machine"), accepted, PATHS)
        assert ("coverage cpu" in asked.met) is met
        assert "coverage" in asked.blockers, "a root in which no target reached the goal is never covered"


def test_nothing_is_approved_whose_whole_is_no_pass() -> None:
    for verdict, code in (("FAIL", 10), ("BLOCKED", 30)):
        asked = Asked()
        whole = replace(claim(), verdict=verdict)
        questions.steps(asked, whole, (), PATHS)
        questions.whole(asked, whole, PATHS)
        found = review(asked)
        assert (found.verdict, found.exit_code) == ("REQUEST_CHANGES", code)
        assert [(blocker.id, blocker.evidence) for blocker in found.blockers] == [("verdict", "qualification.json")]
    asked = Asked()
    questions.whole(asked, claim(), PATHS)
    assert review(asked).met == ("verdict",)


def test_what_was_carried_is_evidence_where_it_stands() -> None:
    carried = frozenset({"preserved/0123456789abcdef/steps/L1-perf.cpu/outcome.json"})
    asked = Asked()
    questions.steps(asked, claim("FAIL"), (), carried)
    assert review(asked).blockers[0].evidence == "preserved/0123456789abcdef/steps/L1-perf.cpu/outcome.json"


def test_what_a_root_replaces_is_said_with_the_reason_and_whether_it_is_there() -> None:
    supersedes = (
        Superseded(digest="blake3:" + "f" * 64, reason="wrong label"),
        Superseded(digest="blake3:" + "e" * 64, reason="busy"),
    )
    there = line("failed", "blake3:" + "f" * 64, "superseded", "FAIL")
    assert list(questions.replaced(supersedes, History(lines=(there,), notes=(), leftovers=()))) == [
        f"replaces blake3:{'f' * 64} (wrong label): it is failed beside this root, FAIL",
        f"replaces blake3:{'e' * 64} (busy): it is not beside this root",
    ]


def test_a_regression_is_on_merit_and_the_rest_of_the_gates_are_undetermined() -> None:
    gates = tuple(
        Gated(id=f"gate {verdict}", what="p50_ms", target="cpu", rule="at_most 1", verdict=verdict, reason="why")
        for verdict in ("REGRESSION", "INCOMPARABLE", "INCONCLUSIVE", "OK")
    )
    asked = Asked()
    questions.gates(
        asked, Gates(policy="release", digest=DIGEST, verdict="REGRESSION", exit_code=10, gates=gates), PATHS
    )
    assert [blocker.kind for blocker in review(asked).blockers] == ["merit", "undetermined", "undetermined"]
    assert review(asked).blockers[0].text == "REGRESSION: p50_ms on cpu, at_most 1: why"
    assert review(asked).blockers[0].evidence == "steps/L1-perf.cpu/measurements.json"
    assert review(asked).met == ("gate OK",)


def test_a_failed_root_beside_it_must_be_replaced_by_one_that_says_why() -> None:
    own = line("own", DIGEST, "current")
    failed = line("failed", "blake3:f", "older", "FAIL")
    passed = line("passed", "blake3:e", "older")
    asked = Asked()
    questions.siblings(asked, History(lines=(failed, passed, own), notes=(), leftovers=()), DIGEST, None)
    (blocker,) = review(asked).blockers
    assert blocker.id == "account blake3:f"
    assert blocker.text == "failed beside it is FAIL, and no root says that it replaces it"
    assert (
        blocker.closes
        == "qualify run LADDER --supersede failed --reason TEXT, so that the lineage says what became of it"
    )
    asked = Asked()
    replaced = line("failed", "blake3:f", "superseded", "FAIL")
    questions.siblings(asked, History(lines=(replaced, own), notes=(), leftovers=()), DIGEST, None)
    assert review(asked).verdict == "APPROVE"
    assert "account blake3:f" in review(asked).met


def test_a_root_beside_it_of_which_nothing_can_be_told_is_a_blocker() -> None:
    own, broken = line("own", DIGEST, "current"), Line(name="broken", digest="blake3:b", state="not intact")
    asked = Asked()
    questions.siblings(asked, History(lines=(own, broken), notes=(), leftovers=()), DIGEST, None)
    assert [blocker.id for blocker in review(asked).blockers] == ["account broken"]


def test_a_root_that_is_not_the_current_one_is_not_approved() -> None:
    for state in ("superseded", "older"):
        asked = Asked()
        questions.siblings(asked, History(lines=(line("own", DIGEST, state),), notes=(), leftovers=()), DIGEST, None)
        assert review(asked).blockers[0].text == f"the root is {state} in its folder, not the current one"


def test_a_baseline_that_is_not_the_current_root_of_its_folder_is_stale() -> None:
    asked = Asked()
    questions.freshness(asked, "blake3:old", line("new", "blake3:new", "current"), "march")
    assert review(asked).blockers[0].text == "march is not the current root of its folder: new (blake3:new) is"
    asked = Asked()
    questions.freshness(asked, "blake3:old", line("march", "blake3:old", "current"), "march")
    assert review(asked).verdict == "APPROVE"


# --- a later review ---------------------------------------------------------------------------------------------------


def failed_first() -> Review:
    asked = Asked()
    for name in ("a", "b", "c"):
        asked.say(name, met=False, text=f"{name} is wrong", evidence="x", closes="mend it")
    return review(asked)


def test_a_later_review_says_what_is_closed_what_is_open_and_what_was_not_asked() -> None:
    asked = Asked()
    asked.say("a", met=True)
    asked.say("b", met=False, text="b is still wrong")
    asked.say("d", met=False, text="d is new")
    found = review(asked, failed_first())
    assert found.earlier is not None
    assert (found.earlier.closed, found.earlier.open, found.earlier.unasked) == (("a",), ("b",), ("c",))
    assert [blocker.id for blocker in found.blockers] == ["b", "d", "c"]
    assert found.blockers[2].text == "an earlier review found: c is wrong; this one has no such question"
    assert found.blockers[2].kind == "undetermined"


def test_a_question_left_out_never_approves() -> None:
    asked = Asked()
    asked.say("a", met=True)
    asked.say("b", met=True)
    found = review(asked, failed_first())
    assert (found.verdict, found.exit_code) == ("REQUEST_CHANGES", 30)


def test_nothing_is_closed_by_a_root_that_is_not_intact() -> None:
    asked = Asked()
    questions.integrity(asked, (Fault("E-HASH", "plan.json", "x"),), whole=False)
    found = review(asked, failed_first())
    assert found.verdict == "REJECT"
    assert found.earlier is not None
    assert (found.earlier.closed, found.earlier.unasked) == ((), ("a", "b", "c"))
