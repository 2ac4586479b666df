"""Raw samples -> measurements. Pure: a worker and the verifier of a root call the very same function.

``read`` gives the bytes of a root-relative path; in the verifier they are bytes whose hash was just compared. Neither torch nor
onnx is needed. Every metric of the tier is given, in the order of the catalogue; what is unknown is null with a note.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harness import derive_build, derive_parity, derive_perf, derive_rerank
from harness.derive_raw import Read, Size
from harness.errors import RecordError
from harness.metrics.catalogue import METRICS, base
from harness.records import Measurement, Measurements, Request, Tier


def measure(request: Request, read: Read, size: Size | None = None) -> Measurements:
    """All measurements of the step. Raises ``RecordError`` naming a raw file that is missing or not what it should be.

    ``size`` gives the bytes of a file without reading it, where that is known: weights beside a graph are not read then.
    """
    derivations: dict[Tier, Callable[[Request, Read], list[Measurement]]] = {
        "L0": partial(derive_build.measurements, size=size or (lambda path: len(read(path)))),
        "L1": derive_perf.measurements,
        "L2": derive_parity.measurements,
        "L3": derive_rerank.measurements,
    }
    try:
        found = derivations[request.tier](request, read)
    except (ValueError, ArithmeticError) as error:  # what the arithmetic says to samples that no stage writes
        raise RecordError(f"{request.step}: expected raw samples that agree with each other, got: {error}") from error
    order = {name: place for place, name in enumerate(METRICS)}
    found.sort(key=lambda item: order[base(item.metric)])  # stable: parameters stay as they were made
    return Measurements(format=1, tier=request.tier, target=request.target.name, measurements=tuple(found))
