"""The module tree of a checkpoint's class: what ``qualify inspect --tree`` prints."""

from __future__ import annotations

from pathlib import Path


def module_tree(model: Path) -> str:
    """One line a module, indented: name, class, parameters with their shapes. No weight is read: the class is built without memory."""
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    config = AutoConfig.from_pretrained(model, local_files_only=True, trust_remote_code=False)
    with torch.device("meta"):
        module = AutoModelForSequenceClassification.from_config(config, trust_remote_code=False)
    lines = [type(module).__name__]
    for name, part in module.named_modules():
        if name:
            own = ", ".join(f"{key} {list(value.shape)}" for key, value in part.named_parameters(recurse=False))
            depth, last = name.count(".") + 1, name.rpartition(".")[2]
            lines.append(f"{'  ' * depth}{last}: {type(part).__name__}" + (f" ({own})" if own else ""))
    return "\n".join(lines) + "\n"
