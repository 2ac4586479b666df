"""The raw samples that the plots draw, or a sentence that says why there is nothing to draw.

A root may verify and still hold samples of another shape than its format says; a report then says so and goes on.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, TypeVar

import msgspec

from harness.derive_raw import Read
from harness.errors import RecordError
from harness.raw import BuildRaw, MemoryRaw, PerfRaw, PerQuery, QueryRow
from harness.records import GROUPS, Tier, from_json, step_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

R = TypeVar("R", BuildRaw, PerfRaw, MemoryRaw, PerQuery)

NOTHING = "The step left no samples."


class _Asked(msgspec.Struct, frozen=True):
    """What a report needs of a line of groups."""

    query_id: str
    query: str


class Source:
    """Verified bytes of a root by path, and which paths there are."""

    def __init__(self, read: Read, paths: Collection[str]) -> None:
        self._read = read
        self._paths = frozenset(paths)

    def build(self, target: str) -> BuildRaw | str:
        """How L0 made the artifact."""
        return self._record(f"{step_folder('L0', target)}/build.json", BuildRaw)

    def samples(self, target: str) -> PerfRaw | str:
        """L1's latencies, with at least one steady call."""
        found = self._record(f"{step_folder('L1', target)}/samples.json", PerfRaw)
        return "No steady call was measured." if isinstance(found, PerfRaw) and not found.steady_ms else found

    def memory(self, target: str) -> MemoryRaw | str:
        """L1's memory samples, as many sizes as times."""
        path = f"{step_folder('L1', target)}/memory.json"
        found = self._record(path, MemoryRaw)
        if isinstance(found, MemoryRaw) and not found.at_ms:
            return "No memory sample was taken."
        if isinstance(found, MemoryRaw) and len(found.at_ms) != len(found.rss_bytes):
            return f"{path}: expected one size for each time, got {len(found.rss_bytes)} for {len(found.at_ms)}"
        return found

    def logits(self, target: str) -> tuple[Floats, Floats] | str:
        """L2's logits, reference and artifact, shape (pairs,) float32 each, at least one pair."""
        import numpy as np

        folder = step_folder("L2", target)
        paths = [f"{folder}/{name}.f32" for name in ("reference", "artifact")]
        if not self._paths.issuperset(paths):
            return NOTHING
        data = [self._read(path) for path in paths]
        if not data[0] or len(data[0]) != len(data[1]) or len(data[0]) % 4:
            return f"{folder}: expected float32 logits of the same pairs, got {len(data[0])} and {len(data[1])} bytes"
        reference, artifact = (np.frombuffer(side, dtype="<f4") for side in data)
        return reference, artifact

    def queries(self, target: str) -> tuple[QueryRow, ...] | str:
        """L3's rows, one a query, in the order of the data."""
        found = self._record(f"{step_folder('L3', target)}/per_query.json", PerQuery)
        return found if isinstance(found, str) else found.rows

    def query_texts(self) -> dict[str, str]:
        """The queries' texts by id; empty when the root holds no groups that can be read. Documents are skipped over."""
        if GROUPS not in self._paths:
            return {}
        try:
            lines = msgspec.json.Decoder(_Asked).decode_lines(self._read(GROUPS))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return {}
        return {line.query_id: line.query for line in lines}

    def log_end(self, target: str, tier: Tier) -> list[str]:
        """The last lines of a step's error log, at most 20 of at most 300 characters; none when it is empty."""
        path = f"{step_folder(tier, target)}/stderr.log"
        if path not in self._paths:
            return []
        end = self._read(path)[-6000:].decode("utf-8", errors="replace")
        return [line[:300] for line in end.splitlines()[-20:]]

    def _record(self, path: str, kind: type[R]) -> R | str:
        if path not in self._paths:
            return NOTHING
        try:
            return from_json(self._read(path), kind, path)
        except RecordError as error:
            return str(error)
