"""Plain values against a struct type: the first fault, with its place, what was expected and what was there. Pure.

msgspec builds the value afterwards; this module exists because a person reads the message. ``null`` is refused everywhere: a key
that is written without a value (``deferred:``) must not mean the same as a key that is left out.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from msgspec import NODEFAULT, inspect

PATTERNS = {
    r"\S": "text",
    "^[0-9a-f]{40}$": "40 hex digits of a commit",
    "^blake3:[0-9a-f]{64}$": "blake3: and 64 hex digits",
    "^[a-z0-9][a-z0-9-]{0,63}$": "at most 64 of a-z, 0-9 and -",
    "^[A-Za-z][A-Za-z0-9]*$": "the name of an operator type",
    "^(0|[1-9][0-9]*)([.][0-9]+)?%$": "per cent such as 10%",
}
"""What a pattern of the formats means in words."""


class FieldError(ValueError):
    """A value that its field does not take. The message is ``where: expected X, got Y; do Z``."""


def refuse(where: str, expected: str, got: str, do: str = "") -> NoReturn:
    """Raise ``FieldError``; ``where`` is empty for the whole document."""
    raise FieldError((f"{where}: " if where else "") + f"expected {expected}, got {got}" + (f"; {do}" if do else ""))


def suggest(name: str, names: Iterable[str]) -> str:
    """``did you mean 'x'?`` when a name is close to one of ``names``, otherwise nothing."""
    close = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else ""


def show(value: Any) -> str:
    """A value of a YAML or JSON file as a message shows it: one line, at most about 60 characters, nothing unprintable."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinity" if value > 0 else "minus infinity"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def join(where: str, key: str | int) -> str:
    """The place of a key or index below a place: ``targets[1].precision``."""
    if isinstance(key, int):
        return f"{where}[{key}]"
    name = key if key.replace("_", "a").replace("-", "a").replace(".", "a").isalnum() and key.isascii() else show(key)
    return f"{where}.{name}" if where else name


def check(value: Any, kind: inspect.Type, where: str = "") -> None:  # noqa: C901, PLR0912 -- one case a type
    """Raise ``FieldError`` for the first part of ``value`` that does not have the type ``kind``; ``None`` is never right."""
    match kind:
        case inspect.UnionType():
            _check_union(value, kind, where)
        case inspect.StructType() if isinstance(value, dict):
            _check_struct(value, kind, where)
        case inspect.DictType() if isinstance(value, dict):
            if not value:
                refuse(where, "at least one entry", "an empty table", "fill it or leave the key out")
            for key, item in value.items():
                check(item, kind.value_type, join(where, key))
        case inspect.VarTupleType() if isinstance(value, list):
            if len(value) < (kind.min_length or 0):
                refuse(
                    where, f"a list of at least {kind.min_length}", "an empty list" if not value else str(len(value))
                )
            for index, item in enumerate(value):
                check(item, kind.item_type, join(where, index))
        case inspect.TupleType() if isinstance(value, list):
            if len(value) != len(kind.item_types):
                refuse(where, words(kind), f"a list of {len(value)}")
            for index, (item, item_kind) in enumerate(zip(value, kind.item_types, strict=True)):
                check(item, item_kind, join(where, index))
        case inspect.Metadata():
            check(value, kind.type, where)
        case _ if not _fits(value, kind):
            _refuse_scalar(value, kind, where)


def words(kind: inspect.Type) -> str:  # noqa: PLR0911 -- one case a type
    """What a type wants, in words."""
    match kind:
        case inspect.LiteralType():
            values = [str(value) for value in kind.values]  # texts stand bare: a ladder writes them so
            return values[0] if len(values) == 1 else f"one of {', '.join(values)}"
        case inspect.IntType() | inspect.FloatType():
            name = "an integer" if isinstance(kind, inspect.IntType) else "a finite number"
            bounds = {"of at least": kind.ge, "above": kind.gt, "and at most": kind.le}
            return name + "".join(f" {word} {bound}" for word, bound in bounds.items() if bound is not None)
        case inspect.StrType():
            return PATTERNS[kind.pattern] if kind.pattern else "text"
        case inspect.BoolType():
            return "true or false"
        case inspect.TupleType():
            return f"[{', '.join(words(item) for item in kind.item_types)}]"
        case inspect.VarTupleType():
            return "a list"
        case inspect.StructType():
            names = [field.name for field in kind.fields if field.required] or [field.name for field in kind.fields]
            return f"a table with {', '.join(names)}"
        case inspect.UnionType():
            return " or ".join(words(item) for item in _members(kind))
        case inspect.Metadata():
            return words(kind.type)
        case _:
            return "a table"


