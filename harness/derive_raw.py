"""Raw files of a step as values, and measurements with the unit of the catalogue: what all derivations share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from harness.errors import RecordError
from harness.metrics.catalogue import METRICS, base
from harness.records import Measurement, Record, Value, from_json, measured

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Read = Callable[[str], bytes]
"""Root-relative path to bytes; in the verifier their hash was just compared."""
Size = Callable[[str], int]
"""Root-relative path to the number of its bytes, for a file that need not be read."""
Kind = TypeVar("Kind", bound=Record)
T = TypeVar("T")

NOT_ASKED = "the ladder asks for none"


def raw_bytes(read: Read, path: str) -> bytes:
    """Bytes of a raw file. Raises ``RecordError`` when it is not there."""
    return _there(read, path)


def raw_size(size: Size, path: str) -> int:
    """How many bytes a raw file has. Raises ``RecordError`` when it is not there."""
    return _there(size, path)


def _there(look: Callable[[str], T], path: str) -> T:
    try:
        return look(path)
    except (OSError, LookupError) as error:
        raise RecordError(
            f"{path}: expected the raw samples of a step, got no such file; the root is not whole"
        ) from error


def kept(read: Read, wanted: str) -> Read:
    """A reader that has one file at hand once it was read, which may be large and is asked for often."""
    found: list[bytes] = []

    def again(path: str) -> bytes:
        if path != wanted:
            return read(path)
        if not found:
            found.append(read(path))
        return found[0]

    return again


def raw_record(read: Read, path: str, kind: type[Kind]) -> Kind:
    """A raw JSON record. Raises ``RecordError``."""
    return from_json(raw_bytes(read, path), kind, path)


def raw_floats(read: Read, path: str, count: int) -> NDArray[np.float32]:
    """A flat float32 file of exactly ``count`` numbers. Raises ``RecordError``."""
    import numpy as np

    data = raw_bytes(read, path)
    if len(data) != 4 * count:
        raise RecordError(f"{path}: expected {count} float32 of 4 bytes, got {len(data)} bytes; the root is not whole")
    return np.frombuffer(data, dtype="<f4")


def make(
    metric: str,
    value: Value,
    *,
    interval: tuple[float, float] | None = None,
    samples: int | None = None,
    note: str = "",
) -> Measurement:
    """A measurement with the unit that the catalogue gives the metric."""
    unit = METRICS[base(metric)].unit
    return measured(metric, value, unit, interval=interval, samples=samples, note=note)


def supported(
    metric: str,
    samples: Sequence[float],
    value: float | None,
    needed: int,
    interval: tuple[float, float] | None = None,
    note: str = "",
) -> Measurement:
    """A percentile, null with a note where there are fewer samples than it needs."""
    count = len(samples)
    if count < needed:
        return make(metric, None, samples=count, note=f"needs at least {needed} samples, has {count}")
    return make(metric, value, interval=interval, samples=count, note=note)
