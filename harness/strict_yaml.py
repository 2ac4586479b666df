"""YAML bytes to plain values, strictly: what a file says is what is read. Pure.

Scalars follow the YAML 1.2 core schema with its surprises taken out: ``1e-3`` is a number, ``no`` and ``on`` are text, only
``true`` and ``false`` are booleans, ``0777`` and ``0x1f`` are text (so a field that wants an integer refuses them), there are no
dates, and more digits than JSON keeps exact are text (so a commit made of digits stays a commit). Refused, with the line:
duplicate keys, keys that are not text, anchors, aliases, tags, a second document, control characters, deep nesting, large files.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import yaml

SIZE_LIMIT_BYTES = 256 * 1024
DEPTH_LIMIT = 16

_NULL, _BOOL, _INT, _FLOAT = (f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
_SCALARS: tuple[tuple[str, str], ...] = (
    (_NULL, r"~|null|"),
    (_BOOL, r"true|false"),
    (_INT, r"[-+]?(?:0|[1-9][0-9]{0,14})"),
    (
        _FLOAT,
        r"(?=.{1,24}\Z)[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*|(?=[eE])))(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan",
    ),
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class YamlError(ValueError):
    """Bytes that are not the YAML that is read here. The message is ``line N: expected X, got Y; do Z``."""


class _Loader(yaml.SafeLoader):
    """PyYAML's scanner and parser, with the scalars above and nothing that makes one node stand for another."""

    yaml_implicit_resolvers = {  # noqa: RUF012 -- the attribute that PyYAML reads
        None: [(tag, re.compile(rf"(?:{pattern})\Z")) for tag, pattern in _SCALARS]
    }
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose one node as PyYAML does, after refusing what a ladder does not need."""
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if isinstance(event, yaml.AliasEvent) or anchor is not None:
            _refuse(event.start_mark, "every value written out", f"the anchor or alias {anchor!r}", "write it twice")
        if tag is not None:
            _refuse(event.start_mark, "plain values", f"the tag {tag!r}", "remove it")
        if self.depth >= DEPTH_LIMIT:
            _refuse(event.start_mark, f"at most {DEPTH_LIMIT} levels", "one more")
        self.depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


def load(data: bytes) -> Any:
    """Read one document: dicts with text keys, lists, text, int, float, bool or None. Raises ``YamlError``."""
    if len(data) > SIZE_LIMIT_BYTES:
        raise YamlError(f"expected at most {SIZE_LIMIT_BYTES} bytes, got {len(data)}; move data into a data file")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise YamlError(
            f"expected UTF-8, got byte 0x{data[error.start]:02x} at offset {error.start}; save it as UTF-8"
        ) from error
    try:
        node = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        problem = " ".join(f"{error.context or ''} {error.problem or ''}".split())
        if "document" in (error.context or ""):
            problem = "a second document"
        raise YamlError(f"{_place(error.problem_mark)}expected YAML, got a fault: {problem}") from error
    except yaml.YAMLError as error:  # a character that YAML does not allow; the reader gives no line
        raise YamlError(f"expected YAML, got a fault: {' '.join(str(error).split())}") from error
    except (ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, YamlError):
            raise
        raise YamlError(f"expected YAML, got a fault: {' '.join(str(error).split())}") from error
    return None if node is None else _plain(node)


def _plain(node: yaml.Node) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _plain(key_node)
            if not isinstance(key, str):
                got = f"{key_node.value!r:.60}" if isinstance(key_node, yaml.ScalarNode) else "a list or table"
                _refuse(key_node.start_mark, "text as a key", got, "put it in quotes")
            if key in found:
                _refuse(key_node.start_mark, "each key once", f"the key {key!r:.60} again", "remove one of the two")
            found[key] = _plain(value_node)
        return found
    return _scalar(node)


def _scalar(node: yaml.Node) -> Any:
    text: str = node.value
    if node.tag == _NULL:
        return None
    if node.tag == _BOOL:
        return text == "true"
    if node.tag == _INT:
        return int(text)
    if node.tag == _FLOAT:
        return float(text.replace(".inf", "inf").replace(".nan", "nan"))
    if found := _CONTROL.search(text):
        _refuse(node.start_mark, "text without control characters", f"{found[0]!r}", "remove it")
    return text


def _place(mark: Any) -> str:
    return "" if mark is None else f"line {mark.line + 1}: "


def _refuse(mark: Any, expected: str, got: str, do: str = "") -> NoReturn:
    raise YamlError(f"{_place(mark)}expected {expected}, got {got}" + (f"; {do}" if do else ""))
