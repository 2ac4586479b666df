"""Folders staged and sealed by the bundle itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evidence import seal


def staged(out: Path, files: Mapping[str, bytes]) -> Path:
    """A staging folder for ``out`` that holds ``files``."""
    staging = seal.stage(out)
    for path, data in files.items():
        seal.write_new(staging, path, data)
    return staging


def sealed(out: Path, files: Mapping[str, bytes]) -> Path:
    """``files`` as the root ``out``, which is returned."""
    seal.seal(staged(out, files), out)
    return out
