"""The protobuf wire format, read strictly from a buffer: fields in, nothing copied, everything else refused.

Source: "Encoding", Protocol Buffers documentation (wire types 0, 1, 2 and 5; the deprecated groups 3 and 4 are
refused). A length-delimited value is a slice of the buffer, so a tensor of any size is skipped by its length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, NoReturn

import numpy as np

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_NAMES = {VARINT: "a varint", FIXED64: "8 bytes", BYTES: "a length-delimited value", FIXED32: "4 bytes"}
_FIXED = {FIXED64: 8, FIXED32: 4}

MAX_FIELDS = 1_000_000
"""Fields read from one file before it is refused: some seconds. A graph of 10,000 nodes has about 200,000."""


class GraphError(ValueError):
    """An ONNX file is not what ``onnx.proto`` demands, or is beyond a stated bound. Says at which byte, and what."""


def refuse(at: int, expected: str, got: object) -> NoReturn:
    """Raise ``GraphError`` for byte ``at`` of the file."""
    message = f"ONNX file, byte {at}: expected {expected}, got {got}"
    raise GraphError(message)


class Span(NamedTuple):
    """A part of the file: its bytes (uint8) and the offset of the first of them in the file."""

    data: memoryview
    at: int


class Field(NamedTuple):
    """One field of a message. ``value`` is an int for a varint and otherwise the bytes, which begin at ``at``."""

    number: int
    wire: int
    value: int | memoryview
    at: int

    def unsigned(self) -> int:
        """The value of a varint, 0 to 2**64 - 1."""
        if not isinstance(self.value, int):
            self._refuse(VARINT)
        return self.value

    def signed(self) -> int:
        """The value of a varint of type int32 or int64."""
        value = self.unsigned()
        return value - (1 << 64) if value >> 63 else value

    def span(self) -> Span:
        """The bytes of a length-delimited value."""
        if isinstance(self.value, int) or self.wire != BYTES:
            self._refuse(BYTES)
        return Span(self.value, self.at)

    def text(self) -> str:
        """The UTF-8 text of a length-delimited value."""
        try:
            return str(self.span().data, "utf-8")
        except UnicodeDecodeError as error:
            refuse(self.at + error.start, "UTF-8 text", error.reason)

    def varints(self) -> Iterator[int]:
        """The values of a repeated int64, packed or not."""
        if self.wire == VARINT:
            yield self.signed()
            return
        span, at = self.span(), 0
        while at < len(span.data):
            value, at = _varint(span, at)
            yield value - (1 << 64) if value >> 63 else value

    def count_varints(self) -> int:
        """How many values a repeated integer holds, packed or not, without reading them."""
        if self.wire == VARINT:
            return 1
        last = np.frombuffer(self.span().data, np.uint8) < 0x80
        if len(last) and not last[-1]:
            refuse(self.at + len(last) - 1, "the last byte of a varint", "one that says another follows")
        return int(np.count_nonzero(last))

    def fixed(self, wire: int) -> memoryview:
        """The bytes of a repeated fixed-width scalar (``wire`` is FIXED32 or FIXED64), packed or not."""
        if isinstance(self.value, int) or self.wire not in (wire, BYTES):
            self._refuse(wire)
        if len(self.value) % _FIXED[wire]:
            refuse(self.at, f"a multiple of {_FIXED[wire]} bytes", f"{len(self.value)} bytes")
        return self.value

    def _refuse(self, wire: int) -> NoReturn:
        refuse(self.at, f"{_NAMES[wire]} in field {self.number}", _NAMES[self.wire])


class Reader:
    """Reads messages and counts the fields, so that a hostile file costs seconds at most."""

    def __init__(self) -> None:
        self._left = MAX_FIELDS

    def fields(self, span: Span, once: tuple[int, ...] = ()) -> Iterator[Field]:
        """Every field of a message in file order. Raises ``GraphError`` on malformed input or too many fields.

        A field number in ``once`` may stand there only once. (Protobuf would take the last, or merge them; no
        writer does that, and readers that disagree about it would see different graphs.)
        """
        data, at = span.data, 0
        seen = set()
        while at < len(data):
            self._left -= 1
            if self._left < 0:
                refuse(span.at + at, f"at most {MAX_FIELDS} fields in one file", "more")
            begin = span.at + at
            key, at = _varint(span, at)
            number, wire = key >> 3, key & 7
            if not 1 <= number < 1 << 29:
                refuse(begin, "a field number from 1 to 2**29 - 1", number)
            if number in once:
                if number in seen:
                    refuse(begin, f"field {number} once", "a second one")
                seen.add(number)
            if wire == VARINT:
                start = at
                value, at = _varint(span, at)
                yield Field(number, wire, value, span.at + start)
                continue
            if wire == BYTES:
                length, at = _varint(span, at)
            elif wire in _FIXED:
                length = _FIXED[wire]
            else:
                refuse(begin, "wire type 0, 1, 2 or 5", wire)
            if length > len(data) - at:
                refuse(span.at + at, f"{length} bytes of field {number}", f"{len(data) - at} bytes")
            yield Field(number, wire, data[at : at + length], span.at + at)
            at += length


def _varint(span: Span, at: int) -> tuple[int, int]:
    """A base-128 integer at ``at`` of the span, and where the next thing begins."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(span.data):
            refuse(span.at + at, "the rest of a varint", "the end")
        byte = span.data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return value, at
    refuse(span.at + at - 1, "a varint of at most 64 bits", "a longer one")
