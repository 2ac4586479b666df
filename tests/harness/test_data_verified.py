"""A verifier counts the sealed groups again: a plan that says other things of them does not hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from evidence.verify import open_root
from harness import records
from harness.recheck import rejudge
from harness.records import Plan, from_json, to_json


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rows": 80}, "rows: expected 8, got 80"),
        ({"bounds": {"groups": 100}}, "bounds: expected {}, got {'groups': 100}"),
        ({"notes": ()}, "notes: expected ("),
    ],
)
def test_a_plan_that_says_other_things_of_the_groups_is_found_out(
    tiny_root: Path, changes: dict[str, Any], said: str
) -> None:
    opened = open_root(tiny_root)
    honest = from_json(opened.read(records.PLAN), Plan, records.PLAN)
    assert honest.inputs.groups is not None
    replace = msgspec.structs.replace
    told = replace(honest, inputs=replace(honest.inputs, groups=replace(honest.inputs.groups, **changes)))

    def read(path: str) -> bytes:
        return to_json(told) if path == records.PLAN else opened.read(path)

    found = [fault.message for fault in rejudge(read, opened.paths).faults if fault.rule == "Q-DATA"]
    assert len(found) == 1
    assert found[0].startswith(f"plan.json: inputs.groups: {said}")
