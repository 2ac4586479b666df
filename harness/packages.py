"""Which packages a root records, and which of them two roots can be compared by. Pure."""

from __future__ import annotations

from typing import NamedTuple

from harness.quality import canonical
from harness.records import Environment, Plan

PACKAGES = (
    "blake3",
    "click",
    "datasets",
    "huggingface_hub",
    "msgspec",
    "mteb",
    "numpy",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "openvino",
    "peft",
    "psutil",
    "pyyaml",
    "qualify",
    "rich",
    "safetensors",
    "scipy",
    "tokenizers",
    "torch",
    "transformers",
)
"""Packages whose version can change a number; one that is not installed is left out of the record."""


class Told(NamedTuple):
    """Versions by canonical name of what both sides keep record of, and how many packages only one of them does (``only`` says which)."""

    baseline: dict[str, str]
    candidate: dict[str, str]
    left_out: int = 0
    only: str = ""

    @property
    def note(self) -> str:
        """What is not compared, in a sentence; empty where all is."""
        if not self.left_out:
            return ""
        return f"packages: {self.left_out} that only the {self.only} recorded, since its ladder alone names a lock, are not compared"


def told(baseline: tuple[Plan, Environment], candidate: tuple[Plan, Environment]) -> Told:
    """The packages of two roots. With a lock every installed one is recorded, without one those of ``PACKAGES`` that are installed."""
    one, other = (
        {canonical(name): version for name, version in environment.packages.items()}
        for _, environment in (baseline, candidate)
    )
    locked = [plan.lock is not None for plan, _ in (baseline, candidate)]
    if locked[0] == locked[1]:
        return Told(one, other)
    whole, short = (one, other) if locked[0] else (other, one)
    stated = {canonical(name) for name in PACKAGES} | short.keys()
    left_out = whole.keys() - stated
    for name in left_out:
        del whole[name]
    return Told(one, other, len(left_out), "baseline" if locked[0] else "candidate")
