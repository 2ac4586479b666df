"""Two plain values compared: every leaf that differs, as a fault that shows both. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evidence.manifest import Fault


def differences(rule: str, path: str, got: object, expected: object, at: str = "") -> Iterator[Fault]:
    """One fault for each leaf that differs, by JSON pointer."""
    if isinstance(got, Mapping) and isinstance(expected, Mapping):
        for key in sorted(got.keys() | expected.keys(), key=str):
            yield from differences(rule, path, got.get(key), expected.get(key), f"{at}/{key}")
    elif isinstance(got, list | tuple) and isinstance(expected, list | tuple) and len(got) == len(expected):
        for index, (one, other) in enumerate(zip(got, expected, strict=True)):
            yield from differences(rule, path, one, other, f"{at}/{index}")
    elif not close(got, expected):
        yield Fault(rule, path, f"{path}{at and '#'}{at}: expected {expected!r}, got {got!r}")


def close(one: object, other: object) -> bool:
    """Equal; or two finite floats that agree to 1e-9 relative; or containers of such."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or abs(one - other) <= 1e-9 * max(abs(one), abs(other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(close, one, other))
    return type(one) is type(other) and one == other
