"""L0 build: make the artifact, or take the one that was given, and find out what it is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from evidence import tree
from harness.errors import Blocked
from harness.metrics import onnx_graph
from harness.raw import BuildRaw, Conversion, Probe
from harness.records import BuildOptions, TierOptions
from harness.runtimes import RUNTIMES, tokens
from harness.runtimes.onnxruntime import LoadError, Session
from harness.stages import export, graph_checks
from harness.stages.job import Job
from harness.stages.reuse import earlier_export

STEPS = ("make", "check", "load", "probe", "head")


class _Made(NamedTuple):
    """How the artifact came to be: constants beyond half range before conversion, and what ``build.json`` says of export and conversion."""

    beyond_half: int | None
    conversion: Conversion | None = None
    warnings: tuple[str, ...] = ()
    export_from: str | None = None


def build(job: Job) -> None:
    """Write the artifact, ``artifact.json`` and ``build.json``."""
    request = job.request
    RUNTIMES[request.target.provider].require()
    names = tokens.inputs_of(request.candidate, job.model)
    phases: dict[str, float] = {}
    _tell(job, "make")
    made = _make(job, names, phases)
    job.state_artifact()
    _tell(job, "check")
    with export.timed(phases, "check"):
        faults = graph_checks.checker_faults(job.graph, job.clean)
    _tell(job, "load")
    session, load_error = _load(job)
    _tell(job, "probe")
    with export.timed(phases, "probe"):
        probes = _probes(job, session) if session is not None else ()
    _tell(job, "head")
    head, head_note = graph_checks.compare_head(job.graph, job.model)
    job.write_record(
        "build.json",
        BuildRaw(
            format=1,
            source="prebuilt" if request.target.artifact is not None else "exported",
            exporter=None if request.target.artifact is not None else request.options.L0.exporter,
            export_from=made.export_from,
            warnings=made.warnings,
            phases_s=phases,
            half_range_constants=made.beyond_half,
            conversion=made.conversion,
            checker_faults=faults,
            session=session.facts if session is not None else None,
            load_error=load_error,
            probes=probes,
            tokenizer_inputs=names,
            head=head,
            head_note=head_note,
        ),
    )


def _make(job: Job, names: tuple[str, ...], phases: dict[str, float]) -> _Made:
    """Put the artifact in its folder: the prebuilt files, or an export (new, or an earlier target's) converted as the target asks."""
    request = job.request
    if request.target.artifact is not None:
        _copy_prebuilt(job)
        return _Made(_beyond_half(job.graph))
    warned: tuple[str, ...] = ()
    earlier = earlier_export(job)
    source = job.root / earlier / "model.onnx" if earlier is not None else job.scratch / "export.onnx"
    if earlier is None:
        options, threads = request.options.L0, request.target.threads
        warned, seconds = export.export(job.model, request.candidate, options, names, threads, source)
        phases |= seconds
    with export.timed(phases, "convert"):
        converted = job.scratch / "converted.onnx"
        conversion = export.convert(source, request.target.precision, converted)
    _copy(converted if conversion is not None else source, job.graph)
    return _Made(_beyond_half(source), conversion, tuple(map(job.clean, warned)), earlier)


def longest_tokens(options: TierOptions, candidate_length: int) -> int:
    """The most tokens that any tier of the plan lets a pair have; 512 or what the candidate takes where no tier scores."""
    asked = [tier.max_length for tier in (options.L1, options.L2, options.L3) if tier is not None]
    return min(max(asked, default=512), candidate_length)


def probe_shapes(
    options: BuildOptions, fixed: tuple[int | None, int | None], prebuilt: bool, longest: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Batches and lengths to probe. What the ladder asked to be dynamic is probed as such; a prebuilt graph by its own dimensions."""
    batch, length = fixed if prebuilt else (None, None) if isinstance(options.shape, str) else options.shape
    lengths = tuple(sorted({*(n for n in graph_checks.LENGTHS if n <= longest), longest}))
    return (batch,) if batch else graph_checks.BATCHES, (length,) if length else lengths


def _probes(job: Job, session: Session) -> tuple[Probe, ...]:
    request = job.request
    longest = longest_tokens(request.options, request.candidate.max_length)
    batches, lengths = probe_shapes(request.options.L0, session.fixed, request.target.artifact is not None, longest)
    layout = job.layout(session.inputs, 1, (None, None))
    return tuple(graph_checks.probe(session, job.model, layout, batches, lengths, request.candidate))


def _load(job: Job) -> tuple[Session | None, str]:
    try:
        return RUNTIMES[job.request.target.provider].load(job.graph, job.request.target.threads), ""
    except LoadError as error:
        return None, job.clean(str(error))


def _beyond_half(graph: Path) -> int | None:
    """Constants that half precision cannot hold; None where the graph cannot be read or its external data is not there."""
    try:
        external = {
            item.location: (graph.parent / item.location).read_bytes()
            for item in onnx_graph.census(graph.read_bytes()).external
        }
        return onnx_graph.constants_beyond_half_range(graph.read_bytes(), external)
    except (OSError, ValueError):
        return None


def _copy_prebuilt(job: Job) -> None:
    """Copy the named files, never a link, and compare each with the digest the plan pins. Raises ``Blocked``."""
    pinned = job.request.target.artifact
    if pinned is None or job.prebuilt is None:
        raise Blocked("artifact: expected the place of the prebuilt file, got none")
    for fact in pinned.files:
        source = job.prebuilt.parent / fact.path
        if source.is_symlink() or not source.is_file():
            raise Blocked(f"artifact {fact.path}: expected a file, got {'a link' if source.is_symlink() else 'none'}")
        to = job.graph if fact.path == pinned.name else job.graph.parent / fact.path
        _copy(source, to)
        digest = tree.hash_file(to)
        if digest != fact.blake3:
            raise Blocked(
                f"artifact {fact.path}: expected blake3:{fact.blake3}, as planned, got blake3:{digest};"
                " it changed since: run again"
            )


def _copy(source: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as read, to.open("xb") as write:
        shutil.copyfileobj(read, write, 1 << 20)


def _tell(job: Job, step: str) -> None:
    job.progress(STEPS.index(step), len(STEPS), step)
