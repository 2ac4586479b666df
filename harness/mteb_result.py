"""The L3 figures of a root in mteb's own result format (``TaskResult``), one file a target. Pure; mteb is not needed.

A bounded set is not the benchmark: the task's name then says so, and mteb takes it for no task of its own. A functional smoke test is
named as one, whatever its bounds, since a name is all of this format that every table of results prints.
"""

from __future__ import annotations

from typing import Any

from harness import judge_rerank
from harness.errors import AskedWrongly
from harness.records import DataFact, DataSource, Measurement
from harness.report import wording
from harness.root import RootRecords

SCORES = ("ndcg_at_10", "mrr_at_10", "map")
MAIN = "ndcg_at_10"


def result(found: RootRecords, target: str) -> dict[str, Any]:
    """The result of one target. Raises ``AskedWrongly`` when the target has no L3 figures."""
    names = [planned.name for planned in found.plan.targets]
    if target not in names:
        raise AskedWrongly(f"target: expected one of {', '.join(names)}, got {target!r:.60}; name one of them")
    step = found.steps.get((target, "L3"))
    options, fact = found.plan.options.L3, found.plan.inputs.groups
    if step is None or step.measurements is None or options is None or fact is None:
        raise AskedWrongly(f"target {target}: expected figures of L3, got none; only a target that was ranked has any")
    measured = {item.metric: item for item in step.measurements.measurements}
    source = options.data if isinstance(options.data, DataSource) else None
    scores: dict[str, Any] = {name: _number(measured, name) for name in SCORES if name in measured}
    about: dict[str, Any] = {"main_score": scores.get(MAIN), "hf_subset": _subset(source), "languages": []}
    ended = step.outcome.exit
    return {
        "dataset_revision": source.revision if source is not None and source.revision is not None else fact.digest,
        "task_name": _task_name(source, fact, smoke=bool(judge_rerank.smoke(step.outcome.findings))),
        "mteb_version": found.environment.packages.get("mteb"),
        "scores": {source.split if source is not None else "test": [scores | about]},
        "evaluation_time": ended.seconds if ended is not None else None,
        "kg_co2_emissions": None,
        "date": step.outcome.ended_at,
    }


def _number(measured: dict[str, Measurement], name: str) -> float | None:
    value = measured[name].value
    return float(value) if isinstance(value, int | float) else None


def _subset(source: DataSource | None) -> str:
    return source.config if source is not None and source.config is not None else "default"


def _task_name(source: DataSource | None, fact: DataFact, *, smoke: bool) -> str:
    """Mteb's own name only for a whole task that is no smoke test; anything else is named by source, label and bounds."""
    name = source.mteb if source is not None and source.mteb is not None else fact.source
    whole = not fact.bounds and fact.counts["source_read_to_its_end"] == 1
    said = [*([judge_rerank.SMOKE] if smoke else []), *([] if whole else [wording.bounds(fact.bounds)])]
    return f"{name} ({': '.join(said)})" if said else name
