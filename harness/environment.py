"""A stated list of facts about the machine, the packages and the commits of a run. No host name, no user name, no path."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import psutil

from harness import VERSION
from harness.records import Environment, Value

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

ISA_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "amx_bf16", "asimd", "asimddp", "sve", "i8mm")
"""Instruction sets that change int8 and fp16 results, so they belong to the identity of a result."""


def observe(ladder_folder: Path) -> Environment:
    """The facts as they are now. Unknown facts are null, never zero."""
    facts: dict[str, Value] = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu_model": _cpu_field("model name"),
        "instruction_sets": _instruction_sets(),
        "physical_cores": psutil.cpu_count(logical=False),
        "logical_cores": psutil.cpu_count(logical=True),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory_bytes": psutil.virtual_memory().total,
        "memory_available_bytes": psutil.virtual_memory().available,
        "load_average_1min": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "stolen_seconds_since_boot": getattr(psutil.cpu_times(), "steal", None),
        "ci": os.environ.get("CI", "") not in {"", "false", "0"},
    }
    here = Path(__file__)
    installed = _git(here.parent, "ls-files", "--error-unmatch", here.name) is None  # else: some other project's commit
    facts["harness_commit"], facts["harness_dirty"] = (None, None) if installed else _commit(here.parent)
    facts["ladder_commit"], facts["ladder_dirty"] = _commit(ladder_folder)
    return Environment(format=1, facts=facts, packages=package_versions())


def package_versions() -> dict[str, str]:
    """Version of every package of PACKAGES that is installed; nothing is imported."""
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found | {"qualify": VERSION}  # that of this very code: metadata may be of an older installation


def _cpu_field(field: str) -> str | None:
    """A field of the first processor in /proc/cpuinfo; what ``platform`` knows on other systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None if field == "model name" else None
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == field), None)


def _instruction_sets() -> str | None:
    flags = _cpu_field("flags") or _cpu_field("Features")
    return None if flags is None else " ".join(flag for flag in ISA_FLAGS if flag in flags.split())


def _commit(folder: Path) -> tuple[str | None, bool | None]:
    """Commit and dirty flag of the git work tree that holds ``folder``; nulls where there is none."""
    commit = _git(folder, "rev-parse", "HEAD")
    status = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return commit, None if commit is None or status is None else bool(status)


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - git is found on PATH, as everywhere
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
