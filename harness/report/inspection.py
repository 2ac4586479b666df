"""An inspection on a terminal: one fact a line, what stands in the way first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from harness.inspect_model import Inspection
from harness.report import escape, view

WIDTH, NAMES = 80, 18


def text(found: Inspection) -> str:
    """The facts as lines of at most 80 columns, a newline at the end."""
    head = "can be qualified" if found.supported else "cannot be qualified"
    lines = [f"{escape.terminal(found.model)}: {head}"]
    if found.reason:
        lines += _row("why not", found.reason)
    for note in found.notes:
        lines += _row("note", note)
    for name, value in _facts(found):
        lines += _row(name, value)
    return "\n".join(lines) + "\n"


def _facts(found: Inspection) -> Iterator[tuple[str, str]]:
    sizes = found.sizes
    yield "revision", found.revision or "none, a folder is pinned by digest"
    yield "digest", _known(found.digest)
    yield "class", _known(found.architecture)
    yield "model type", _known(found.model_type)
    yield "task", _known(found.task)
    shape = ("layers", "hidden_size", "heads", "intermediate_size", "vocabulary")
    yield "layers and sizes", ", ".join(f"{name.replace('_', ' ')} {_number(sizes[name])}" for name in shape)
    if found.adapter is not None:
        yield "adapter", view.adapter_line(found.adapter)
    dtypes = ", ".join(f"{count:,} {dtype}" for dtype, count in found.weight_dtypes.items())
    yield "parameters", _number(found.parameters) + (f" ({dtypes})" if dtypes else "")
    yield "weights", f"{_number(found.weight_bytes)} bytes"
    yield "head", "; ".join(f"{item.name} {list(item.shape)}" for item in found.head) or "none"
    applied = f"{found.activation}, which is not applied: raw logits are compared" if found.activation else "none"
    yield "activation", applied
    yield "labels", f"{len(found.labels)}: {', '.join(found.labels[:5])}" if found.labels else "not stated"
    yield "positions", _number(sizes["positions"])
    yield "type vocabulary", _number(found.type_vocabulary)
    yield "padding", f"id {_number(found.padding_id)}, on the {found.padding_side}"
    yield "tokenizer", f"{_known(found.tokenizer)}; cuts on the {found.truncation_side}"
    yield "tokenizer inputs", ", ".join(found.tokenizer_inputs) or "unknown"
    yield "maximum length", f"{_number(found.max_length)} tokens"
    yield "exports", "; ".join(found.exports) or "nothing"
    yield "fp32 weights", f"{_number(found.fp32_bytes)} bytes; about half in fp16, a quarter in int8"


def _row(name: str, value: str) -> list[str]:
    shown = textwrap.wrap(escape.terminal(value), WIDTH - NAMES, break_on_hyphens=False) or [""]
    return [f"{name if place == 0 else '':<{NAMES}}{part}" for place, part in enumerate(shown)]


def _known(value: str | None) -> str:
    return value if value is not None else "unknown"


def _number(value: int | None) -> str:
    return f"{value:,}" if value is not None else "unknown"
