"""The steps of the actions, each run as on a laptop: settings by environment, no runner."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.github import Api, served
from tests.support.keys import make_keys
from tests.support.ladders import REPO, Said, qualify, write_ladder

STEPS = REPO / "ci" / "steps"
VERIFY = REPO / "ci" / "verify" / "action.yml"


def step(name: str, **settings: str) -> Said:
    command = [sys.executable, str(STEPS / f"{name}.py")]
    environment = {"QUALIFY_BIN": str(Path(sys.executable).parent), "GITHUB_ACTIONS": "true", **settings}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("require", "codes", "ends"),
    [
        ("pass", "0", 0),
        ("pass", "0 30", 30),
        ("pass", "30 10", 10),
        ("pass", "10 20", 20),
        ("no-fail", "30", 0),
        ("no-fail", "10", 10),
        ("intact", "10", 0),
        ("intact", "30 20", 20),
        ("intact", "10 64", 64),
        ("", "10", 10),
    ],
)
def test_the_job_ends_by_the_worst_code_that_is_not_let_through(require: str, codes: str, ends: int) -> None:
    assert step("decide", CODES=codes, REQUIRE=require).code == ends


@pytest.mark.parametrize("codes", ["", "PASS", "0 ; rm", "-1", "²"])
def test_a_step_before_that_left_no_code_never_lets_a_job_pass(codes: str) -> None:
    assert step("decide", CODES=codes).code == 64


def test_what_is_required_must_be_known() -> None:
    said = step("decide", CODES="0", REQUIRE="everything")
    assert (said.code, said.err) == (
        64,
        "REQUIRE: expected pass, no-fail, intact, got 'everything'; correct the input\n",
    )


def test_the_matrix_gives_each_group_its_runner(tmp_path: Path) -> None:
    ladder = REPO / "ladders" / "quickstart" / "ladder.yaml"
    said = step("matrix", LADDERS=f"\n{ladder}\n", BY="target", RUNNERS='{"cpu-fp16": ["self-hosted", "big"]}')
    assert said.code == 0, said.err
    found = json.loads(said.out.removeprefix("matrix="))["include"]
    assert {job["targets"]: job["runner"] for job in found} == {
        "cpu-fp32": "ubuntu-24.04",
        "cpu-fp16": ["self-hosted", "big"],
        "cpu-int8": "ubuntu-24.04",
    }


@pytest.mark.parametrize(("runners", "got"), [("[]", "list"), ("{", "Expecting")])
def test_runners_that_are_no_table_are_refused(runners: str, got: str) -> None:
    said = step("matrix", LADDERS="ladder.yaml", RUNNERS=runners)
    assert said.code == 64
    assert got in said.err


def test_a_ladder_named_like_an_option_is_a_path() -> None:
    said = step("matrix", LADDERS="--help")
    assert said.code == 64
    assert "--help: expected a ladder file, got No such file or directory" in said.err


def comment(api: Api, markdown: Path, **settings: str) -> Said:
    given = {"GITHUB_API_URL": api.url, "GITHUB_TOKEN": "t", "GITHUB_REPOSITORY": "owner/models", "PULL_REQUEST": "7"}
    return step("comment", **{**given, "MARKDOWN": str(markdown), **settings})


def test_one_comment_a_name_is_kept_among_many(tmp_path: Path) -> None:
    markdown = tmp_path / "report.md"
    markdown.write_text("first\n", encoding="utf-8")
    with served() as api:
        for number in range(150):
            api.add(f"comment {number}", author="somebody")
        api.add("text\n<!-- qualify:a -->")
        assert comment(api, markdown, NAME="a").out == "url=https://github.com/c/1151\n"
        markdown.write_text("second\n", encoding="utf-8")
        assert comment(api, markdown, NAME="a").out == "url=https://github.com/c/1151\n"
        assert comment(api, markdown, NAME="b").out == "url=https://github.com/c/1152\n"
        assert [entry["body"] for entry in api.comments[151:]] == [
            "<!-- qualify:a -->\nsecond\n",
            "<!-- qualify:b -->\nsecond\n",
        ]


def test_a_long_report_is_cut_at_the_end_of_a_line(tmp_path: Path) -> None:
    markdown = tmp_path / "report.md"
    markdown.write_text("| <code>row</code> |\n" * 5000, encoding="utf-8")
    with served() as api:
        assert comment(api, markdown).code == 0
        body = api.comments[0]["body"]
    assert len(body) <= 65_000
    assert body.endswith("| <code>row</code> |\n\n(The rest does not fit a comment; see the job summary.)\n")


def test_a_token_that_may_not_comment_is_said_and_ends_30(tmp_path: Path) -> None:
    markdown = tmp_path / "report.md"
    markdown.write_text("text\n", encoding="utf-8")
    with served() as api:
        api.may_write = False
        said = comment(api, markdown)
    assert said.code == 30
    assert said.err == "comment: expected the API to take it, got 403; the token needs pull-requests: write\n"


@pytest.mark.parametrize(
    "wrong",
    [{"PULL_REQUEST": "7/../8"}, {"GITHUB_REPOSITORY": "owner"}, {"NAME": "a -->"}, {"GITHUB_API_URL": "file:///etc"}],
)
def test_settings_that_would_lead_elsewhere_are_refused(tmp_path: Path, wrong: dict[str, str]) -> None:
    markdown = tmp_path / "report.md"
    markdown.write_text("text\n", encoding="utf-8")
    with served() as api:
        assert comment(api, markdown, **wrong).code == 64
        assert api.requests == []


@pytest.mark.slow
def test_what_must_vouch_for_a_root_is_handed_to_verify(tmp_path: Path, tiny_model: Path) -> None:
    ladder = write_ladder(tmp_path / "l", tiny_model, "\n  - {precision: fp32, threads: 1}\n", goal="L0")
    root, mine, other = tmp_path / "root", make_keys(tmp_path, "mine"), make_keys(tmp_path, "other")
    digest = qualify("run", ladder, "--out", root, "--json").json["digest"]
    assert qualify("attest", root, "--key", mine.private, "--out", tmp_path / "said.json").code == 0

    def ends(**settings: str) -> tuple[str, str]:
        done = step("check", ROOT=str(root), PLACE=str(tmp_path / "seen"), **settings)
        assert done.code == 0, done.err
        said = dict(line.split("=", 1) for line in done.out.splitlines() if line.startswith(("code=", "vouched=")))
        return said["code"], said["vouched"]

    signed = {"AUTHENTICITY": "attested", "ATTESTATION": str(tmp_path / "said.json")}
    assert ends(AUTHENTICITY="none") == ("0", "true")
    assert ends(AUTHENTICITY="pinned") == ("30", "false")
    assert ends(AUTHENTICITY="pinned", EXPECT=digest) == ("0", "true")
    assert ends(AUTHENTICITY="attested") == ("30", "false")
    assert ends(**signed, TRUST=str(mine.public)) == ("0", "true")
    assert ends(**signed, TRUST=str(other.public)) == ("20", "false")


def test_the_action_hands_on_what_must_vouch_for_the_root() -> None:
    """No run of it is short: every input that is one setting of the step is looked up in the file."""
    steps = {
        one["name"]: one.get("env", {}) for one in yaml.safe_load(VERIFY.read_text(encoding="utf-8"))["runs"]["steps"]
    }
    given = steps["Verify, review, tell"]
    for name in ("authenticity", "attestation", "trust"):
        assert given[name.upper()] == f"${{{{ inputs.{name} }}}}"
    assert steps["Decide"]["REQUIRE"] == "${{ steps.check.outputs.vouched == 'false' && 'pass' || inputs.require }}"


def test_an_environment_with_torch_is_no_place_to_verify_in() -> None:
    environment = {"QUALIFY_BIN": str(Path(sys.executable).parent), "PATH": "/usr/bin:/bin"}
    command = [str(STEPS / "install"), "verify"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 64
    assert "expected an environment without torch to verify in, got one with it" in done.stderr
