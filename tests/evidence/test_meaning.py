from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import example, given
from hypothesis import strategies as st

from evidence import meaning
from evidence import records as evidence_records
from evidence.manifest import Fault, FormatError
from harness import records
from tests.evidence.conftest import MakeRoot, rules, rules_of
from tests.roots import make
from tests.roots.make import GOOD, L0, L1, Climb

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def faults_of(files: make.Files) -> list[Fault]:
    """What the records alone give, read without a tree."""
    digests = {path: blake3(data).hexdigest() for path, data in sorted(files.items())}
    return meaning.check(digests, files.__getitem__)[0]


def messages(files: make.Files) -> list[str]:
    return [item.message for item in faults_of(files)]


def test_names_and_words_are_those_of_the_harness() -> None:
    """`evidence` imports nothing of `harness`, so the few names that both must know are held together here."""
    assert meaning.INTERRUPTED == "interrupted by the user"
    assert evidence_records.TIERS == records.TIER_NAMES
    assert evidence_records.step_folder("cpu", "L3") == records.step_folder("L3", "cpu")
    named = {records.LADDER, records.PLAN, records.ENVIRONMENT, records.LINEAGE, records.CLAIM}
    assert set(evidence_records.RECORDS) == named


@given(VALUES)
def test_a_record_of_the_harness_has_the_one_spelling(value: object) -> None:
    assert evidence_records.parse_json("r.json", records.to_json(value)) == value


@given(
    st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | VALUES.map(lambda value: json.dumps(value).encode())
)
@example(b"1e999\n")
@example(b"[1, 2]\n")
@example(b'"\\ud800"\n')
@example(b"-0\n")
@example(b"1.0e0\n")
@example(b"9" * 5000 + b"\n")
@example(b"NaN\n")
@example(b"-Infinity\n")
def test_any_bytes_are_a_record_of_one_spelling_or_refused(data: bytes) -> None:
    try:
        value = evidence_records.parse_json("r.json", data)
    except FormatError as error:
        assert [item.rule for item in error.faults] == ["E-JSON"]  # noqa: PT017 - good bytes raise nothing
    else:
        assert records.to_json(value) == data


@given(VALUES, st.data())
def test_no_bytes_near_a_record_are_another_spelling_of_it(value: object, data: st.DataObject) -> None:
    spelled = records.to_json(value)
    at = data.draw(st.integers(0, len(spelled)))
    other = (
        spelled[:at]
        + data.draw(st.sampled_from([b"", b" ", b"\n", b"0", b"+", b"\t"]))
        + spelled[at + data.draw(st.integers(0, 1)) :]
    )
    try:
        evidence_records.parse_json("r.json", other)
    except FormatError:
        return
    assert records.to_json(json.loads(other)) == other


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_json_does_not_have_is_named(word: str) -> None:
    with pytest.raises(FormatError, match=f"got {word}, which JSON does not have"):
        evidence_records.parse_json("r.json", f"{word}\n".encode())


def test_depth_is_counted_in_lists_and_tables() -> None:
    def nested(depth: int) -> bytes:
        value: object = 1
        for level in range(depth):
            value = [value] if level % 2 else {"k": value}
        return records.to_json(value)

    assert evidence_records.parse_json("r.json", nested(32))
    with pytest.raises(FormatError, match=r"r.json: expected JSON of depth at most 32, got deeper nesting"):
        evidence_records.parse_json("r.json", nested(33))
    with pytest.raises(FormatError, match="got deeper nesting"):
        evidence_records.parse_json("r.json", b"[" * 100_000)


