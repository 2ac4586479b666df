"""The reference: the checkpoint in PyTorch, fp32, eager attention, on the CPU."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.adapter import PREFIX, WEIGHTS
from harness.errors import Blocked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def load_model(model: Path, threads: int, given: Mapping[str, Any] | None = None) -> Any:
    """The checkpoint as a torch module in eval mode.

    ``given`` are tensors by name, an adapter's, that take the place of those that the checkpoint does not hold; the checkpoint of
    another class is then taken without its own head. Raises ``Blocked`` when keys of the checkpoint and the class differ otherwise, so that
    no head is ever initialised in silence, or when the class has not exactly one label.
    """
    import torch
    from transformers import AutoModelForSequenceClassification

    torch.set_num_threads(threads)
    module, info = AutoModelForSequenceClassification.from_pretrained(
        model,
        dtype=torch.float32,
        attn_implementation="eager",
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
        output_loading_info=True,
        **({} if given is None else {"num_labels": 1}),
    )
    put = {name: given[name] for name in info["missing_keys"] if given is not None and name in given}
    module.load_state_dict(put, strict=False)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        keys = sorted(
            set(map(str, info[kind])) - set(put) - set(other_head(module, model, info) if given is not None else ())
        )
        if keys:
            raise Blocked(
                f"model.safetensors: expected exactly the keys of {type(module).__name__}, got"
                f" {len(keys)} {kind.removesuffix('_keys')} ({', '.join(keys[:5])}); use the checkpoint of the full classifier"
            )
    if module.config.num_labels != 1:
        raise Blocked(f"config.json: expected one label, got {module.config.num_labels}")
    return module.eval()


def other_head(module: Any, model: Path, info: Mapping[str, Any]) -> tuple[str, ...]:
    """Tensors that a checkpoint of another class than the classifier's holds beside the encoder: its own head, and a pooler."""
    named = json.loads((model / "config.json").read_bytes()).get("architectures") or [""]
    if named[0].endswith("ForSequenceClassification"):
        return ()
    inside = f"{module.base_model_prefix}."
    return tuple(sorted(k for k in info["unexpected_keys"] if not k.startswith(inside) or ".pooler." in f".{k}"))


def load_adapted(model: Path, adapter: Path, threads: int) -> Any:
    """The base with the adapter on it, unmerged, as a ``peft.PeftModel`` in eval mode; its ``get_base_model()`` is the module to call.

    Raises ``Blocked`` as ``load_model`` does, where peft is not installed, and when what peft loaded is not exactly what the adapter's
    file holds: peft itself leaves a tensor that is missing as it was drawn, and only warns.
    """
    from safetensors.torch import load_file

    held = load_file(adapter / WEIGHTS)
    whole = {name.removeprefix(PREFIX): tensor for name, tensor in held.items() if ".lora_" not in name}
    return put_adapter(load_model(model, threads, whole), adapter, held)


def put_adapter(base: Any, adapter: Path, held: Mapping[str, Any]) -> Any:
    """``base``, a module of transformers, with the adapter on it; ``held`` are the tensors of its file. As ``load_adapted``."""
    import torch

    try:
        from peft import PeftModel, get_peft_model_state_dict
    except ImportError as error:
        do = "install it with: pip install '.[adapter]'"
        raise Blocked(f"candidate.adapter: expected the package peft, got none; {do}") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft uses a name that transformers is about to drop
        adapted = PeftModel.from_pretrained(base, str(adapter), is_trainable=False, torch_device="cpu").eval()
    loaded = get_peft_model_state_dict(adapted, save_embedding_layers=False)
    odd = sorted(loaded.keys() ^ held.keys()) or sorted(
        name for name in held if not torch.equal(loaded[name].float(), held[name].float())
    )
    if odd:
        raise Blocked(
            f"{WEIGHTS}: expected exactly the tensors that its config makes of {type(base).__name__}, got a difference in"
            f" {len(odd)} ({', '.join(odd[:3])}); save the adapter again, or take the base that it was trained on"
        )
    return adapted


class Reference:
    """The checkpoint as a scorer, its adapter on and unmerged where it has one. ``inputs`` is the dtype by name, as for a session."""

    def __init__(self, model: Path, threads: int, names: tuple[str, ...], adapter: Path | None = None) -> None:
        if adapter is None:
            self._module = load_model(model, threads)
        else:
            self._module = load_adapted(model, adapter, threads).get_base_model()
        self.inputs = dict.fromkeys(names, "int64")

    def logits(self, tensors: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Logits of one batch, float32 of shape (batch,)."""
        return logits_of(self._module, tensors)


def logits_of(module: Any, tensors: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    """Logits of one batch from a module of transformers, float32 of shape (batch,)."""
    import torch

    with torch.inference_mode():
        found = module(**{name: torch.from_numpy(tensor) for name, tensor in tensors.items()}).logits
    logits: NDArray[np.float32] = found[:, 0].numpy()
    return logits
