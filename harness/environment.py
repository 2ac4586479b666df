"""A stated list of facts about the machine, the packages and the origin of a run. No path; host and user name only if asked."""

from __future__ import annotations

import getpass
import importlib.metadata
import os
import platform
from collections.abc import Collection, Sequence
from pathlib import Path

import psutil

from harness import VERSION, provenance
from harness.packages import PACKAGES
from harness.quality import canonical
from harness.records import Environment, Value

ISA_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "amx_bf16", "asimd", "asimddp", "sve", "i8mm")
"""Instruction sets that change int8 and fp16 results, so they belong to the identity of a result."""


def observe(
    ladder_folder: Path, *, every_package: bool = False, sources: Sequence[Path] = (), record: Collection[str] = ()
) -> Environment:
    """The facts as they are now. Unknown facts are null, never zero. ``every_package``: all that is installed, for a lock.

    ``sources``: the ladder and the files it names, which the ladder's commit must hold for its work tree not to be dirty. ``record``:
    ``host`` and ``user``, the names that are null where the ladder does not ask for them.
    """
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
    facts |= {"host": platform.node() or None if "host" in record else None}
    facts |= {"user": _user() if "user" in record else None}
    facts |= provenance.observe(ladder_folder, os.environ, sources)
    return Environment(format=1, facts=facts, packages=_everything() if every_package else package_versions())


def _user() -> str | None:
    """The name of the user; None where the system has none for its number, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return None


def package_versions() -> dict[str, str]:
    """Version of every package of PACKAGES that is installed; nothing is imported."""
    found: dict[str, str] = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found | {"qualify": VERSION}  # that of this very code: metadata may be of an older installation


def _everything() -> dict[str, str]:
    """Version of every installed package by its canonical name; where two are found, the one that Python imports."""
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            found.setdefault(canonical(name), distribution.version)
    return found | {"qualify": VERSION}


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