def _members(kind: inspect.UnionType) -> list[inspect.Type]:
    return [item for item in kind.types if not isinstance(item, inspect.NoneType)]


def _check_union(value: Any, kind: inspect.UnionType, where: str) -> None:
    """Of a union at most one member is a table and one a list, so the kind of value chooses; scalars are tried in turn."""
    members = _members(kind)
    tables = (inspect.StructType, inspect.DictType)
    lists = (inspect.VarTupleType, inspect.TupleType)
    for wanted, container in ((tables, dict), (lists, list)):
        chosen = [item for item in members if isinstance(item, wanted)]
        if isinstance(value, container) and chosen:
            check(value, chosen[0], where)
            return
    if len(members) == 1:
        check(value, members[0], where)
    elif not any(_fits(value, item) for item in members):
        refuse(where, words(kind), show(value), _hint(value, kind))


def _check_struct(value: dict[str, Any], kind: inspect.StructType, where: str) -> None:
    names = [field.encode_name for field in kind.fields]
    for key in value:
        if key not in names:
            refuse(
                where,
                f"only the keys {', '.join(names)}",
                show(key),
                suggest(key, set(names) - set(value)) or "remove it",
            )
    for field in kind.fields:
        here = join(where, field.encode_name)
        if field.encode_name in value:
            check(value[field.encode_name], field.type, here)
        elif field.default is NODEFAULT and field.default_factory is NODEFAULT:
            refuse(here, words(field.type), "nothing", "add the key")


def _fits(value: Any, kind: inspect.Type) -> bool:
    """Whether a scalar is one that ``kind`` takes; a bool is no number and NaN is no value."""
    match kind:
        case inspect.LiteralType():
            return any(type(value) is type(item) and value == item for item in kind.values)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return type(value) is int and _in_bounds(value, kind)
        case inspect.FloatType():
            return (type(value) is int or (type(value) is float and math.isfinite(value))) and _in_bounds(value, kind)
        case inspect.StrType():
            return (
                isinstance(value, str)
                and (value.strip() != "" or kind.min_length == 0)
                and _matches(value, kind.pattern)
            )
        case inspect.Metadata():
            return _fits(value, kind.type)
        case _:
            return False


def _in_bounds(value: float, kind: inspect.IntType | inspect.FloatType) -> bool:
    return not (
        (kind.ge is not None and value < kind.ge)
        or (kind.gt is not None and value <= kind.gt)
        or (kind.le is not None and value > kind.le)
    )


def _matches(value: str, pattern: str | None) -> bool:
    """Whether the whole text has the pattern; a bare ``$`` would let a newline pass at the end."""
    return pattern is None or re.search(pattern.removesuffix("$") + r"\Z" * pattern.endswith("$"), value) is not None


def _refuse_scalar(value: Any, kind: inspect.Type, where: str) -> NoReturn:
    refuse(where, words(kind), show(value), _hint(value, kind))


def _hint(value: Any, kind: inspect.Type) -> str:
    if value is None:
        return "write a value or leave the key out"
    literals: list[str] = []
    for item in _members(kind) if isinstance(kind, inspect.UnionType) else [kind]:
        if isinstance(item, inspect.LiteralType):
            literals += [str(name) for name in item.values]
    if value in literals:  # the right characters, as text where a number is wanted
        return "write it without quotes"
    if isinstance(value, str) and re.fullmatch(r"[-+]?[0-9]{16,}", value) and "text" not in words(kind):
        return "a number has at most 15 digits, which JSON keeps exact"
    return suggest(value, literals) if isinstance(value, str) else ""
