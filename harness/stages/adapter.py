"""The adapter put on and off: merged into the base for the export, and scored in every state so that a lost one shows.

A base without the classifier is given the adapter's before anything is scored: what the base alone would answer is then its own
layers under the trained head, and no number is ever drawn.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from blake3 import blake3

from harness.adapter import HEAD, PREFIX, WEIGHTS
from harness.candidate import TOKENIZER_FILES
from harness.raw_adapter import AdapterRaw, HeadHash, MergeRaw
from harness.runtimes.batching import batches, score
from harness.runtimes.torch_eager import load_adapted, load_model, logits_of, put_adapter
from harness.stages.job import Job

if TYPE_CHECKING:
    from harness.runtimes.batching import Layout
    from harness.runtimes.tokens import Encoded

Way = Literal["base", "off", "merged"]


def with_adapter_merged(job: Job) -> Job:
    """The job for the merged checkpoint, which is written to its scratch folder; writes ``adapter.json``. As it is without an adapter."""
    if job.adapter is None:
        return job
    folder = job.scratch / "merged"
    job.write_record("adapter.json", merge(job.model, job.adapter, job.request.target.threads, folder))
    return job._replace(model=folder)


def merge(model: Path, adapter: Path, threads: int, folder: Path) -> MergeRaw:
    """Write base and adapter as one checkpoint in fp32, with the base's tokenizer, into ``folder``. Raises as ``load_adapted`` does."""
    adapted = load_adapted(model, adapter, threads)
    from peft.tuners.lora import LoraLayer

    layers = sum(isinstance(part, LoraLayer) for part in adapted.modules())
    inside = adapted.get_base_model().base_model_prefix
    adapted.merge_and_unload(safe_merge=True).save_pretrained(folder)
    for name in TOKENIZER_FILES:
        if (model / name).is_file():
            shutil.copyfile(model / name, folder / name)
    base, now = _tensors(model), _tensors(folder)
    left_out = tuple(sorted(name for name in base if name not in now and f"{inside}.{name}" not in now))
    return MergeRaw(format=1, layers=layers, heads=tuple(_heads(base, adapter, now)), left_out=left_out)


def _heads(base: Mapping[str, Any], adapter: Path, now: Mapping[str, Any]) -> list[HeadHash]:
    """Each tensor of the head, and each that the adapter holds whole: as it was trained, and as it is now."""
    own = {name.removeprefix(PREFIX): tensor for name, tensor in _tensors(adapter, WEIGHTS).items()}
    found = []
    for name in sorted(name for name in now if HEAD.search(name) or name in own):
        source: Literal["adapter", "base"] = "adapter" if name in own else "base"
        trained = own[name] if name in own else base[name]
        found.append(HeadHash(tensor=name, source=source, expected=_hash(trained), merged=_hash(now[name])))
    return found


def _tensors(folder: Path, pattern: str = "model*.safetensors") -> dict[str, Any]:
    from safetensors.torch import load_file

    found: dict[str, Any] = {}
    for path in sorted(folder.glob(pattern)):
        found |= load_file(path)
    return found


def _hash(tensor: Any) -> str:
    return blake3(tensor.float().contiguous().numpy().astype("<f4").tobytes()).hexdigest()


def score_ways(job: Job, adapter: Path, layout: Layout, encoded: Encoded, pairs: tuple[int, ...]) -> None:
    """Score some pairs alone: the base, the adapter on it but switched off, and merged. Writes ``adapter.f32`` and ``adapter.json``."""
    import numpy as np

    held = _tensors(adapter, WEIGHTS)
    whole = {name.removeprefix(PREFIX): tensor for name, tensor in held.items() if ".lora_" not in name}
    part = encoded._replace(
        ids=tuple(encoded.ids[pair] for pair in pairs), segments=tuple(encoded.segments[pair] for pair in pairs)
    )

    def scored(module: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        made = batches(part, layout)
        return score(lambda tensors: logits_of(module, tensors), made, len(pairs), lambda _done: None)

    module = load_model(job.model, job.request.target.threads, whole)
    found: dict[Way, Any] = {"base": scored(module)}
    adapted = put_adapter(module, adapter, held)
    with adapted.disable_adapter():
        found["off"] = scored(adapted.get_base_model())
    found["merged"] = scored(adapted.merge_and_unload(safe_merge=True))
    job.write_floats("adapter.f32", np.concatenate(list(found.values())))
    job.write_record("adapter.json", AdapterRaw(format=1, pairs=pairs, ways=tuple(found)))
