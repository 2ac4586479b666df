from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import RecordError
from harness.records import to_json
from harness.runtimes import tokens
from harness.stages import second_path
from tests.harness.test_tokens import HARD
from tests.support.parity import STEP, changed_model, derived, failed, retokenised
from tests.support.steps import PAIRS, Bench


def test_the_second_path_agrees_on_hard_texts(climbed: Bench) -> None:
    encoded = tokens.encode(climbed.model, climbed.candidate, HARD, 16)
    said = second_path.says(climbed.model, encoded, HARD, 16)
    assert said.mismatches == ()
    assert said.template == ((2,), (3,), (3,))
    assert (said.padding_id, said.truncation_side) == (0, "right")


def test_the_second_path_names_the_pairs_that_differ(climbed: Bench) -> None:
    encoded = tokens.encode(climbed.model, climbed.candidate, HARD, 16)
    zeroed = tuple(segments * 0 for segments in encoded.segments)
    said = second_path.says(climbed.model, encoded._replace(segments=zeroed), HARD, 16)
    assert said.mismatches == tuple(range(len(HARD)))


def columns(bench: Bench) -> tuple[int, Any]:
    data = np.frombuffer((bench.root / f"{STEP}/tokens.i32").read_bytes(), "<i4").copy()
    return len(PAIRS), data


def test_the_sealed_tensors_are_those_that_were_fed(climbed: Bench) -> None:
    count, data = columns(climbed)
    encoded = tokens.encode(climbed.model, climbed.candidate, PAIRS, 48)
    lengths, whole = data[:count], data[count : 2 * count]
    assert lengths.tolist() == [len(ids) for ids in encoded.ids]
    ids, segments, texts = data[4 * count :].reshape(3, -1)
    assert ids.tolist() == np.concatenate(encoded.ids).tolist()
    assert segments.tolist() == np.concatenate(encoded.segments).tolist()
    assert set(texts.tolist()) == {-1, 0, 1}
    assert int((whole > lengths).sum()) == encoded.truncated


def test_pairs_that_were_cut_are_counted_with_the_length_and_the_end_seen_in_the_tensors(climbed: Bench) -> None:
    measured = climbed.earlier("L2").measured()
    cut = measured["truncated_pairs"]
    assert isinstance(cut.value, int)
    assert 0 < cut.value < len(PAIRS)
    assert cut.note == f"seen: 0 pairs cut at the start, {cut.value} at the end; longest tensor 48 tokens"
    assert measured["effective_length"].value == 48
    assert measured["truncation_faults"].value == 0


def test_truncation_at_the_wrong_end_is_found(climbed: Bench) -> None:
    count, data = columns(climbed)
    at_end = data[3 * count : 4 * count].copy()
    data[2 * count : 3 * count], data[3 * count : 4 * count] = at_end, 0
    found = failed(derived(climbed, {f"{STEP}/tokens.i32": data.tobytes()}))
    cut = int((at_end > 0).sum())
    assert set(found) == {"truncation_faults"}
    assert found["truncation_faults"].startswith(f"truncation_faults: expected exactly 0, got {cut} pairs: pairs ")
    assert found["truncation_faults"].endswith(
        f"; planned: at 48 tokens, at the end of the texts; seen: {cut} pairs cut at the start, 0 at the end;"
        " longest tensor 48 tokens"
    )


def test_another_limit_than_was_planned_is_seen_in_the_tensors(climbed: Bench) -> None:
    count, data = columns(climbed)
    short = int(np.flatnonzero(data[:count] < 40)[0])
    data[count + short] += 5  # five tokens were cut off at a shorter length than the plan's
    data[3 * count + short] = 5
    found = failed(derived(climbed, {f"{STEP}/tokens.i32": data.tobytes()}))
    assert found["truncation_faults"].startswith(
        f"truncation_faults: expected exactly 0, got 1 pairs: pairs {short}; planned: at 48 tokens"
    )


