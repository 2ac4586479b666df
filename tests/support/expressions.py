"""The expressions of GitHub Actions, as far as the files in ``ci/`` and the how-to use them.

Names, places of lists, strings, ``== != && || !``, and five functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<op>==|!=|&&|\|\||[!(),])|(?P<name>[A-Za-z_](?:[A-Za-z0-9_.-]|\[\d+\])*))"
)
_WHOLE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)


def fill(text: str, context: Mapping[str, Any]) -> Any:
    """A value of a workflow file: text with its expressions filled in, or the value itself where it is one expression."""
    whole = _WHOLE.fullmatch(text)
    if whole is not None and "${{" not in whole[1]:
        return evaluate(whole[1], context)
    return _WHOLE.sub(lambda found: shown(evaluate(found[1], context)), text)


def shown(value: Any) -> str:
    """A value as a runner puts it into text."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def evaluate(text: str, context: Mapping[str, Any]) -> Any:
    """The value of one expression. Raises ``ValueError`` for syntax that is not known here."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None:
            message = f"expected an expression, got {text!r}"
            raise ValueError(message)
        kind = str(found.lastgroup)
        tokens.append((kind, found[kind]))
        at = found.end()
    parser = _Parser(tokens, context)
    value = parser.either()
    if parser.left:
        message = f"expected the end of {text!r}, got {parser.left[0][1]!r}"
        raise ValueError(message)
    return value


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]], context: Mapping[str, Any]) -> None:
        self.left = tokens
        self.context = context

    def _take(self, *ops: str) -> str | None:
        if self.left and self.left[0][0] == "op" and self.left[0][1] in ops:
            return self.left.pop(0)[1]
        return None

    def either(self) -> Any:
        value = self.both()
        while self._take("||"):
            other = self.both()
            value = value or other
        return value

    def both(self) -> Any:
        value = self.equal()
        while self._take("&&"):
            other = self.equal()
            value = value and other
        return value

    def equal(self) -> Any:
        value = self.one()
        while op := self._take("==", "!="):
            other = self.one()
            value = (shown(value) == shown(other)) is (op == "==")
        return value

    def one(self) -> Any:
        if self._take("!"):
            return not self.one()
        if self._take("("):
            value = self.either()
            assert self._take(")")
            return value
        kind, word = self.left.pop(0)
        if kind == "text":
            return word[1:-1].replace("''", "'")
        return self._call(word) if self._take("(") else self._look(word)

    def _call(self, name: str) -> Any:
        given: list[Any] = []
        while not self._take(")"):
            given.append(self.either())
            self._take(",")
        if name == "format":
            return re.sub(r"\{(\d+)\}", lambda found: shown(given[int(found[1]) + 1]), given[0])
        known: dict[str, Any] = {
            "always": lambda: True,
            "success": lambda: not self.context["failed"],
            "fromJSON": json.loads,
        }
        return known[name](*given)

    def _look(self, name: str) -> Any:
        if name in {"true", "false"}:
            return name == "true"
        value: Any = self.context
        for key in re.findall(r"[^.\[\]]+", name):
            if isinstance(value, list):
                value = value[int(key)] if key.isdigit() and int(key) < len(value) else None
            else:
                value = value.get(key) if isinstance(value, Mapping) else None
        return value
