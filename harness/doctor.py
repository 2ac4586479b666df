"""What this machine can run, what is missing, and how to get it. Imports no ML library: versions come from metadata."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

from harness import held
from harness.leftovers import QUARANTINE, leftovers, set_aside

RUN_PACKAGES = (
    "datasets",
    "huggingface_hub",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "safetensors",
    "tokenizers",
    "torch",
    "transformers",
)
"""What ``qualify run`` needs beyond the reviewer's install; ``pip install '.[run]'`` brings them."""

PROVIDERS = "import json, onnxruntime; print(json.dumps(onnxruntime.get_available_providers()))"


def examine(*folders: Path, move: bool = False) -> dict[str, Any]:
    """The answer of ``qualify doctor``: ``can_run``, ``can_review``, facts, and a list of checks with what to do.

    In each of ``folders`` it looks for what a climb that was killed left there; with ``move`` it is put into ``quarantine/`` there.
    """
    moved = [pair for folder in folders if move for pair in set_aside(folder)]
    checks = [
        _check(
            "python",
            sys.version_info >= (3, 11),
            ".".join(map(str, sys.version_info[:3])),
            "install Python 3.11 or newer",
        )
    ]
    for name in RUN_PACKAGES:
        version = _version(name)
        checks.append(_check(name, version is not None, version or "not installed", "pip install '.[run]'"))
    run_ok = all(check["ok"] for check in checks)
    providers = _providers() if run_ok else []
    checks.append(
        _check(
            "onnxruntime providers",
            bool(providers),
            ", ".join(providers) or "unknown",
            "install onnxruntime (CPU) or onnxruntime-gpu, and only one of them",
        )
    )
    free = shutil.disk_usage(Path.cwd()).free
    checks.append(_check("free disk", free > 2**30, f"{free / 1e9:.1f} GB", "free at least 1 GB for artifacts"))
    memory = psutil.virtual_memory().available
    checks.append(_check("free memory", memory > 2**30, f"{memory / 1e9:.1f} GB", "close other programs"))
    checks += [_left(folder) for folder in folders]
    extras = [
        _check(
            "b3sum",
            shutil.which("b3sum") is not None,
            (shutil.which("b3sum") and "found") or "not found",
            "optional: apt install b3sum",
        ),
    ]
    aside = {"free disk", "free memory", *(_left_in(folder) for folder in folders)}
    return {
        "can_review": bool(checks[0]["ok"]),
        "can_run": all(check["ok"] for check in checks if check["check"] not in aside),
        "checks": checks,
        "optional": extras,
        "moved": [{"from": str(left), "to": str(place)} for left, place in moved if isinstance(place, Path)],
        "not_moved": [{"from": str(left), "why": why} for left, why in moved if isinstance(why, str)],
    }


def text(found: dict[str, Any]) -> str:
    """The answer as lines: one a check, with what to do where something is missing."""
    lines = [
        f"{'ok     ' if check['ok'] else 'LOOK   ' if check in found['checks'] else 'absent '} {check['check']}: {check['found']}"
        + ("" if check["ok"] else f" - {check['fix']}")
        for check in (*found["checks"], *found["optional"])
    ]
    lines += [
        f"moved   {one['from']} to {one['to']}: look at it, then qualify rm {one['to']}" for one in found["moved"]
    ]
    lines += [f"stays   {one['from']}: {one['why']}" for one in found["not_moved"]]
    lines.append("")
    lines.append(f"review (verify, show, plan, schema): {'yes' if found['can_review'] else 'no'}")
    lines.append(f"run a ladder: {'yes' if found['can_run'] else 'no'}")
    return "\n".join(lines) + "\n"


def _left_in(folder: Path) -> str:
    return f"half-written roots in {'this folder' if folder == Path() else folder}"


def _left(folder: Path) -> dict[str, Any]:
    """What killed climbs left in a folder: staging folders with what was measured, and empty markers."""
    roots, markers = leftovers(folder), held.left_in(folder)
    fixes = ["look at them, then qualify rm each"] * bool(roots) + ["delete each .lock file"] * bool(markers)
    if any(root.parent == folder for root in roots):
        fixes.insert(0, f"qualify doctor {folder} moves them to {folder / QUARANTINE}")
    found = ", ".join(str(path) for path in (*roots, *markers))
    return _check(_left_in(folder), not found, found or "none", "; ".join(fixes))


def _check(name: str, ok: bool, found: str, fix: str) -> dict[str, Any]:
    return {"check": name, "ok": ok, "found": found, "fix": fix}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _providers() -> list[str]:
    """Execution providers of the installed onnxruntime, asked of a child: the CLI itself never imports it."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROVIDERS], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return re.findall(r'"([A-Za-z0-9]+)"', done.stdout) if done.returncode == 0 else []
