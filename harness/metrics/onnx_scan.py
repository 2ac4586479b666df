"""One pass over the bytes of an ONNX file: operators, tensors, inputs and outputs as they stand there.

Field numbers are those of onnx.proto: ModelProto, GraphProto, NodeProto, AttributeProto, FunctionProto,
ValueInfoProto, TypeProto.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal

from harness.metrics.onnx_tensor import DTYPES, Tensor, read_entry, read_tensor
from harness.metrics.wire import FIXED32, Field, Reader, Span, refuse
from harness.records import Record

MAX_DEPTH = 32
"""Levels of subgraphs inside subgraphs before a file is refused."""

Home = Literal["initializer", "nested", "constant"]
"""Where a tensor stands: initializer of the main graph, of a subgraph, or attribute of a node."""

_SCALARS = {"value_float": "FLOAT", "value_floats": "FLOAT", "value_int": "INT64", "value_ints": "INT64"}
_TEXTS = ("value_string", "value_strings")


class Port(Record, frozen=True):
    """A graph input or output. ``dtype`` is ``FLOAT`` and so on, or the kind of a type that is no tensor.

    ``dims`` holds a number, a symbolic name, or ``?`` for a dimension without either; null = no shape stated.
    """

    name: str
    dtype: str
    dims: tuple[int | str, ...] | None


class Scan:
    """One pass over a file: each method reads one kind of message and adds what it finds."""

    def __init__(self, sizes: Mapping[str, int] | None) -> None:
        self.reader = Reader()
        self.sizes = sizes
        self.ir_version = 0
        self.opsets: dict[str, int] = {}
        self.producer = ""
        self.producer_version = ""
        self.inputs: list[Port] = []
        self.outputs: list[Port] = []
        self.operators: Counter[str] = Counter()
        self.nested_operators: Counter[str] = Counter()
        self.functions = 0
        self.tensors: list[tuple[Home, Tensor]] = []
        self.metadata: dict[str, str] = {}

    def model(self, span: Span) -> None:
        """Read a whole ModelProto. Raises ``GraphError``."""
        graphs = 0
        for field in self.reader.fields(span, once=(1, 2, 3, 7)):
            match field.number:
                case 1:
                    self.ir_version = field.unsigned()
                case 2:
                    self.producer = field.text()
                case 3:
                    self.producer_version = field.text()
                case 7:
                    graphs += 1
                    self._graph(field.span(), 0)
                case 8:
                    self._opset(field.span())
                case 14:
                    self.metadata.update([read_entry(self.reader, field.span())])
                case 25:
                    self.functions += 1
                    self._function(field.span())
                case _:
                    pass
        if graphs != 1 or not self.ir_version:
            refuse(len(span.data), "one graph and an ir_version", f"{graphs} graphs, ir_version {self.ir_version}")

    def _opset(self, span: Span) -> None:
        domain, version = "", 0
        for field in self.reader.fields(span, once=(1, 2)):
            if field.number == 1:
                domain = field.text()
            elif field.number == 2:
                version = field.unsigned()
        name = domain or "ai.onnx"
        if self.opsets.setdefault(name, version) != version:
            refuse(span.at, f"one opset version of {name}", f"{self.opsets[name]} and {version}")

    def _graph(self, span: Span, depth: int) -> None:
        if depth > MAX_DEPTH:
            refuse(span.at, f"subgraphs at most {MAX_DEPTH} deep", "deeper ones")
        home: Home = "nested" if depth else "initializer"
        for field in self.reader.fields(span):
            match field.number:
                case 1:
                    self._node(field.span(), depth)
                case 5:
                    self._tensor(home, field.span())
                case 15:
                    self._sparse(home, field.span())
                case 11 if depth == 0:
                    self.inputs.append(_port(self.reader, field.span()))
                case 12 if depth == 0:
                    self.outputs.append(_port(self.reader, field.span()))
                case _:
                    pass

    def _function(self, span: Span) -> None:
        for field in self.reader.fields(span):
            if field.number == 7:
                self._node(field.span(), 1)
            elif field.number == 11:
                self._attribute(field.span(), 1, constant=False)

    def _node(self, span: Span, depth: int) -> None:
        name, domain = "", ""
        attributes = []
        for field in self.reader.fields(span, once=(4, 7)):
            if field.number == 4:
                name = field.text()
            elif field.number == 7:
                domain = field.text()
            elif field.number == 5:
                attributes.append(field.span())
        if not name:
            refuse(span.at, "a node with an op_type", "none")
        default = domain in ("", "ai.onnx")
        (self.nested_operators if depth else self.operators)[name if default else f"{domain}:{name}"] += 1
        for attribute in attributes:
            self._attribute(attribute, depth, constant=default and name == "Constant")

    def _attribute(self, span: Span, depth: int, *, constant: bool) -> None:
        """Tensors and subgraphs of any attribute; scalars only of a Constant, where they are the tensor."""
        name, numbers = "", []
        for field in self.reader.fields(span, once=(1, 2, 3, 4, 5, 6, 22)):
            match field.number:
                case 1:
                    name = field.text()
                case 5 | 10:
                    self._tensor("constant", field.span())
                case 22 | 23:
                    self._sparse("constant", field.span())
                case 6 | 11:
                    self._graph(field.span(), depth + 1)
                case 2 | 3 | 4 | 7 | 8 | 9 if constant:
                    numbers.append(field)
                case _:
                    pass
        if constant and name in _SCALARS:
            self.tensors.append(("constant", _scalars(name, numbers, span.at)))
        elif constant and name in _TEXTS:
            texts = [field.span() for field in numbers if field.number in (4, 9)]
            size = sum(len(text.data) for text in texts)
            self.tensors.append(("constant", Tensor(name, "STRING", len(texts), size, span.at)))

    def _tensor(self, home: Home, span: Span) -> None:
        self.tensors.append((home, read_tensor(self.reader, span, self.sizes)))

    def _sparse(self, home: Home, span: Span) -> None:
        for field in self.reader.fields(span, once=(1, 2)):
            if field.number in (1, 2):
                self._tensor(home, field.span())


Shape = tuple[int | str, ...] | None
_KINDS = {4: "SEQUENCE", 5: "MAP", 7: "OPAQUE", 8: "SPARSE", 9: "OPTIONAL"}


def _port(reader: Reader, span: Span) -> Port:
    name, dtype, dims = "", "UNDEFINED", None
    for field in reader.fields(span, once=(1, 2)):
        if field.number == 1:
            name = field.text()
        elif field.number == 2:
            dtype, dims = _type(reader, field.span())
    return Port(name=name, dtype=dtype, dims=dims)


def _type(reader: Reader, span: Span) -> tuple[str, Shape]:
    found: tuple[str, Shape] = ("UNDEFINED", None)
    for field in reader.fields(span, once=(1, *_KINDS)):
        if field.number in _KINDS:
            found = (_KINDS[field.number], None)
        elif field.number == 1:
            found = _tensor_type(reader, field.span())
    return found


def _tensor_type(reader: Reader, span: Span) -> tuple[str, Shape]:
    dtype, dims = "UNDEFINED", None
    for field in reader.fields(span, once=(1, 2)):
        if field.number == 1:
            number = field.unsigned()
            if number and number not in DTYPES:
                refuse(field.at, "a known elem_type", number)
            dtype = DTYPES[number].name if number else dtype
        elif field.number == 2:
            dims = tuple(_dimension(reader, part) for part in reader.fields(field.span()) if part.number == 1)
    return dtype, dims


def _dimension(reader: Reader, dim: Field) -> int | str:
    found: int | str = "?"
    for field in reader.fields(dim.span()):
        if field.number == 1:
            found = field.signed()
        elif field.number == 2:
            found = field.text() or "?"
    return found


def _scalars(name: str, fields: list[Field], at: int) -> Tensor:
    """The numbers of a Constant's ``value_float(s)`` or ``value_int(s)`` as a tensor."""
    dtype = _SCALARS[name]
    if dtype == "INT64":
        count = sum(field.count_varints() for field in fields if field.number in (3, 8))
        return Tensor(name, dtype, count, 8 * count, at)
    data = bytearray(b"".join(bytes(field.fixed(FIXED32)) for field in fields if field.number in (2, 7)))
    return Tensor(name, dtype, len(data) // 4, len(data), at, data)
