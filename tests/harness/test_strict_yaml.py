"""What YAML says is what is read."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.strict_yaml import DEPTH_LIMIT, SIZE_LIMIT_BYTES, YamlError, load


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("8e6", 8e6),
        ("1.5E+2", 150.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("-0.25", -0.25),
        ("+7", 7),
        ("0", 0),
        ("999999999999999", 999999999999999),
        ("9007199254740993", "9007199254740993"),
        ("0777", "0777"),
        ("0o17", "0o17"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-11-30", "2026-11-30"),
        ("true", True),
        ("false", False),
        ("True", "True"),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("null", None),
        ("~", None),
        ("", None),
        ("<<", "<<"),
        ("=", "="),
        ("'1e-3'", "1e-3"),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("1234567890123456789012345678901234567890", "1234567890123456789012345678901234567890"),
        ("12345678901234567890123456789012345678e1", "12345678901234567890123456789012345678e1"),
        ("[1, two, {three: 3}]", [1, "two", {"three": 3}]),
        ("no: yes", {"no": "yes"}),
        ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
        ("\ufeffa: 1", {"a": 1}),
        ("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
    ],
)
def test_a_scalar_is_read_as_it_looks(text: str, value: Any) -> None:
    found = load(text.encode())
    assert found == value
    assert type(found) is type(value)


def test_nan_is_a_number_that_a_field_can_then_refuse() -> None:
    assert math.isnan(load(b".nan"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: 1\nb: 2\na: 3", "line 3: expected each key once, got the key 'a' again; remove one of the two"),
        (b"{a: 1, 'a': 1}", "line 1: expected each key once, got the key 'a' again; remove one of the two"),
        (b"a: {b: 1,\n b: 2}", "line 2: expected each key once, got the key 'b' again; remove one of the two"),
        (b"1: a", "line 1: expected text as a key, got '1'; put it in quotes"),
        (b"true: a", "line 1: expected text as a key, got 'true'; put it in quotes"),
        (b"? [a]\n: b", "line 1: expected text as a key, got a list or table; put it in quotes"),
        (b"a: &x 1", "line 1: expected every value written out, got the anchor or alias 'x'; write it twice"),
        (b"a: *x", "line 1: expected every value written out, got the anchor or alias 'x'; write it twice"),
        (b"a: !!str 1", "line 1: expected plain values, got the tag 'tag:yaml.org,2002:str'; remove it"),
        (b"a: !new 1", "line 1: expected plain values, got the tag '!new'; remove it"),
        (b"a: 1\n---\nb: 2", "line 2: expected YAML, got a fault: a second document"),
        (
            b"a: [1",
            "line 1: expected YAML, got a fault: while parsing a flow sequence expected ',' or ']', but got '<stream end>'",
        ),
        (b"a: b: c", "line 1: expected YAML, got a fault: mapping values are not allowed here"),
        (
            b"a:\n\t- b",
            "line 2: expected YAML, got a fault: while scanning for the next token found character '\\t' that cannot start any token",
        ),
        (b"a: \xff", "expected UTF-8, got byte 0xff at offset 3; save it as UTF-8"),
        (b'a: "\\0"', "line 1: expected text without control characters, got '\\x00'; remove it"),
        (b'a: "\\uD800"', "line 1: expected text without control characters, got '\\ud800'; remove it"),
        (b"[" * 17 + b"]" * 17, f"line 1: expected at most {DEPTH_LIMIT} levels, got one more"),
        (b"[" * 100_000, f"line 1: expected at most {DEPTH_LIMIT} levels, got one more"),
        (
            b"#" * (SIZE_LIMIT_BYTES + 1),
            f"expected at most {SIZE_LIMIT_BYTES} bytes, got {SIZE_LIMIT_BYTES + 1}; move data into a data file",
        ),
    ],
    ids=lambda value: repr(value)[:30] if isinstance(value, bytes) else "",
)
def test_what_could_be_misread_is_refused_with_its_line(data: bytes, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        load(data)
    assert str(caught.value) == message


@given(st.binary(max_size=200) | st.text(alphabet="{}[]:,-&*!|>'\"%@`# \n\tab01.e\\U", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused_in_one_line(data: bytes) -> None:
    try:
        load(data)
    except YamlError as error:
        said = str(error)
    else:
        said = "expected"
    assert "expected" in said
    assert "\n" not in said
