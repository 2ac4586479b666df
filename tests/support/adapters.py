"""Small real LoRA adapters, made with peft on a tiny BERT, and adapters with one fault."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import adapter, candidate
from harness.ladder_format import AdapterReference
from tests.support.steps import Bench, bench

TARGETS = ["query", "value"]
RANK, ALPHA = 4, 8


def make_adapter(base: Path, folder: Path, *, trained: bool = True, head: bool = True, seed: int = 5) -> Path:
    """Write a LoRA adapter of rank 4 on ``base`` into ``folder``; untrained, its factors change nothing."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForSequenceClassification

    torch.manual_seed(seed)
    model = AutoModelForSequenceClassification.from_pretrained(base, local_files_only=True)
    config = LoraConfig(
        task_type="SEQ_CLS" if head else None, r=RANK, lora_alpha=ALPHA, target_modules=TARGETS, lora_dropout=0.1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft uses a name that transformers is about to drop
        adapted = get_peft_model(model, config)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if trained and ("lora_B" in name or "modules_to_save" in name):
                parameter.add_(torch.randn_like(parameter) * 0.3)
    adapted.save_pretrained(str(folder), save_embedding_layers=False)
    return folder


def headless(base: Path, folder: Path, *, without: str = "classifier") -> Path:
    """``base`` without the tensors of its head, or of another module."""
    shutil.copytree(base, folder)
    retensored(folder / "model.safetensors", lambda held: {k: v for k, v in held.items() if f"{without}." not in k})
    return folder


def pretrained(base: Path, folder: Path) -> Path:
    """The encoder of ``base`` as it lies on a hub before training: in the class for masked words, with a tensor of that head."""
    import torch

    headless(base, folder)
    vocabulary = len(json.loads((folder / "tokenizer.json").read_bytes())["model"]["vocab"])
    retensored(folder / "model.safetensors", lambda held: held | {"cls.predictions.bias": torch.zeros(vocabulary)})
    path = folder / "config.json"
    table = json.loads(path.read_bytes()) | {"architectures": ["BertForMaskedLM"]}
    path.write_text(json.dumps({key: value for key, value in table.items() if key not in {"id2label", "label2id"}}))
    return folder


def retensored(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Write a safetensors file again with what ``change`` makes of its tensors."""
    from safetensors.torch import load_file, save_file

    save_file(change(load_file(path)), path, metadata={"format": "pt"})


def reconfigured(folder: Path, **changes: Any) -> None:
    """Change keys of ``adapter_config.json``; None takes one out."""
    path = folder / "adapter_config.json"
    table = {key: value for key, value in (json.loads(path.read_bytes()) | changes).items() if value is not None}
    path.write_text(json.dumps(table), encoding="utf-8")


def adapted_bench(root: Path, model: Path, folder: Path) -> Bench:
    """A staging folder for ``model`` with the adapter in ``folder``."""
    there = bench(root, model, headless=True)
    plain = candidate.resolve(str(model), None, model.parent, headless=True)
    found = adapter.add(plain, AdapterReference(model=str(folder)), folder.parent)
    return Bench(there.root, there.model, found.candidate, there.inputs, found.adapter)
