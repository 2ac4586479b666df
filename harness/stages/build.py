"""L0 build: make the artifact, or take the one that was given, and find out what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from harness import data
from harness.derive_raw import raw_record
from harness.errors import Blocked
from harness.files import hash_file
from harness.metrics import onnx_graph
from harness.probes import longest_tokens, probe_shapes
from harness.raw import BuildRaw, Conversion, Export, Probe
from harness.records import CALIBRATION, DataFact, step_folder
from harness.runtimes import RUNTIMES, tokens
from harness.runtimes.batching import batches, pad
from harness.runtimes.session import LoadError, Session
from harness.stages import convert, export, graph_checks, head, onnx_file, optimise
from harness.stages.adapter import with_adapter_merged
from harness.stages.export import timed
from harness.stages.job import Job
from harness.stages.reuse import earlier_export
from harness.stages.stage_logits import stage_logits

STEPS = ("make", "check", "load", "probe", "head")


class _Made(NamedTuple):
    """How the artifact came to be: constants beyond half range before conversion, and what ``build.json`` says of export and conversion."""

    beyond_half: int | None
    export: Export | None = None
    conversion: Conversion | None = None
    warnings: tuple[str, ...] = ()
    export_from: str | None = None


def build(job: Job) -> None:
    """Write the artifact, ``artifact.json`` and ``build.json``."""
    RUNTIMES[job.request.target.provider].require()
    job = with_adapter_merged(job)
    request = job.request
    names = tokens.inputs_of(request.candidate, job.model)
    phases: dict[str, float] = {}
    _tell(job, "make")
    made = _make(job, names, phases)
    job.state_artifact()
    _tell(job, "check")
    with timed(phases, "check"):
        faults = graph_checks.checker_faults(job.graph, job.clean)
    _tell(job, "load")
    session, load_error = _load(job)
    _tell(job, "probe")
    with timed(phases, "probe"):
        probes = _probes(job, session) if session is not None else ()
    with timed(phases, "executed"):
        executed = optimise.executed(job.graph, request.target.provider, job.scratch) if session is not None else None
    _tell(job, "head")
    with timed(phases, "head"):
        match, note = head.compare_head(job.graph, job.model)
    job.write_record(
        "build.json",
        BuildRaw(
            format=1,
            source="prebuilt" if request.target.artifact is not None else "exported",
            exporter=None if request.target.artifact is not None else request.options.L0.exporter,
            export_from=made.export_from,
            export=made.export,
            warnings=made.warnings,
            phases_s=phases,
            half_range_constants=made.beyond_half,
            conversion=made.conversion,
            checker_faults=faults,
            session=session.facts if session is not None else None,
            load_error=load_error,
            probes=probes,
            executed=executed,
            tokenizer_inputs=names,
            head=match,
            head_note=note,
            activations=head.activations(job.graph),
        ),
    )


def _make(job: Job, names: tuple[str, ...], phases: dict[str, float]) -> _Made:
    """Put the artifact in its folder: the prebuilt files, or an export (new, or an earlier target's) converted as the target asks."""
    request = job.request
    options = request.options.L0
    if request.target.artifact is not None:
        _copy_prebuilt(job)
        stage_logits(job, job.graph, None)
        return _Made(_beyond_half(job.graph))
    earlier = earlier_export(job)
    facts: Export | None
    warned: tuple[str, ...] = ()
    if earlier is None:
        new = export.export(job.model, request.candidate, options, names, request.target.threads, job.scratch)
        phases |= new.phases_s
        source, facts, warned = new.graph, new.facts, tuple(map(job.clean, new.warnings))
    else:
        source = job.root / earlier / onnx_file.GRAPH
        step = step_folder("L0", earlier.rpartition("/")[2])
        facts = raw_record(job.read, f"{step}/build.json", BuildRaw).export
    with timed(phases, "convert"):
        calibration = _calibration(job, names)
        checks = convert.Checks(_trial(job), lambda: _feed(job, names))
        graph, conversion = convert.convert(source, request.target.precision, options, job.scratch, checks, calibration)
    onnx_file.copy(graph, job.graph)
    with timed(phases, "stages"):
        stage_logits(job, source, job.graph if conversion is not None else None, earlier)
    return _Made(_beyond_half(source), facts, conversion, warned, earlier)


def _trial(job: Job) -> Callable[[Path], str]:
    """What is wrong with a graph on the target's runtime: it does not load, or a short or padded probe is at fault."""
    target = job.request.target
    longest = longest_tokens(job.request.options, job.request.candidate.max_length)

    def fault(graph: Path) -> str:
        try:
            session = RUNTIMES[target.provider].load(graph, target.threads, target.session)
        except LoadError as error:
            return job.clean(str(error))
        batches, lengths = probe_shapes(job.request.options.L0, session.fixed, prebuilt=False, longest=longest)
        chosen = batches[-1:], lengths[:: max(1, len(lengths) - 1)]
        layout = job.layout(session.inputs, 1, (None, None))
        probed = graph_checks.probe(session, job.model, layout, *chosen, job.request.candidate)
        return next((item.fault for item in probed if item.fault), "")

    return fault


def _feed(job: Job, names: tuple[str, ...]) -> convert.Feed:
    """A short and a padded pair as the tensors of one batch."""
    options = job.request.options.L0
    rows, length = (2, min(16, job.request.candidate.max_length)) if isinstance(options.shape, str) else options.shape
    text = "how the model scores a pair"
    encoded = tokens.encode(job.model, job.request.candidate, [(text, text), (text, "")], length)
    return pad(
        encoded,
        [n % 2 for n in range(rows)],
        length,
        job.layout(dict.fromkeys(names, options.integers), 1, (None, None)),
    )


def _calibration(job: Job, names: tuple[str, ...]) -> tuple[DataFact, Callable[[], Iterator[convert.Feed]]] | None:
    """The pinned pairs of a static conversion, each as the tensors of a batch that the graph takes."""
    facts, options = job.request.inputs.calibration, job.request.options.L0
    if facts is None:
        return None

    def feeds() -> Iterator[convert.Feed]:
        longest = longest_tokens(job.request.options, job.request.candidate.max_length)
        pairs = [(pair.query, pair.document) for pair in data.read_pairs(job.read(CALIBRATION), CALIBRATION)]
        encoded = tokens.encode(job.model, job.request.candidate, pairs, longest)
        fixed = (None, None) if isinstance(options.shape, str) else options.shape
        layout = job.layout(dict.fromkeys(names, options.integers), 1, fixed)
        yield from (batch.tensors for batch in batches(encoded, layout))

    return facts, feeds


def _probes(job: Job, session: Session) -> tuple[Probe, ...]:
    request = job.request
    longest = longest_tokens(request.options, request.candidate.max_length)
    batches, lengths = probe_shapes(request.options.L0, session.fixed, request.target.artifact is not None, longest)
    layout = job.layout(session.inputs, 1, (None, None))
    return tuple(graph_checks.probe(session, job.model, layout, batches, lengths, request.candidate))


def _load(job: Job) -> tuple[Session | None, str]:
    try:
        target = job.request.target
        return RUNTIMES[target.provider].load(job.graph, target.threads, target.session), ""
    except LoadError as error:
        return None, job.clean(str(error))


def _beyond_half(graph: Path) -> int | None:
    """Constants that half precision cannot hold; None where the graph cannot be read or its external data is not there."""
    try:
        external = {name: (graph.parent / name).read_bytes() for name in onnx_file.files(graph)}
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
        onnx_file.copy_file(source, to)
        digest = hash_file(to)
        if digest != fact.blake3:
            raise Blocked(
                f"artifact {fact.path}: expected blake3:{fact.blake3}, as planned, got blake3:{digest};"
                " it changed since: run again"
            )


def _tell(job: Job, step: str) -> None:
    job.progress(STEPS.index(step), len(STEPS), step)
