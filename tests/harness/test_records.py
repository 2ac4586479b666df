from __future__ import annotations

from typing import Any

import pytest

from harness import records

BUDGET = 10


class Key(str):
    """A key that counts how often it is compared with another, and stops whoever does that too often."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Key.compared += 1
        assert Key.compared <= BUDGET * 100_000
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_key_given_twice_among_very_many_is_named_after_one_look_at_each() -> None:
    pairs: list[tuple[str, Any]] = [(Key(f"k{number}"), 1) for number in range(100_000)]
    with pytest.raises(ValueError, match=r"^duplicate key 'k99999'$"):
        records._no_duplicates([*pairs, (Key("k99999"), 2)])


def test_the_first_key_that_comes_again_is_the_one_that_is_named() -> None:
    with pytest.raises(ValueError, match=r"^duplicate key 'b'$"):
        records.parse_json(b'{"a": 1, "b": 2, "c": 3, "c": 4, "b": 5}')
