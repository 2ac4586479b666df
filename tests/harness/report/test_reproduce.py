"""The commands of a report that climb again: they are run as printed, with the placeholders filled in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.report.reproduce import reproduce
from tests.support.compared import _perturb
from tests.support.hostile import hostile
from tests.support.ladders import qualify, writable_copy, write_ladder

TARGETS = "\n  - {precision: fp32, threads: 1}\n  - {precision: int8, threads: 1}\n"
PERF = (
    "{candidates: 4, batch_size: 4, warm_up: 2, calls: 72, growth_calls: 0, paired: {sessions: 6, calls: 2}, "
    "limits: {p50_ms: {at_most: 1e4}}}"
)


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a block as a reader would, with ``qualify`` on PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    return subprocess.run(
        ["sh", "-e", "-c", script], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )


def git(folder: Path, *arguments: str) -> None:
    name = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *name, *arguments], check=True, capture_output=True)


@pytest.mark.slow
def test_the_printed_blocks_check_the_root_and_climb_it_again(tmp_path: Path, tiny_model: Path) -> None:
    """A root of another candidate than the ladder's, of one target, timed beside a baseline; its ladder changed since."""
    repo = tmp_path / "repo"
    ladder = write_ladder(repo / "ladders", tiny_model, TARGETS, goal="L1", L1=PERF)
    git(repo, "init", "--quiet")
    git(repo, "add", ".")
    git(repo, "commit", "--quiet", "-m", "one")
    shutil.copytree(tiny_model, tmp_path / "other")
    _perturb(tmp_path / "other" / "model.safetensors")
    asked = ("--model", tmp_path / "other", "--target", "cpu-fp32")
    for name, more in (("base", ()), ("root", ("--baseline", tmp_path / "base"))):
        said = qualify("run", ladder, *asked, *more, "--out", tmp_path / name)
        assert said.code == 0, said.err
    ladder.write_text(ladder.read_text(encoding="utf-8") + "# later\n", encoding="utf-8")
    git(repo, "commit", "--quiet", "-a", "-m", "two")

    markdown = qualify("report", tmp_path / "root", "--markdown").out
    check, climb = re.findall(r"```sh\n(.*?)```", markdown, re.DOTALL)
    done = shell(check, writable_copy(tmp_path / "root", tmp_path / "copy"))
    assert done.returncode == 0, done.stderr
    for name, place in {"LADDER": ladder, "DIR": tmp_path / "other", "BASELINE": tmp_path / "base"}.items():
        assert re.search(rf"- {name} is ", markdown)
        climb = re.sub(rf"\b{name}\b", str(place), climb)
    done = shell(climb, repo)
    assert done.returncode == 0, done.stderr
    (again,) = (repo / "runs").iterdir()
    assert (again / "plan.json").read_bytes() == (tmp_path / "root" / "plan.json").read_bytes()

    html = tmp_path / "report.html"
    assert qualify("report", tmp_path / "root", "--html", html).code == 0
    printed = re.findall(r"```sh\n(.*?)```", markdown, re.DOTALL)[1]
    for line in printed.splitlines():
        assert line in html.read_text(encoding="utf-8")


def test_a_word_of_a_root_that_is_no_plain_name_is_in_no_command() -> None:
    found = reproduce(hostile().records)
    assert all(re.fullmatch(r"[A-Za-z0-9 @:._/-]+", line) for line in found.commands)
