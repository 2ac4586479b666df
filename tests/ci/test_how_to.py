"""Every example of docs/how-to-ci.md is run: workflows by the runner, shell as scripts, the jobs of other systems by their commands."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from evidence.verify import verify
from harness import ladder
from tests.support.github import served
from tests.support.ladders import REPO, write_ladder
from tests.support.runner import Runner

pytestmark = pytest.mark.slow

PAGE = (REPO / "docs/how-to-ci.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
WORKFLOWS = [text for kind, text in BLOCKS if kind == "yaml" and text.startswith("# .github/workflows/")]
SHELL = [text for kind, text in BLOCKS if kind == "sh"]
GITLAB = [text for kind, text in BLOCKS if kind == "yaml" and "\n  script:\n" in text]
JENKINS = [text for kind, text in BLOCKS if kind == "groovy"]
GATES = [text for kind, text in BLOCKS if kind == "yaml" and text.startswith("gates:\n")]
TWO = "\n  - {precision: fp32, threads: 1}\n  - {precision: int8, threads: 1}\n"
ONE = "\n  - {precision: fp32, threads: 1}\n"


@dataclass(frozen=True)
class Place:
    """A repository with the files that the page names, and a shell that stands in it."""

    folder: Path
    bins: dict[str, str]

    def run(self, script: str, bin_: str = "run-bin", ends: int = 0, **settings: str) -> str:
        """Run a script as a CI system does, with the commands of one of the environments on its path; what it printed.

        ``ends`` is the exit code that it must have.
        """
        path = os.pathsep.join([self.bins[bin_], os.environ["PATH"]])
        environment = {"PATH": path, "HOME": str(self.folder), **settings}
        command = ["bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", script]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == ends, f"{done.stdout}{done.stderr}"
        return done.stdout


def write_ladders(folder: Path, model: Path, **targets: str) -> None:
    """``NAME.yaml`` of goal L0 in ``folder`` for each name."""
    for name, listed in targets.items():
        path = write_ladder(folder, model, listed, goal="L0")
        path.write_text(path.read_text(encoding="utf-8").replace("name: tiny", f"name: {name}", 1), encoding="utf-8")
        path.rename(folder / f"{name}.yaml")


@pytest.fixture
def place(tmp_path: Path, tiny_model: Path, bins: dict[str, str]) -> Place:
    folder = tmp_path / "repository"
    write_ladders(folder / "ladders", tiny_model, mine=ONE, other=ONE)
    return Place(folder, bins)


@pytest.fixture
def pinned(place: Place) -> Place:
    """The same with ``policy.yaml``, which pins the root of ``ladders/mine.yaml`` that lies beside it."""
    place.run("qualify run ladders/mine.yaml --out march")
    digest = verify(place.folder / "march").digest
    gates = "format: 1\nname: small\ngates:\n  - {metric: payload_bytes, max_degradation: 1%}\n"
    (place.folder / "policy.yaml").write_text(
        f'{gates}baseline: {{path: march, digest: "{digest}"}}\n', encoding="utf-8"
    )
    return place


def test_every_example_of_the_page_is_one_that_is_run_here() -> None:
    kinds = (WORKFLOWS, SHELL, GITLAB, JENKINS, GATES)
    assert [len(found) for found in kinds] == [3, 2, 1, 1, 1]
    assert sum(map(len, kinds)) == len(BLOCKS)


def test_the_table_of_inputs_is_that_of_the_action() -> None:
    found = yaml.safe_load((REPO / "ci/qualify/action.yml").read_text(encoding="utf-8"))
    rows = re.findall(r"^\| (`[^|]+`) \|", PAGE.partition("| input |")[2].partition("\n\n")[0], re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"`([a-z-]+)`", row)] == list(found["inputs"])
    (outputs,) = re.findall(r"^Outputs: (.*?)\. ", PAGE, re.MULTILINE)
    assert re.findall(r"`([a-z-]+)`", outputs) == list(found["outputs"])


def test_the_job_of_a_pull_request_leaves_a_root_that_the_reviewers_job_comments_on(
    runner: Runner, tiny_model: Path
) -> None:
    write_ladders(runner.workspace / "ladders", tiny_model, mine=ONE)
    runner.variables["ACTIONS_ID_TOKEN_REQUEST_URL"] = "https://127.0.0.1/token"  # noqa: S105 - its address, not the token
    one, _, review = WORKFLOWS
    assert {name: [end.ok for end in ended] for name, ended in runner.caller(one).items()} == {"qualify": [True]}
    assert [name for name, _ in runner.attested] == ["SEAL"]
    assert (runner.artifacts / "qualify-root.zip").exists()
    assert "✓ PASS" in runner.summaries
    pull_request = {"event": "pull_request", "id": 77, "pull_requests": [{"number": 7}]}
    with served() as api:
        runner.variables["GITHUB_API_URL"] = api.url
        runner.event = {"workflow_run": {**pull_request, "pull_requests": []}}
        assert runner.caller(review) == {}  # of a branch without a pull request
        runner.event = {"workflow_run": pull_request}
        ended = runner.caller(review)
        assert {name: [end.ok for end in ends] for name, ends in ended.items()} == {"review": [True]}, runner.log
        (comment,) = api.comments
    assert comment["body"].startswith("<!-- qualify:qualify -->\n## ✓ PASS: <code>mine</code>")


def test_the_reusable_workflow_as_it_is_called_covers_both_ladders(runner: Runner, tiny_model: Path) -> None:
    write_ladders(runner.workspace / "ladders", tiny_model, mine=ONE, other=ONE)
    done = runner.caller(WORKFLOWS[1])
    assert {name: [end.ok for end in ended] for name, ended in done.items()} == {
        "plan": [True],
        "climb": [True, True],
        "gate": [True],
    }, runner.log
    assert "COVERED: every target of every ladder reached its goal" in runner.summaries


def test_a_matrix_by_hand_covers_the_ladder(place: Place, tiny_model: Path) -> None:
    write_ladders(place.folder / "ladders", tiny_model, mine=TWO)
    said = place.run(SHELL[0])
    assert [job["ladder"] for job in json.loads(said.partition("\n")[0])["include"]] == [
        "ladders/mine.yaml",
        "ladders/other.yaml",
    ]
    assert "COVERED: every target of every ladder reached its goal" in said


def test_the_steps_by_hand_climb_verify_and_decide(place: Place, tiny_model: Path) -> None:
    """In a repository of this project; where the quickstart's ladder is, there is a smaller one here."""
    (place.folder / "ci").symlink_to(REPO / "ci", target_is_directory=True)
    (place.folder / ".venv").symlink_to(Path(place.bins["run-bin"]).parent, target_is_directory=True)
    write_ladders(place.folder / "ladders/quickstart", tiny_model, ladder=ONE)
    script = SHELL[1].replace("/tmp/", f"{place.folder}/tmp/")  # noqa: S108 - the page's words
    said = place.run(script, QUALIFY_BIN=place.bins["verify-bin"])
    assert "verdict=PASS" in said
    root = place.folder / "tmp/climb/root"
    assert verify(root).ok
    shown = re.findall(r"`qualify report ROOT (--[a-z]+)`", PAGE)
    assert shown == ["--markdown", "--annotations"]
    said, marks = (place.run(f"qualify report {root} {option}", "verify-bin") for option in shown)
    assert said.startswith("## ✓ PASS: <code>ladder</code>")
    assert marks == ""  # there is nothing to point at in a root that passes


