"""L1 beside a baseline's artifact and beside PyTorch, by real climbs; what is refused; what a reader of the root alone finds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evidence import seal
from evidence.manifest import digest_of
from harness import VERSION, baseline
from harness.cli_common import compared_with
from harness.errors import AskedWrongly, LadderError, NotIntact
from harness.raw import PairedRaw
from harness.records import BASELINE, CLAIM, ENVIRONMENT, from_json, to_json
from harness.run import prepare
from tests.support.ladders import Said, qualify, resealed, seal_again, writable_copy, write_ladder
from tests.support.once import once
from tests.support.steps import OPTIONS, Bench, Ran

ONE = "\n  - {precision: fp32, threads: 1}\n"
TABLE = "{{candidates: 4, batch_size: 4, warm_up: 1, calls: 6, paired: {{sessions: 6, calls: 4}}, eager: {eager}, limits: {limits}}}"
STEP = "steps/L1-perf.cpu-fp32"
replace = msgspec.structs.replace


def ladder(folder: Path, model: Path, limits: str = "{ratio_p50: {at_most: 1e3}}", eager: str = "false") -> Path:
    return write_ladder(folder, model, ONE, goal="L1", L1=TABLE.format(eager=eager, limits=limits))


@pytest.fixture(scope="session")
def beside(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, tiny_root: Path) -> Path:
    """A sealed root whose L1 was compared with that of the tiny root and with PyTorch. Read only."""

    def climb(folder: Path) -> None:
        limits = "{ratio_p50: {at_most: 1e3}, ratio_eager: {at_least: 1e-3}}"
        path = ladder(folder, tiny_model, limits, eager="true")
        said = qualify(
            "run", path, "--out", folder / "root", "--baseline", tiny_root, "--baseline-digest", digest(tiny_root)
        )
        assert said.code == 0, said.err + said.out

    return once(tmp_path_factory, "beside", climb) / "root"


def digest(root: Path) -> str:
    return digest_of((root / "MANIFEST.b3").read_bytes())


def raw(root: Path, name: str) -> PairedRaw:
    return from_json((root / STEP / name).read_bytes(), PairedRaw, name)


def measured(root: Path) -> dict[str, Any]:
    found = json.loads((root / STEP / "measurements.json").read_bytes())["measurements"]
    return {item["metric"]: item for item in found}


# --- what is made -----------------------------------------------------------------------------------------------------


def test_the_plan_pins_the_baseline_by_its_root_digest_and_the_root_holds_its_manifest(
    beside: Path, tiny_root: Path
) -> None:
    pinned = json.loads((beside / "plan.json").read_bytes())["inputs"]["baseline"]
    assert (pinned["path"], pinned["digest"]) == (BASELINE, digest(tiny_root))
    assert (beside / BASELINE).read_bytes() == (tiny_root / "MANIFEST.b3").read_bytes()
    assert not list(beside.rglob("preserved"))


def test_the_artifact_beside_is_the_one_that_the_baseline_sealed_for_the_same_target(
    beside: Path, tiny_root: Path
) -> None:
    outcome = json.loads((tiny_root / STEP / "outcome.json").read_bytes())
    assert raw(beside, "paired.json").other_artifact == outcome["artifact_digest"]
    assert raw(beside, "eager.json").other_artifact is None


@pytest.mark.parametrize("name", ["paired.json", "eager.json"])
def test_both_sides_samples_are_sealed_with_their_order_and_neither_spins(beside: Path, name: str) -> None:
    found = raw(beside, name)
    assert found.fault == ""
    assert [len(pair.candidate_ms) for pair in found.sessions] == [4] * 6
    assert [len(pair.other_ms) for pair in found.sessions] == [4] * 6
    assert sum(pair.candidate_loaded_first for pair in found.sessions) == 3
    for side in (side for pair in found.sessions for side in (pair.candidate, pair.other)):
        assert side.facts.load_ms > 0
        assert side.facts.options["allow_spinning"] is False
        assert side.facts.options["intra_op_threads"] == 1
        assert side.shapes == ((4, side.shapes[0][1]),)
    assert len({pair.candidate.facts.load_ms for pair in found.sessions}) > 1  # each its own


def test_both_sides_score_the_same_shapes(beside: Path) -> None:
    for name in ("paired.json", "eager.json"):
        assert all(pair.candidate.shapes == pair.other.shapes for pair in raw(beside, name).sessions)


def test_each_ratio_has_an_interval_over_sessions_that_holds_it(beside: Path) -> None:
    found = measured(beside)
    for name in ("ratio_p50", "ratio_p95", "ratio_pairs_per_s", "ratio_eager"):
        low, high = found[name]["interval"]
        assert 0 < low <= found[name]["value"] <= high
        assert found[name]["samples"] == 6


def test_the_root_alone_is_judged_again(beside: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    shutil.copytree(beside, alone)
    said = qualify("verify", alone, "--json")
    assert (said.code, said.json["faults"], said.json["verdict"]) == (0, [], "PASS")


def test_every_report_says_what_the_ratio_is(beside: Path, tiny_root: Path) -> None:
    shown = " ".join(qualify("show", beside).out.split())
    assert "against baseline " in shown
    assert "times as fast (95% " in shown
    assert f"beside tiny of {json.loads((tiny_root / 'plan.json').read_bytes())['candidate']['model']}" in shown
    markdown = qualify("report", beside, "--markdown").out
    assert f"root digest <code>{digest(tiny_root).replace(':', '&#58;')}</code>" in markdown
    assert "| against PyTorch eager |" in markdown


def test_without_a_baseline_the_ratios_are_null_and_say_what_to_do(tiny_root: Path) -> None:
    found = measured(tiny_root)
    assert found["ratio_p50"]["value"] is None
    assert found["ratio_p50"]["note"] == "no baseline was given: qualify run --baseline ROOT"
    assert found["ratio_eager"]["note"] == "it was not asked for: eager"
    assert "against" not in qualify("show", tiny_root).out


# --- what a reader finds ----------------------------------------------------------------------------------------------


def verified(copy: Path, to: Path) -> Said:
    """What ``verify`` says of a root in which somebody changed a file and sealed it again."""
    said = qualify("verify", resealed(copy, to / "forged"), "--json")
    assert said.code == 20
    return said


def rules(said: Said) -> set[str]:
    return {fault["rule"] for fault in said.json["faults"]}


def test_samples_that_were_changed_no_longer_give_the_ratio(beside: Path, tmp_path: Path) -> None:
    copy = writable_copy(beside, tmp_path / "copy")
    found = raw(copy, "paired.json")
    swapped = tuple(replace(pair, other_ms=tuple(2 * ms for ms in pair.other_ms)) for pair in found.sessions)
    (copy / STEP / "paired.json").write_bytes(to_json(replace(found, sessions=swapped)))
    assert rules(verified(copy, tmp_path)) == {"Q-METRIC", "Q-FINDING", "Q-RAW"}  # nor fit into their time


def test_an_order_that_the_seed_does_not_draw_is_found(beside: Path, tmp_path: Path) -> None:
    copy = writable_copy(beside, tmp_path / "copy")
    found = raw(copy, "eager.json")
    other = tuple(replace(p, candidate_first=tuple(not first for first in p.candidate_first)) for p in found.sessions)
    (copy / STEP / "eager.json").write_bytes(to_json(replace(found, sessions=other)))
    assert rules(verified(copy, tmp_path)) == {"Q-METRIC", "Q-FINDING", "Q-VERDICT", "Q-CLAIM"}


def test_an_artifact_that_the_baseline_does_not_hold_is_found(beside: Path, tmp_path: Path) -> None:
    copy = writable_copy(beside, tmp_path / "copy")
    found, zeros = raw(copy, "paired.json"), "blake3:" + "0" * 64
    (copy / STEP / "paired.json").write_bytes(to_json(replace(found, other_artifact=zeros)))
    message = (
        f"{STEP}: expected raw samples to derive the metrics from, got: {STEP}/paired.json: expected {found.other_artifact},"
        f" the artifact that the baseline's manifest names, got {zeros}"
    )
    assert message in [fault["message"] for fault in verified(copy, tmp_path).json["faults"]]


def test_another_baseline_than_the_plan_pins_is_not_even_sealed(beside: Path, tmp_path: Path) -> None:
    copy = writable_copy(beside, tmp_path / "copy")
    (copy / BASELINE).write_bytes(
        (copy / BASELINE).read_bytes().replace(b"artifacts/cpu-fp32/", b"artifacts/cpu-fp31/")
    )
    with pytest.raises(seal.SealError) as refused:
        verified(copy, tmp_path)
    assert [(fault.rule, fault.path) for fault in refused.value.faults] == [("E-INPUT", BASELINE)]


# --- what there is no number for --------------------------------------------------------------------------------------


def compared(there: Bench, tiny_root: Path, name: str, artifact: Path | None, tmp_path: Path) -> Ran:
    """L1 of a bench compared with the tiny root, whose artifact is said to be in the folder ``artifact``."""
    from harness import launch

    copy = there.copy(tmp_path / "bench")
    shutil.rmtree(copy.root / "steps" / f"L1-perf.{name}")
    looked = baseline.look(tiny_root)
    seal.write_new(copy.root, BASELINE, looked.manifest)
    assert OPTIONS.L1 is not None
    options = replace(OPTIONS, L1=replace(OPTIONS.L1, paired=replace(OPTIONS.L1.paired, sessions=6, calls=2)))
    request = replace(copy.request("L1", name, options=options), inputs=replace(copy.inputs, baseline=looked.fact))
    places = launch.Places(copy.root, copy.model, baseline=artifact)
    ended, redactions = launch.run_step(request, places, lambda _done, _total, _what: None)
    return Ran(copy.root, request, ended, redactions)


def test_a_target_that_the_baseline_lacks_has_no_number_and_is_named(
    climbed: Bench, beside: Path, tmp_path: Path
) -> None:
    found = compared(climbed, beside, "cpu-int8", None, tmp_path).measured()
    assert found["ratio_p50"].value is None
    assert found["ratio_p50"].note == "the baseline has no artifact of cpu-int8 (it has cpu-fp32)"
    assert found["p50_ms"].value is not None


def test_an_artifact_that_changed_after_the_baseline_was_verified_has_no_number(
    climbed: Bench, tiny_root: Path, tmp_path: Path
) -> None:
    found = compared(climbed, tiny_root, "cpu-fp32", tiny_root / "artifacts/cpu-fp16", tmp_path).measured()
    assert found["ratio_p50"].value is None
    known = baseline.look(tiny_root).artifacts
    assert found["ratio_p50"].note == (
        f"baseline: expected the artifact {known['cpu-fp32'].digest}, as it was sealed, got"
        f" {known['cpu-fp16'].digest}; verify that root"
    )
    assert found["p50_ms"].value is not None


# --- what is refused before anything runs -----------------------------------------------------------------------------


def test_a_limit_on_a_ratio_without_a_baseline_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    path = ladder(tmp_path, tiny_model)
    with pytest.raises(LadderError) as refused:
        prepare(path)
    assert str(refused.value) == (
        "ladder tiny: L1 limit ratio_p50: expected a baseline to compare with, got none;"
        " give --baseline ROOT, or remove the limit"
    )


def test_a_limit_on_the_ratio_to_pytorch_that_nobody_measures_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    path = ladder(tmp_path, tiny_model, "{ratio_eager: {at_least: 1}}")
    with pytest.raises(LadderError) as refused:
        prepare(path)
    assert str(refused.value) == (
        "tiny.yaml: tiers.L1: expected eager: true, for the limit on ratio_eager of cpu-fp32, got none; ask for it, or remove the"
        " limit"
    )


def test_a_baseline_of_another_digest_is_refused(tiny_root: Path) -> None:
    wrong = "blake3:" + "0" * 64
    with pytest.raises(NotIntact) as refused:
        baseline.look(tiny_root, wrong)
    assert str(refused.value) == (
        f"--baseline {tiny_root}: expected a root that is intact, got: root: expected the root digest {wrong}, got"
        f" {digest(tiny_root)}; see qualify verify"
    )


def test_a_baseline_that_is_not_intact_is_refused_and_leaves_nothing(
    tiny_model: Path, tiny_root: Path, tmp_path: Path
) -> None:
    root = writable_copy(tiny_root, tmp_path / "baseline")
    (root / "artifacts/cpu-fp32/model.onnx").write_bytes(b"another")
    said = qualify("run", ladder(tmp_path, tiny_model), "--out", tmp_path / "root", "--baseline", root)
    assert (said.code, said.out) == (20, "")
    assert said.err.startswith(
        f"qualify: --baseline {root}: expected a root that is intact, got: artifacts/cpu-fp32/model.onnx: expected blake3"
    )
    assert not (tmp_path / "root").exists()


def test_a_baseline_of_another_version_whose_records_cannot_be_read_is_undetermined(
    tiny_root: Path, tmp_path: Path
) -> None:
    root = writable_copy(tiny_root, tmp_path / "old")
    environment = json.loads((root / ENVIRONMENT).read_bytes())
    environment["packages"]["qualify"] = "0.0.9"
    (root / ENVIRONMENT).write_bytes(to_json(environment))
    (root / CLAIM).write_bytes(to_json(json.loads((root / CLAIM).read_bytes()) | {"later": 1}))
    seal_again(root)
    with pytest.raises(NotIntact) as refused:
        baseline.look(root)
    assert refused.value.exit_code == 30
    assert str(refused.value) == (
        f"--baseline {root}: expected a root whose claim its samples bear out, got: made by qualify 0.0.9, this is {VERSION}: verify"
        " it with that version, or run again; see qualify verify"
    )


def test_a_baseline_that_another_root_replaced_is_refused(tiny_root: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_root, tmp_path / "old")
    (tmp_path / "new").mkdir()
    record = {"format": 1, "preserved": [], "supersedes": [{"digest": digest(tiny_root), "reason": "too slow"}]}
    (tmp_path / "new" / "lineage.json").write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")
    with pytest.raises(AskedWrongly) as refused:
        baseline.look(tmp_path / "old")
    assert str(refused.value) == (
        f"--baseline {tmp_path / 'old'}: expected evidence that no other root replaces, got that of {digest(tiny_root)}, which new"
        " beside it replaces (too slow); give that one, or run without"
    )


def test_a_file_may_pin_the_baseline_and_no_other_digest_is_taken_beside_it(tiny_root: Path, tmp_path: Path) -> None:
    pin = tmp_path / "pin.yaml"
    pin.write_text(f'baseline: {{path: {tiny_root}, digest: "{digest(tiny_root)}"}}\n', encoding="utf-8")
    for given in (None, digest(tiny_root)):
        found = compared_with(pin, given)
        assert found is not None
        assert (found.root, found.fact.digest) == (tiny_root, digest(tiny_root))
    wrong = "blake3:" + "0" * 64
    with pytest.raises(AskedWrongly) as refused:
        compared_with(pin, wrong)
    assert (
        str(refused.value)
        == f"--baseline-digest: expected {digest(tiny_root)}, which {pin} pins, got {wrong}; leave it out"
    )
    pin.write_text(f'baseline: {{path: {tiny_root}, digest: "{wrong}"}}\n', encoding="utf-8")
    with pytest.raises(NotIntact):
        compared_with(pin, None)


def test_a_digest_without_a_baseline_and_a_baseline_without_l1_are_refused(
    tiny_model: Path, tiny_root: Path, tmp_path: Path
) -> None:
    path = write_ladder(tmp_path, tiny_model, ONE, goal="L0")
    said = qualify("run", path, "--baseline-digest", digest(tiny_root))
    assert said.err == "qualify: --baseline-digest: expected it with --baseline ROOT, got it alone; name the root\n"
    with pytest.raises(AskedWrongly) as refused:
        prepare(path, None, beside=baseline.look(tiny_root))
    assert str(refused.value) == (
        f"--baseline {tiny_root}: expected a ladder that climbs L1, got one with the goal L0; leave it out"
    )
