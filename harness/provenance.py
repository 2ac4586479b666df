"""Where a climb came from: the commits of the ladder's repository and of this harness, and the CI run if there is one.

No branch, no user, no path of this machine, no credential: an origin is host and path of the remote, a local one only says so.
Facts that are not known are null. These facts are the climber's word; only an attestation of the CI system vouches for them.

An installed package has lost its repository, so ``ci/steps/install`` leaves ``ORIGIN_FILE`` beside the metadata of pip (``leave``).
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness import VERSION
from harness.records import Value
from harness.redact import scrub

LONGEST = 300
"""Characters of one fact that is somebody else's text."""

ORIGIN_FILE = "qualify_origin.json"
"""In the ``dist-info`` folder of an installed harness: the facts ``harness_*`` of the folder that it was installed from."""

HARNESS = ("harness_commit", "harness_parent", "harness_origin", "harness_dirty")
CI_SYSTEMS: dict[str, tuple[str, dict[str, str]]] = {
    "GITHUB_ACTIONS": (
        "github-actions",
        {
            "ci_server": "GITHUB_SERVER_URL",
            "ci_repository": "GITHUB_REPOSITORY",
            "ci_workflow": "GITHUB_WORKFLOW",
            "ci_run_id": "GITHUB_RUN_ID",
            "ci_run_attempt": "GITHUB_RUN_ATTEMPT",
            "ci_job": "GITHUB_JOB",
            "ci_sha": "GITHUB_SHA",
            "ci_event": "GITHUB_EVENT_NAME",
            "ci_action": "QUALIFY_ACTION",
        },
    ),
    "GITLAB_CI": (
        "gitlab",
        {
            "ci_server": "CI_SERVER_URL",
            "ci_repository": "CI_PROJECT_PATH",
            "ci_workflow": "CI_PIPELINE_NAME",
            "ci_run_id": "CI_PIPELINE_ID",
            "ci_run_attempt": "CI_JOB_ID",
            "ci_job": "CI_JOB_NAME",
            "ci_sha": "CI_COMMIT_SHA",
            "ci_event": "CI_PIPELINE_SOURCE",
        },
    ),
    "JENKINS_URL": (
        "jenkins",
        {
            "ci_server": "JENKINS_URL",
            "ci_workflow": "JOB_NAME",
            "ci_run_id": "BUILD_NUMBER",
            "ci_job": "STAGE_NAME",
            "ci_sha": "GIT_COMMIT",
        },
    ),
}
"""By the variable that says which system it is: its name, and the variable behind each fact."""


def observe(ladder_folder: Path, outer: Mapping[str, str], sources: Sequence[Path] = ()) -> dict[str, Value]:
    """All facts, for ``environment.json``; ``outer`` is the environment of the process, ``sources`` what the ladder's commit must hold."""
    here = Path(__file__)
    tracked = (
        _git(here.parent, "ls-files", "--error-unmatch", here.name) is not None
    )  # else: some other project's commit
    found = repository("harness", here.parent) if tracked else _installed()
    return found | repository("ladder", ladder_folder, sources) | ci_run(outer)


def repository(name: str, folder: Path, sources: Sequence[Path] = ()) -> dict[str, Value]:
    """Commit, first parent, origin and dirty flag of the git work tree that holds ``folder``; nulls where there is none.

    Dirty: a tracked file is changed, or one of ``sources`` is in no commit. Other files that are not tracked say nothing of a climb.
    """
    commit = _git(folder, "rev-parse", "HEAD")
    status = _git(folder, "status", "--porcelain", "--untracked-files=no")
    remote = _git(folder, "config", "--get", "remote.origin.url") if commit is not None else None
    written = (
        _git(folder, "cat-file", "commit", "HEAD") or ""
    )  # names its parents in a shallow clone too, where HEAD^ is not there
    parent = re.match(r"tree [0-9a-f]+\nparent ([0-9a-f]+)$", written, re.MULTILINE)
    return {
        f"{name}_commit": commit,
        f"{name}_parent": parent[1] if parent is not None else None,
        f"{name}_origin": origin(remote) if remote else None,
        f"{name}_dirty": None
        if commit is None or status is None
        else bool(status) or not all(_tracked(folder, source) for source in sources),
    }


