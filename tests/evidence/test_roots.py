"""The fixture roots: each refused by its own rule alone, every rule with a fixture or a test, all made again byte for byte."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evidence.report import CHECKS
from evidence.verify import verify
from tests.evidence.conftest import rules
from tests.roots import make

REPO = Path(__file__).parent.parent.parent
FORMAT = (REPO / "evidence/FORMAT.md").read_text(encoding="utf-8")
SOURCES = "".join(path.read_text(encoding="utf-8") for path in sorted((REPO / "evidence").glob("*.py")))
CASES = {place.name: place for place in make.HERE.iterdir() if (place / "README.md").is_file()}
NOT_STORED = {"E-EMPTY", "E-HARDLINK", "E-TYPE", "E-READ", "E-CHANGED", "E-PIN"}  # tests make these for themselves


def expected(case: str) -> tuple[list[str], int]:
    """What the README of a case says."""
    found = re.search(
        r"^Expected: (.*); exit (\d+) ", (CASES[case] / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert found is not None
    return re.findall(r"E-[A-Z]+", found[1]), int(found[2])


@pytest.mark.parametrize("case", sorted(CASES))
def test_fixture_is_judged_as_its_readme_says(case: str) -> None:
    found = verify(CASES[case] / "root")
    assert (rules(found.faults), found.exit_code) == expected(case)
    assert case.endswith("_fail") == (found.exit_code == 20)


def tree(folder: Path) -> dict[str, bytes | str]:
    places = [place for place in folder.rglob("*") if place.is_symlink() or place.is_file()]
    return {
        place.relative_to(folder).as_posix(): str(place.readlink()) if place.is_symlink() else place.read_bytes()
        for place in places
    }


def test_fixtures_are_what_the_generator_makes(tmp_path: Path) -> None:
    make.main(tmp_path)
    assert sorted(CASES) == sorted(place.name for place in tmp_path.iterdir())
    for case, place in CASES.items():
        assert tree(place) == tree(tmp_path / case)


def test_every_rule_of_the_format_has_a_fixture_or_is_one_that_git_cannot_store() -> None:
    alone = {found[0] for case in CASES if len(found := expected(case)[0]) == 1}
    documented = re.findall(r"^\| \d+ \| (E-[A-Z]+) \|", FORMAT, re.MULTILINE)
    assert sorted(set(documented)) == sorted(documented)
    assert set(documented) == alone | NOT_STORED
    assert alone.isdisjoint(NOT_STORED)


def test_rules_of_the_format_are_those_of_the_code_and_cited_where_they_are_carried_out() -> None:
    documented = set(re.findall(r"^\| \d+ \| (E-[A-Z]+) \|", FORMAT, re.MULTILINE))
    assert set(re.findall(r'"(E-[A-Z]+)"', SOURCES)) == documented
    assert documented <= set(re.findall(r"# (E-[A-Z]+)", SOURCES))


def test_each_fault_is_made_beside_a_citation_of_its_rule() -> None:
    """On its line, or within the few around it: where the condition stands."""
    lines = SOURCES.splitlines()
    for number, line in enumerate(lines):
        for rule in re.findall(r'[fF]ault\("(E-[A-Z]+)"', line):
            assert any(f"# {rule}" in near for near in lines[max(number - 3, 0) : number + 3]), (rule, line)


def test_every_rule_of_the_format_is_listed_with_the_check_that_looks_at_it() -> None:
    documented = set(re.findall(r"^\| \d+ \| (E-[A-Z]+) \|", FORMAT, re.MULTILINE))
    assert {code for _, codes in CHECKS for code in codes} == documented - {"E-PIN"}  # that one only when it was asked


def test_rules_of_the_format_are_numbered_without_gaps() -> None:
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \| E-", FORMAT, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
