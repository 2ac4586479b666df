from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.errors import Blocked
from harness.runtimes import tokens
from tests.support import architectures
from tests.support.models import TEXTS
from tests.support.plans import candidate
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


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", ["bert", "roberta", "xlm-roberta", "deberta-v2", "deberta-v3", "modernbert"])
def test_pairs_are_cut_where_the_library_cuts_them(name: str, side: str, tmp_path: Path) -> None:
    """Every family's template of special tokens, every proportion of the two texts, every limit."""
    architectures.ARCHITECTURES[name].tokenizer(tmp_path, 64)
    config = json.loads((tmp_path / "tokenizer_config.json").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"truncation_side": side}))
    words = " ".join(TEXTS).split()
    sizes = (0, 1, 2, 3, 5, 8, 13, 40)
    pairs = [(" ".join(words[:one]), " ".join(words[-other:] if other else [])) for one in sizes for other in sizes]
    pinned = candidate(max_length=64)
    for limit in (*range(8, 24), 41, 64):
        found = tokens.encode(tmp_path, pinned, pairs, limit)
        made = tokens.encoded(tokens.tokenizer_of(tmp_path, limit).encode_batch(pairs))
        assert found.truncated == made.truncated > 0
        for ours, theirs in zip(found[:2] + found[3:], made[:2] + made[3:], strict=True):
            assert [part.tolist() for part in ours] == [part.tolist() for part in theirs], limit


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
