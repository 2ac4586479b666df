"""The reference: the checkpoint in PyTorch, fp32, eager attention, on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import Blocked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def load_model(model: Path, threads: int) -> Any:
    """The checkpoint as a torch module in eval mode.

    Raises ``Blocked`` when keys of the checkpoint and the class differ, so that no head is ever initialised in silence, or when
    the class has not exactly one label.
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
    )
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        keys = sorted(map(str, info[kind]))
        if keys:
            raise Blocked(
                f"model.safetensors: expected exactly the keys of {type(module).__name__}, got"
                f" {len(keys)} {kind.removesuffix('_keys')} ({', '.join(keys[:5])}); use the checkpoint of the full classifier"
            )
    if module.config.num_labels != 1:
        raise Blocked(f"config.json: expected one label, got {module.config.num_labels}")
    return module.eval()


class Reference:
    """The checkpoint as a scorer. ``inputs`` is the dtype by name, as for a session."""

    def __init__(self, model: Path, threads: int, names: tuple[str, ...]) -> None:
        self._module = load_model(model, threads)
        self.inputs = dict.fromkeys(names, "int64")

    def logits(self, tensors: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Logits of one batch, float32 of shape (batch,)."""
        import torch

        with torch.inference_mode():
            found = self._module(**{name: torch.from_numpy(tensor) for name, tensor in tensors.items()}).logits
        logits: NDArray[np.float32] = found[:, 0].numpy()
        return logits
