"""The order of the tests: what climbs longest starts first, so that no worker waits for it at the end."""

from __future__ import annotations

import pytest

LONGEST = {"test_compared.py", "test_quickstart.py"}
"""Each of these climbs for a minute or two before its first test; the first is among the slow ones."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest where the second of two workers begins; ``worksteal`` gives each an equal run of the list."""
    first = [item for item in items if item.path.name in LONGEST]
    others = [item for item in items if item.path.name not in LONGEST]
    half = len(items) // 2
    items[:] = [*others[:half], *first, *others[half:]]
