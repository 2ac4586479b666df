"""A value is compared with its type, and the first fault is put in words."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from harness import fields
from harness.fields import FieldError


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    count: int
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    inner: dict[str, Inner]
    flag: bool = False
    either: str | tuple[int, ...] | None = None


OUTER = msgspec.inspect.type_info(Outer)


def refusal(value: Any) -> str:
    with pytest.raises(FieldError) as caught:
        fields.check(value, OUTER)
    return str(caught.value)


def test_what_fits_is_let_through() -> None:
    fields.check({"inner": {"a b": {"count": 3, "share": 1}}, "flag": True, "either": "text"}, OUTER)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "expected a table with inner, got 3"),
        ({"inner": {"a": {}}}, "inner.a.count: expected an integer, got nothing; add the key"),
        ({"inner": {"a b\n": {"count": "x"}}}, "inner.'a b\\n'.count: expected an integer, got 'x'"),
        (
            {"inner": {"a": {"count": 1, "share": 0}}},
            "inner.a.share: expected a finite number above 0 and at most 1, got 0",
        ),
        ({"inner": {"a": {"count": 1}}, "flag": 1}, "flag: expected true or false, got 1"),
        ({"inner": {"a": {"count": 1}}, "either": 4}, "either: expected text or a list, got 4"),
        ({"inner": {"a": {"count": "x" * 80}}}, f"inner.a.count: expected an integer, got '{'x' * 56}..."),
        ({"inner": [], "x\x1b": 1}, "expected only the keys inner, flag, either, got 'x\\x1b'; remove it"),
    ],
)
def test_the_first_fault_is_said_in_one_line(value: Any, message: str) -> None:
    assert refusal(value) == message


def test_a_suggestion_is_made_only_for_a_name_that_is_close() -> None:
    assert fields.suggest("treads", ["threads", "name"]) == "did you mean 'threads'?"
    assert fields.suggest("zzz", ["threads", "name"]) == ""


def test_a_number_in_quotes_is_told_to_lose_them() -> None:
    with pytest.raises(FieldError, match=r"^format: expected 1, got '1'; write it without quotes$"):
        fields.check("1", msgspec.inspect.type_info(Literal[1]), "format")
