"""A checkpoint becomes an ONNX file: export in fp32, then conversion to fp16 or int8 where the target asks for it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import Blocked
from harness.raw import Conversion
from harness.records import BuildOptions, Candidate, Precision

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ONE_FILE_BYTES = 2_000_000_000
"""A protobuf message holds at most 2 GiB; what is larger needs external data."""

MIN_POSITIVE, MAX_FINITE = 5.96e-08, 65504.0
"""The least and the largest magnitude the fp16 converter keeps; values beyond are clipped to them."""


def export(
    model: Path, candidate: Candidate, options: BuildOptions, names: tuple[str, ...], threads: int, to: Path
) -> tuple[tuple[str, ...], dict[str, float]]:
    """Export the checkpoint in fp32 to ``to``; returns the warnings that were given, each once, and the seconds of each phase.

    Raises ``Blocked`` for a checkpoint too large for one file; what torch or transformers raise passes through.
    """
    from harness.runtimes.torch_eager import load_model

    if candidate.parameters * 4 > ONE_FILE_BYTES:
        raise Blocked(
            f"artifact: expected a checkpoint of at most {ONE_FILE_BYTES // 4:,} parameters, so that its fp32 graph fits one"
            f" file, got {candidate.parameters:,}; export it with external data and name that file as the target's artifact"
        )
    phases: dict[str, float] = {}
    with timed(phases, "load_checkpoint"):
        module = load_model(model, threads)
    with warnings.catch_warnings(record=True) as caught, timed(phases, "export"):
        warnings.simplefilter("always")
        _export(module, _sample(candidate, options, names), options, candidate.max_length, to)
        _strip(to)
    messages = (f"{item.category.__name__}: {' '.join(str(item.message).split())[:300]}" for item in caught)
    return tuple(dict.fromkeys(messages)), phases


def convert(source: Path, precision: Precision, to: Path) -> Conversion | None:
    """Write ``source`` in ``precision`` to ``to`` and say how; None and no file for fp32, which ``source`` is already."""
    if precision == "fp16":
        return _to_half(source, to)
    if precision == "int8":
        return _to_int8(source, to)
    return None


def _sample(candidate: Candidate, options: BuildOptions, names: tuple[str, ...]) -> dict[str, Any]:
    """Tensors to trace with: two rows, one of them padded, so that no branch on a full mask is taken for good."""
    import torch

    batch, length = (2, min(16, candidate.max_length)) if isinstance(options.shape, str) else options.shape
    dtype = torch.int64 if options.integers == "int64" else torch.int32
    ones = torch.ones(batch, length, dtype=dtype)
    mask = ones.clone()
    mask[-1, length // 2 :] = 0
    ids = torch.where(mask == 1, 2 if candidate.pad_token_id == 1 else 1, candidate.pad_token_id).to(dtype)
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ones)}
    return {name: given[name] for name in names}


def _export(module: Any, sample: dict[str, Any], options: BuildOptions, longest: int, to: Path) -> None:
    import torch

    module.config.return_dict = False  # a tuple of the logits alone: one output to name
    names = list(sample)
    shared = {"kwargs": sample, "input_names": names, "output_names": ["logits"], "opset_version": options.opset}
    dynamic = isinstance(options.shape, str)
    with torch.no_grad():
        if options.exporter == "torchscript":
            axes = {name: {0: "batch", 1: "sequence"} for name in names} | {"logits": {0: "batch"}}
            torch.onnx.export(module, (), str(to), dynamo=False, dynamic_axes=axes if dynamic else None, **shared)
        else:
            dims = {0: torch.export.Dim("batch", min=1), 1: torch.export.Dim("sequence", min=1, max=longest)}
            shapes = dict.fromkeys(names, dims) if dynamic else None
            torch.onnx.export(module, (), str(to), dynamo=True, external_data=False, dynamic_shapes=shapes, **shared)


def _strip(path: Path) -> None:
    """Take out stack traces and doc strings: they name files of this machine and make two exports differ."""
    import onnx

    model = onnx.load(str(path))
    model.doc_string = model.graph.doc_string = ""
    model.ClearField("metadata_props")
    model.graph.ClearField("metadata_props")
    for node in _nodes(model):
        node.ClearField("metadata_props")
        node.doc_string = ""
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer):
        value.ClearField("metadata_props")
        value.doc_string = ""
    onnx.save(model, str(path))


def _nodes(model: Any) -> Iterator[Any]:
    yield from model.graph.node
    for function in model.functions:
        yield from function.node


def _to_half(source: Path, to: Path) -> Conversion:
    import onnx
    from onnxruntime.transformers import float16

    model = onnx.load(str(source))
    blocked = set(float16.DEFAULT_OP_BLOCK_LIST)
    high, low = _beyond(model)
    kept = tuple(node.name for node in model.graph.node if node.op_type in blocked)
    onnx.save(
        float16.convert_float_to_float16(
            model, min_positive_val=MIN_POSITIVE, max_finite_val=MAX_FINITE, keep_io_types=True
        ),
        str(to),
    )
    return Conversion(
        name="onnxruntime.transformers.float16.convert_float_to_float16",
        options={"min_positive_val": MIN_POSITIVE, "max_finite_val": MAX_FINITE, "keep_io_types": True},
        clipped_high=high,
        clipped_low=low,
        kept_nodes=kept,
    )


def _to_int8(source: Path, to: Path) -> Conversion:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(str(source), str(to), weight_type=QuantType.QInt8, per_channel=False, reduce_range=False)
    return Conversion(
        name="onnxruntime.quantization.quantize_dynamic",
        options={"weight_type": "QInt8", "per_channel": False, "reduce_range": False},
        clipped_high=0,
        clipped_low=0,
        kept_nodes=(),
    )


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


@contextmanager
def timed(phases: dict[str, float], name: str) -> Iterator[None]:
    """Record the wall seconds of the block under ``name``."""
    begin = time.perf_counter()
    yield
    phases[name] = time.perf_counter() - begin
