"""What is carried of earlier roots: every message, and that all faults of all origins are listed. Fixtures have one case a rule."""

from __future__ import annotations

from collections.abc import Callable

from blake3 import blake3

from evidence import meaning, records
from tests.roots import make
from tests.roots.make import GOOD, L0, L1, Climb, Files, carry, keep, origin_place

DIGEST = make.digest(make.lines(GOOD))
AT = origin_place(GOOD)


def messages(files: Files) -> list[str]:
    digests = {path: blake3(data).hexdigest() for path, data in sorted(files.items())}
    return [item.message for item in meaning.check(digests, files.__getitem__)[0]]


def listed(*entries: tuple[str, list[str]]) -> Callable[[Climb], object]:
    return lambda climb: climb.lineage.update(preserved=[{"origin": o, "steps": steps} for o, steps in entries])


def test_a_root_that_carries_nothing_and_one_that_does_are_whole() -> None:
    assert messages(GOOD) == []
    assert messages(keep()) == []


def test_faults_of_an_origin_show_both_sides_and_say_where() -> None:
    files = keep()
    path = f"{AT}artifacts/cpu-fp32/model.onnx"
    assert messages(files | {path: b"other"}) == [
        f"{path}: expected blake3 {blake3(b'graph').hexdigest()}, that of the origin, got {blake3(b'other').hexdigest()}"
    ]
    del files[f"{AT}{L0}/request.json"]
    assert messages(files | {f"{AT}steps/x": b"", f"{AT}notes.txt": b""}) == [
        f"{AT}{L0}/request.json: expected this file of the origin, since its step is carried, got none",
        f"{AT}notes.txt: expected only records, carried steps and their artifacts, got this",
        f"{AT}steps/x: expected only records, carried steps and their artifacts, got this",
    ]


def test_a_file_that_is_in_no_step_is_not_carried_though_the_origin_sealed_it() -> None:
    origin = GOOD | {"steps/x": b""}
    path = f"{origin_place(origin)}steps/x"
    assert messages(keep(origin=origin) | {path: b""}) == [
        f"{path}: expected only records, carried steps and their artifacts, got this"
    ]


def test_an_artifact_is_not_carried_without_the_step_that_built_it() -> None:
    artifact = {f"{AT}{path}": data for path, data in GOOD.items() if path.startswith("artifacts/")}
    assert messages(keep(steps=(L1,)) | artifact) == [
        f"{path}: expected only records, carried steps and their artifacts, got this" for path in sorted(artifact)
    ]


def test_an_origin_is_named_by_its_manifest_and_its_seal() -> None:
    other = make.digest(b"x")
    zeros = f"preserved/{'0' * 16}/"
    moved = {path.replace(AT, zeros): data for path, data in keep().items()}
    moved[f"{zeros}SEAL"] = f"qualify-seal/1 {other}\n".encode()
    assert messages(moved) == [
        f"{zeros}SEAL: expected {DIGEST}, the digest of MANIFEST.b3, got {other}",
        f"{zeros}MANIFEST.b3: expected a folder named {DIGEST[7:23]}, as its digest begins, got {zeros}",
    ]


def test_the_manifest_and_seal_of_an_origin_have_one_spelling() -> None:
    files = keep()
    manifest = files[f"{AT}MANIFEST.b3"]
    crlf = manifest.replace(b"\n", b"\r\n")
    at = f"preserved/{blake3(crlf).hexdigest()[:16]}/"
    files = {path.replace(AT, at): data for path, data in files.items()} | {f"{at}MANIFEST.b3": crlf}
    files[f"{at}SEAL"] = f"qualify-seal/1 {make.digest(crlf)}\n".encode()
    assert all(found.startswith(f"{at}MANIFEST.b3 line ") for found in messages(files))
    assert len(messages(files)) == len(manifest.splitlines())
    (found,) = messages(keep() | {f"{AT}SEAL": b"x"})
    assert found.startswith(f"{AT}SEAL: expected `qualify-seal/1 blake3:")


