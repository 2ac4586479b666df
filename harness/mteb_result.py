"""The L3 figures of a root in mteb's own result format (``TaskResult``), one file a target. Pure; mteb is not needed.

A score stands under mteb's name only where it is what mteb would calculate, and the task's bare name only where the very task was
ranked: whole, no pair cut shorter than the candidate itself cuts it, and no query or judgement that mteb counts and L3 does not.
Anything else is named by what differs, and mteb takes it for no task of its own.
A functional smoke test is named as one, whatever else differs, since a name is all of this format that every table of results prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness import judge_rerank
from harness.errors import AskedWrongly
from harness.metrics.rerank_names import cut
from harness.records import DataFact, DataSource, Measurement, Plan
from harness.report import wording
from harness.root import RootRecords

SAME = ("ndcg_at_10", "mrr_at_10")
"""What L3 and mteb define alike, at any cut-off. Recall is not: L3 leaves out groups in which any order would do."""
OWN_MAIN = "ndcg_at_10"
"""The main score of data that is no task of mteb."""
DEEPEST = 1000
"""mteb cuts a ranking here, so MAP over a whole list is its ``map_at_1000`` where no list is longer."""
UNKNOWN = "und"
"""ISO 639-3 for a language that nobody stated. Without any language mteb would find no score in a result."""


def result(found: RootRecords, target: str) -> dict[str, Any]:
    """The result of one target. Raises ``AskedWrongly`` when the target has no L3 figures."""
    names = [planned.name for planned in found.plan.targets]
    if target not in names:
        raise AskedWrongly(f"target: expected one of {', '.join(names)}, got {target!r:.60}; name one of them")
    step = found.steps.get((target, "L3"))
    options, fact = found.plan.options.L3, found.plan.inputs.groups
    if step is None or step.measurements is None or options is None or fact is None:
        raise AskedWrongly(f"target {target}: expected figures of L3, got none; only a target that was ranked has any")
    source = options.data if isinstance(options.data, DataSource) else None
    scores = _scores(step.measurements.measurements, fact.counts["most_candidates"])
    about: dict[str, Any] = {
        "main_score": scores.get(fact.task.main_score if fact.task is not None else OWN_MAIN),
        "hf_subset": source.config if source is not None and source.config is not None else "default",
        "languages": list(fact.task.languages) if fact.task is not None else [UNKNOWN],
    }
    ended = step.outcome.exit
    return {
        "dataset_revision": source.revision if source is not None and source.revision is not None else fact.digest,
        "task_name": _task_name(
            found.plan, options.max_length, source, fact, smoke=bool(judge_rerank.smoke(step.outcome.findings))
        ),
        "mteb_version": found.environment.packages.get("mteb"),
        "scores": {source.split if source is not None else "test": [scores | about]},
        "evaluation_time": ended.seconds if ended is not None else None,
        "kg_co2_emissions": None,
        "date": step.outcome.ended_at,
    }


def _scores(measurements: tuple[Measurement, ...], longest: int) -> dict[str, float | None]:
    """By mteb's names what was measured; MAP under L3's own name where lists are longer than mteb looks."""
    renamed = {"map": f"map_at_{DEEPEST}"} if longest <= DEEPEST else {}
    wanted = [item for item in measurements if cut(item.metric).base in (*SAME, "map") and "." not in item.metric]
    return {renamed.get(item.metric, item.metric): _number(item.value) for item in wanted}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _task_name(plan: Plan, max_length: int, source: DataSource | None, fact: DataFact, *, smoke: bool) -> str:
    """The bare name only for the very task or file that is no smoke test; else with label and all that makes it another."""
    name = source.mteb if source is not None and source.mteb is not None else fact.source
    bounded = fact.bounds or fact.counts["source_read_to_its_end"] != 1
    differs = [wording.bounds(fact.bounds)] if bounded else []
    if max_length < plan.candidate.max_length:
        differs.append(f"at most {max_length} tokens a pair")
    if fact.task is not None:
        differs += _otherwise(fact.counts)
    said = [*([judge_rerank.SMOKE] if smoke else []), *([", ".join(differs)] if differs else [])]
    return f"{name} ({': '.join(said)})" if said else name


def _otherwise(counts: Mapping[str, int]) -> Iterator[str]:
    """What mteb counts in its means and L3 does not."""
    if unjudged := counts["without_positive"] + counts["positives_only"]:
        yield f"{unjudged} groups left out of the means"
    if unlisted := counts["queries_without_candidates"]:  # mteb takes them as 0
        yield f"{unlisted} queries without candidates left out"
    if elsewhere := counts["relevant_elsewhere"]:
        yield f"{elsewhere} relevant documents that are no candidates left out"
