from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.errors import Blocked
from harness.runtimes import tokens
from tests.support.models import TEXTS
from tests.support.steps import Bench

HARD = [
    (TEXTS[0], ""),
    ("", TEXTS[0]),
    ("python", "x" * 10_000),
    (TEXTS[1], TEXTS[2] * 40),
    (TEXTS[1] * 40, TEXTS[2]),
    ("emoji \U0001f600", "\u05e9\u05dc\u05d5\u05dd"),
    ("nul \x00 and \x07", "\u200b\u202e"),
]


def test_a_pair_is_query_then_document_with_segments(empty_bench: Bench) -> None:
    encoded = tokens.encode(empty_bench.model, empty_bench.candidate, [("the file", "a list")], 48)
    vocabulary = json.loads((empty_bench.model / "tokenizer.json").read_bytes())["model"]["vocab"]
    words = ["[CLS]", "the", "file", "[SEP]", "a", "list", "[SEP]"]
    assert encoded.ids[0].tolist() == [vocabulary[word] for word in words]
    assert encoded.segments[0].tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert encoded.truncated == 0


def test_pairs_beyond_the_limit_are_cut_and_counted(empty_bench: Bench) -> None:
    encoded = tokens.encode(empty_bench.model, empty_bench.candidate, HARD, 16)
    assert encoded.longest == 16
    assert encoded.truncated == sum(len(ids) == 16 for ids in encoded.ids)


def test_more_tokens_than_the_candidate_takes_are_refused(empty_bench: Bench) -> None:
    with pytest.raises(Blocked) as caught:
        tokens.encode(empty_bench.model, empty_bench.candidate, [("a", "b")], 65)
    assert str(caught.value) == (
        "max_length: expected at most the candidate's 64 tokens, got 65; lower it in the ladder"
    )


def test_segments_are_an_input_only_where_the_model_has_two_and_the_tokenizer_gives_them(
    empty_bench: Bench, tmp_path: Path
) -> None:
    assert tokens.inputs_of(empty_bench.candidate, empty_bench.model) == tokens.MODEL_INPUTS
    model = tmp_path / "model"
    shutil.copytree(empty_bench.model, model)
    config = json.loads((model / "tokenizer_config.json").read_bytes())
    config["model_input_names"] = ["input_ids", "attention_mask"]
    (model / "tokenizer_config.json").write_text(json.dumps(config))
    assert tokens.inputs_of(empty_bench.candidate, model) == ("input_ids", "attention_mask")
