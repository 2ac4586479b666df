from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from harness import adapter, candidate, derive, judge
from harness.errors import CandidateError, RecordError
from harness.ladder_format import AdapterReference
from harness.metrics.catalogue import fixed_limits
from harness.raw_adapter import AdapterRaw, MergeRaw
from harness.records import Measurement, to_json
from harness.stages import export
from tests.support import adapters
from tests.support.ladders import qualify, write_ladder
from tests.support.once import once
from tests.support.steps import Bench, Ran

L0, L2 = "steps/L0-build.cpu-fp32", "steps/L2-parity.cpu-fp32"
HEAD = ("classifier.bias", "classifier.weight")


@pytest.fixture(scope="session")
def law(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """A trained adapter of the tiny model, with a classifier of its own."""
    return once(tmp_path_factory, "law-adapter", lambda folder: adapters.make_adapter(tiny_model, folder))


@pytest.fixture(scope="session")
def adapted(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, law: Path) -> Bench:
    """A staging folder in which L0 and L2 ran in fp32 for the adapter. Read only."""

    def climb(folder: Path) -> None:
        made = adapters.adapted_bench(folder / "root", tiny_model, law)
        _both(made)

    folder = once(tmp_path_factory, "adapted", climb)
    return adapters.adapted_bench(folder / "root", tiny_model, law)


def resolve(model: Path, folder: Path) -> candidate.Resolved:
    plain = candidate.resolve(str(model), None, model.parent, headless=True)
    return adapter.add(plain, AdapterReference(model=str(folder)), folder.parent)


def texts(measured: dict[str, Measurement], tier: Any = "L2") -> dict[str, str]:
    """The text of every finding that is not PASS, by metric."""
    found = judge.judge(fixed_limits(tier, "fp32", adapter=True), measured.values())
    return {item.metric: item.text for item in found if item.verdict != "PASS"}


def derived(there: Bench, changed: dict[str, bytes], tier: Any = "L2") -> dict[str, Measurement]:
    def read(path: str) -> bytes:
        return changed[path] if path in changed else (there.root / path).read_bytes()

    found = derive.measure(there.request(tier), read).measurements
    return {item.metric: item for item in found}


def ways(there: Bench) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The sealed logits of base, off and merged, to be changed."""
    return np.frombuffer((there.root / L2 / "adapter.f32").read_bytes(), "<f4").reshape(3, -1).copy()


# --- what is pinned -----------------------------------------------------------------------------------------------------


def test_an_adapter_is_pinned_with_its_base_and_says_what_it_changes(tiny_model: Path, law: Path) -> None:
    plain = candidate.resolve(str(tiny_model), None, tiny_model.parent).candidate
    found = resolve(tiny_model, law)
    facts = found.candidate.adapter
    assert facts is not None
    assert (facts.model, facts.revision, facts.rank, facts.alpha) == (law.name, None, 4, 8.0)
    assert (facts.target_modules, facts.layers, facts.head) == (("query", "value"), 4, HEAD)
    assert facts.modules_to_save == ("classifier", "score")
    assert facts.parameters == 4 * 2 * 4 * 32 + 33
    assert found.adapter == law
    assert {file.path for file in found.candidate.files} - {file.path for file in plain.files} == {
        "adapter/adapter_config.json",
        "adapter/adapter_model.safetensors",
    }
    assert found.candidate.digest != plain.digest
    assert found.candidate.parameters == plain.parameters


def test_another_byte_of_the_adapter_is_another_candidate(tiny_model: Path, law: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(law, tmp_path / law.name))
    adapters.reconfigured(other, lora_alpha=16)
    assert resolve(tiny_model, other).candidate.digest != resolve(tiny_model, law).candidate.digest


def test_a_head_that_only_the_adapter_has_counts_among_the_parameters(
    tiny_model: Path, law: Path, tmp_path: Path
) -> None:
    base = adapters.headless(tiny_model, tmp_path / "base")
    plain = candidate.resolve(str(base), None, tmp_path).candidate
    assert resolve(base, law).candidate.parameters == plain.parameters + 33


def without(part: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        adapters.retensored(
            folder / "adapter_model.safetensors", lambda held: {k: v for k, v in held.items() if part not in k}
        )

    return change


def config(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: adapters.reconfigured(folder, **changes)


def renamed(old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        adapters.retensored(
            folder / "adapter_model.safetensors", lambda held: {k.replace(old, new): v for k, v in held.items()}
        )

    return change


def pickled(folder: Path) -> None:
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")


def wider(folder: Path) -> None:
    import torch

    def change(held: dict[str, Any]) -> dict[str, Any]:
        return {k: torch.cat([v, v]) if "layer.1" in k and "value.lora_B" in k else v for k, v in held.items()}

    adapters.retensored(folder / "adapter_model.safetensors", change)


def two_labels(folder: Path) -> None:
    import torch

    def change(held: dict[str, Any]) -> dict[str, Any]:
        return {k: torch.cat([v, v]) if "classifier" in k else v for k, v in held.items()}

    adapters.retensored(folder / "adapter_model.safetensors", change)


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "another kind of adapter": (
        config(peft_type="IA3"),
        (
            "adapter_config.json: peft_type: expected LORA, got 'IA3'; merge it into its base with peft's merge_and_unload and name"
            " the merged folder as candidate.model"
        ),
    ),
    "a pickle": (
        pickled,
        (
            "weights: expected adapter_model.safetensors, got only the pickle adapter_model.bin; a pickle can run code when it is"
            " loaded; save the adapter again with safe_serialization=True"
        ),
    ),
    "no weights": (
        lambda folder: (folder / "adapter_model.safetensors").unlink(),
        "weights: expected adapter_model.safetensors, got no such file; save the adapter with save_pretrained",
    ),
    "one factor alone": (
        without("layer.1.attention.self.query.lora_A"),
        (
            "adapter_model.safetensors: expected lora_A and lora_B of bert.encoder.layer.1.attention.self.query, got lora_B alone;"
            " save it again"
        ),
    ),
    "no factors": (
        without("lora_"),
        "adapter_model.safetensors: expected lora_A and lora_B of some layer, got none; save the adapter with save_pretrained",
    ),
    "another base": (
        renamed("layer.1.", "layer.7."),
        (
            "adapter_model.safetensors: expected layers that the base has, got bert.encoder.layer.7.attention.self.query; take the"
            " base that the adapter was trained on"
        ),
    ),
    "a base of another width": (
        wider,
        (
            "adapter_model.safetensors: bert.encoder.layer.1.attention.self.value: expected factors of a weight of shape [32, 32], got"
            " of [64, 32]; take the base that the adapter was trained on"
        ),
    ),
    "a promised head that is not there": (
        without("classifier"),
        (
            "adapter_model.safetensors: expected the head, which modules_to_save names (classifier, score), got no tensor of it; it was"
            " trained and not saved, so nothing else can stand for it; save the adapter again"
        ),
    ),
    "two labels": (
        two_labels,
        (
            "adapter_model.safetensors: expected a classifier weight of shape (1, width), got classifier.weight of 2 rows; this is a"
            " classifier, not a reranker"
        ),
    ),
    "factors on the head": (
        renamed("bert.encoder.layer.0.attention.self.query", "classifier"),
        (
            "adapter_model.safetensors: expected factors of layers below the head, got classifier; train the head whole: list it in"
            " modules_to_save and not in target_modules"
        ),
    ),
    "no rank": (
        config(r=None),
        "adapter_config.json: r: expected a rank of at least 1, got None; save the adapter again",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_adapter_that_cannot_be_qualified_is_refused_by_name(
    tiny_model: Path, law: Path, tmp_path: Path, fault: str
) -> None:
    change, message = FAULTS[fault]
    folder = Path(shutil.copytree(law, tmp_path / "law"))
    change(folder)
    with pytest.raises(CandidateError) as caught:
        resolve(tiny_model, folder)
    assert str(caught.value) == f"adapter law: {message}"


def test_a_head_that_neither_adapter_nor_base_has_is_refused_and_never_drawn(tiny_model: Path, tmp_path: Path) -> None:
    folder = adapters.make_adapter(tiny_model, tmp_path / "law", head=False)
    base = adapters.headless(tiny_model, tmp_path / "base")
    with pytest.raises(CandidateError) as caught:
        resolve(base, folder)
    assert str(caught.value) == (
        "adapter law: adapter_model.safetensors: expected a classifier weight in the adapter or in the base, got none in either;"
        " a head would be drawn at random; train it with modules_to_save, or take a base that has it"
    )


def test_an_adapter_in_the_models_own_folder_is_refused(tiny_model: Path, law: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    shutil.copyfile(law / "adapter_config.json", folder / "adapter_config.json")
    for model in (folder, law):
        with pytest.raises(CandidateError) as caught:
            candidate.resolve(str(model), None, tmp_path)
        assert str(caught.value) == (
            f"{model.name}: adapter_config.json: expected none in the folder of a whole model, got an adapter; name the adapter's"
            " folder as candidate.adapter.model and its base as candidate.model"
        )


# --- L0 -------------------------------------------------------------------------------------------------------------------


def test_the_adapter_is_merged_into_what_is_exported(adapted: Bench) -> None:
    ran = adapted.earlier("L0")
    assert texts(ran.measured(), "L0") == {}
    head = ran.measured()["adapter_head_equal"]
    assert (head.value, head.note) == (True, "classifier.bias of the adapter, classifier.weight of the adapter")
    assert ran.raw("adapter.json")["layers"] == 4
    assert ran.value("head_gap_ratio") == 0.0


def test_a_merged_head_that_is_not_the_trained_one_fails_by_name(adapted: Bench) -> None:
    path = f"{L0}/adapter.json"
    raw = msgspec.json.decode((adapted.root / path).read_bytes(), type=MergeRaw)
    other = msgspec.structs.replace(raw.heads[1], merged="0" * 64)
    changed = to_json(msgspec.structs.replace(raw, heads=(raw.heads[0], other)))
    found = derived(adapted, {path: changed}, "L0")
    assert texts(found, "L0") == {
        "adapter_head_equal": "adapter_head_equal: expected exactly true, got false boolean:"
        " classifier.weight differs from the file it was trained into"
    }


def test_heads_or_layers_left_out_of_the_merge_are_refused(adapted: Bench) -> None:
    path = f"{L0}/adapter.json"
    raw = msgspec.json.decode((adapted.root / path).read_bytes(), type=MergeRaw)
    with pytest.raises(
        RecordError, match=r"expected the adapter's classifier\.bias, classifier\.weight among the heads, got none"
    ):
        derived(adapted, {path: to_json(msgspec.structs.replace(raw, heads=()))}, "L0")
    with pytest.raises(RecordError, match="expected 4 layers with the adapter, as planned, got 3"):
        derived(adapted, {path: to_json(msgspec.structs.replace(raw, layers=3))}, "L0")


def test_a_tensor_that_neither_base_nor_adapter_has_is_blocked_by_name(
    tiny_model: Path, law: Path, tmp_path: Path
) -> None:
    """The pooler of some base models is drawn too, and peft does not save it."""
    base = adapters.headless(tiny_model, tmp_path / "base", without="pooler")
    there = adapters.adapted_bench(tmp_path / "root", base, law)
    ran = there.run(there.request("L0"))
    assert ran.reason == (
        "model.safetensors: expected exactly the keys of BertForSequenceClassification, got 2 missing"
        " (bert.pooler.dense.bias, bert.pooler.dense.weight); use the checkpoint of the full classifier"
    )


def test_a_factor_that_the_config_does_not_name_is_blocked_by_name(tiny_model: Path, law: Path, tmp_path: Path) -> None:
    """peft would leave those of the file unused and those of the config as they were drawn, and only warn."""
    folder = Path(shutil.copytree(law, tmp_path / "law"))
    adapters.reconfigured(folder, target_modules=["query", "key"])
    there = adapters.adapted_bench(tmp_path / "root", tiny_model, folder)
    ran = there.run(there.request("L0"))
    assert ran.reason == (
        "adapter_model.safetensors: expected exactly the tensors that its config makes of BertForSequenceClassification, got a"
        " difference in 8 (base_model.model.bert.encoder.layer.0.attention.self.key.lora_A.weight,"
        " base_model.model.bert.encoder.layer.0.attention.self.key.lora_B.weight,"
        " base_model.model.bert.encoder.layer.0.attention.self.value.lora_A.weight); save the adapter again, or take the base that"
        " it was trained on"
    )


# --- L2 -------------------------------------------------------------------------------------------------------------------


def test_a_sound_adapter_changes_logits_and_all_of_them_by_itself(adapted: Bench) -> None:
    measured = adapted.earlier("L2").measured()
    assert texts(measured) == {}
    values = {name: measured[name].value for name in ("adapter_effect", "adapter_off_gap", "adapter_merged_gap")}
    assert isinstance(values["adapter_effect"], float)
    assert values["adapter_effect"] > 0.01
    assert values["adapter_off_gap"] == 0.0
    assert isinstance(values["adapter_merged_gap"], float)
    assert values["adapter_merged_gap"] < 1e-5
    assert isinstance(measured["base_likeness"].value, float)
    assert measured["base_likeness"].value < 1e-3


def test_the_reference_is_the_model_with_its_adapter_and_not_merged(adapted: Bench) -> None:
    from harness.runtimes import tokens
    from harness.runtimes.batching import batches, score
    from harness.runtimes.torch_eager import load_adapted, logits_of
    from tests.support.steps import PAIRS

    assert adapted.adapter is not None
    module = load_adapted(adapted.model, adapted.adapter, 1).get_base_model()
    encoded = tokens.encode(adapted.model, adapted.candidate, PAIRS, 48)
    layout = _layout(adapted)
    found = score(lambda batch: logits_of(module, batch), batches(encoded, layout), len(PAIRS), lambda _done: None)
    assert found.tobytes() == adapted.earlier("L2").file("reference.f32")


def _layout(there: Bench) -> Any:
    from harness.runtimes import tokens
    from harness.runtimes.batching import Layout

    names = tokens.inputs_of(there.candidate, there.model)
    return Layout(dict.fromkeys(names, "int64"), there.candidate.pad_token_id, there.candidate.padding_side, 1)


def test_an_adapter_that_was_never_trained_fails_by_its_effect(
    tiny_model: Path, adapted: Bench, tmp_path: Path
) -> None:
    folder = adapters.make_adapter(tiny_model, tmp_path / "law", trained=False)
    there = adapters.adapted_bench(tmp_path / "root", tiny_model, folder)
    shutil.copytree(adapted.root / "artifacts", there.root / "artifacts")
    ran = there.run(there.request("L2"))
    assert texts(ran.measured()) == {"adapter_effect": "adapter_effect: expected at least 1e-05, got 0.0 logit"}


def _both(there: Bench) -> Ran:
    built = there.run(there.request("L0", time_limit_s=900.0))
    assert not built.reason, f"{built.reason}\n{built.log()}"
    ran = there.run(there.request("L2", time_limit_s=900.0))
    assert not ran.reason, f"{ran.reason}\n{ran.log()}"
    return ran


@pytest.mark.slow
def test_a_base_of_another_class_is_qualified_under_the_adapters_head(
    tiny_model: Path, law: Path, tmp_path: Path
) -> None:
    """What adapters are mostly trained on: a pretrained encoder with a head for masked words, or none, and no classifier."""
    base = adapters.pretrained(tiny_model, tmp_path / "base")
    there = adapters.adapted_bench(tmp_path / "root", base, law)
    ran = _both(there)
    assert texts(ran.measured()) == {}
    built = there.earlier("L0").measured()
    assert texts(built, "L0") == {}
    odd = built["unexpected_keys"]
    assert (odd.value, odd.note) == (1, "cls.predictions.bias")
    assert built["missing_keys"].value == 0


def test_a_base_of_another_class_is_refused_without_an_adapter(tiny_model: Path, tmp_path: Path) -> None:
    base = adapters.pretrained(tiny_model, tmp_path / "base")
    with pytest.raises(
        CandidateError, match="expected a class ending in ForSequenceClassification, got BertForMaskedLM"
    ):
        candidate.resolve(str(base), None, tmp_path)


def test_a_graph_of_the_base_alone_is_found_although_adapter_and_merge_are_sound(
    adapted: Bench, tmp_path: Path
) -> None:
    """Merged model equal to base: the export forgot the adapter."""
    from harness.records import BuildOptions
    from harness.runtimes import tokens

    plain = candidate.resolve(str(adapted.model), None, tmp_path).candidate
    names = tokens.inputs_of(plain, adapted.model)
    graph = export.export(adapted.model, plain, BuildOptions(), names, 1, tmp_path / "scratch").graph
    there = adapted.copy(tmp_path / "root")
    built = there.check(graph, "other-fp32")
    assert "head_gap_ratio" in texts(built.measured(), "L0")
    ran = there.run(there.request("L2", "other-fp32"))
    assert ran.raw("logits.json")["reference_from"] == L2
    assert ran.file("adapter.f32") == adapted.earlier("L2").file("adapter.f32")
    found = ran.measured()
    assert list(texts(found)) == ["base_likeness"]
    assert texts(found)["base_likeness"].startswith("base_likeness: expected at most 0.5, got ")
    assert " logit from PyTorch with the adapter, " in texts(found)["base_likeness"]
    assert found["base_likeness"].value == pytest.approx(1, abs=1e-4)


def test_a_merge_that_loses_the_adapter_fails_by_its_gap(adapted: Bench) -> None:
    sealed = ways(adapted)
    sealed[2] = sealed[0]
    found = derived(adapted, {f"{L2}/adapter.f32": sealed.tobytes()})
    assert list(texts(found)) == ["adapter_merged_gap"]
    assert found["adapter_merged_gap"].value == found["adapter_effect"].value


def test_an_adapter_that_leaves_the_base_changed_fails_by_one_bit(adapted: Bench) -> None:
    sealed = ways(adapted)
    sealed[1, 3] = np.nextafter(sealed[1, 3], np.float32(np.inf))
    found = derived(adapted, {f"{L2}/adapter.f32": sealed.tobytes()})
    assert list(texts(found)) == ["adapter_off_gap"]
    assert texts(found)["adapter_off_gap"].startswith("adapter_off_gap: expected at most 0.0, got ")


def test_a_nan_of_the_merged_model_is_no_number(adapted: Bench) -> None:
    sealed = ways(adapted)
    sealed[2, 0] = np.nan
    found = derived(adapted, {f"{L2}/adapter.f32": sealed.tobytes()})
    assert texts(found) == {
        "adapter_merged_gap": "adapter_merged_gap: expected at most 0.001, got unknown: a logit is not finite"
    }


def test_other_pairs_than_the_plan_gives_are_refused(adapted: Bench) -> None:
    path = f"{L2}/adapter.json"
    raw = msgspec.json.decode((adapted.root / path).read_bytes(), type=AdapterRaw)
    changed = to_json(msgspec.structs.replace(raw, pairs=raw.pairs[::-1]))
    with pytest.raises(
        RecordError, match="expected the pairs that plan and seed give, and base, off and merged, got others"
    ):
        derived(adapted, {path: changed})


def test_a_candidate_without_an_adapter_has_no_such_metric(climbed: Bench) -> None:
    for tier in ("L0", "L2"):
        names = set(climbed.earlier(tier).measured())
        assert names.isdisjoint(fixed_limits(tier, "fp32", adapter=True).keys() - fixed_limits(tier, "fp32").keys())


# --- the command line --------------------------------------------------------------------------------------------------


def test_a_ladder_with_an_adapter_is_climbed_and_verified(tiny_model: Path, law: Path, tmp_path: Path) -> None:
    ladder = write_ladder(tmp_path, tiny_model, "\n  - {precision: fp32, threads: 1}\n", "L0")
    text = ladder.read_text("utf-8").replace(
        f"{{model: {tiny_model}}}", f"{{model: {tiny_model}, adapter: {{model: {law}}}}}"
    )
    ladder.write_text(text, encoding="utf-8")
    said = qualify("run", ladder, "--out", tmp_path / "root")
    assert said.code == 0, said.out + said.err
    line = f"{law.name}, LoRA of rank 4 on 4 layers (query, value), with its own head"
    assert line.split(", ", maxsplit=1)[0] in said.out
    assert "LoRA of rank 4 on 4 layers" in " ".join(qualify("plan", ladder).out.split())
    assert qualify("verify", tmp_path / "root").code == 0
    other = tmp_path / "plain.yaml"
    other.write_text(text.replace(f", adapter: {{model: {law}}}", ""), encoding="utf-8")
    judged = qualify("verify", tmp_path / "root", "--ladder", other)
    assert judged.code == 30
    assert f"adapter {law.name}" in " ".join(judged.out.split())
    for path in (tmp_path / "root").rglob("*"):
        if path.suffix in {".json", ".log"}:
            assert str(law.parent) not in path.read_text("utf-8"), path
