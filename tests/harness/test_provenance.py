from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness import provenance
from harness.run import prepare
from tests.support.ladders import write_ladder

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "owner/models",
    "GITHUB_WORKFLOW": "nightly",
    "GITHUB_RUN_ID": "77",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_JOB": "climb",
    "GITHUB_SHA": "5" * 40,
    "GITHUB_EVENT_NAME": "push",
    "GITHUB_REF": "refs/heads/secret-branch",
    "GITHUB_ACTOR": "somebody",
}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:hunter2@example.org/team/models.git?token=abc#frag", "https://example.org/team/models.git"),
        ("https://x-access-token:ghp_0123456789abcdefghij@github.com/o/r", "https://github.com/o/r"),
        ("git@github.com:owner/models.git", "ssh://github.com/owner/models.git"),
        ("ssh://git@example.org:2222/o/r.git", "ssh://example.org:2222/o/r.git"),
        ("/home/somebody/models", "local"),
        ("file:///home/somebody/models", "local"),
        ("../models", "local"),
        ("C:\\Users\\somebody\\models", "local"),
        ("https://[broken/o", "unreadable"),
    ],
)
def test_an_origin_is_host_and_path_alone(url: str, shown: str) -> None:
    assert provenance.origin(url) == shown


def test_a_run_of_github_is_named_without_branch_and_person() -> None:
    assert provenance.ci_run(GITHUB) == {
        "ci_system": "github-actions",
        "ci_server": "https://github.com",
        "ci_repository": "owner/models",
        "ci_workflow": "nightly",
        "ci_run_id": "77",
        "ci_run_attempt": "2",
        "ci_job": "climb",
        "ci_sha": "5" * 40,
        "ci_event": "push",
        "ci_action": None,
    }


def test_runs_of_gitlab_and_jenkins_are_named_and_outside_of_ci_nothing_is() -> None:
    gitlab = provenance.ci_run({"GITLAB_CI": "true", "CI_PIPELINE_ID": "9", "CI_JOB_NAME": "qualify"})
    assert (gitlab["ci_system"], gitlab["ci_run_id"], gitlab["ci_job"]) == ("gitlab", "9", "qualify")
    jenkins = provenance.ci_run({"JENKINS_URL": "https://u:p@ci.example.org/", "BUILD_NUMBER": "12"})
    assert (jenkins["ci_server"], jenkins["ci_run_id"]) == ("https://ci.example.org/", "12")
    assert provenance.ci_run({"CI": "true", "GITHUB_ACTIONS": "false"}) == {}


def test_a_token_in_a_name_is_redacted_and_a_long_name_is_cut() -> None:
    found = provenance.ci_run(GITHUB | {"GITHUB_WORKFLOW": "ghp_" + "a" * 30, "GITHUB_JOB": "j" * 999})
    assert (found["ci_workflow"], found["ci_job"]) == ("[REDACTED]", "j" * 300)


def git(folder: Path, *arguments: str) -> str:
    name = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_repository_is_known_by_commit_parent_origin_and_whether_it_was_changed(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    file = tmp_path / "ladder.yaml"
    for text in ("one", "two"):
        file.write_text(text, encoding="utf-8")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "--quiet", "-m", text)
    git(tmp_path, "remote", "add", "origin", "https://me:secret@example.org/o/r.git")
    first, second = git(tmp_path, "rev-list", "--reverse", "HEAD").splitlines()
    expected = {"ladder_commit": second, "ladder_parent": first, "ladder_origin": "https://example.org/o/r.git"}
    assert provenance.repository("ladder", tmp_path) == expected | {"ladder_dirty": False}
    file.write_text("three", encoding="utf-8")
    assert provenance.repository("ladder", tmp_path) == expected | {"ladder_dirty": True}


def test_a_ladder_that_is_in_no_commit_is_dirty_and_so_is_what_it_names(tmp_path: Path, tiny_model: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".gitignore").write_text("*.jsonl\n", encoding="utf-8")
    git(tmp_path, "add", ".gitignore")
    git(tmp_path, "commit", "--quiet", "-m", "one")
    ladder = write_ladder(tmp_path / "ladders", tiny_model, "\n  - {precision: fp32, threads: 1}\n")
    (ladder.parent / "notes.txt").write_text("of no climb", encoding="utf-8")
    sources = prepare(ladder).sources
    assert sources == (ladder, ladder.parent / "groups.jsonl")

    def dirty() -> object:
        return provenance.observe(ladder.parent, {}, sources)["ladder_dirty"]

    assert dirty() is True
    git(tmp_path, "add", str(ladder))
    git(tmp_path, "commit", "--quiet", "-m", "two")
    assert dirty() is True, "its groups are ignored, and in no commit"
    git(tmp_path, "add", "--force", str(ladder.parent / "groups.jsonl"))
    git(tmp_path, "commit", "--quiet", "-m", "three")
    assert dirty() is False, "other files that are not tracked say nothing"


def test_a_folder_in_no_repository_has_nothing_known(tmp_path: Path) -> None:
    assert set(provenance.repository("ladder", tmp_path).values()) == {None}


@pytest.mark.parametrize("action", ["@", "", "owner/qualify@v1", "owner/qualify@main", f"{'6' * 40}", f"@{'6' * 40}"])
def test_a_ref_that_may_move_and_a_local_action_are_no_commit(action: str) -> None:
    assert provenance.of_action(action, "https://github.com") == {}


@pytest.mark.parametrize(
    ("action", "said"),
    [("@", None), ("@main", None), ("owner/qualify@", None), ("owner/qualify@v1", "owner/qualify@v1")],
)
def test_an_action_that_has_no_name_is_no_fact(action: str, said: str | None) -> None:
    assert provenance.ci_run(GITHUB | {"QUALIFY_ACTION": action})["ci_action"] == said
