"""What L2 derives from raw samples, each with one fault that a rule of the derivation is there for."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from harness import derive, derive_invariance, derive_parity, derive_tokens
from harness.derive_invariance import Tried
from harness.raw import InvarianceRaw, ParityRaw, SessionFacts, VariantKind
from harness.records import Measurement, ParityOptions
from tests.support.parity import STEP, derived, failed, floats, record
from tests.support.steps import OPTIONS, Bench

REFERENCE, ARTIFACT = f"{STEP}/reference.f32", f"{STEP}/artifact.f32"


def changed(climbed: Bench, path: str, place: int, value: float) -> dict[str, bytes]:
    """A flat file with one other number."""
    numbers = floats(climbed, path)
    numbers[place] = value
    return {path: numbers.tobytes()}


def test_a_nan_of_pytorch_is_counted_as_one_of_the_runtime_is(climbed: Bench) -> None:
    found = failed(derived(climbed, changed(climbed, REFERENCE, 3, np.nan)))
    assert found == {"non_finite_count": "non_finite_count: expected exactly 0, got 1 logits: pairs 3 in PyTorch"}


@pytest.mark.parametrize(("path", "tied"), [(REFERENCE, (1, 0)), (ARTIFACT, (0, 1))])
def test_ties_are_told_for_the_side_that_has_them(climbed: Bench, path: str, tied: tuple[int, int]) -> None:
    told = derived(climbed, changed(climbed, path, 1, float(floats(climbed, path)[0])))["kendall_tau_b"].note
    assert told.startswith("tied pairs of pairs: {} in PyTorch, {} in the runtime; the step ".format(*tied))


def test_a_pair_that_was_refused_is_left_out_of_the_steps_of_the_build(climbed: Bench) -> None:
    path = "steps/L0-build.cpu-fp32/stages.f32"
    files = changed(climbed, path, 0, 1e6)  # pair 0, after export
    found, _ = derive_parity._steps(
        climbed.request("L2"),
        lambda name: files.get(name) or (climbed.root / name).read_bytes(),
        floats(climbed, REFERENCE),
        floats(climbed, ARTIFACT),
        {0},
    )
    export = found[0]
    assert (export.metric, export.samples) == ("gap_after.export", 23)
    assert isinstance(export.value, float)
    assert export.value < 1e-4


def test_the_step_at_fault_is_the_one_that_adds_most_and_not_the_one_with_the_largest_gap() -> None:
    assert derive_parity._culprit({"export": 0.1, "optimise": 5.0, "runtime": 5.2}) == "optimise"
    assert derive_parity._culprit({"export": 0.1, "optimise": 5.0, "convert": None, "runtime": 9.0}) == "convert"
    assert derive_parity._culprit({"runtime": 0.1}) is None


def test_an_order_that_the_ladder_calls_noise_is_no_fault(climbed: Bench) -> None:
    reference = floats(climbed, REFERENCE)
    first, second = np.argsort(reference)[-2:]
    artifact = reference.copy()
    artifact[[first, second]] = reference[[second, first]]
    gap = float(reference[second] - reference[first])

    def discordant(noise: float) -> object:
        options = msgspec.structs.replace(OPTIONS, L2=ParityOptions(batch_size=4, max_length=48, noise=noise))
        request = climbed.request("L2", options=options)
        found = derive.measure(
            request,
            lambda path: artifact.tobytes() if path == ARTIFACT else (climbed.root / path).read_bytes(),
        )
        return {item.metric: item.value for item in found.measurements}["discordant_pairs"]

    assert (discordant(gap / 2), discordant(2 * gap)) == (1, 0)


def test_a_provider_that_took_no_node_is_a_fallback_even_of_shape_arithmetic_alone(climbed: Bench) -> None:
    session = climbed.earlier("L2").raw("logits.json")["session"]
    session["providers"] = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    session["placement"] = {"CPUExecutionProvider": {"Shape": 4}}
    other = record(climbed, f"{STEP}/logits.json", ParityRaw, session=msgspec.convert(session, SessionFacts))
    assert failed(derived(climbed, other)) == {
        "fallback_nodes": "fallback_nodes: expected exactly 0, got 1 nodes: CUDAExecutionProvider took no node"
    }


# --- what must not move a logit ---------------------------------------------------------------------------------------

AGAIN = f"{STEP}/invariance_artifact"


def begin(climbed: Bench, kind: VariantKind) -> int:
    """Where the logits of the first variant of a kind begin."""
    raw = msgspec.json.decode((climbed.root / f"{AGAIN}.json").read_bytes(), type=InvarianceRaw)
    place = [variant.kind for variant in raw.variants].index(kind)
    return sum(variant.calls * sum(map(len, variant.rows)) for variant in raw.variants[:place])


def test_a_logit_that_moves_at_the_third_call_only_is_found(climbed: Bench) -> None:
    place = begin(climbed, "repeat") + 2 * 16  # a batch of 16 in each of three calls
    value = float(floats(climbed, f"{AGAIN}.f32")[place]) + 0.25
    found = failed(derived(climbed, changed(climbed, f"{AGAIN}.f32", place, value)))
    assert found["repeat_gap_runtime"] == (
        "repeat_gap_runtime: expected at most 0.001, got 0.25 logit: 1 of 32 logits differ from the first of 3 calls"
    )


def test_a_nan_of_a_thread_whose_calls_all_came_back_is_no_gap_and_is_counted(climbed: Bench) -> None:
    measured = derived(climbed, changed(climbed, f"{AGAIN}.f32", -1, np.nan))
    assert (measured["threads_gap"].value, measured["threads_gap"].note) == (None, "a logit is not finite")
    assert measured["non_finite_count"].value == 1


def test_segments_that_move_a_logit_no_more_than_another_call_does_are_not_felt(climbed: Bench) -> None:
    place = begin(climbed, "repeat") + 16
    assert derived(climbed, {})["segment_faults"].value == 0
    noisy = derived(climbed, changed(climbed, f"{AGAIN}.f32", place, 1e4))
    assert (noisy["segment_faults"].value, noisy["segment_faults"].note) == (
        1,
        "zeroed segment ids leave the logits of the runtime as they are",
    )


def test_a_runtime_that_takes_no_segments_although_pytorch_does_is_deaf_to_them(climbed: Bench) -> None:
    def segments_skipped(tried: Tried) -> Tried:
        scored = [
            (msgspec.structs.replace(one, rows=(), skipped="no segments"), [])
            if one.kind == "segments"
            else (one, logits)
            for one, logits in tried.scored
        ]
        return Tried(tried.raw, scored)

    assert segment_faults(climbed, segments_skipped).value == 1


def segment_faults(climbed: Bench, change: Callable[[Tried], Tried]) -> Measurement:
    """The measurement, when what was tried of the runtime is as ``change`` leaves it."""

    def read(path: str) -> bytes:
        return (climbed.root / path).read_bytes()

    request = climbed.request("L2")
    _, tensors = derive_tokens.read_tensors(request, read)
    lengths = tensors.lengths.tolist()
    tried = {side: derive_invariance._tried(request, read, lengths, (), side) for side in ("reference", "artifact")}
    tried["artifact"] = change(tried["artifact"])
    return derive_invariance._segment_faults(tried, tensors, request.candidate.padding_side)