def _environment(line: str) -> str:
    """Which environment a line that installs makes; its pins are there, and so is the extra that it names."""
    words = shlex.split(line)
    assert words[:4] == ["pip", "install", "--constraint", "constraints.txt"]
    assert (REPO / "constraints.txt").is_file()
    (what,) = words[4:]
    known = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    extras = set(filter(None, what.removeprefix(".").strip("[]").split(",")))
    assert what.startswith(".")
    assert extras <= set(known)
    return "run-bin" if "run" in extras else "verify-bin"


def _gitlab(place: Place, runner: Runner, ends: dict[str, int]) -> dict[str, list[ET.Element]]:
    """Run the jobs as GitLab does: one that needs a job that failed only if it says ``when: always``. The JUnit cases of each that ran."""
    jobs = yaml.safe_load(GITLAB[0])
    found: dict[str, list[ET.Element]] = {}
    for name, job in jobs.items():
        if any(ends[needed] for needed in job.get("needs", [])) and job.get("when") != "always":
            continue
        machine = Place(place.folder.with_name(f"machine-of-{name}"), place.bins)
        shutil.copytree(place.folder, machine.folder)
        for needed in job.get("needs", []):  # of the job before there is what it kept
            (kept,) = jobs[needed]["artifacts"]["paths"]
            runner._download({"name": needed, "path": machine.folder / kept})
        installs, command = job["script"]
        machine.run(command, _environment(installs), ends[name])
        found[name] = list(ET.parse(machine.folder / job["artifacts"]["reports"]["junit"]).iter("testcase"))
        assert job["artifacts"]["when"] == "always"
        for path in job["artifacts"].get("paths", []):
            runner._upload(name, machine.folder / path)
        for root in machine.folder.glob("roots/candidate"):
            assert verify(root).ok
    return found