def test_a_record_over_the_limit_is_not_read(sealed: MakeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    root = sealed(GOOD)
    monkeypatch.setattr(
        evidence_records, "JSON_LIMIT_BYTES", max(len(GOOD[path]) for path in GOOD if path.endswith(".json"))
    )
    assert rules_of(root) == []
    monkeypatch.setattr(evidence_records, "JSON_LIMIT_BYTES", len(GOOD["plan.json"]) - 1)
    assert "E-SIZE" in rules_of(root)


def test_files_that_a_child_wrote_may_be_of_any_size_and_spelling() -> None:
    assert (
        faults_of(
            GOOD
            | {
                f"{L0}/measurements.json": b"cut o",
                f"{L0}/samples.json": b'{"b":1,"a":NaN}',
                f"{L0}/gate.json": b"no gate",
            }
        )
        == []
    )


def test_a_missing_record_and_a_broken_one_are_both_listed() -> None:
    files = GOOD | {f"{L1}/outcome.json": b"{", "qualification.json": b"{}"}
    del files["environment.json"]
    digests = dict.fromkeys(files, "0" * 64)
    found, last, why = meaning.check(digests, files.__getitem__)
    assert [(item.rule, item.path) for item in found] == [
        ("E-RECORD", "environment.json"),
        ("E-JSON", "qualification.json"),
        ("E-JSON", f"{L1}/outcome.json"),
    ]
    assert (last, why) == ("records", "a record cannot be read")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.plan["candidate"].pop("files"), "plan.json: expected `candidate/files` as list, got nothing"),
        (lambda c: c.plan["candidate"].update(digest=3), "plan.json: expected `candidate/digest` as str, got 3"),
        (lambda c: c.plan.update(inputs=[]), "plan.json: expected `inputs` as dict, got []"),
        (lambda c: c.plan["inputs"]["pairs"].pop("digest"), "plan.json: expected `inputs/*/digest` as str, got nothing"),
        (lambda c: c.plan.update(targets={}), "plan.json: expected `targets` as list, got {}"),
        (lambda c: c.plan["targets"][0].update(steps=None), "plan.json: expected `targets/*/steps` as list, got None"),
        (lambda c: c.plan["targets"][0]["steps"].append("L2"), "plan.json: expected `targets/*/steps/*/tier` as str, got nothing"),
        (lambda c: c.outcomes[L1].update(artifact_digest=3), f"{L1}/outcome.json: expected `artifact_digest` as str or NoneType, got 3"),
        (lambda c: c.outcomes[L1].update(started_at=None), f"{L1}/outcome.json: expected `started_at` as str, got None"),
        (lambda c: c.requests[L1].pop("plan_digest"), f"{L1}/request.json: expected `plan_digest` as str, got nothing"),
        (lambda c: c.claim.update(ended_at=True), "qualification.json: expected `ended_at` as str, got True"),
        (lambda c: c.claim["targets"][0].update(tiers=["L0"]), "qualification.json: expected `targets/*/tiers` as dict, got ['L0']"),
        (lambda c: c.lineage.pop("preserved"), "lineage.json: expected `preserved` as list, got nothing"),
        (lambda c: c.plan.update(gates={"lint": {"name": "lint"}}), "plan.json: expected `gates` as list, got {'lint': {'name': 'lint'}}"),
        (lambda c: c.claim.update(gates="lint"), "qualification.json: expected `gates` as list, got 'lint'"),
    ],
)  # fmt: skip
def test_a_field_of_another_kind_is_named(change: object, message: str) -> None:
    assert messages(Climb().build(change)) == [message]  # type: ignore[arg-type]


OTHERS: tuple[object, ...] = (None, True, 3, "x", [], {}, ["x"], [{"name": "x"}], {"x": {"name": "y"}})


def pointers(value: object) -> Iterator[list[str | int]]:
    """The way to each value in a record, the record itself first."""
    yield []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from ([key, *rest] for rest in pointers(item))


def replaced(files: make.Files) -> Iterator[make.Files]:
    """The files with one value of one record replaced by one of another kind, or gone."""
    for path, data in files.items():
        if path.endswith(".json") and not path.startswith("preserved/"):
            for way in pointers(json.loads(data)):
                for other in OTHERS:
                    holder = [json.loads(data)]
                    at: Any = holder
                    for key in (before := [0, *way])[:-1]:
                        at = at[key]
                    at[before[-1]] = other
                    yield files | {path: make.to_json(holder[0])}


GATED = Climb(gates={"lint": "PASS"}, files=make.GATE_LOGS).build()


def test_no_value_of_any_kind_in_any_field_ends_the_verifier() -> None:
    """Faults or none, but never an exception: those of the root, and those of an origin that was sealed again."""
    tried = [faults_of(files) for files in replaced(GATED)]
    tried += [faults_of(make.keep(origin=origin)) for origin in replaced(GOOD)]
    assert len(tried) > 1000


