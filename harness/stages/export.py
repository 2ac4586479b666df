"""A checkpoint becomes an ONNX graph in fp32: by either exporter of PyTorch, optimised where asked for, twice where asked for."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from harness import raw
from harness.errors import Blocked
from harness.records import BuildOptions, Candidate
from harness.stages import onnx_file
from harness.stages.optimise import optimise


class Made(NamedTuple):
    """The fp32 graph, what is recorded of it, the warnings that were given, each once, and the seconds of each phase."""

    graph: Path
    facts: raw.Export
    warnings: tuple[str, ...]
    phases_s: dict[str, float]


def export(
    model: Path, candidate: Candidate, options: BuildOptions, names: tuple[str, ...], threads: int, scratch: Path
) -> Made:
    """Export the checkpoint in fp32 into folders of ``scratch``.

    Raises ``Blocked`` for a checkpoint too large for one file; what torch or transformers raise passes through.
    """
    from harness.runtimes.torch_eager import load_model

    if candidate.parameters * 4 > onnx_file.ONE_FILE_BYTES and not options.external_data:
        raise Blocked(
            f"tiers.L0.external_data: expected true, since {candidate.parameters:,} parameters in fp32 are more than one file of"
            f" {onnx_file.ONE_FILE_BYTES:,} bytes holds, got false; set it in the ladder"
        )
    phases: dict[str, float] = {}
    with timed(phases, "load_checkpoint"):
        module = _logits_alone(load_model(model, threads))
    sample = _sample(candidate, options, names)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with timed(phases, "export"):
            exported = _export(module, sample, options, candidate.max_length, scratch / "export")
        repeat = None
        if options.repeat_export:
            with timed(phases, "repeat_export"):
                again = _export(module, sample, options, candidate.max_length, scratch / "again")
                repeat = _compared(exported, again)
    graph, optimisation = exported, None
    if options.optimize != "none":
        with timed(phases, "optimise"):
            graph, optimisation = optimise(
                exported, options.optimize, scratch / "optimise", external=options.external_data
            )
    messages = (f"{item.category.__name__}: {' '.join(str(item.message).split())[:300]}" for item in caught)
    facts = raw.Export(
        bytes=onnx_file.size(graph), digest=onnx_file.digest(graph), optimisation=optimisation, repeat=repeat
    )
    return Made(graph, facts, tuple(dict.fromkeys(messages)), phases)


def _compared(first: Path, second: Path) -> raw.Repeat:
    one, two = onnx_file.digest(first), onnx_file.digest(second)
    return raw.Repeat(
        first=one, second=two, difference="" if one == two else onnx_file.differences(first, second)
    )  # fmt: skip


def _sample(candidate: Candidate, options: BuildOptions, names: tuple[str, ...]) -> dict[str, Any]:
    """Tensors to trace with: two rows, one of them padded, so that no branch on a full mask is taken for good."""
    import torch

    batch, length = (2, min(16, candidate.max_length)) if isinstance(options.shape, str) else options.shape
    dtype = torch.int64 if options.integers == "int64" else torch.int32
    ones = torch.ones(batch, length, dtype=dtype)
    mask = ones.clone()
    mask[-1, length // 2 :] = 0
    ids = torch.where(mask == 1, 2 if candidate.pad_token_id == 1 else 1, candidate.pad_token_id).to(dtype)
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ones)}
    return {name: given[name] for name in names}


def _logits_alone(module: Any) -> Any:
    """The module, whose ``forward`` now returns the logits and nothing else; in place, so that tensors keep their names."""
    whole = module.forward

    def forward(input_ids: Any = None, attention_mask: Any = None, token_type_ids: Any = None) -> Any:
        given = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
        return whole(**{name: tensor for name, tensor in given.items() if tensor is not None}).logits

    module.forward = forward
    return module


def _export(module: Any, sample: dict[str, Any], options: BuildOptions, longest: int, folder: Path) -> Path:
    """One export, without what names this machine; what the exporter itself wrote is removed."""
    import torch

    written = folder / "written" / onnx_file.GRAPH
    written.parent.mkdir(parents=True)
    names = list(sample)
    shared = {"kwargs": sample, "input_names": names, "output_names": ["logits"], "opset_version": options.opset}
    dynamic = isinstance(options.shape, str)
    with torch.no_grad():
        if options.exporter == "torchscript":
            axes = {name: {0: "batch", 1: "sequence"} for name in names} | {"logits": {0: "batch"}}
            torch.onnx.export(module, (), str(written), dynamo=False, dynamic_axes=axes if dynamic else None, **shared)
        else:
            dims = {0: torch.export.Dim("batch", min=1), 1: torch.export.Dim("sequence", min=1, max=longest)}
            shared |= {"dynamic_shapes": dict.fromkeys(names, dims) if dynamic else None}
            torch.onnx.export(
                module, (), str(written), dynamo=True, external_data=options.external_data, verbose=False, **shared
            )
    model = onnx_file.load(written)
    onnx_file.strip(model)
    for path in written.parent.iterdir():
        path.unlink()
    written.parent.rmdir()
    return onnx_file.save(model, folder, external=options.external_data)


@contextmanager
def timed(phases: dict[str, float], name: str) -> Iterator[None]:
    """Record the wall seconds of the block under ``name``."""
    begin = time.perf_counter()
    yield
    phases[name] = time.perf_counter() - begin