def _tracked(folder: Path, source: Path) -> bool:
    """Whether a file, ignored or not, is known to the work tree that holds ``folder``; one outside of it is not."""
    return _git(folder, "ls-files", "--error-unmatch", "--", str(source.absolute())) is not None


def origin(url: str) -> str:
    """A remote without user, password, query and fragment: ``https://host/path`` or ``ssh://host/path``; ``local`` for a path."""
    short = re.fullmatch(r"(?:[^@/\\]+@)?([A-Za-z0-9._-]{2,}):(?!//)([^\\]+)", url)
    if short is not None:  # the short form of ssh; a single letter is a drive
        return _text(f"ssh://{short[1]}/{short[2].lstrip('/')}")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "unreadable"
    if parts.scheme not in {"http", "https", "ssh", "git"} or not host:
        return "local"
    return _text(f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path}")


def ci_run(outer: Mapping[str, str]) -> dict[str, Value]:
    """Whose run it is, by the variables of the CI system; nothing for a climb outside one."""
    for sign, (system, variables) in CI_SYSTEMS.items():
        if outer.get(sign, "") not in {"", "false", "0"}:
            facts: dict[str, Value] = {"ci_system": system}
            for fact, variable in variables.items():
                value = outer.get(variable, "")
                shown = origin(value) if fact == "ci_server" and value else _text(value)
                unnamed = fact == "ci_action" and not re.fullmatch(r"[^@]+@.+", value)  # a local action is "@"
                facts[fact] = None if unnamed else shown or None
            return facts
    return {}


def of_action(action: str, server: str) -> dict[str, Value]:
    """The facts of a remote action, ``OWNER/REPOSITORY@COMMIT``, which a runner unpacks without its repository; none for another ref.

    Whether a step before this one changed the unpacked files is not known.
    """
    named = re.fullmatch(r"([A-Za-z0-9._-]+/[A-Za-z0-9._-]+)@([0-9a-f]{40})", action)
    if named is None:
        return {}
    return dict(zip(HARNESS, (named[2], None, origin(f"{server}/{named[1]}"), None), strict=True))


def leave(source: Path, outer: Mapping[str, str]) -> None:
    """Leave the facts of ``source``, the folder that this harness was installed from, among the metadata of pip, as a file that pip owns.

    Nothing is left where nothing is known. Raises ``PackageNotFoundError``, ``OSError``.
    """
    server = outer.get("GITHUB_SERVER_URL") or "https://github.com"
    checkout = _git(source, "ls-files", "--error-unmatch", f"harness/{Path(__file__).name}") is not None
    action = outer.get("QUALIFY_ACTION", "")
    facts = repository("harness", source) if checkout else of_action(action, server)
    metadata = importlib.metadata.distribution("qualify").locate_file(f"qualify-{VERSION}.dist-info")
    file = Path(str(metadata)) / ORIGIN_FILE
    if facts and not file.exists():
        with (file.parent / "RECORD").open("a", encoding="utf-8") as record:
            record.write(f"{file.parent.name}/{ORIGIN_FILE},,\n")
        file.write_text(json.dumps(facts, sort_keys=True), encoding="utf-8")


def _installed() -> dict[str, Value]:
    """What ``leave`` left, or else what pip wrote when it installed the harness from a repository (PEP 610); nulls for any other origin."""
    if left := _beside_metadata(ORIGIN_FILE):
        return {name: left.get(name) for name in HARNESS}
    found: dict[str, Value] = dict.fromkeys(HARNESS)
    said = _beside_metadata("direct_url.json")
    vcs = said.get("vcs_info")
    commit = vcs.get("commit_id") if isinstance(vcs, dict) else None
    if isinstance(commit, str):
        found |= {
            "harness_commit": _text(commit),
            "harness_origin": origin(str(said.get("url", ""))),
            "harness_dirty": False,
        }
    return found


def _beside_metadata(name: str) -> dict[str, Any]:
    """A JSON table among the metadata of the installed harness; empty where there is none."""
    try:
        found = json.loads(importlib.metadata.distribution("qualify").read_text(name) or "{}")
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: str) -> str:
    return scrub(value, {})[0][:LONGEST]


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - git is found on PATH, as everywhere
            capture_output=True,
            text=True,
            errors="replace",  # the message of a commit may be in any encoding
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
