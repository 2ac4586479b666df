"""One tensor of an ONNX file: dtype, shape, size, and where its bytes are, checked against each other.

Field numbers are those of ``TensorProto`` in onnx.proto (IR version 10 and later; the numbers never change).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from harness.metrics.wire import FIXED32, FIXED64, Field, Reader, Span, refuse

MAX_RANK = 64

_FLOAT, _INT32, _STRING, _INT64, _RAW, _DOUBLE, _UINT64 = 4, 5, 6, 7, 9, 10, 11
_TYPED = {
    _FLOAT: "float_data",
    _INT32: "int32_data",
    _STRING: "string_data",
    _INT64: "int64_data",
    _DOUBLE: "double_data",
    _UINT64: "uint64_data",
}


class DType(NamedTuple):
    """An element type: its name in onnx.proto, bits an element, and the typed field that may hold it."""

    name: str
    bits: int
    field: int


DTYPES = {
    1: DType("FLOAT", 32, _FLOAT),
    2: DType("UINT8", 8, _INT32),
    3: DType("INT8", 8, _INT32),
    4: DType("UINT16", 16, _INT32),
    5: DType("INT16", 16, _INT32),
    6: DType("INT32", 32, _INT32),
    7: DType("INT64", 64, _INT64),
    8: DType("STRING", 0, _STRING),
    9: DType("BOOL", 8, _INT32),
    10: DType("FLOAT16", 16, _INT32),
    11: DType("DOUBLE", 64, _DOUBLE),
    12: DType("UINT32", 32, _UINT64),
    13: DType("UINT64", 64, _UINT64),
    14: DType("COMPLEX64", 64, _FLOAT),
    15: DType("COMPLEX128", 128, _DOUBLE),
    16: DType("BFLOAT16", 16, _INT32),
    17: DType("FLOAT8E4M3FN", 8, _INT32),
    18: DType("FLOAT8E4M3FNUZ", 8, _INT32),
    19: DType("FLOAT8E5M2", 8, _INT32),
    20: DType("FLOAT8E5M2FNUZ", 8, _INT32),
    21: DType("UINT4", 4, _INT32),
    22: DType("INT4", 4, _INT32),
    23: DType("FLOAT4E2M1", 4, _INT32),
    24: DType("FLOAT8E8M0", 8, _INT32),
    25: DType("UINT2", 2, _INT32),
    26: DType("INT2", 2, _INT32),
    27: DType("FLOAT6E2M3", 6, _INT32),
    28: DType("FLOAT6E3M2", 6, _INT32),
}
"""``TensorProto.DataType`` by number. A STRING's size is that of its texts."""


class Place(NamedTuple):
    """Where an external tensor lies: file relative to the model's folder, first byte, number of bytes."""

    location: str
    offset: int
    length: int


class Tensor(NamedTuple):
    """A tensor, its data not read. ``data`` is its little-endian bytes where the file holds them as such.

    ``data`` is None when the bytes are external (``place`` says where) or stored as varints or texts.
    """

    name: str
    dtype: str
    elements: int
    bytes: int
    at: int
    data: memoryview | bytearray | None = None
    place: Place | None = None


@dataclass
class _Parts:
    """What the fields of a TensorProto held, before they are compared."""

    dims: list[int]
    entries: Counter[int]  # typed field -> number of values
    external: dict[str, str]
    floats: bytearray
    dtype: int = 0
    name: str = ""
    raw: memoryview | None = None
    text_bytes: int = 0
    location: int = 0


def read_tensor(reader: Reader, span: Span, sizes: Mapping[str, int] | None) -> Tensor:
    """Read a TensorProto. ``sizes`` (path -> bytes) are the external files; None = their sizes are not checked.

    Raises ``GraphError`` where dims, dtype and data disagree, or an external place is not inside the folder.
    """
    parts = _Parts(dims=[], entries=Counter(), external={}, floats=bytearray())
    for field in reader.fields(span, once=(2, 8, 9, 14)):
        _take(reader, parts, field)
    parts.entries = +parts.entries  # an empty packed field is the same as none
    dtype = DTYPES.get(parts.dtype)
    if dtype is None:
        refuse(span.at, "a known data_type in the tensor", parts.dtype)
    elements = 1
    for dim in parts.dims:
        elements *= dim
    size = parts.text_bytes if dtype.name == "STRING" else (elements * dtype.bits + 7) // 8
    found = Tensor(parts.name, dtype.name, elements, size, span.at)
    if parts.location > 1:
        refuse(span.at, "data_location 0 or 1", parts.location)
    if parts.location == 1:
        if parts.raw or parts.entries or dtype.name == "STRING":
            refuse(span.at, f"external tensor {parts.name!r} without data of its own", "data in the file")
        return found._replace(place=_place(parts.external, size, span.at, sizes))
    return found._replace(data=_stored(parts, dtype, elements, size, span.at))