def test_every_origin_that_cannot_be_relied_on_is_listed_and_nothing_is_judged_after() -> None:
    files = keep() | {"preserved/a/SEAL": b"", "preserved/b/MANIFEST.b3": b""}
    digests = {path: blake3(data).hexdigest() for path, data in sorted(files.items())}
    found, last, why = meaning.check(digests, files.__getitem__)
    assert [item.message for item in found] == [
        "preserved/a/MANIFEST.b3: expected this file of the origin, got none",
        "preserved/b/SEAL: expected this file of the origin, got none",
    ]
    assert (last, why) == ("origins", "what is carried of an earlier root cannot be relied on")


def test_a_record_of_an_origin_that_cannot_be_read_is_named_with_its_place() -> None:
    origin = GOOD | {"environment.json": b"{}"}
    (found,) = messages(keep(origin=origin))
    assert found.startswith(f"{origin_place(origin)}environment.json: expected its one spelling")


def test_the_lineage_lists_exactly_what_is_carried() -> None:
    zeros = "blake3:" + "0" * 64
    assert messages(keep(listed())) == [
        f"lineage.json: expected of {DIGEST} the steps that are carried ({L0}), got no such origin"
    ]
    assert messages(keep(listed((zeros, [L0]), (DIGEST, [L1, L0])))) == [
        f"lineage.json: expected of {zeros} the steps that are carried (none), got ['{L0}']",
        f"lineage.json: expected of {DIGEST} the steps that are carried ({L0}), got ['{L1}', '{L0}']",
    ]
    assert messages(keep(listed((DIGEST, [L0]), (DIGEST, [L0])))) == [
        f"lineage.json: expected each origin once, sorted, got {DIGEST}"
    ]
    assert messages(keep(steps=())) == [f"lineage.json: expected of {DIGEST} the steps that are carried (none), got []"]


def test_origins_are_listed_in_order() -> None:
    second = keep()
    files = keep(steps=(L1,), origin=second, beside=carry(GOOD, (L0,)))
    assert messages(files) == []
    entries = sorted([(DIGEST, [L0]), (make.digest(make.lines(second)), [L1])])
    files |= {"lineage.json": make.to_json({"format": 1, "preserved": _entries(entries[::-1]), "supersedes": []})}
    assert messages(files) == [f"lineage.json: expected each origin once, sorted, got {entries[1][0]}, {entries[0][0]}"]


def _entries(entries: list[tuple[str, list[str]]]) -> list[dict[str, object]]:
    return [{"origin": origin, "steps": steps} for origin, steps in entries]


def test_one_step_carried_from_two_origins_is_there_twice() -> None:
    other = Climb(ladder=b"format: 1 \n").build()
    places = sorted([AT, origin_place(other)])
    entries = sorted([(DIGEST, [L0]), (make.digest(make.lines(other)), [L0])])
    files = keep(listed(*entries)) | carry(other, (L0,))
    assert messages(files) == [
        f"{places[1]}artifacts/cpu-fp32/: expected one artifact for cpu-fp32, got this beside {places[0]}artifacts/cpu-fp32/",
        f"{places[1]}{L0}: expected a planned step, in one place, got it twice",
    ]


def test_what_is_superseded_is_a_digest_with_a_reason_once() -> None:
    zeros = "blake3:" + "0" * 64

    def superseding(*entries: tuple[str, str]) -> list[str]:
        record = {"format": 1, "preserved": [], "supersedes": [{"digest": o, "reason": r} for o, r in entries]}
        return messages(GOOD | {"lineage.json": make.to_json(record)})

    assert superseding((zeros, "old"), (DIGEST, "wrong")) == []
    expected = "lineage.json: expected a root digest and a reason for what it supersedes, got "
    assert superseding((zeros[:-1], "old")) == [f"{expected}{{'digest': '{zeros[:-1]}', 'reason': 'old'}}"]
    assert superseding((zeros, "\t")) == [f"{expected}{{'digest': '{zeros}', 'reason': '\\t'}}"]
    assert superseding((zeros, "old"), (zeros, "wrong")) == [
        f"lineage.json: expected each superseded root once, got {zeros}, {zeros}"
    ]


