"""Every architecture once, precision and exporter rotated; ``benchmarks/architectures.py`` runs them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import judge
from harness.metrics.catalogue import fixed_limits
from harness.records import Precision
from tests.support import architectures
from tests.support.steps import bench

CASES: list[tuple[str, str, Precision, float]] = [
    ("gte", "torch_export", "fp16", 0.017),
    ("electra", "torchscript", "int8", 0.32),
    ("distilbert", "torchscript", "fp16", 0.012),
    ("roberta", "torchscript", "fp32", 2e-5),
    ("xlm-roberta", "torchscript", "fp16", 0.046),
    ("deberta-v2", "torchscript", "int8", 0.58),
    ("deberta-v3", "torchscript", "fp32", 1e-5),
    ("modernbert", "torchscript", "fp16", 0.013),
]
"""With the largest gap over the spread of PyTorch's logits: about twice what docs/architectures.md shows (three times in fp32, where it is
rounding alone). XLM-RoBERTa's logits spread least, so its share is largest; int8 of weights drawn from a seed is coarse."""


def test_every_architecture_but_the_one_of_all_other_tests_is_tried() -> None:
    assert {name for name, _, _, _ in CASES} == set(architectures.ARCHITECTURES) - {"bert"}


@pytest.mark.parametrize(("name", "exporter", "precision", "most"), CASES, ids=str)
def test_an_architecture_passes_l0_and_agrees_with_pytorch(
    tmp_path: Path, name: str, exporter: str, precision: Precision, most: float
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    there = bench(tmp_path / "root", architectures.make(name, model))
    ran = architectures.exported(there, exporter, precision)
    findings = judge.judge(fixed_limits("L0", precision), ran.measured().values())
    assert [found.text for found in findings if found.verdict != "PASS"] == []
    gap, spread = architectures.largest_gap(ran, model)
    assert gap <= most * spread


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("distilbert", "attention_mask input_ids"),
        ("xlm-roberta", "attention_mask input_ids"),
        ("deberta-v3", "attention_mask input_ids"),
        ("deberta-v2", "attention_mask input_ids token_type_ids"),
    ],
)
def test_segments_are_an_input_only_of_models_that_tell_two_apart(tmp_path: Path, name: str, inputs: str) -> None:
    from harness import candidate
    from harness.runtimes import tokens

    found = candidate.resolve(str(architectures.make(name, tmp_path)), None, tmp_path.parent).candidate
    assert " ".join(sorted(tokens.inputs_of(found, tmp_path))) == inputs


@pytest.mark.parametrize("name", ["roberta", "xlm-roberta"])
def test_positions_after_the_padding_id_shorten_what_a_model_takes(tmp_path: Path, name: str) -> None:
    from harness import candidate

    found = candidate.resolve(str(architectures.make(name, tmp_path)), None, tmp_path.parent).candidate
    assert (found.pad_token_id, found.max_length) == (1, 64)