def test_the_jobs_of_gitlab_hand_on_the_root_and_its_findings(pinned: Place, runner: Runner) -> None:
    found = _gitlab(pinned, runner, {"qualify": 0, "verify": 0, "compare": 0})
    assert list(found) == ["qualify", "verify", "compare"]
    for name, cases in found.items():
        assert cases, name
        assert [case for case in cases if case.find("failure") is not None] == []


def test_gitlab_verifies_and_compares_a_root_that_failed(pinned: Place, runner: Runner) -> None:
    ladder = pinned.folder / "ladders/mine.yaml"
    text = ladder.read_text(encoding="utf-8")
    ladder.write_text(text.replace("opset: {exactly: 17}", "opset: {exactly: 18}"), encoding="utf-8")
    found = _gitlab(pinned, runner, {"qualify": 10, "verify": 10, "compare": 0})
    assert {
        name: [case.get("name") for case in cases if case.find("failure") is not None] for name, cases in found.items()
    } == {
        "qualify": ["opset"],
        "verify": ["opset"],
        "compare": [],
    }


def test_the_stages_of_jenkins_leave_what_the_pipeline_keeps(pinned: Place) -> None:
    commands = re.findall(r"sh '([^']+)'", JENKINS[0])
    assert [command.split()[1] for command in commands] == ["run", "diff"]
    assert JENKINS[0].index("catchError(stageResult: 'FAILURE')") < JENKINS[0].index(
        commands[0]
    )  # the next one runs too
    for command in commands:
        pinned.run(command)
    kept = re.findall(r"(?:artifacts: |junit |pattern: )'([^']+)'", JENKINS[0])
    assert kept == ["roots/**", "*.xml", "findings.sarif"]
    assert all(list(pinned.folder.glob(pattern)) for pattern in kept)
    assert sorted(path.name for path in pinned.folder.glob("*.xml")) == ["diff.xml", "junit.xml"]
    assert {ET.parse(path).getroot().tag for path in pinned.folder.glob("*.xml")} == {"testsuites"}
    assert json.loads((pinned.folder / "findings.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"
    assert verify(pinned.folder / "roots/candidate").ok


def test_gates_and_a_lock_as_on_the_page_are_what_a_ladder_takes(place: Place) -> None:
    text = (place.folder / "ladders/mine.yaml").read_text(encoding="utf-8") + GATES[0]
    found = ladder.parse(text.encode())
    assert [(gate.name, gate.command[0], gate.folder) for gate in found.gates] == [
        ("lint", "ruff", ".."),
        ("tests", "python", ".."),
    ]
    assert found.lock is not None
    assert (found.lock.file, found.lock.parity) == ("../constraints.txt", "versions")
