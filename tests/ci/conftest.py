"""What the tests of ``ci/`` share: the reviewer's environment, and two ladders of one tiny model that only build it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support import reviewer
from tests.support.ladders import write_ladder
from tests.support.models import make_bert
from tests.support.once import once
from tests.support.runner import Runner

TWO = "\n  - {precision: fp32, threads: 1}\n  - {precision: int8, threads: 1}\n"
ONE = "\n  - {name: alone, precision: fp32, threads: 1}\n"


@pytest.fixture(scope="session")
def reviewer_bin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` of an environment without torch."""
    return once(tmp_path_factory, "reviewer", reviewer.make) / "bin"


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT classifier of two layers, 32 wide, with its tokenizer."""
    return once(tmp_path_factory, "tiny-model", make_bert)


@pytest.fixture
def bins(reviewer_bin: Path) -> dict[str, str]:
    """The environments that the actions take instead of installing."""
    return {"run-bin": str(Path(sys.executable).parent), "verify-bin": str(reviewer_bin)}


@pytest.fixture
def runner(tmp_path: Path, tiny_model: Path, bins: dict[str, str]) -> Runner:
    """A runner of a repository with two ladders, ``two/tiny.yaml`` and ``one/tiny.yaml`` (named ``other``), of goal L0."""
    workspace = tmp_path / "workspace"
    write_ladder(workspace / "two", tiny_model, TWO, goal="L0")
    other = write_ladder(workspace / "one", tiny_model, ONE, goal="L0")
    other.write_text(other.read_text(encoding="utf-8").replace("name: tiny", "name: other", 1), encoding="utf-8")
    (tmp_path / "runner").mkdir()
    return Runner(tmp_path / "runner", workspace, bins)
