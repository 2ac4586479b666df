from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.errors import Blocked
from harness.runtimes.batching import Layout, batches, pad, score
from harness.runtimes.tokens import MODEL_INPUTS, Encoded

LENGTHS = (3, 5, 1, 4, 2)


def encoded() -> Encoded:
    ids = tuple(np.arange(1, length + 1) + 10 * row for row, length in enumerate(LENGTHS))
    return Encoded(ids, tuple(np.ones(length, dtype=np.int64) for length in LENGTHS), 0)


def layout(**changes: Any) -> Layout:
    return Layout(dict.fromkeys(MODEL_INPUTS, "int64"), pad_id=99, padding_side="right", batch_size=2)._replace(
        **changes
    )


def total(tensors: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = (tensors["input_ids"] * tensors["attention_mask"]).sum(axis=1).astype(np.float32)
    return found


WANTED = [float(ids.sum()) for ids in encoded().ids]


def test_batches_go_from_long_to_short_and_hold_only_their_own_padding() -> None:
    made = list(batches(encoded(), layout()))
    assert [batch.rows.tolist() for batch in made] == [[1, 3], [0, 4], [2]]
    assert [batch.tensors["input_ids"].shape for batch in made] == [(2, 5), (2, 3), (1, 1)]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("fixed", [{}, {"fixed_batch": 2, "fixed_length": 7}, {"fixed_batch": 4}, {"fixed_length": 6}])
def test_logits_come_back_in_the_order_of_the_pairs(side: str, fixed: dict[str, int]) -> None:
    seen: list[int] = []
    made = batches(encoded(), layout(padding_side=side, **fixed))
    assert score(total, made, len(LENGTHS), seen.append).tolist() == WANTED
    assert seen[-1] == len(LENGTHS)


def test_a_fixed_batch_is_filled_with_rows_that_do_not_count() -> None:
    made = list(batches(encoded(), layout(fixed_batch=2, fixed_length=7)))
    assert [batch.tensors["input_ids"].shape for batch in made] == [(2, 7)] * 3
    assert made[-1].rows.tolist() == [2]
    assert made[-1].tensors["input_ids"][0].tolist() == made[-1].tensors["input_ids"][1].tolist()


@pytest.mark.parametrize(
    ("side", "ids", "mask"), [("right", [1, 2, 3, 99], [1, 1, 1, 0]), ("left", [99, 1, 2, 3], [0, 1, 1, 1])]
)
def test_padding_stands_on_the_candidates_side(side: str, ids: list[int], mask: list[int]) -> None:
    tensors = pad(encoded(), [0], 4, layout(padding_side=side))
    assert tensors["input_ids"].tolist() == [ids]
    assert tensors["attention_mask"].tolist() == [mask]
    assert tensors["token_type_ids"].tolist() == [mask]


def test_integers_are_as_wide_as_the_graph_takes() -> None:
    tensors = pad(encoded(), [0], 4, layout(inputs={"input_ids": "int32", "attention_mask": "int64"}))
    assert {name: str(tensor.dtype) for name, tensor in tensors.items()} == {
        "input_ids": "int32",
        "attention_mask": "int64",
    }


def test_a_pair_longer_than_a_fixed_graph_is_refused() -> None:
    with pytest.raises(Blocked) as caught:
        list(batches(encoded(), layout(fixed_length=4)))
    assert str(caught.value) == (
        "pairs: expected at most the graph's fixed 4 tokens, got 5; lower max_length in the ladder"
    )


@pytest.mark.parametrize(("side", "positions"), [("right", [2, 3, 4, 0]), ("left", [0, 2, 3, 4])])
def test_positions_follow_the_tokens_from_the_familys_first(side: str, positions: list[int]) -> None:
    made = pad(encoded(), [0], 4, layout(inputs={"position_ids": "int64"}, padding_side=side, first_position=2))
    assert made["position_ids"].tolist() == [positions]


def test_an_input_that_no_tokenizer_gives_is_refused() -> None:
    with pytest.raises(Blocked) as caught:
        pad(encoded(), [0], 4, layout(inputs={"past_length": "int64"}))
    assert str(caught.value) == (
        "graph input 'past_length': expected one that the tokenizer gives, got no value for it"
    )