def fed(climbed: Bench, model: Path, limit: int) -> str:
    """The finding on truncation, when the tensors are what ``model``'s tokenizer cuts at ``limit`` and not what was planned."""
    encoded = tokens.encode(model, climbed.candidate, PAIRS, limit)
    made = {
        f"{STEP}/tokens.json": to_json(second_path.says(climbed.model, encoded, PAIRS, 48)),
        f"{STEP}/tokens.i32": second_path.columns(climbed.model, encoded, PAIRS),
    }
    return failed(derived(climbed, made))["truncation_faults"]


def test_a_tokenizer_that_cuts_the_wrong_end_is_found(climbed: Bench, tmp_path: Path) -> None:
    left = {"tokenizer_config.json": lambda value: value.update(truncation_side="left")}
    text = fed(climbed, changed_model(climbed, tmp_path, left), 48)
    assert "; planned: at 48 tokens, at the end of the texts; seen: " in text
    assert " pairs cut at the start, 0 at the end; longest tensor 48 tokens" in text


def test_a_limit_other_than_the_planned_one_is_found(climbed: Bench) -> None:
    assert fed(climbed, climbed.model, 40).endswith(" at the end; longest tensor 40 tokens")


def test_tensors_of_another_size_than_said_are_refused(climbed: Bench) -> None:
    _, data = columns(climbed)
    with pytest.raises(RecordError, match=r"tokens\.i32: expected 26 pairs in \d+ bytes, got 26 in \d+"):
        derived(climbed, {f"{STEP}/tokens.i32": data[:-1].tobytes()})
    data[0] += 1
    with pytest.raises(RecordError, match=r"tokens\.i32: expected lengths that add up to"):
        derived(climbed, {f"{STEP}/tokens.i32": data.tobytes()})


def test_a_candidate_that_is_cut_at_the_start_says_so(climbed: Bench, tmp_path: Path) -> None:
    left = {"tokenizer_config.json": lambda value: value.update(truncation_side="left")}
    measured = retokenised(climbed, tmp_path, left)
    assert failed(measured) == {}
    assert measured["effective_length"].note == "planned: at 48 tokens, at the start of the texts"
    assert measured["truncated_pairs"].note.endswith(" 0 at the end; longest tensor 48 tokens")


def roberta(value: dict[str, Any]) -> None:
    """Two separators between the texts, in the tokenizer's own file."""
    value["post_processor"] = {
        "type": "RobertaProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2], "trim_offsets": True,
        "add_prefix_space": False,
    }  # fmt: skip


def test_two_separators_where_the_family_has_one_and_a_padding_id_of_another_family_are_found(
    climbed: Bench, tmp_path: Path
) -> None:
    changes = {"tokenizer.json": roberta, "config.json": lambda value: value.update(pad_token_id=1)}
    found = failed(retokenised(climbed, tmp_path, changes))
    assert found["separator_faults"] == (
        f"separator_faults: expected exactly 0, got {len(PAIRS)} pairs: pairs 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and"
        f" {len(PAIRS) - 10} more; expected ids [2] query [3] document [3], got [2, 3, 3, 3] around the texts of pair 0"
    )
    assert found["padding_id_agrees"] == (
        "padding_id_agrees: expected exactly true, got false boolean: padded with 1, the tokenizer's own padding token is 0"
    )


def test_a_tokenizer_whose_class_joins_pairs_otherwise_differs_from_the_second_path(
    climbed: Bench, tmp_path: Path
) -> None:
    changes = {
        "tokenizer.json": roberta,
        "tokenizer_config.json": lambda value: value.update(tokenizer_class="BertTokenizer"),
    }
    found = failed(retokenised(climbed, tmp_path, changes))
    text = found.pop("token_mismatches")
    assert text == (
        f"token_mismatches: expected exactly 0, got {len(PAIRS)} pairs: pairs 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and"
        f" {len(PAIRS) - 10} more; second path: BertTokenizer"
    )