def _stored(parts: _Parts, dtype: DType, elements: int, size: int, at: int) -> memoryview | bytearray | None:
    """The data of a tensor that lies in the file, once it is as long as its dims demand."""
    what = f"{dtype.name}{parts.dims} {parts.name!r}"
    if parts.raw is not None and dtype.name != "STRING" and not parts.entries:
        if len(parts.raw) != size:
            refuse(at, f"{size} bytes of raw_data for {what}", f"{len(parts.raw)} bytes")
        return parts.raw
    wanted = _entries(dtype, elements)
    if parts.raw or parts.entries != Counter({dtype.field: wanted} if wanted else {}):
        stored = [f"{count} in {_TYPED[number]}" for number, count in sorted(parts.entries.items())]
        if parts.raw:
            stored.append(f"{len(parts.raw)} bytes of raw_data")
        refuse(at, f"{wanted} values in {_TYPED[dtype.field]} for {what}", " and ".join(stored) or "no data")
    return parts.floats if dtype.name == "FLOAT" else None


def _take(reader: Reader, parts: _Parts, field: Field) -> None:
    match field.number:
        case 1:
            for dim in field.varints():
                if dim < 0 or len(parts.dims) == MAX_RANK:
                    refuse(field.at, f"at most {MAX_RANK} dimensions >= 0", f"{dim} after {len(parts.dims)} others")
                parts.dims.append(dim)
        case 2:
            parts.dtype = field.unsigned()
        case 3:
            refuse(field.at, "a whole tensor", "a segment of one")
        case 8:
            parts.name = field.text()
        case 13:
            key, value = read_entry(reader, field.span())
            if key in parts.external:
                refuse(field.at, f"one external_data entry {key!r}", "a second one")
            parts.external[key] = value
        case 14:
            parts.location = field.unsigned()
        case _:
            _take_data(parts, field)


def _take_data(parts: _Parts, field: Field) -> None:
    match field.number:
        case 4:
            data = field.fixed(FIXED32)
            parts.entries[_FLOAT] += len(data) // 4
            parts.floats += data
        case 10:
            parts.entries[_DOUBLE] += len(field.fixed(FIXED64)) // 8
        case 5 | 7 | 11:
            parts.entries[field.number] += field.count_varints()
        case 6:
            parts.entries[_STRING] += 1
            parts.text_bytes += len(field.span().data)
        case 9:
            parts.raw = field.span().data
        case _:
            pass


def read_entry(reader: Reader, span: Span) -> tuple[str, str]:
    """Read a StringStringEntryProto: key and value, each empty when absent."""
    texts = {field.number: field.text() for field in reader.fields(span, once=(1, 2)) if field.number < 3}
    return texts.get(1, ""), texts.get(2, "")


def _entries(dtype: DType, elements: int) -> int:
    """Values that the typed field of ``dtype`` must hold: two a complex number, one a byte for 4 and 2 bits."""
    if dtype.name.startswith("COMPLEX"):
        return 2 * elements
    per_value = {4: 2, 2: 4}.get(dtype.bits, 1)
    return -(-elements // per_value)


def _place(external: Mapping[str, str], size: int, at: int, sizes: Mapping[str, int] | None) -> Place:
    location = _inside(external.get("location", ""), at)
    offset = _decimal(external.get("offset", "0"), at)
    length = _decimal(external.get("length", str(size)), at)
    if length != size:
        refuse(at, f"{size} bytes of external data in {location!r}", f"length {length}")
    if sizes is not None:
        if location not in sizes:
            refuse(at, f"an external file that belongs to the artifact ({sorted(sizes) or 'none'})", repr(location))
        if offset + length > sizes[location]:
            refuse(at, f"{offset + length} bytes in {location!r}", f"{sizes[location]} bytes")
    return Place(location, offset, length)


def _inside(location: str, at: int) -> str:
    """The location as a plain relative path that stays in the model's folder, or ``GraphError``."""
    parts = location.split("/")
    odd = any(ord(letter) < 32 or ord(letter) == 127 or letter in '\\:*?"<>|' for letter in location)
    if location.startswith("/") or ".." in parts or odd or not parts[-1].strip("."):
        refuse(at, "an external location that is a relative path inside the folder", repr(location))
    return "/".join(part for part in parts if part not in ("", "."))


def _decimal(text: str, at: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        refuse(at, "a decimal number >= 0 in external_data", repr(text[:40]))
    return int(text)
