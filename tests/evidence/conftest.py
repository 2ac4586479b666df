"""Roots to work on: sealed as the harness seals them, and copied so that each test may spoil its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from evidence.manifest import Fault
from evidence.verify import verify
from tests.evidence import sealing
from tests.roots import make

settings.register_profile("no clock", deadline=None)
settings.load_profile("no clock")

Files = dict[str, bytes]
MakeRoot = Callable[[Files], Path]


@pytest.fixture
def sealed(tmp_path: Path) -> MakeRoot:
    """Seals files at a new place under the test's own folder and returns the root."""

    def sealed_root(files: Files) -> Path:
        return sealing.sealed(tmp_path / f"root{len(list(tmp_path.iterdir()))}", files)

    return sealed_root


@pytest.fixture
def open_root_folder(tmp_path: Path) -> MakeRoot:
    """Writes a well sealed root with plain modes, so that a test may change it in place."""

    def written(files: Files) -> Path:
        make.Case("case", (), "", files).write(tmp_path)
        return tmp_path / "case" / "root"

    return written


def rules(found: tuple[Fault, ...] | list[Fault]) -> list[str]:
    """The codes of faults, each once, sorted."""
    return sorted({item.rule for item in found})


def rules_of(root: Path) -> list[str]:
    return rules(verify(root).faults)
