"""Which line of a dataset's JSONL files is broken: ``datasets`` parses many at once, and says at best how far into these the fault is."""

from __future__ import annotations

import json
from collections.abc import Sequence

from harness.data import has_surrogate

SEARCHED_BYTES = 32 << 20
"""How far beyond the last row that was read a broken line is looked for: ``datasets`` parses 10 MiB at a time."""


def broken_line(files: Sequence[str], revision: str, count: int) -> str:
    """The first line after ``count`` rows that is not JSON, with its file and number and what is wrong; empty when there is none.

    ``files`` are places as ``datasets`` names them, on a hub or in its cache, in the order in which they are read. They are read again
    as far as that line. Raises whatever the client and the network raise.
    """
    from datasets.download import DownloadConfig
    from datasets.utils.file_utils import xopen

    seen = searched = 0
    for place in files:
        with xopen(place, "rb", download_config=DownloadConfig()) as file:
            for number, line in enumerate(file, 1):
                seen += bool(line.strip())
                if seen <= count or not line.strip():
                    continue
                if fault := _fault(line):
                    name = place.partition(f"{revision}/")[2] or place.rpartition("/")[2]
                    return f"{name} line {number}: expected JSON, got {fault}"
                searched += len(line)
                if searched > SEARCHED_BYTES:
                    return ""
    return ""


def _fault(line: bytes) -> str:
    try:
        value = json.loads(line.rstrip())
    except json.JSONDecodeError as error:
        return f"{error.msg[0].lower()}{error.msg[1:]} at character {error.pos + 1}"
    except UnicodeDecodeError as error:
        return f"bytes that are not UTF-8 at byte {error.start + 1}"
    return "a lone surrogate, \\ud800 to \\udfff" if has_surrogate(value) else ""
