"""Checks of an artifact that need the libraries: the full ONNX check, the head against the checkpoint's, and probes of its shapes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import Blocked
from harness.raw import HeadMatch, Probe
from harness.runtimes import tokens
from harness.runtimes.batching import Layout, pad
from harness.runtimes.onnxruntime import Session, first_line
from harness.runtimes.tokens import Encoded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BATCHES = (1, 2, 3, 7)
LENGTHS = (1, 8, 13)
"""Probed besides the maximum; 13 is odd and prime, so no tile or power of two hides a fault."""

_HEAD = re.compile(r"(^|\.)(classifier|score)(\.|$)")


def checker_faults(graph: Path, clean: Callable[[str], str]) -> tuple[str, ...]:
    """What ``onnx.checker`` with strict shape inference says against the file; it stops at the first fault."""
    import onnx

    try:
        onnx.checker.check_model(str(graph), full_check=True)
    except Exception as error:  # noqa: BLE001 - the library raises RuntimeError, ValidationError, InferenceError and others
        return (clean(f"{type(error).__name__}: {first_line(error)}"),)
    return ()


def probe(
    session: Session, model: Path, layout: Layout, batches: tuple[int, ...], lengths: tuple[int, ...], candidate: Any
) -> Iterator[Probe]:
    """Call the session at every batch and length; in a batch of several the last row is padding but for its first token."""
    text = "how the model scores a pair is what matters " * max(lengths)
    whole = tokens.encode(model, candidate, [(text, text)], max(8, *lengths))
    for length in lengths:
        for batch in batches:
            ids, segments = whole.ids[0][:length], whole.segments[0][:length]
            rows = [length] * batch
            if batch > 1:
                rows[-1] = 1
            encoded = Encoded(tuple(ids[:n] for n in rows), tuple(segments[:n] for n in rows), 0)
            yield Probe(batch=batch, length=length, fault=_fault(session, encoded, length, layout))


def _fault(session: Session, encoded: Encoded, length: int, layout: Layout) -> str:
    import numpy as np

    rows = len(encoded.ids)
    try:
        logits = session.logits(pad(encoded, range(rows), length, layout))
    except Blocked as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever the runtime raises is what the probe is for
        return f"{type(error).__name__}: {first_line(error)}"
    bad = np.flatnonzero(~np.isfinite(logits))
    if bad.size:
        row = int(bad[0])
        return f"row {row} with {len(encoded.ids[row])} of {length} tokens not padding: logit {logits[row]}"
    return ""


def compare_head(graph: Path, model: Path) -> tuple[tuple[HeadMatch, ...], str]:
    """Each head tensor of the checkpoint against the graph's tensor of its name, or the closest of its shape; and a note if there is none.

    The head is the last linear layer: a weight of shape (1, width) below ``classifier`` or ``score``, with its bias. The graph may
    hold it transposed, and in int8 with scale and zero point; its bias is compared only where its name was kept.
    """
    import onnx

    head = dict(_head_tensors(model))
    if not head:
        return (), "the checkpoint holds no classifier weight of shape (1, width)"
    try:
        stored = dict(_graph_tensors(onnx.load(str(graph))))
    except Exception as error:  # noqa: BLE001 - an unreadable graph is a finding of the checker, not of this comparison
        return (), f"the graph cannot be read: {type(error).__name__}"
    found = [match for name, values in head.items() if (match := _closest(name, values, stored)) is not None]
    if not any(match.tensor.endswith("weight") for match in found):
        width = next(iter(head.values())).size
        return tuple(found), f"no tensor of the graph has the shape (1, {width}) of the checkpoint's head"
    return tuple(found), ""


def _closest(name: str, values: Floats, stored: dict[str, Floats]) -> HeadMatch | None:
    import numpy as np

    named = [key for key in stored if key == name or key.startswith(f"{name}_") or key.endswith(f".{name}")]
    same = [key for key in named if stored[key].size == values.size]
    if not same and values.size > 1:
        same = [key for key, other in stored.items() if sorted(other.shape) == sorted(values.shape)]
    if not same:
        return None
    scale = float(np.abs(values).max()) or 1.0
    gaps = {key: float(np.abs(stored[key].ravel() - values.ravel()).max()) / scale for key in same}
    key = min(gaps, key=lambda item: gaps[item] if np.isfinite(gaps[item]) else np.inf)
    return HeadMatch(tensor=name, matched=key, gap_ratio=gaps[key] if np.isfinite(gaps[key]) else None)


def _head_tensors(model: Path) -> Iterator[tuple[str, Floats]]:
    """The last linear layer in the checkpoint's safetensors: weight first, then bias."""
    import onnx  # noqa: F401 - numpy knows bfloat16 once it is imported
    from safetensors import safe_open

    for path in sorted(model.glob("*.safetensors")):
        with safe_open(path, framework="np") as file:
            names = set(file.keys())
            for name in sorted(names):
                if not name.endswith(".weight") or not _HEAD.search(name):
                    continue
                weight = file.get_tensor(name).astype("float64")
                if weight.ndim != 2 or weight.shape[0] != 1:
                    continue
                yield name, weight
                bias = name.removesuffix("weight") + "bias"
                if bias in names:
                    yield bias, file.get_tensor(bias).astype("float64")


def _graph_tensors(model: Any) -> Iterator[tuple[str, Floats]]:
    """Floating-point tensors of the graph by name, quantised ones as the numbers they stand for."""
    import numpy as np
    from onnx import numpy_helper

    tensors = {item.name: item for item in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            tensors[node.output[0]] = node.attribute[0].t
    for name, tensor in tensors.items():
        values = numpy_helper.to_array(tensor)
        base = name.removesuffix("_quantized")
        scale, zero = tensors.get(f"{base}_scale"), tensors.get(f"{base}_zero_point")
        if base != name and scale is not None and zero is not None:
            offset = numpy_helper.to_array(zero).astype(np.float64)
            yield name, (values.astype(np.float64) - offset) * numpy_helper.to_array(scale).astype(np.float64)
        elif np.issubdtype(values.dtype, np.floating):
            yield name, values.astype(np.float64)
