"""Every row of the Parity table of faults that people met: the fault is made, and its finding is read."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from harness.raw import InvarianceRaw, ParityRaw, SessionFacts, StagesRaw
from harness.records import ParityOptions
from tests.support import faults, graphs
from tests.support.models import TEXTS
from tests.support.parity import STEP, derived, failed, floats, judged, record, with_graph, with_tokenizer
from tests.support.steps import OPTIONS, PAIRS, Bench, Ran, bench


def sealed(ran: Ran, name: str) -> tuple[float, ...]:
    data = ran.file(name)
    return struct.unpack(f"<{len(data) // 4}f", data)


def test_fp32_computes_the_logits_of_pytorch(climbed: Bench) -> None:
    measured = climbed.earlier("L2").measured()
    gap = measured["max_abs_gap"].value
    assert isinstance(gap, float)
    assert gap <= 1e-5
    assert failed(measured) == {}


@pytest.mark.parametrize(("target", "most"), [("cpu-fp16", 0.05), ("cpu-int8", 1.0)])
def test_conversion_leaves_a_gap_and_is_named_as_the_step_that_made_it(
    climbed: Bench, target: str, most: float
) -> None:
    measured = climbed.earlier("L2", target).measured()
    gap = measured["max_abs_gap"].value
    assert isinstance(gap, float)
    assert 1e-5 < gap < most
    assert measured["gap_step"].value == "convert"
    for finding in ("max_abs_gap", "gap_over_spread", "kendall_tau_b", "order_kept", "pearson"):
        assert "the step that adds most is convert: " in measured[finding].note
    for step in ("export", "optimise"):
        before = measured[f"gap_after.{step}"].value
        assert isinstance(before, float)
        assert before < 1e-5


def test_both_sides_of_every_pair_are_sealed_in_order(climbed: Bench) -> None:
    ran = climbed.earlier("L2")
    reference, artifact = sealed(ran, "reference.f32"), sealed(ran, "artifact.f32")
    assert len(reference) == len(artifact) == len(PAIRS)
    gaps = [abs(first - second) for first, second in zip(reference, artifact, strict=True)]
    assert max(gaps) == ran.value("max_abs_gap")


def test_the_reference_runs_once_and_later_targets_say_where_theirs_is_from(climbed: Bench) -> None:
    first, later = climbed.earlier("L2"), climbed.earlier("L2", "cpu-int8")
    assert first.raw("logits.json")["reference_from"] is None
    assert later.raw("logits.json")["reference_from"] == STEP
    for name in ("reference.f32", "invariance_reference.f32", "invariance_reference.json", "tokens.json"):
        assert later.file(name) == first.file(name)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("perturbed", {"max_abs_gap", "gap_over_spread", "kendall_tau_b", "order_kept", "pearson"}),
        ("inverted", {"max_abs_gap", "gap_over_spread", "kendall_tau_b", "order_kept", "pearson"}),
        ("constant", {"max_abs_gap", "gap_over_spread", "order_kept", "distinct_logits", "segment_faults"}),
        ("nan", {"non_finite_count"}),
    ],
)
def test_another_head_fails_parity_too(climbed: Bench, tmp_path: Path, head: str, expected: set[str]) -> None:
    there = climbed.copy(tmp_path / "root")
    graph = there.root / "artifacts/cpu-fp32/model.onnx"
    graphs.with_head(graph, there.root / "artifacts/other-fp32/model.onnx", graphs.HEADS[head])
    found = failed(there.run(there.request("L2", "other-fp32")).measured())
    assert set(found) == expected
    if head == "constant":
        assert found["distinct_logits"].startswith(
            "distinct_logits: expected at least 2.0, got 1 logits: a constant output: every pair gets "
        )


def test_an_export_that_says_it_succeeded_with_a_gap_of_2_66_fails(climbed: Bench, tmp_path: Path) -> None:
    found = failed(with_graph(climbed, tmp_path / "root", graphs.logits_shifted(2.66)).measured())
    assert set(found) == {"max_abs_gap", "gap_over_spread"}
    assert found["max_abs_gap"].startswith("max_abs_gap: expected at most 0.001, got 2.66 logit: pair ")


def test_an_optimisation_that_is_off_by_6_75_is_named_and_the_export_is_not(climbed: Bench) -> None:
    stages = "steps/L0-build.cpu-fp32/stages"
    logits = floats(climbed, f"{stages}.f32").reshape(2, -1)
    logits[1] += 6.75
    artifact = floats(climbed, f"{STEP}/artifact.f32") + np.float32(6.75)
    changed = {f"{stages}.f32": logits.tobytes(), f"{STEP}/artifact.f32": artifact.tobytes()}
    measured = derived(climbed, changed)
    assert measured["gap_step"].value == "optimise"
    assert measured["gap_after.optimise"].value == pytest.approx(6.75, abs=1e-5)
    text = failed(measured)["max_abs_gap"]
    assert text.startswith("max_abs_gap: expected at most 0.001, got 6.75 logit: pair ")
    assert "; the step that adds most is optimise: " in text
    assert "e-07 after export, 6.75 after optimise, 6.75 after runtime, over 24 pairs" in text


def test_a_step_that_makes_a_logit_not_finite_is_named(climbed: Bench) -> None:
    stages = "steps/L0-build.cpu-fp16/stages"
    logits = floats(climbed, f"{stages}.f32").reshape(3, -1)
    logits[2, 0] = np.nan
    measured = derived(climbed, {f"{stages}.f32": logits.tobytes()}, "cpu-fp16")
    assert measured["gap_step"].value == "convert"
    assert (measured["gap_after.convert"].value, measured["gap_after.convert"].note) == (None, "a logit is not finite")


def test_without_logits_of_the_build_no_step_is_accused(climbed: Bench, tmp_path: Path) -> None:
    measured = with_graph(climbed, tmp_path / "root", graphs.logits_shifted(1.0)).measured()
    assert (measured["gap_step"].value, measured["gap_step"].note) == (
        None,
        "L0 kept no logits of the steps of the build",
    )


def test_export_and_optimisation_are_scored_once_for_all_targets_of_one_export(climbed: Bench) -> None:
    first, later = (climbed.earlier("L0", target) for target in ("cpu-fp32", "cpu-fp16"))
    assert first.raw("stages.json")["steps"] == ["export", "optimise"]
    assert later.raw("stages.json")["steps"] == ["export", "optimise", "convert"]
    assert later.raw("stages.json")["taken_from"] == "steps/L0-build.cpu-fp32"
    assert sealed(later, "stages.f32")[:48] == sealed(first, "stages.f32")


def test_one_nan_among_the_outputs_is_counted_and_named(climbed: Bench) -> None:
    logits = floats(climbed, f"{STEP}/artifact.f32")
    logits[3] = np.nan
    found = failed(derived(climbed, {f"{STEP}/artifact.f32": logits.tobytes()}))
    assert found == {"non_finite_count": "non_finite_count: expected exactly 0, got 1 logits: pairs 3 in the runtime"}


def test_a_nan_that_only_a_mixed_batch_shows_is_counted_too(climbed: Bench) -> None:
    path = f"{STEP}/invariance_artifact.f32"
    logits = floats(climbed, path)
    logits[24] = np.inf  # after the 24 pairs alone come the batches of two
    found = failed(derived(climbed, {path: logits.tobytes()}))
    assert set(found) == {"non_finite_count"}
    assert found["non_finite_count"].endswith("in the runtime (batch, batch of 2, padded on the right)")


def test_an_inverted_order_fails_although_the_cosine_is_near_one(climbed: Bench) -> None:
    spread = floats(climbed, f"{STEP}/reference.f32")
    spread -= spread.mean()
    sides = {"reference": -10 + spread, "artifact": -10 - spread}
    measured = derived(climbed, {f"{STEP}/{name}.f32": side.tobytes() for name, side in sides.items()})
    cosine = measured["cosine"].value
    assert isinstance(cosine, float)
    assert cosine > 0.99
    found = failed(measured)
    assert {"kendall_tau_b", "order_kept", "pearson", "max_abs_gap", "gap_over_spread"} <= set(found)
    assert found["kendall_tau_b"].startswith("kendall_tau_b: expected at least 0.99, got -1.0 correlation: tied pairs")


def test_a_left_padded_bert_scores_documents_otherwise_in_a_batch(climbed: Bench, tmp_path: Path) -> None:
    left = {"tokenizer_config.json": lambda value: value.update(padding_side="left")}
    ran = with_tokenizer(climbed, tmp_path, left)
    found = failed(ran.measured())
    moved = {f"{what}_gap_{side}" for what in ("batch", "padding") for side in ("reference", "runtime")}
    assert moved <= set(found)
    assert "max_abs_gap" in found, "the artifact scores in batches, the reference alone"
    text = found["batch_gap_runtime"]
    assert text.startswith("batch_gap_runtime: expected at most 0.001, got 0.")
    assert " alone, " in text
    assert " in a batch of " in text
    assert text.endswith("; padded on the left, as the tokenizer says")
    assert found["batch_gap_reference"].endswith("; padded on the left, as the tokenizer says")


def test_the_side_that_is_not_in_use_is_measured_and_not_judged(climbed: Bench) -> None:
    unused = climbed.earlier("L2").measured()["unused_padding_gap_runtime"]
    assert isinstance(unused.value, float)
    assert unused.value > 0.01
    assert unused.note.endswith("; the tokenizer pads on the right: this side is not used")


def test_a_runtime_that_attends_to_padding_fails_by_the_batch(climbed: Bench, tmp_path: Path) -> None:
    found = failed(with_graph(climbed, tmp_path / "root", graphs.mask_ignored).measured())
    assert {"batch_gap_runtime", "padding_gap_runtime", "max_abs_gap"} <= set(found)
    assert "batch_gap_reference" not in found


def test_a_graph_that_takes_positions_is_fed_those_that_pytorch_numbers_itself(climbed: Bench, tmp_path: Path) -> None:
    measured = with_graph(climbed, tmp_path / "root", graphs.positions_fed).measured()
    assert failed(measured) == {}
    gap = measured["max_abs_gap"].value
    assert isinstance(gap, float)
    assert gap < 1e-5


def test_positions_that_a_graph_numbers_otherwise_are_a_gap(climbed: Bench, tmp_path: Path) -> None:
    found = failed(with_graph(climbed, tmp_path / "root", graphs.positions_shifted).measured())
    assert set(found) >= {"max_abs_gap", "gap_over_spread"}
    assert not {name for name in found if name.startswith(("token", "separator"))}


def test_a_logit_that_depends_on_its_place_in_the_batch_is_found(climbed: Bench, tmp_path: Path) -> None:
    found = failed(with_graph(climbed, tmp_path / "root", graphs.logits_summed).measured())
    assert {"order_gap_runtime", "batch_gap_runtime"} <= set(found)
    assert found["order_gap_runtime"].endswith(" logit: a batch of 16, reversed")


def test_a_graph_that_ranks_the_other_way_round_fails_although_the_cosine_is_near_one(
    climbed: Bench, tmp_path: Path
) -> None:
    """A large bias gives all logits one sign and nearly one direction; PyTorch and the graph have the same one."""
    from onnx import numpy_helper
    from safetensors.numpy import load_file, save_file

    model = tmp_path / "model"
    shutil.copytree(climbed.model, model)
    tensors = load_file(model / "model.safetensors")
    tensors["classifier.bias"] = np.array([1000], dtype=np.float32)
    save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})
    there = bench(tmp_path / "root", model)

    def inverted(graph: Any) -> None:
        for tensor in graph.graph.initializer:
            if tensor.name.startswith("classifier."):
                values = tensors[tensor.name] * np.float32(-1 if tensor.name.endswith("weight") else 1)
                tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))

    graphs.edited(climbed.graph(), there.graph(), inverted)
    measured = there.run(there.request("L2")).measured()
    cosine = measured["cosine"].value
    assert isinstance(cosine, float)
    assert cosine > 0.99999
    assert {"kendall_tau_b", "order_kept", "pearson", "max_abs_gap", "gap_over_spread"} <= set(failed(measured))


def test_a_deadlock_of_the_threads_is_found_and_the_rest_is_judged(climbed: Bench, tmp_path: Path) -> None:
    there = climbed.copy(tmp_path / "root")
    options = msgspec.structs.replace(OPTIONS, L2=ParityOptions(batch_size=4, max_length=48, deadlock_s=2.0))
    asked = there.request("L2", options=options)
    (there.root / asked.step).rename(tmp_path / "before")
    found = judged(faults.run(there, asked, "deadlock").measured())
    assert found["threads_deadlocked"].text.startswith("threads_deadlocked: expected exactly 0, got ")
    assert found["threads_deadlocked"].text.endswith(" calls: 8 threads, 10 calls each, 2 s")
    assert {name for name, one in found.items() if one.verdict == "FAIL"} == {"threads_deadlocked"}


def test_segments_zeroed_in_the_graph_are_found(climbed: Bench, tmp_path: Path) -> None:
    found = failed(with_graph(climbed, tmp_path / "root", graphs.segments_ignored).measured())
    assert found["segment_faults"] == (
        "segment_faults: expected exactly 0, got 1 sides: zeroed segment ids leave the logits of the runtime as they are"
    )
    assert "max_abs_gap" in found


def test_a_tokenizer_that_gives_one_segment_to_both_texts_is_found(climbed: Bench) -> None:
    changed: dict[str, bytes] = {}
    for side in ("reference", "artifact"):
        path = f"{STEP}/invariance_{side}"
        raw = msgspec.json.decode((climbed.root / f"{path}.json").read_bytes(), type=InvarianceRaw)
        logits = floats(climbed, f"{path}.f32")
        begin = 0
        for variant in raw.variants:
            if variant.kind == "segments":
                logits[begin : begin + 24] = logits[:24]  # the 24 pairs alone come first
            begin += variant.calls * sum(map(len, variant.rows))
        changed[f"{path}.f32"] = logits.tobytes()
    tokens = np.frombuffer((climbed.root / f"{STEP}/tokens.i32").read_bytes(), "<i4").copy()
    tokens[4 * len(PAIRS) :].reshape(3, -1)[1] = 0
    found = failed(derived(climbed, changed | {f"{STEP}/tokens.i32": tokens.tobytes()}))
    assert found == {
        "segment_faults": "segment_faults: expected exactly 0, got 2 sides: zeroed segment ids leave the logits of"
        " PyTorch and the runtime as they are; the tokenizer gives segment 0 to every token"
    }


def test_two_runs_that_differ_are_measured(climbed: Bench, tmp_path: Path) -> None:
    found = failed(with_graph(climbed, tmp_path / "root", graphs.logits_noisy).measured())
    assert {"repeat_gap_runtime", "threads_gap"} <= set(found)
    assert found["repeat_gap_runtime"].endswith(" logit: 32 of 32 logits differ from the first of 3 calls")
    assert "8 threads, 10 calls each: " in found["threads_gap"]


def test_runs_of_one_session_are_bitwise_equal_alone_and_from_eight_threads(climbed: Bench) -> None:
    measured = climbed.earlier("L2").measured()
    assert (measured["repeat_gap_runtime"].value, measured["repeat_gap_runtime"].note) == (
        0.0,
        "bitwise equal over 3 calls",
    )
    assert (measured["threads_gap"].value, measured["threads_gap"].samples) == (0.0, 160)
    assert measured["threads_gap"].note == "8 threads, 10 calls each: bitwise equal to a single thread"


WEIRD = (
    *PAIRS[:8],
    (TEXTS[0], ""),
    ("python", "x" * 10_000),
    ("emoji \U0001f600", "\u05e9\u05dc\u05d5\u05dd \u202e"),
    ("nul \x00 and \x07", "\u200b"),
    ("a", "b"),
)


def test_weird_texts_are_scored_and_a_pair_that_cannot_be_is_refused_by_number(climbed: Bench, tmp_path: Path) -> None:
    def beyond_the_vocabulary(value: dict[str, Any]) -> None:
        token = {"content": "[NEW]", "special": False, "lstrip": False, "rstrip": False, "normalized": False}
        value["added_tokens"].append({"id": 9999, "single_word": False, **token})
        value["model"]["vocab"]["[NEW]"] = 9999

    texts = (*WEIRD, ("a [NEW] word", TEXTS[1]))
    measured = with_tokenizer(climbed, tmp_path, {"tokenizer.json": beyond_the_vocabulary}, texts).measured()
    found = failed(measured)
    assert set(found) == {"refused_pairs"}
    assert found["refused_pairs"].startswith(
        f"refused_pairs: expected exactly 0, got 1 pairs: pair {len(WEIRD)}: PyTorch: "
    )
    assert measured["batch_gap_runtime"].value is not None
    assert measured["non_finite_count"].value == 0


def test_a_refused_pair_must_be_one_of_the_pairs(climbed: Bench) -> None:
    changed = record(climbed, f"{STEP}/logits.json", ParityRaw, refused_artifact={"26": "no"})
    with pytest.raises(Exception, match="expected refused pairs by index below 26, got 26"):
        derived(climbed, changed)


def test_a_provider_that_took_not_all_of_the_nodes_is_found(climbed: Bench) -> None:
    raw = climbed.earlier("L2").raw("logits.json")
    session = raw["session"]
    session["providers"] = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    session["placement"] = {
        "CUDAExecutionProvider": {"MatMul": 15},
        "CPUExecutionProvider": {"MatMul": 1, "Shape": 4, "Softmax": 2},
    }
    changed = record(climbed, f"{STEP}/logits.json", ParityRaw, session=msgspec.convert(session, SessionFacts))
    found = failed(derived(climbed, changed))
    assert found == {
        "fallback_nodes": "fallback_nodes: expected exactly 0, got 3 nodes: CPUExecutionProvider took 1 MatMul, 2 Softmax"
    }


def test_logits_of_the_build_for_other_pairs_than_planned_are_no_crash(climbed: Bench) -> None:
    path = "steps/L0-build.cpu-fp32/stages.json"
    changed = record(climbed, path, StagesRaw, pairs=tuple(range(100, 124)))
    assert derived(climbed, changed)["gap_after.export"].value is None
