"""The time as records spell it."""

from __future__ import annotations

import datetime as dt


def now() -> str:
    """UTC, RFC 3339 with milliseconds and ``Z``."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