def test_a_candidate_file_that_could_be_read_as_two_is_refused() -> None:
    def change(climb: Climb) -> None:
        climb.plan["candidate"]["files"][0]["path"] = "a\nb"

    assert rules(faults_of(Climb().build(change))) == ["E-PATH", "E-PLAN"]


def test_messages_show_both_sides() -> None:
    other = "blake3:" + "0" * 64

    def change(climb: Climb) -> None:
        climb.outcomes[L1] |= {"artifact_digest": other, "candidate_digest": other}

    files = Climb().build(change)
    artifact = make.digest(make.lines(Climb().artifacts["cpu-fp32"]))
    candidate = make.digest(make.lines(Climb().candidate))
    assert messages(files) == [
        f"{L1}/outcome.json: expected candidate digest {candidate}, that of the files listed in plan.json, got {other}",
        f"{L1}/outcome.json: expected artifact_digest {artifact}, that of artifacts/cpu-fp32/, got {other}",
    ]


def test_a_step_that_ended_before_there_was_an_artifact_needs_none() -> None:
    def change(climb: Climb) -> None:
        climb.outcomes[L1]["artifact_digest"] = None

    assert messages(Climb().build(change)) == []


def test_a_step_that_passed_needs_a_sealed_artifact() -> None:
    climb = Climb(verdicts={("cpu-fp32", "L0"): "PASS", ("cpu-fp32", "L1"): "PASS"})

    def change(made: Climb) -> None:
        made.artifacts.clear()
        made.outcomes[L1]["artifact_digest"] = None

    assert [(item.rule, item.path) for item in faults_of(climb.build(change))] == [
        ("E-ARTIFACT", f"{L0}/outcome.json"),
        ("E-ARTIFACT", f"{L1}/outcome.json"),
    ]


def test_a_step_that_took_no_time_and_the_next_at_once_are_in_order() -> None:
    moment = "2026-01-01T00:00:01.000Z"

    def change(climb: Climb) -> None:
        for folder in (L0, L1):
            climb.outcomes[folder] |= {"started_at": moment, "ended_at": moment}
        climb.claim |= {"started_at": moment, "ended_at": moment}

    assert messages(Climb().build(change)) == []


@pytest.mark.parametrize(
    "text",
    ["2026-01-01 00:01:00Z", "2026-01-01T00:01:00z", "2026-01-01T00:01:00", "2026-01-01T00:01:00.1234567Z", "20260101T000100Z",
     "2026-02-30T00:00:00Z", "2026-01-01T24:01:00Z", "", "\u0662026-01-01T00:01:00Z", "2026-01-01T00:01:00Z\n"],
)  # fmt: skip
def test_a_time_of_another_spelling_is_refused(text: str) -> None:
    assert rules(faults_of(Climb().build(lambda climb: climb.claim.update(ended_at=text)))) == ["E-TIME"]


def test_every_step_after_a_wrong_time_is_still_compared() -> None:
    def change(climb: Climb) -> None:
        climb.outcomes[L0]["started_at"] = "yesterday"
        climb.outcomes[L1]["ended_at"] = "2026-01-01T00:00:00Z"

    assert [(item.rule, item.path) for item in faults_of(Climb().build(change))] == [
        ("E-TIME", f"{L0}/outcome.json"),
        ("E-TIME", f"{L1}/outcome.json"),
    ]


def interrupted(made: Climb) -> None:
    made.outcomes[L0]["reason"] = "interrupted by the user"


def test_steps_after_an_interrupt_are_refused_on_every_target() -> None:
    climb = Climb(
        targets={"cpu-fp32": ["L0", "L1"], "cpu-fp16": ["L0"], "cpu-int8": ["L0"]},
        artifacts={name: {"model.onnx": name.encode()} for name in ("cpu-fp32", "cpu-fp16", "cpu-int8")},
        verdicts={("cpu-fp32", "L0"): "BLOCKED", ("cpu-fp16", "L0"): "PASS", ("cpu-int8", "L0"): "PASS"},
    )

    assert messages(climb.build(interrupted)) == [
        "steps/L0-build.cpu-fp16: expected no step after one that did not pass, got one",
        "steps/L0-build.cpu-int8: expected no step after one that did not pass, got one",
    ]


def test_a_step_that_passed_is_never_an_interrupted_one() -> None:
    """A forger could else hide the steps of a later target behind a reason."""
    climb = Climb(targets={"cpu-fp32": ["L0"], "cpu-fp16": ["L0"]}, verdicts={("cpu-fp32", "L0"): "PASS"})

    assert rules(faults_of(climb.build(interrupted))) == ["E-STEP"]


