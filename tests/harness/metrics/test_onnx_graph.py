"""The census against the onnx library on real exports and built graphs, and against hostile bytes."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from harness.metrics import wire
from harness.metrics.onnx_graph import (
    Census,
    ExternalData,
    GraphError,
    Port,
    Tally,
    census,
    constants_beyond_half_range,
    realised_precision,
)
from harness.metrics.onnx_tensor import DTYPES

EXPORTS = ["fp32", "fp16", "int8", "external"]
X = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)


def model(nodes: list[Any] | None = None, initializers: Any = (), **options: Any) -> Any:
    """A small model: Identity from x to y, with what is given beside it."""
    nodes = [helper.make_node("Identity", ["x"], ["y"]), *(nodes or [])]
    inputs = options.pop("inputs", [X])
    graph = helper.make_graph(nodes, "g", inputs, [Y], list(initializers), **options.pop("graph", {}))
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)], **options)


def taken(proto: Any, sizes: dict[str, int] | None = None) -> Census:
    return census(proto.SerializeToString(), sizes)


def tallies(tensors: list[tuple[int, int]]) -> dict[str, Tally]:
    """Tallies from (data type, elements), sizes by numpy's or ml_dtypes' item sizes."""
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for dtype, elements in tensors:
        row = rows[TensorProto.DataType.Name(dtype)]
        row[0] += 1
        row[1] += elements
        row[2] += elements * helper.tensor_dtype_to_np_dtype(dtype).itemsize
    return {name: Tally(count=row[0], elements=row[1], bytes=row[2]) for name, row in rows.items()}


def dims_of(port: Any) -> tuple[int | str, ...]:
    return tuple(dim.dim_param or dim.dim_value for dim in port.type.tensor_type.shape.dim)


@pytest.mark.parametrize("name", EXPORTS)
def test_census_of_a_real_export_equals_what_the_onnx_library_reads(bert_exports: Path, name: str) -> None:
    path = bert_exports / f"{name}.onnx"
    peer = onnx.load(path)
    sizes = {"external.data": (bert_exports / "external.data").stat().st_size} if name == "external" else {}
    found = census(path.read_bytes(), sizes)
    constants = [
        attribute.t
        for node in peer.graph.node
        for attribute in node.attribute
        if attribute.type == onnx.AttributeProto.TENSOR
    ]
    assert found.ir_version == peer.ir_version
    assert found.opset == next(entry.version for entry in peer.opset_import if entry.domain == "")
    assert (found.producer, found.producer_version) == (peer.producer_name, peer.producer_version)
    assert found.nodes == len(peer.graph.node)
    assert found.operators == Counter(node.op_type for node in peer.graph.node)
    assert found.inputs == tuple(
        Port(name=port.name, dtype="INT64", dims=("batch", "sequence")) for port in peer.graph.input
    )
    assert found.outputs == (Port(name="logits", dtype="FLOAT", dims=dims_of(peer.graph.output[0])),)
    assert found.initializers == tallies([(t.data_type, math.prod(t.dims)) for t in peer.graph.initializer])
    assert found.constants == tallies([(t.data_type, math.prod(t.dims)) for t in constants])
    assert (found.nested_nodes, found.nested_initializers, found.functions) == (0, {}, 0)
    assert found.metadata == {entry.key: entry.value for entry in peer.metadata_props}


@pytest.mark.parametrize(
    ("name", "precision"), [("fp32", "fp32"), ("fp16", "fp16"), ("int8", "int8"), ("external", "fp32")]
)
def test_realised_precision_of_a_real_export(bert_exports: Path, name: str, precision: str) -> None:
    assert realised_precision(census((bert_exports / f"{name}.onnx").read_bytes())).precision == precision


def test_external_data_of_a_real_export_is_listed_and_lies_in_its_file(bert_exports: Path) -> None:
    size = (bert_exports / "external.data").stat().st_size
    model_bytes = (bert_exports / "external.onnx").read_bytes()
    found = census(model_bytes, {"external.data": size})
    assert {entry.location for entry in found.external} == {"external.data"}
    assert max(entry.offset + entry.length for entry in found.external) == size
    with pytest.raises(GraphError, match=r"expected \d+ bytes in 'external.data', got \d+ bytes"):
        census(model_bytes, {"external.data": size - 1})
    with pytest.raises(GraphError, match=r"expected an external file that belongs to the artifact \(none\)"):
        census(model_bytes, {})


def test_half_range_count_of_a_real_export_equals_numpy_over_the_onnx_library(bert_exports: Path) -> None:
    peer = onnx.load(bert_exports / "fp32.onnx")
    peer.graph.initializer[0].CopyFrom(
        numpy_helper.from_array(np.array([65504, -65505, np.inf, np.nan, 1e30], np.float32), "poison")
    )
    tensors = [*peer.graph.initializer, *(a.t for n in peer.graph.node for a in n.attribute if a.HasField("t"))]
    values = [numpy_helper.to_array(t) for t in tensors if t.data_type == TensorProto.FLOAT]
    wanted = sum(int((~(np.abs(value) <= 65504)).sum()) for value in values)
    assert wanted >= 4 + 1  # the mask constant of fp32's minimum is among them
    assert constants_beyond_half_range(peer.SerializeToString()) == wanted
    assert constants_beyond_half_range((bert_exports / "fp16.onnx").read_bytes()) == 0


def test_half_range_count_reads_external_typed_and_scalar_values(bert_exports: Path) -> None:
    raw = (bert_exports / "external.onnx").read_bytes()
    files = {"external.data": (bert_exports / "external.data").read_bytes()}
    inside = constants_beyond_half_range((bert_exports / "fp32.onnx").read_bytes())
    assert constants_beyond_half_range(raw, files) == inside
    with pytest.raises(GraphError, match="external file that belongs to the artifact"):
        constants_beyond_half_range(raw)
    built = model(
        [
            helper.make_node("Constant", [], ["c"], value_float=1e9),
            helper.make_node("Constant", [], ["d"], value_floats=[1.0, -1e9]),
        ],
        [
            helper.make_tensor("t", TensorProto.FLOAT, [2], [7e4, 1.0]),
            helper.make_tensor("i", TensorProto.INT64, [1], [10**9]),
        ],
    )
    assert constants_beyond_half_range(built.SerializeToString()) == 3


@pytest.mark.parametrize("number", [n for n in DTYPES if n not in (8, 27, 28)], ids=lambda n: DTYPES[n].name)
@pytest.mark.parametrize("elements", [0, 1, 5])
def test_every_dtype_is_counted_alike_as_raw_and_as_typed_data(number: int, elements: int) -> None:
    values = np.zeros(elements, helper.tensor_dtype_to_np_dtype(number))
    typed = helper.make_tensor("t", number, [elements], values)
    raw = numpy_helper.from_array(values, "t")
    wanted = {DTYPES[number].name: Tally(count=1, elements=elements, bytes=len(raw.raw_data))}
    assert taken(model(initializers=[typed])).initializers == wanted
    assert taken(model(initializers=[raw])).initializers == wanted


def test_every_dtype_of_the_onnx_library_is_known_by_its_name() -> None:
    assert {number: dtype.name for number, dtype in DTYPES.items()} == {
        number: name for name, number in TensorProto.DataType.items() if number
    }


def test_texts_are_counted_by_their_own_bytes() -> None:
    texts = helper.make_tensor("t", TensorProto.STRING, [2], ["ab", "é"])
    assert taken(model(initializers=[texts])).initializers == {"STRING": Tally(count=1, elements=2, bytes=4)}


def test_typed_data_that_is_not_packed_counts_the_same() -> None:
    floats = b"\x08\x02" + b"\x10\x01" + b"\x25" + bytes(4) + b"\x25" + bytes(4)  # dims 2, FLOAT, float_data twice
    ints = b"\x08\x02" + b"\x10\x07" + b"\x38\x01" + b"\x38\x80\x01"  # dims 2, INT64, int64_data twice
    found = census(message(initializer(floats), initializer(ints)))
    assert found.initializers == {
        "FLOAT": Tally(count=1, elements=2, bytes=8),
        "INT64": Tally(count=1, elements=2, bytes=16),
    }


def test_nested_nodes_functions_and_foreign_operators_are_counted_apart() -> None:
    weights = numpy_helper.from_array(np.zeros(3, np.float16), "w")
    branch = helper.make_graph(
        [helper.make_node("Constant", [], ["b"], value_int=1), helper.make_node("Identity", ["w"], ["z"])],
        "branch",
        [],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT16, [3])],
        [weights],
    )
    nodes = [
        helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch),
        helper.make_node("Gelu", ["x"], ["g"], domain="com.microsoft"),
        helper.make_node("Constant", [], ["s"], value_strings=["ab", "c"]),
    ]
    body = helper.make_function(
        "own", "F", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 20)]
    )
    default = onnx.FunctionProto(name="D", domain="own")
    default.attribute_proto.add(
        name="w", type=onnx.AttributeProto.TENSOR, t=helper.make_tensor("d", TensorProto.INT8, [1], [7])
    )
    found = taken(model(nodes, functions=[body, default]))
    assert found.nodes == 4
    assert found.operators == {"Identity": 1, "If": 1, "com.microsoft:Gelu": 1, "Constant": 1}
    assert found.nested_nodes == 5
    assert found.nested_operators == {"Constant": 2, "Identity": 2, "Neg": 1}
    assert found.functions == 2
    assert found.initializers == {}
    assert found.nested_initializers == {"FLOAT16": Tally(count=2, elements=6, bytes=12)}
    assert found.constants == {
        "INT64": Tally(count=2, elements=2, bytes=16),
        "INT8": Tally(count=1, elements=1, bytes=1),
        "STRING": Tally(count=1, elements=2, bytes=3),
    }


def test_sparse_tensors_count_their_values_and_indices() -> None:
    values = numpy_helper.from_array(np.ones(2, np.float32), "s")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([0, 5]), "i"), [9])
    node = helper.make_node("Constant", [], ["c"], sparse_value=sparse)
    wanted = {"FLOAT": Tally(count=1, elements=2, bytes=8), "INT64": Tally(count=1, elements=2, bytes=16)}
    found = taken(model([node], graph={"sparse_initializer": [sparse]}))
    assert (found.initializers, found.constants) == (wanted, wanted)


def test_ports_show_names_numbers_unknown_dims_and_other_kinds_of_type() -> None:
    ports = [
        helper.make_tensor_value_info("a", TensorProto.INT32, [1, "n", None]),
        helper.make_tensor_value_info("b", TensorProto.FLOAT16, []),
        helper.make_tensor_value_info("c", TensorProto.BOOL, None),
        helper.make_tensor_sequence_value_info("d", TensorProto.FLOAT, None),
        helper.make_tensor_value_info("w", TensorProto.FLOAT, [1]),
    ]
    found = taken(model(inputs=ports, initializers=[numpy_helper.from_array(np.zeros(1, np.float32), "w")]))
    assert found.inputs == (
        Port(name="a", dtype="INT32", dims=(1, "n", "?")),
        Port(name="b", dtype="FLOAT16", dims=()),
        Port(name="c", dtype="BOOL", dims=None),
        Port(name="d", dtype="SEQUENCE", dims=None),
    )
    assert found.outputs == (Port(name="y", dtype="FLOAT", dims=None),)


def weighted(*dtypes: tuple[int, int], operators: tuple[str, ...] = ()) -> Census:
    tensors = [
        numpy_helper.from_array(np.zeros(size, helper.tensor_dtype_to_np_dtype(dtype)), f"w{i}")
        for i, (dtype, size) in enumerate(dtypes)
    ]
    return taken(model([helper.make_node(name, ["x"], [name]) for name in operators], tensors))


@pytest.mark.parametrize(
    ("found", "precision", "reason"),
    [
        pytest.param(
            weighted((TensorProto.INT64, 9)), "unknown", "no initializer or constant holds a weight", id="only indices"
        ),
        pytest.param(
            weighted((TensorProto.BFLOAT16, 5)), "bf16", "BFLOAT16 10 bytes (100.00%); no quantised operator", id="bf16"
        ),
        pytest.param(
            weighted((TensorProto.FLOAT16, 990), (TensorProto.FLOAT, 5)),
            "fp16",
            "FLOAT16 1980 bytes (99.00%), FLOAT 20 bytes (1.00%); no quantised operator",
            id="99 per cent half",
        ),
        pytest.param(
            weighted((TensorProto.FLOAT16, 988), (TensorProto.FLOAT, 6)),
            "mixed",
            "FLOAT16 1976 bytes (98.80%), FLOAT 24 bytes (1.20%); no quantised operator",
            id="less than 99 per cent half",
        ),
        pytest.param(
            weighted((TensorProto.INT8, 100)),
            "mixed",
            "INT8 100 bytes (100.00%); no quantised operator",
            id="bytes nobody uses",
        ),
        pytest.param(
            weighted((TensorProto.FLOAT, 9), operators=("QuantizeLinear",)),
            "mixed",
            "FLOAT 36 bytes (100.00%); quantised operators QuantizeLinear",
            id="quantised operators on fp32 weights",
        ),
        pytest.param(
            weighted((TensorProto.UINT8, 60), (TensorProto.FLOAT, 9), operators=("MatMulInteger", "QLinearMatMul")),
            "int8",
            "UINT8 60 bytes (62.50%), FLOAT 36 bytes (37.50%); quantised operators MatMulInteger, QLinearMatMul",
            id="int8",
        ),
    ],
)
def test_realised_precision_says_which_and_why(found: Census, precision: str, reason: str) -> None:
    realised = realised_precision(found)
    assert (realised.precision, realised.reason) == (precision, reason)


# --- what is refused --------------------------------------------------------------------------------------------------


def delimited(number: int, data: bytes) -> bytes:
    """A length-delimited field of fewer than 16 as number, fewer than 2**14 bytes."""
    return bytes([number << 3 | 2, len(data) & 0x7F | 0x80, len(data) >> 7]) + data


def initializer(tensor: bytes) -> bytes:
    return delimited(5, tensor)


def message(*graph_fields: bytes) -> bytes:
    """A ModelProto of IR version 10 with these fields in its graph; the first of them begins at byte 5."""
    return b"\x08\x0a" + delimited(7, b"".join(graph_fields))


def external_tensor(**entries: str) -> Any:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def test_external_place_is_plain_and_its_length_may_be_left_out() -> None:
    found = taken(model(initializers=[external_tensor(location="./a/./w.bin", offset="4096")]), {"a/w.bin": 4112})
    assert found.external == (ExternalData(tensor="w", location="a/w.bin", offset=4096, length=16),)
    assert found.initializers == {"FLOAT": Tally(count=1, elements=4, bytes=16)}


@pytest.mark.parametrize(
    "location",
    [
        "",
        ".",
        "..",
        "../w",
        "a/../../w",
        "/etc/passwd",
        "a\\w",
        "c:w",
        "a/",
        "a/..",
        "w\x00",
        "w\n",
        "*/_ORT_MEM_ADDR_/*",
    ],
)
def test_external_location_that_leaves_the_folder_is_refused(location: str) -> None:
    with pytest.raises(
        GraphError, match="expected an external location that is a relative path inside the folder, got"
    ):
        taken(model(initializers=[external_tensor(location=location)]))


@pytest.mark.parametrize(
    ("entries", "message_part"),
    [
        ({"location": "w", "length": "15"}, "expected 16 bytes of external data in 'w', got length 15"),
        ({"location": "w", "offset": "-1"}, "expected a decimal number >= 0 in external_data, got '-1'"),
        ({"location": "w", "offset": "1e3"}, "expected a decimal number >= 0 in external_data, got '1e3'"),
        ({"location": "w", "offset": "٣"}, "expected a decimal number >= 0 in external_data, got '٣'"),
        ({"location": "w", "offset": "9" * 30}, f"expected a decimal number >= 0 in external_data, got '{'9' * 30}'"),
    ],
)
def test_external_range_that_is_malformed_is_refused(entries: dict[str, str], message_part: str) -> None:
    with pytest.raises(GraphError) as caught:
        taken(model(initializers=[external_tensor(**entries)]))
    assert message_part in str(caught.value)


def broken(change: Callable[[Any], object]) -> bytes:
    tensor = numpy_helper.from_array(np.zeros(3, np.float32), "w")
    change(tensor)
    data: bytes = model(initializers=[tensor]).SerializeToString()
    return data


@pytest.mark.parametrize(
    ("data", "message_part"),
    [
        pytest.param(b"", "byte 0: expected one graph and an ir_version, got 0 graphs, ir_version 0", id="empty"),
        pytest.param(
            delimited(7, b""), "byte 3: expected one graph and an ir_version, got 1 graphs, ir_version 0", id="no IR"
        ),
        pytest.param(message() + delimited(7, b""), "byte 5: expected field 7 once, got a second one", id="two graphs"),
        pytest.param(b"version https://git-lfs", "expected wire type 0, 1, 2 or 5, got 6", id="git lfs pointer"),
        pytest.param(message()[:-1], "byte 4: expected the rest of a varint, got the end", id="cut in a varint"),
        pytest.param(b"\x08\x0a\x3a\x05a", "byte 4: expected 5 bytes of field 7, got 1 bytes", id="cut in a value"),
        pytest.param(
            b"\x08" + b"\xff" * 10, "byte 10: expected a varint of at most 64 bits, got a longer one", id="long varint"
        ),
        pytest.param(
            b"\x08" + b"\xff" * 9 + b"\x02",
            "byte 10: expected a varint of at most 64 bits, got a longer one",
            id="65 bits",
        ),
        pytest.param(b"\x00\x00", "byte 0: expected a field number from 1 to 2**29 - 1, got 0", id="field 0"),
        pytest.param(b"\x0b", "byte 0: expected wire type 0, 1, 2 or 5, got 3", id="group"),
        pytest.param(
            b"\x0a\x00", "byte 2: expected a varint in field 1, got a length-delimited value", id="text for a number"
        ),
        pytest.param(
            b"\x38\x00", "byte 1: expected a length-delimited value in field 7, got a varint", id="number for a message"
        ),
        pytest.param(b"\x12\x02a\xff", "byte 3: expected UTF-8 text, got invalid start byte", id="not UTF-8"),
        pytest.param(
            message(delimited(1, b"")), "byte 8: expected a node with an op_type, got none", id="node without a type"
        ),
        pytest.param(
            message(initializer(b"")),
            "byte 8: expected a known data_type in the tensor, got 0",
            id="tensor without a type",
        ),
        pytest.param(
            message(initializer(b"\x08\x01" * 65)),
            "expected at most 64 dimensions >= 0, got 1 after 64 others",
            id="65 dimensions",
        ),
        pytest.param(
            message(initializer(b"\x10\x07\x3a\x01\x80")),
            "byte 12: expected the last byte of a varint, got one that says another follows",
            id="packed varint cut",
        ),
        pytest.param(
            message(initializer(b"\x10\x01\x22\x03abc")),
            "byte 12: expected a multiple of 4 bytes, got 3 bytes",
            id="packed float cut",
        ),
        pytest.param(
            broken(lambda t: t.dims.append(2)),
            "expected 24 bytes of raw_data for FLOAT[3, 2] 'w', got 12 bytes",
            id="dims disagree with raw data",
        ),
        pytest.param(
            broken(lambda t: t.dims.append(-2)),
            "expected at most 64 dimensions >= 0, got -2 after 1 others",
            id="negative dim",
        ),
        pytest.param(
            broken(lambda t: t.ClearField("raw_data")),
            "expected 3 values in float_data for FLOAT[3] 'w', got no data",
            id="no data",
        ),
        pytest.param(
            broken(lambda t: t.float_data.extend([1, 2, 3])),
            "expected 3 values in float_data for FLOAT[3] 'w', got 3 in float_data and 12 bytes of raw_data",
            id="data twice",
        ),
        pytest.param(
            broken(lambda t: (t.ClearField("raw_data"), t.int32_data.extend([1, 2]))),
            "expected 3 values in float_data for FLOAT[3] 'w', got 2 in int32_data",
            id="data of another type",
        ),
        pytest.param(
            broken(lambda t: t.segment.SetInParent()), "expected a whole tensor, got a segment of one", id="segment"
        ),
        pytest.param(
            broken(lambda t: setattr(t, "data_location", 1)),
            "expected external tensor 'w' without data of its own, got data in the file",
            id="external and inside",
        ),
        pytest.param(
            message(initializer(b"\x10\x01\x70\x02")),
            "byte 8: expected data_location 0 or 1, got 2",
            id="unknown location",
        ),
        pytest.param(
            message(initializer(b"\x10\x01\x70\x01" + 2 * delimited(13, delimited(1, b"location")))),
            "expected one external_data entry 'location', got a second one",
            id="external entry twice",
        ),
    ],
)
def test_malformed_bytes_are_refused_with_the_place(data: bytes, message_part: str) -> None:
    with pytest.raises(GraphError) as caught:
        census(data)
    assert message_part in str(caught.value)


def test_two_versions_of_one_domain_are_refused_and_a_repeated_one_is_not() -> None:
    twice = model()
    twice.opset_import.add(domain="ai.onnx", version=20)
    assert taken(twice).opsets == {"ai.onnx": 20}
    twice.opset_import.add(domain="", version=21)
    with pytest.raises(GraphError, match=r"expected one opset version of ai\.onnx, got 20 and 21"):
        taken(twice)


def test_subgraphs_are_read_to_a_stated_depth() -> None:
    def nested(depth: int) -> bytes:
        graph = b""
        for _ in range(depth):
            graph = delimited(1, delimited(4, b"If") + delimited(5, delimited(6, graph)))
        return message(graph)

    assert census(nested(32)).nested_nodes == 31
    with pytest.raises(GraphError, match="expected subgraphs at most 32 deep, got deeper ones"):
        census(nested(33))
    with pytest.raises(GraphError, match="expected subgraphs at most 32 deep, got deeper ones"):
        census(nested(600))


def test_a_file_of_too_many_fields_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_FIELDS", 1000)
    with pytest.raises(GraphError, match="expected at most 1000 fields in one file, got more"):
        census(message(b"\x10\x00" * 1001))


def test_unknown_fields_are_skipped_by_their_length() -> None:
    data = message() + b"\xaa\x06\x03abc" + b"\xad\x06abcd" + b"\xa9\x06abcdefgh"
    assert census(data) == census(message())


def result(data: bytes) -> Census | GraphError:
    try:
        found = census(data)
        realised_precision(found)
        constants_beyond_half_range(data)
    except GraphError as error:
        return error
    return found


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes_give_a_census_or_a_graph_error(data: bytes) -> None:
    assert isinstance(result(data), Census | GraphError)
    assert isinstance(result(message(data)), Census | GraphError)
    assert isinstance(result(message(initializer(data))), Census | GraphError)


RICH: bytes = model(
    [helper.make_node("Constant", [], ["c"], value_floats=[1.0, 2.0])],
    [
        helper.make_tensor("t", TensorProto.INT64, [2], [1, 300]),
        helper.make_tensor("f", TensorProto.FLOAT, [2], [1.0, 2.0]),
        numpy_helper.from_array(np.zeros(3, np.float16), "h"),
        external_tensor(location="w.bin"),
    ],
).SerializeToString()


@settings(max_examples=500)
@given(st.integers(0, len(RICH) - 1), st.binary(max_size=4), st.integers(0, 4))
def test_any_change_of_a_good_file_gives_a_census_or_a_graph_error(at: int, insert: bytes, cut: int) -> None:
    assert isinstance(result(RICH[:at] + insert + RICH[at + cut :]), Census | GraphError)


@pytest.mark.parametrize("end", range(0, len(RICH), 7))
def test_a_truncated_file_is_refused(end: int) -> None:
    with pytest.raises(GraphError):
        census(RICH[:end])
