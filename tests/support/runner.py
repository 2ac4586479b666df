"""A GitHub Actions runner on this machine, as far as the files in ``ci/`` need one.

The scripts of the steps are those of the YAML files, run by the shell that a runner runs them by, with its variables and files. Only the
actions of others are played: artifacts go through a zip that keeps no modes, no dotfiles and no empty folders.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support.expressions import evaluate, fill, shown
from tests.support.ladders import REPO

OWNER = "OWNER/qualify/"
"""What the how-to writes for the repository of this project."""


@dataclass
class Ended:
    """How an action or a job ended: whether it succeeded, its outputs, and those of its steps by id."""

    ok: bool
    outputs: dict[str, str]
    steps: dict[str, dict[str, str]]


@dataclass
class Runner:
    """One repository's runners. ``folder`` is for all that they keep; ``bins`` are inputs of every action (environments that are there)."""

    folder: Path
    workspace: Path
    bins: dict[str, str]
    variables: dict[str, str] = field(default_factory=dict)
    log: str = ""
    attested: list[tuple[str, str]] = field(default_factory=list)
    may_keep_attestations: bool = True
    event: dict[str, Any] = field(default_factory=dict)
    jobs: int = 0

    @property
    def artifacts(self) -> Path:
        """Where uploads are."""
        return self.folder / "artifacts"

    @property
    def summaries(self) -> str:
        """The summaries of all jobs, one after another."""
        return "".join(path.read_text(encoding="utf-8") for path in sorted(self.folder.glob("job-*/summary")))

    def job(self) -> Path:
        """A fresh machine: its folder."""
        self.jobs += 1
        place = self.folder / f"job-{self.jobs}"
        (place / "temp").mkdir(parents=True)
        return place

    def action(
        self, path: str, given: Mapping[str, Any], place: Path | None = None, *, checked_out: bool = False
    ) -> Ended:
        """Run a composite action of this repository, e.g. ``ci/qualify``, in a job of its own or in that of ``place``.

        One that is ``checked_out`` by a step is called by its path, so the runner gives it no repository and no ref.
        """
        found = yaml.safe_load((REPO / path / "action.yml").read_text(encoding="utf-8"))
        _known(path, found["inputs"], given)
        bins = {name: value for name, value in self.bins.items() if name in found["inputs"]}
        default = {name: str(entry.get("default", "")) for name, entry in found["inputs"].items()}
        inputs = default | {name: shown(value) for name, value in (bins | dict(given)).items()}
        inputs = {name: shown(fill(value, self._context(place))) for name, value in inputs.items()}
        context = self._context(place or self.job(), inputs=inputs)
        if checked_out:
            context["github"] |= {"action_repository": "", "action_ref": ""}
        ok = self.steps(found["runs"]["steps"], context, {"GITHUB_ACTION_PATH": str(REPO / path)})
        outputs = {name: shown(fill(entry["value"], context)) for name, entry in found["outputs"].items()}
        return Ended(ok, outputs, {name: step["outputs"] for name, step in context["steps"].items()})

    def workflow(self, path: str, given: Mapping[str, Any]) -> dict[str, list[Ended]]:
        """Run a reusable workflow: every job whose needs are done, a matrix job by job. By name of the job."""
        found = yaml.safe_load((REPO / path).read_text(encoding="utf-8"))
        called = found[True]["workflow_call"]  # YAML 1.1 reads `on` as true
        _known(path, called["inputs"], given)
        inputs = {name: entry.get("default") for name, entry in called["inputs"].items()} | dict(given)
        done: dict[str, list[Ended]] = {}
        for name, job in found["jobs"].items():
            needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
            before = {
                need: {
                    "outputs": done[need][0].outputs,
                    "result": "success" if all(end.ok for end in done[need]) else "failure",
                }
                for need in needs
            }
            failed = any(entry["result"] != "success" for entry in before.values())
            outer = {"inputs": inputs, "needs": before, "failed": failed}
            if not evaluate(str(job.get("if", "success()")), outer):
                continue
            matrix = fill(job["strategy"]["matrix"], outer)["include"] if "strategy" in job else [{}]
            done[name] = [self._job(job, {"inputs": inputs, "needs": before, "matrix": row}) for row in matrix]
        return done

    def caller(self, text: str) -> dict[str, list[Ended]]:
        """Run a workflow of a repository that uses this one as ``OWNER/qualify``, but for jobs that their ``if`` leaves out. By name."""
        done: dict[str, list[Ended]] = {}
        for name, job in yaml.safe_load(text)["jobs"].items():
            if not evaluate(str(job.get("if", "success()")), self._context(None)):
                continue
            if "uses" in job:
                given = {key: fill(str(value), self._context(None)) for key, value in job["with"].items()}
                done |= self.workflow(_of_this_repository(job["uses"]), given)
            else:
                done[name] = [self._job(job, {})]
        return done

    def _job(self, job: dict[str, Any], more: dict[str, Any]) -> Ended:
        context = self._context(self.job(), **more)
        assert isinstance(fill(job["runs-on"], context), str | list)
        ok = self.steps(job["steps"], context, {})
        outputs = {name: shown(fill(value, context)) for name, value in job.get("outputs", {}).items()}
        return Ended(ok, outputs, {name: step["outputs"] for name, step in context["steps"].items()})

    def _context(self, place: Path | None, **more: Any) -> dict[str, Any]:
        github: dict[str, Any] = {"repository": "owner/models", "sha": "5" * 40, "run_id": "77", "event": self.event}
        github |= {"token": "token-of-the-job", "action_repository": "owner/qualify", "action_ref": "6" * 40}
        temp = str(place / "temp") if place is not None else ""
        return {"github": github, "runner": {"temp": temp}, "steps": {}, "failed": False, "place": place, **more}

    def steps(self, steps: list[dict[str, Any]], context: dict[str, Any], more: Mapping[str, str]) -> bool:
        """Run steps as a runner does: after one that failed, only those that say ``always()``."""
        for step in steps:
            condition = str(step.get("if", "success()"))
            if "always()" not in condition and context["failed"]:
                continue
            if not evaluate(condition, context):
                continue
            with_ = {name: fill(str(value), context) for name, value in step.get("with", {}).items()}
            if "run" in step:
                assert "${{" not in step["run"], f"text of somebody in a script: {step['run']}"
                ok, outputs = self._script(step, context, more)
            elif step["uses"].startswith(("./", OWNER)):
                local = step["uses"].startswith("./")
                ended = self.action(_of_this_repository(step["uses"]), with_, context["place"], checked_out=local)
                ok, outputs = ended.ok, ended.outputs
            else:
                ok, outputs = self._play(step["uses"].partition("@")[0], with_), {}
            if "id" in step:
                context["steps"][step["id"]] = {"outputs": outputs, "outcome": "success" if ok else "failure"}
            context["failed"] = context["failed"] or not (ok or step.get("continue-on-error"))
        return not context["failed"]

    def _script(
        self, step: dict[str, Any], context: dict[str, Any], more: Mapping[str, str]
    ) -> tuple[bool, dict[str, str]]:
        place: Path = context["place"]
        script, output = place / "temp" / "script.sh", place / "output"
        script.write_text(step["run"], encoding="utf-8")
        output.write_text("", encoding="utf-8")
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        environment |= {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "owner/models",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_WORKFLOW": "qualify",
            "GITHUB_RUN_ID": "77",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_JOB": "climb",
            "GITHUB_SHA": "5" * 40,
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(place / "summary"),
            "RUNNER_TEMP": str(place / "temp"),
        }
        if (self.workspace / ".qualify").exists() and "QUALIFY_BIN" not in step.get("env", {}):
            environment["QUALIFY_BIN"] = self.bins["verify-bin"]  # the reusable workflow installs; here it is there
        environment |= self.variables | dict(more)
        environment |= {name: shown(fill(str(value), context)) for name, value in step.get("env", {}).items()}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        done = subprocess.run(command, cwd=self.workspace, env=environment, capture_output=True, text=True, check=False)
        self.log += f"{done.stdout}{done.stderr}"
        lines = output.read_text(encoding="utf-8").splitlines()
        return done.returncode == 0, dict(_pairs(lines))

    def _play(self, action: str, given: Mapping[str, Any]) -> bool:
        """What the actions of others do, as far as it matters here."""
        match action:
            case "actions/setup-python":
                pass
            case "actions/checkout":
                if given.get("path") and not (self.workspace / str(given["path"])).exists():
                    (self.workspace / str(given["path"])).symlink_to(REPO, target_is_directory=True)
            case "actions/upload-artifact":
                self._upload(str(given["name"]), Path(given["path"]))
            case "actions/download-artifact":
                self._download(given)
            case "actions/attest-build-provenance":
                if not self.may_keep_attestations:
                    return False
                subject = Path(given["subject-path"])
                self.attested.append((subject.name, hashlib.sha256(subject.read_bytes()).hexdigest()))
            case _:
                message = f"nobody plays {action}"
                raise AssertionError(message)
        return True

    def _upload(self, name: str, folder: Path) -> None:
        self.artifacts.mkdir(exist_ok=True)
        with zipfile.ZipFile(self.artifacts / f"{name}.zip", "w") as file:
            for path in sorted(folder.rglob("*")):
                if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
                    file.writestr(path.relative_to(folder).as_posix(), path.read_bytes())

    def _download(self, given: Mapping[str, Any]) -> None:
        there = [path.name.removesuffix(".zip") for path in self.artifacts.glob("*.zip")]
        names = [str(given["name"])] if "name" in given else fnmatch.filter(there, str(given["pattern"]))
        for name in names:
            into = Path(given["path"]) / ("" if "name" in given else name)
            with zipfile.ZipFile(self.artifacts / f"{name}.zip") as file:
                file.extractall(into)


def _of_this_repository(uses: str) -> str:
    """The path in this repository of what a step or a job uses from it."""
    return uses.partition("@")[0].removeprefix("./.qualify/").removeprefix(OWNER)


def _known(path: str, inputs: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """What is given are inputs that are there, and all that are required."""
    assert given.keys() <= inputs.keys(), f"{path}: no such input: {given.keys() - inputs.keys()}"
    required = {name for name, entry in inputs.items() if entry.get("required")}
    assert required <= given.keys(), f"{path}: required, and not given: {required - given.keys()}"


def _pairs(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, _, value = line.partition("=")
        yield name, value
