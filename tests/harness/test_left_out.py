"""A climb that was asked for some targets alone, and one whose ladder defers a target: what gates ask of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ladders import Said, qualify, write_ladder
from tests.support.once import once

pytestmark = pytest.mark.slow

TARGETS = """
  - {precision: fp32, threads: 1}
  - {precision: int8, threads: 1}
  - {name: board, precision: fp16, threads: 1, deferred: no such machine yet}
"""


@pytest.fixture(scope="session")
def climbs(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """``whole/root``, and ``part/root``, which was asked for cpu-fp32 alone. Read only."""

    def climb(folder: Path) -> None:
        ladder = write_ladder(folder, tiny_model, TARGETS, goal="L0")
        for name, more in (("whole", ()), ("part", ("--target", "cpu-fp32"))):
            said = qualify("run", ladder, *more, "--out", folder / name / "root")
            assert said.code == 0, said.err

    return once(tmp_path_factory, "left-out", climb)


def policy(folder: Path, *gates: str, accept: str = "") -> Path:
    path = folder / f"policy-{len(list(folder.iterdir()))}.yaml"
    lines = "".join(f"  - {{{gate}}}\n" for gate in gates)
    accepted = f"accept_deferred: [{accept}]\n" if accept else ""
    path.write_text(f"format: 1\nname: release\ngates:\n{lines}{accepted}", encoding="utf-8")
    return path


SAME = ("metric: opset, must_not_change: true", "identity: options, must_not_change: true")


def compare(climbs: Path, asked: Path) -> Said:
    return qualify("diff", climbs / "whole/root", climbs / "part/root", "--policy", asked, "--json")


def test_a_pattern_asks_nothing_of_targets_that_were_left_to_another_climb(climbs: Path, tmp_path: Path) -> None:
    said = compare(climbs, policy(tmp_path, *SAME, accept="board"))
    assert said.code == 0, said.out
    assert {(gate["what"], gate["target"], gate["verdict"]) for gate in said.json["gates"]["gates"]} == {
        ("opset", "cpu-fp32", "OK"),
        ("options", "*", "OK"),
    }
    assert said.json["candidate"]["left_out"] == ["cpu-int8"]
    assert said.json["gates"]["left_out"] == ["cpu-int8", "board"]
    asked = policy(tmp_path, *SAME, accept="board")
    text = qualify("diff", climbs / "whole/root", climbs / "part/root", "--policy", asked).out
    assert "not judged, since the candidate's climb left them to another: cpu-int8, board" in text


def test_a_target_that_is_named_is_asked_for_and_so_is_one_that_only_the_ladder_defers(
    climbs: Path, tmp_path: Path
) -> None:
    said = compare(climbs, policy(tmp_path, "metric: opset, target: cpu-int8, must_not_change: true"))
    assert said.code == 30
    assert [(gate["target"], gate["verdict"]) for gate in said.json["gates"]["gates"]] == [("cpu-int8", "INCOMPARABLE")]
    said = compare(climbs, policy(tmp_path, SAME[0]))
    assert said.code == 30
    assert [(gate["target"], gate["verdict"]) for gate in said.json["gates"]["gates"]] == [
        ("board", "INCOMPARABLE"),
        ("cpu-fp32", "OK"),
    ]
    said = compare(climbs, policy(tmp_path, 'metric: opset, target: "*-int8", must_not_change: true'))
    (only,) = said.json["gates"]["gates"]
    assert (said.code, only["verdict"]) == (30, "INCOMPARABLE"), "a gate that judges nothing is never OK"
    assert only["reason"] == "no target that this climb was asked for matches '*-int8'"


def test_a_review_asks_for_what_was_left_out_and_says_that_no_gate_judged_it(climbs: Path, tmp_path: Path) -> None:
    bound = "metric: opset, at_most: 99"
    asked = policy(tmp_path, bound, accept="board")
    said = qualify("review", climbs / "part/root", "--policy", asked, "--out", tmp_path, "--json")
    assert said.code == 30
    assert [blocker["id"] for blocker in said.json["blockers"]] == ["coverage cpu-int8"]
    assert "gates are not judged on targets that are deferred: cpu-int8, board" in said.json["notes"]
    (tmp_path / "whole").mkdir()
    said = qualify("review", climbs / "whole/root", "--policy", asked, "--out", tmp_path / "whole", "--json")
    assert (said.code, said.json["verdict"], said.json["blockers"]) == (0, "APPROVE", [])
