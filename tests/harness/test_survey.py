"""A folder with many roots, sound and broken ones: some of the stored fixtures of the bundle."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness import survey

ROOTS = Path(__file__).parent.parent / "roots"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for root in sorted(ROOTS.glob("*/root"))[: survey.FEW + 4]:
        shutil.copytree(root, tmp_path / root.parent.name, symlinks=True)
    return tmp_path


def test_many_roots_looked_at_in_several_processes_give_what_one_gives(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    many = survey.survey(runs, lambda done, total: told.append((done, total)))
    assert len(many.lines) >= survey.FEW
    assert told == [(done, len(many.lines)) for done in range(1, len(many.lines) + 1)]
    monkeypatch.setattr(survey, "FEW", len(many.lines) + 1)
    assert survey.survey(runs) == many


def test_a_root_can_be_left_out_to_see_what_is_current_without_it(runs: Path) -> None:
    digest = next(line.digest for line in survey.survey(runs).lines if line.digest is not None)
    assert digest not in {line.digest for line in survey.survey(runs, without=digest).lines}
