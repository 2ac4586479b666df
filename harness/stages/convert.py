"""An fp32 graph becomes fp16 or int8, with every choice of the converter stated."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.derive_build import HALF_CONVERTER
from harness.errors import Blocked
from harness.raw import Conversion, Search
from harness.records import BuildOptions, DataFact, HalfOptions, IntegerOptions, Precision, Value
from harness.stages import half_range, keep, onnx_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Feed = dict[str, NDArray[np.generic]]

MIN_POSITIVE, MAX_FINITE = 5.96e-08, 65504.0
"""The least and the largest magnitude the fp16 converter keeps; values beyond are clipped to them."""

STATIC_OPERATORS = ("MatMul", "Gemm", "Gather")
"""What static conversion quantises: products and embeddings; norms, sums and softmax stay in floating point."""


class Checks(NamedTuple):
    """What conversion asks of the target: what is wrong with a graph on its runtime (nothing when nothing is), and tensors to try."""

    trial: Callable[[Path], str]
    feed: Callable[[], Feed]


def convert(
    source: Path,
    precision: Precision,
    options: BuildOptions,
    scratch: Path,
    checks: Checks,
    calibration: tuple[DataFact, Callable[[], Iterator[Feed]]] | None,
) -> tuple[Path, Conversion | None]:
    """``source`` in ``precision``, and how it was converted; ``source`` itself and None for fp32.

    ``calibration`` are the pinned pairs of a static int8 conversion and the tensors of each. Raises ``Blocked`` for one without them.
    """
    external = options.external_data
    if precision == "fp16":
        return _half(source, options.fp16, scratch / "half", checks, external=external)
    if precision == "int8":
        return _int8(source, options.int8, scratch / "int8", calibration, external=external)
    return source, None


def _half(
    source: Path, options: HalfOptions, scratch: Path, checks: Checks, *, external: bool
) -> tuple[Path, Conversion]:
    """The fp16 graph; when it is at fault and the fp32 graph is not, with the fewest nodes kept in fp32 that mend it."""
    made = 0
    mended: Path | None = None
    suspected: tuple[str, ...] = ()

    def attempt(kept: tuple[str, ...]) -> tuple[Path, str]:
        """The graph with ``kept`` in fp32, and its fault on the runtime or in the range of half precision."""
        nonlocal made, suspected, mended
        made += 1
        graph = _half_with(source, options, kept, scratch / str(made), external=external)
        fault = checks.trial(graph)
        if not fault:
            beyond = half_range.overflow(graph, checks.feed())
            suspected, fault = (*beyond.nodes, *beyond.takers), beyond.words
        if kept and fault:
            shutil.rmtree(graph.parent)  # of a model of gigabytes no disk holds every trial
        elif kept:
            if mended is not None:
                shutil.rmtree(mended.parent)
            mended = graph
        return graph, fault

    nodes = onnx_file.nodes_of(source)
    blocked = _block_list(options)
    listed = tuple(name for name, kind in nodes if kind in blocked)
    graph, fault = attempt(())
    search: Search | None = None
    if fault and not checks.trial(source):
        open_ = [(name, kind) for name, kind in nodes if kind not in blocked]
        search = keep.search(open_, fault, lambda kept: attempt(kept)[1], tuple(dict.fromkeys(suspected)))
    kept = search.kept if search is not None and search.repaired else ()
    high, low = _beyond(onnx_file.load(source))
    return mended or graph, Conversion(
        name=HALF_CONVERTER,
        options={
            "min_positive_val": MIN_POSITIVE,
            "max_finite_val": MAX_FINITE,
            "keep_io_types": options.keep_io,
            "op_block_list": ", ".join(sorted(blocked)),
        },
        clipped_high=high,
        clipped_low=low,
        kept_nodes=tuple(sorted({*listed, *kept})),
        search=search,
    )


def _half_with(source: Path, options: HalfOptions, kept: tuple[str, ...], folder: Path, *, external: bool) -> Path:
    from onnxruntime.transformers import float16

    half = float16.convert_float_to_float16(
        _with_shapes(source),
        min_positive_val=MIN_POSITIVE,
        max_finite_val=MAX_FINITE,
        keep_io_types=options.keep_io,
        op_block_list=_block_list(options),
        node_block_list=list(kept),
        disable_shape_infer=True,
    )
    _join_casts(half)
    return onnx_file.save(half, folder, external=external)


def _with_shapes(source: Path) -> Any:
    """The model with the dtype and shape of every value, which the converter goes by.

    Inferred without the external weights: the converter itself would put all into one message, and that ends at 2 GiB.
    """
    import onnx
    from onnx.external_data_helper import load_external_data_for_model

    model = onnx.shape_inference.infer_shapes(onnx_file.outline(source))
    load_external_data_for_model(model, str(source.parent))
    return model


def _join_casts(model: Any) -> None:
    """Take the way through fp16 out from between two nodes kept in fp32; the converter puts Casts around each of them alone."""
    from onnx import TensorProto

    def casts_to(node: Any, dtype: int) -> bool:
        return node.op_type == "Cast" and any(item.name == "to" and item.i == dtype for item in node.attribute)

    makers = {name: node for node in model.graph.node for name in node.output}
    for node in model.graph.node:
        maker = makers.get(node.input[0]) if casts_to(node, TensorProto.FLOAT) else None
        if maker is not None and casts_to(maker, TensorProto.FLOAT16):
            node.input[0] = maker.input[0]
    used = {name for node in model.graph.node for name in node.input} | {item.name for item in model.graph.output}
    unused = [node for node in model.graph.node if node.op_type == "Cast" and node.output[0] not in used]
    for node in unused:
        model.graph.node.remove(node)


def _block_list(options: HalfOptions) -> list[str]:
    from onnxruntime.transformers import float16

    return list(float16.DEFAULT_OP_BLOCK_LIST if options.block is None else options.block)


def _int8(
    source: Path,
    options: IntegerOptions,
    folder: Path,
    calibration: tuple[DataFact, Callable[[], Iterator[Feed]]] | None,
    *,
    external: bool,
) -> tuple[Path, Conversion]:
    from onnx import TensorProto
    from onnxruntime.quantization import QuantType, quantize_dynamic

    given, to = folder / "given" / onnx_file.GRAPH, folder / "written" / onnx_file.GRAPH
    to.parent.mkdir(parents=True)
    # A copy, since the quantiser writes beside what it reads, and that may be another target's artifact.
    onnx_file.copy(source, given)
    shared = {
        "weight_type": QuantType.QInt8,
        "per_channel": options.per_channel,
        "reduce_range": False,
        "use_external_data_format": external,
        "extra_options": {
            "DefaultTensorType": TensorProto.FLOAT
        },  # type inference ends at operators of the runtime's own
    }
    stated: dict[str, Value] = {"weight_type": "QInt8", "per_channel": options.per_channel, "reduce_range": False}
    if options.method == "dynamic":
        quantize_dynamic(str(given), str(to), **shared)
    else:
        if calibration is None:
            raise Blocked(
                "inputs.calibration: expected pairs for a static int8 conversion, got none; name them in the ladder"
            )
        stated |= _static(given, to, *calibration, shared)
    model = onnx_file.load(to)
    for made in (given, to):
        shutil.rmtree(made.parent)
    name = f"onnxruntime.quantization.quantize_{options.method}"
    done = Conversion(name=name, options=stated, clipped_high=0, clipped_low=0, kept_nodes=())
    return onnx_file.save(model, folder, external=external), done


def _static(
    source: Path, to: Path, facts: DataFact, feeds: Callable[[], Iterator[Feed]], shared: dict[str, Any]
) -> dict[str, Value]:
    """Write ``source`` with activations measured on the calibration pairs to ``to``; returns what is stated of that."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    reader = _Reader(feeds())
    quantize_static(
        str(source),
        str(to),
        reader,
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        op_types_to_quantize=list(STATIC_OPERATORS),
        **shared,
    )
    return {
        "activation_type": "QUInt8",
        "quant_format": "QDQ",
        "calibrate_method": "MinMax",
        "op_types_to_quantize": ", ".join(STATIC_OPERATORS),
        "calibration": facts.digest,
        "calibration_pairs": facts.rows,
        "calibration_batches": reader.given,
    }


class _Reader:
    """What the quantiser reads calibration tensors from, a batch a call. Duck-typed: its base class is only an interface."""

    def __init__(self, feeds: Iterator[Feed]) -> None:
        self._feeds = feeds
        self.given = 0

    def get_next(self) -> Feed | None:
        feed = next(self._feeds, None)
        self.given += feed is not None
        return feed


def _beyond(model: Any) -> tuple[int, int]:
    """How many finite fp32 constants are larger, and how many not zero but smaller, than the converter keeps."""
    import numpy as np

    high = low = 0
    for values in _constants(model):
        if values.dtype == np.float32:
            size = np.abs(values[np.isfinite(values)])
            high += int(np.count_nonzero(size > MAX_FINITE))
            low += int(np.count_nonzero((size > 0) & (size < MIN_POSITIVE)))
    return high, low


def _constants(model: Any) -> Iterator[NDArray[np.generic]]:
    """The values of all initializers and of the tensors in nodes' attributes, main graph only."""
    from onnx import numpy_helper

    yield from map(numpy_helper.to_array, model.graph.initializer)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield numpy_helper.to_array(attribute.t)
