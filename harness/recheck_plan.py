"""The plan of a root held against its sealed ladder, and the groups against the plan; for ``recheck``. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from evidence.manifest import Fault
from harness import group_facts, ladder, made_by, plan, records, rerank_groups
from harness.differences import differences
from harness.errors import QualifyError
from harness.where import Where


def plan_faults(where: Where, place: str = "") -> Iterator[Fault]:
    """Q-LADDER: the same ladder, candidate and data give the same plan, so no limit was changed in between."""
    sealed, at = where.plan, place + records.LADDER
    ladder_bytes, rule = where.read(at), made_by.rule("Q-LADDER", where.foreign)
    try:
        asked = ladder.parse(ladder_bytes, records.LADDER)
        prebuilt = {t.name: t.artifact for t in sealed.targets if t.artifact is not None}
        made = plan.make(asked, ladder_bytes, sealed.candidate, sealed.inputs, prebuilt, sealed.only)
    except QualifyError as error:
        yield Fault(rule, at, f"{at}: expected a ladder that gives the sealed plan, got: {error}")
        return
    yield from differences(rule, place + records.PLAN, msgspec.to_builtins(sealed), msgspec.to_builtins(made))


def data_faults(where: Where) -> Iterator[Fault]:
    """Q-DATA: the groups counted again. That they are the bytes which the plan pins is for the bundle to say."""
    sealed = where.plan
    fact, options = sealed.inputs.groups, sealed.options.L3
    if fact is None or options is None:
        return
    try:
        groups = rerank_groups.read_groups(where.read(records.GROUPS)).counted
        found = group_facts.disagreements(fact, groups, options, sealed.seed)
    except (QualifyError, OSError, LookupError) as error:
        found = [f"expected groups, got: {error}"]
    for text in found:
        yield Fault(made_by.rule("Q-DATA", where.foreign), records.PLAN, f"{records.PLAN}: inputs.groups: {text}")
