"""The logits of some pairs after each step of a build, so that L2 can name the step that moved them.

Export, optimisation and conversion are looked at apart: the fp32 export as it is, the same after ONNX Runtime's optimisations, and
the converted graph before them; the artifact on its own runtime is what L2 itself scores. All on ONNX Runtime's CPU provider, whatever
the target's is. For a prebuilt artifact there is one graph: as given, and optimised.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.derive_raw import raw_floats, raw_record
from harness.errors import Blocked
from harness.raw import StagesRaw
from harness.records import step_folder
from harness.runtimes import tokens
from harness.runtimes.batching import score_or_refuse
from harness.runtimes.onnxruntime import Provider
from harness.runtimes.session import LoadError
from harness.stages.job import Job
from harness.variants import subset

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.runtimes.tokens import Encoded

Step = Literal["export", "optimise", "convert"]


def stage_logits(job: Job, source: Path, converted: Path | None, export_from: str | None = None) -> None:
    """Write ``stages.json`` and ``stages.f32``; nothing where the plan has no L2, or when not even the first graph can be run.

    ``source`` is the fp32 export (or the prebuilt graph), ``converted`` the graph of another precision, ``export_from`` the artifact
    folder of an earlier target that the export was taken from.
    """
    options = job.request.options.L2
    if options is None:
        return
    pairs = job.pairs()
    whole = tokens.encodings_of(job.model, pairs)
    chosen = subset([min(len(one.ids), options.max_length) for one in whole], options, job.request.seed)
    part = tokens.encode(job.model, job.request.candidate, [pairs[index] for index in chosen], options.max_length)
    earlier = _earlier(job, export_from, chosen)
    steps: list[Step] = []
    found: list[NDArray[np.float32]] = []
    graphs: list[tuple[Step, Path, bool]] = [("export", source, False), ("optimise", source, True)]
    if earlier is not None:
        taken, logits = earlier
        steps, found, graphs = list(taken), list(logits), []
    if converted is not None:
        graphs.append(("convert", converted, False))
    for step, graph, optimised in graphs:
        scored = _score(job, part, graph, optimised)
        if scored is not None:
            steps.append(step)
            found.append(scored)
    if not steps:
        return
    import numpy as np

    job.write_floats("stages.f32", np.concatenate(found))
    job.write_record(
        "stages.json",
        StagesRaw(
            format=1,
            pairs=chosen,
            steps=tuple(steps),
            taken_from=_step_of(export_from) if earlier is not None else None,
        ),
    )


def _score(job: Job, encoded: Encoded, graph: Path, optimised: bool) -> NDArray[np.float32] | None:
    """The logits, NaN for a pair that the graph cannot take; None when it cannot be loaded or run, which L0 finds by itself."""
    options = job.request.options.L2
    assert options is not None
    try:
        session = Provider("CPUExecutionProvider", optimised).load(graph, job.request.target.threads)
        layout = job.layout(session.inputs, options.batch_size, session.fixed)
        return score_or_refuse(session.logits, encoded, layout, lambda _done: None)[0]
    except (Blocked, LoadError):
        return None
    except Exception:  # noqa: BLE001 - the probes of L0 say what the runtime raises; here it only leaves no number
        return None


def _earlier(job: Job, export_from: str | None, chosen: tuple[int, ...]) -> tuple[list[Step], list[Any]] | None:
    """The logits after export and optimisation that the target of the same export sealed."""
    if export_from is None:
        return None
    folder = _step_of(export_from)
    if not (job.root / folder / "stages.json").is_file():
        return None
    raw = raw_record(job.read, f"{folder}/stages.json", StagesRaw)
    if raw.pairs != chosen:
        return None
    logits = raw_floats(job.read, f"{folder}/stages.f32", len(raw.steps) * len(raw.pairs)).reshape(len(raw.steps), -1)
    kept = [(step, row) for step, row in zip(raw.steps, logits, strict=True) if step != "convert"]
    return [step for step, _ in kept], [row for _, row in kept]


def _step_of(artifact: str | None) -> str:
    return step_folder("L0", str(artifact).rpartition("/")[2])
