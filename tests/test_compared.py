"""Six real roots, five comparisons: each ends as it must, and the page shows what is really said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.compared import BLOCK, CHANGED, EXITS, PAGE, compare, make, shown
from tests.support.once import once
from tests.support.readme import shape

pytestmark = pytest.mark.slow

FIRST = {
    "int8": ("REGRESSION", "max_abs_gap"),
    "perturbed": ("REGRESSION", "ndcg_at_10"),
    "bound": ("INCOMPARABLE", "ndcg_at_10"),
    "opset": ("REGRESSION", "opset"),
}


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Read only."""
    return once(tmp_path_factory, "compared", make)


def test_the_same_model_twice_is_ok(compared: Path) -> None:
    said = compare(compared, "same", "--json")
    assert said.code == 0
    assert {gate["verdict"] for gate in said.json["gates"]["gates"]} == {"OK"}
    assert all(part in said.json["same"] for part in ("model", "options", "dataset", "artifact", "machine", "packages"))


@pytest.mark.parametrize("name", FIRST)
def test_one_change_breaks_the_gate_that_is_about_it_and_no_other(compared: Path, name: str) -> None:
    said = compare(compared, name, "--json")
    assert said.code == EXITS[name], said.out
    first, *others = said.json["gates"]["gates"]
    assert (first["verdict"], first["what"]) == FIRST[name]
    assert {gate["verdict"] for gate in others} == {"OK"}


def test_a_perturbed_model_names_the_queries_and_the_candidates_that_moved(compared: Path) -> None:
    steps = compare(compared, "perturbed", "--json").json["steps"]
    (ranked,) = [step for step in steps if step["tier"] == "L3"]
    assert len(ranked["moved"]) == 5
    assert all(query["candidates"] for query in ranked["moved"])


def test_another_bound_is_not_compared_in_any_figure_of_the_ranking(compared: Path) -> None:
    steps = compare(compared, "bound", "--json").json["steps"]
    (ranked,) = [step for step in steps if step["tier"] == "L3"]
    assert ranked["why_not"] == "the ranked set differs: bounds groups 60 and groups 40"
    assert all(figure["difference"] is None for figure in ranked["compared"])


def test_the_page_shows_what_is_said(compared: Path) -> None:
    page = {name: text for _, name, text, _ in BLOCK.findall(PAGE.read_text(encoding="utf-8"))}
    assert tuple(page) == CHANGED
    for name in CHANGED:
        assert shape(shown(compare(compared, name).out)) == shape(page[name]), "run: python -m tests.support.compared"
