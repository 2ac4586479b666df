"""What L0 states besides its numbers, held against the plan, the artifact and the export it was made from. Pure; for ``crosscheck``."""

from __future__ import annotations

from collections.abc import Iterator

from harness import sealed_files
from harness.derive_build import HALF_CONVERTER
from harness.derive_raw import Read, raw_bytes, raw_floats, raw_record
from harness.derive_session import planned, stated
from harness.probes import longest_tokens, probe_shapes
from harness.raw import BuildRaw, StagesRaw
from harness.records import Exit, Request, step_folder
from harness.where import Difference, Where, fixed, spent


def build(request: Request, ended: Exit, where: Where) -> Iterator[Difference]:
    """Every statement of ``build.json``, ``stages.json`` and the artifact that can be compared."""
    raw, file = raw_record(where.read, f"{request.step}/build.json", BuildRaw), "build.json"
    prebuilt = request.target.artifact is not None
    yield file, "source", "prebuilt" if prebuilt else "exported", raw.source
    yield file, "exporter", None if prebuilt else request.options.L0.exporter, raw.exporter
    name, options = _conversion(request)
    yield file, "conversion", name, raw.conversion.name if raw.conversion is not None else None
    made = raw.conversion.options if raw.conversion is not None else {}
    yield file, "conversion options that the plan gives", options, {key: made.get(key) for key in options}
    yield file, "a load_error only without a session", raw.session is None, bool(raw.load_error)
    if raw.session is not None:
        yield file, "session", planned(request.target), stated(raw.session)
        yield file, "probes", _probes(request, where), tuple((probe.batch, probe.length) for probe in raw.probes)
    load_s = raw.session.load_ms / 1000 if raw.session is not None else 0.0
    yield spent(file, [*raw.phases_s.values(), load_s], ended)
    yield from _export(request, raw, where)
    yield from _stages(request, raw, where)
    yield from _artifact(request, where)


def _conversion(request: Request) -> tuple[str | None, dict[str, object]]:
    """The converter that the plan asks for, and those of its options that the plan gives."""
    options, target = request.options.L0, request.target
    if target.artifact is not None or target.precision == "fp32":
        return None, {}
    if target.precision == "fp16":
        block = options.fp16.block
        listed: dict[str, object] = {"op_block_list": ", ".join(sorted(block))} if block is not None else {}
        return HALF_CONVERTER, {"keep_io_types": options.fp16.keep_io} | listed
    facts = request.inputs.calibration if options.int8.method == "static" else None
    pinned = {"calibration": facts.digest, "calibration_pairs": facts.rows} if facts is not None else {}
    name = f"onnxruntime.quantization.quantize_{options.int8.method}"
    return name, {"per_channel": options.int8.per_channel} | pinned


def _probes(request: Request, where: Where) -> tuple[tuple[int, int], ...]:
    """Batch and length of every planned probe, in order."""
    longest = longest_tokens(request.options, request.candidate.max_length)
    prebuilt = request.target.artifact is not None
    batches, lengths = probe_shapes(request.options.L0, fixed(request, where), prebuilt, longest)
    return tuple((batch, length) for length in lengths for batch in batches)


def _export(request: Request, raw: BuildRaw, where: Where) -> Iterator[Difference]:
    """An export that was taken over is that of a planned fp32 target, fact by fact."""
    if raw.export_from is None:
        return
    others = [t for t in where.plan.targets if (t.precision, t.artifact) == ("fp32", None) and t != request.target]
    named = {f"artifacts/{other.name}": step_folder("L0", other.name) for other in others}
    source = named.get(raw.export_from)
    yield "build.json", "export_from", True, source is not None and where.sealed(f"{source}/build.json") is not None
    theirs = where.same(f"{source}/build.json") if source is not None else None
    if theirs is not None:
        export = raw_record(lambda _path: theirs, f"{source}/build.json", BuildRaw).export
        yield "build.json", f"export, as in {source}", export, raw.export


def _stages(request: Request, raw: BuildRaw, where: Where) -> Iterator[Difference]:
    """``stages.json``: the steps of this build in order, and what was taken over is what its source sealed."""
    file = "stages.json"
    if where.sealed(f"{request.step}/{file}") is None:
        return
    said = raw_record(where.read, f"{request.step}/{file}", StagesRaw)
    made = ("export", "optimise", *(("convert",) if raw.conversion is not None else ()))
    yield file, "steps, in order", tuple(step for step in made if step in said.steps), said.steps
    taken = _rows(where.read, request.step, said)
    if said.taken_from is None:
        return
    source = step_folder("L0", str(raw.export_from).rpartition("/")[2])
    yield file, "taken_from", source, said.taken_from
    theirs, floats = (where.same(f"{source}/{name}") for name in (file, "stages.f32"))
    if theirs is not None and floats is not None:
        other = raw_record(lambda _path: theirs, f"{source}/{file}", StagesRaw)
        rows = _rows(lambda _path: floats, source, other)
        for step in set(other.steps) - {"convert"}:
            yield "stages.f32", f"logits after {step}, as in {source}", rows[step], taken.get(step)


def _rows(read: Read, folder: str, said: StagesRaw) -> dict[str, bytes]:
    """The bytes of the logits after each step."""
    flat = raw_floats(read, f"{folder}/stages.f32", len(said.steps) * len(said.pairs)).tobytes()
    size = 4 * len(said.pairs)
    return {step: flat[n * size : (n + 1) * size] for n, step in enumerate(said.steps)}


def _artifact(request: Request, where: Where) -> Iterator[Difference]:
    """A prebuilt artifact is the one that the plan pins, file by file; beside another are the weights that its graph names."""
    from harness.metrics.onnx_graph import census

    pinned = request.target.artifact
    if pinned is None:
        named = census(raw_bytes(where.read, f"{request.artifact}/{sealed_files.GRAPH}")).external
        there = where.sealed(f"{request.artifact}/{sealed_files.WEIGHTS}") is not None
        yield (
            "artifact.json",
            "weights beside the graph",
            {sealed_files.WEIGHTS} if there else set(),
            {item.location for item in named},
        )
    for fact in pinned.files if pinned is not None else ():
        name = sealed_files.GRAPH if pinned is not None and fact.path == pinned.name else fact.path
        sealed = where.sealed(f"{request.artifact}/{name}")  # no need to read it again: it may be large
        yield (
            "artifact.json",
            name,
            f"blake3 {fact.blake3}, as the plan pins it",
            f"blake3 {sealed}, as the plan pins it",
        )
