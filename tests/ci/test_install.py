"""``ci/steps/install`` as the actions call it: pip installs from a folder, and the roots still say which commit that was.

Only the index is missing: an environment gets its dependencies as links, so pip has nothing to fetch.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.ladders import REPO
from tests.support.once import once

LEFT = ("ci", "harness", "evidence", "pyproject.toml", "README.md", "LICENSE", "constraints.txt")
PYTHON = """#!{python}
import sys
sys.path.insert(0, {repo!r})
from pathlib import Path
import subprocess
from tests.support import reviewer
flag, venv, place = sys.argv[1:]
assert (flag, venv) == ("-m", "venv")
subprocess.run([{python!r}, "-m", "venv", "--without-pip", place], check=True)
reviewer.link(Path(place), (*reviewer.NEEDED, "pip", "setuptools"))
"""
OBSERVED = "import json, pathlib, sys; from harness import provenance as p; print(json.dumps(p.observe(pathlib.Path('/'), {})))"
ACTION = f"owner/qualify@{'6' * 40}"


def git(folder: Path, *arguments: str) -> str:
    name = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This project as a runner unpacks it for a remote action, without a repository."""

    def make(place: Path) -> Path:
        place.mkdir(parents=True, exist_ok=True)
        for name in LEFT:
            source = REPO / name
            if source.is_dir():
                shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, place / name)
        return place

    return once(tmp_path_factory, "unpacked", make)


def installed(source: Path, place: Path, **settings: str) -> dict[str, Any]:
    """What an environment that ``install verify`` makes says of the harness in it; it must lie outside of the folder."""
    python = place / "python"
    python.write_text(PYTHON.format(python=sys.executable, repo=str(REPO)), encoding="utf-8")
    python.chmod(0o755)
    offline = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), "PYTHON": str(python), "RUNNER_TEMP": str(place)}
    command = [str(source / "ci/steps/install"), "verify"]
    done = subprocess.run(
        command, cwd=REPO, env=environment | offline | settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{place}/qualify-verify/bin\n"
    python = place / "qualify-verify/bin/python"
    said = subprocess.run([python, "-I", "-c", OBSERVED], capture_output=True, text=True, check=True).stdout
    found = json.loads(said)
    return {name: value for name, value in found.items() if name.startswith("harness_")}


def test_a_shallow_checkout_is_known_by_commit_parent_origin_and_whether_it_was_changed(
    unpacked: Path, tmp_path: Path
) -> None:
    origin, checkout, temp = tmp_path / "origin", tmp_path / "checkout", tmp_path / "temp"
    shutil.copytree(unpacked, origin)
    git(origin, "init", "--quiet")
    for message in ("one", "two"):
        (origin / "README.md").write_text(message, encoding="utf-8")
        git(origin, "add", ".")
        git(origin, "commit", "--quiet", "-m", message)
    first, second = git(origin, "rev-list", "--reverse", "HEAD").splitlines()
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{origin}", str(checkout))
    git(checkout, "remote", "set-url", "origin", "https://x:token@example.org/owner/qualify.git")
    (checkout / "constraints.txt").write_text("# changed\n", encoding="utf-8")
    temp.mkdir()
    assert installed(checkout, temp, QUALIFY_ACTION="@") == {
        "harness_commit": second,
        "harness_parent": first,
        "harness_origin": "https://example.org/owner/qualify.git",
        "harness_dirty": True,
    }
    python = temp / "qualify-verify/bin/python"
    subprocess.run([python, "-m", "pip", "uninstall", "--yes", "--quiet", "qualify"], check=True)
    assert list(temp.glob("qualify-verify/lib/python*/site-packages/qualify*")) == []  # pip owns the file


def test_a_remote_action_is_known_by_the_commit_that_it_was_called_at(unpacked: Path, tmp_path: Path) -> None:
    source = tmp_path / "action"
    shutil.copytree(unpacked, source)
    (tmp_path / "temp").mkdir()
    found = installed(source, tmp_path / "temp", QUALIFY_ACTION=ACTION, GITHUB_SERVER_URL="https://git.example.org")
    assert found == {
        "harness_commit": "6" * 40,
        "harness_parent": None,
        "harness_origin": "https://git.example.org/owner/qualify",
        "harness_dirty": None,
    }