def test_a_gate_that_is_planned_twice_is_refused() -> None:
    def twice(climb: Climb) -> None:
        climb.plan["gates"].append({"name": "lint"})
        climb.claim["gates"] *= 2

    assert "plan.json: expected each gate once, got one twice" in messages(Climb(gates={"lint": "PASS"}).build(twice))


def test_a_gate_that_is_left_out_and_one_after_an_interrupt_are_told_apart() -> None:
    def left_out(climb: Climb) -> None:
        del climb.gate_records["lint"]

    def interrupt(climb: Climb) -> None:
        climb.gate_records["lint"] |= {"verdict": "BLOCKED", "reason": "interrupted by the user"}

    gated: dict[str, Any] = {"gates": {"lint": "PASS", "tests": "PASS"}, "verdicts": {}, "artifacts": {}}
    assert "gates/lint: expected this planned gate, with gate.json, got none" in messages(
        Climb(**gated).build(left_out)
    )
    assert messages(Climb(**gated).build(interrupt))[0] == (
        "gates/tests: expected no gate after the one that was interrupted, got one"
    )


def test_a_climb_that_was_interrupted_in_a_gate_is_whole_without_the_gates_after_it() -> None:
    def interrupt(climb: Climb) -> None:
        climb.gate_records["lint"] |= {"verdict": "BLOCKED", "reason": "interrupted by the user"}
        del climb.gate_records["tests"], climb.gate_records["types"]
        for gate, verdict in zip(climb.claim["gates"], ("BLOCKED", "NOT_RUN", "NOT_RUN"), strict=True):
            gate["verdict"] = verdict

    climb = Climb(gates={"lint": "PASS", "tests": "PASS", "types": "PASS"}, verdicts={}, artifacts={})
    assert messages(climb.build(interrupt)) == []


def test_a_target_that_is_planned_or_claimed_twice_is_refused() -> None:
    def change(made: Climb) -> None:
        for targets in (made.plan["targets"], made.claim["targets"]):
            targets.append(targets[-1])
        for record in (*made.outcomes.values(), *made.requests.values(), made.claim):
            record["plan_digest"] = make.digest(make.to_json(made.plan))

    assert messages(Climb().build(change)) == [
        "plan.json: expected each target once, got one twice",
        "qualification.json: expected each target once, got one twice",
    ]


def test_a_tier_that_does_not_exist_is_refused() -> None:
    climb = Climb(targets={"cpu-fp32": ["L0", "L1", "L7"]})
    assert rules(faults_of(climb.build())) == ["E-STEP"]


def test_a_claim_of_a_target_without_tiers_that_was_not_planned_is_refused() -> None:
    files = Climb().build(lambda climb: climb.claim["targets"].append({"name": "gpu", "tiers": {}}))
    assert rules(faults_of(files)) == ["E-CLAIM"]


def test_a_time_that_cannot_be_read_does_not_hide_the_order_of_the_others() -> None:
    def spoil(climb: Climb) -> None:
        climb.outcomes[L0]["ended_at"] = "yesterday"
        climb.outcomes[L1]["started_at"] = "2025-12-31T00:00:00Z"

    assert [item.path for item in faults_of(Climb().build(spoil))] == [f"{L0}/outcome.json", f"{L1}/outcome.json"]


def test_every_step_after_one_that_did_not_pass_is_named() -> None:
    verdicts = {("cpu-fp32", "L0"): "FAIL", ("cpu-fp32", "L1"): "PASS", ("cpu-fp32", "L2"): "PASS"}
    found = faults_of(Climb(targets={"cpu-fp32": ["L0", "L1", "L2"]}, verdicts=verdicts).build())
    assert [(item.rule, item.path) for item in found] == [
        ("E-STEP", L1),
        ("E-STEP", make.step_folder("L2", "cpu-fp32")),
    ]


def test_a_step_that_passed_without_an_artifact_is_told_that_it_has_none() -> None:
    files = Climb().build(lambda climb: climb.outcomes[L0].update(artifact_digest=None))
    assert [item.message.rpartition(", got ")[2] for item in faults_of(files)] == ["none"]
