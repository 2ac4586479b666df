"""Checks of an artifact that need the libraries: the full ONNX check, and probes of its shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.errors import Blocked
from harness.raw import Probe
from harness.runtimes import tokens
from harness.runtimes.batching import Layout, pad
from harness.runtimes.onnxruntime import first_line
from harness.runtimes.session import Session
from harness.runtimes.tokens import Encoded


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