def test_data_and_candidate_of_an_origin_are_compared() -> None:
    other = Climb(files={"inputs/pairs.jsonl": b"{}\n"}, candidate={"config.json": b"other"}).build()
    here, there = (blake3(data).hexdigest() for data in (GOOD["inputs/pairs.jsonl"], b"{}\n"))
    path = "inputs/pairs.jsonl blake3:"
    own, its = (make.digest(make.lines(files)) for files in (Climb().candidate, {"config.json": b"other"}))
    assert messages(keep(origin=other)) == [
        f"{origin_place(other)}plan.json: expected candidate digest {own}, that of the files listed in plan.json, got {its}",
        f"{origin_place(other)}plan.json: expected inputs/pairs as plan.json pins it ({path}{here}), got {path}{there}",
    ]


def test_an_origin_of_a_lower_goal_without_groups_is_fine_and_without_pairs_is_not() -> None:
    without = Climb(files={"inputs/pairs.jsonl": b"x"})

    def change(climb: Climb) -> None:
        climb.plan["inputs"]["pairs"] = None
        for record in (*climb.outcomes.values(), *climb.requests.values(), climb.claim):
            record["plan_digest"] = make.digest(make.to_json(climb.plan))

    (found,) = messages(keep(origin=without.build(change)))
    assert found.endswith(f"blake3:{blake3(GOOD['inputs/pairs.jsonl']).hexdigest()}), got none")


def test_the_claim_says_what_a_carried_step_is_worth_here() -> None:
    def claim(verdict: object) -> list[str]:
        return messages(keep(lambda c: c.claim["targets"][0]["tiers"].update(L1=verdict), steps=(L0, L1)))

    assert [claim(verdict) for verdict in ("PASS", "FAIL", "BLOCKED", "INCONCLUSIVE")] == [[]] * 4
    assert claim("NOT_RUN") == [
        "qualification.json: expected for L1 of cpu-fp32 one of PASS, FAIL, BLOCKED, INCONCLUSIVE, got NOT_RUN"
    ]
    assert len(claim(None)) == 2


def test_a_reason_of_an_origin_interrupts_nothing_here() -> None:
    """An interrupt ends the climb in which it happened; a carried step that is BLOCKED only ends its target."""

    def change(climb: Climb) -> None:
        climb.outcomes[L1] |= {"reason": meaning.INTERRUPTED, "verdict": "BLOCKED"}
        climb.claim["targets"][0]["tiers"]["L1"] = "BLOCKED"

    origin = Climb().build(change)
    two = Climb(
        targets={"cpu-fp32": ["L0", "L1"], "cpu-fp16": ["L0"]},
        verdicts={("cpu-fp32", "L0"): "PASS", ("cpu-fp32", "L1"): "BLOCKED", ("cpu-fp16", "L0"): "PASS"},
        artifacts={"cpu-fp32": Climb().artifacts["cpu-fp32"], "cpu-fp16": {"model.onnx": b"h"}},
    )

    def keep_other(climb: Climb) -> None:
        climb.artifacts = {"cpu-fp16": {"model.onnx": b"h"}}

    assert messages(keep(keep_other, steps=(L0, L1), origin=origin, climb=two)) == []


def test_names_are_those_of_the_harness() -> None:
    from harness import records as own
    from harness.lineage import DATA

    assert {tier: tuple(sorted(names)) for tier, names in DATA.items()} == meaning._INPUTS_OF
    assert own.origin_folder(DIGEST) == AT
    assert records.step_folder("cpu", "L3") == own.step_folder("L3", "cpu")
