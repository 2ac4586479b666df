"""The whole of CI on one machine: two ladders, one job a target, artifacts that keep no modes; verified, compared, decided."""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path

import pytest

from evidence.verify import verify
from tests.support.github import served
from tests.support.ladders import qualify
from tests.support.runner import Runner

WORKFLOW = ".github/workflows/qualify.yml"
LADDERS = "two/tiny.yaml\none/tiny.yaml"
POLICY = "format: 1\nname: small\ngates:\n  - {metric: payload_bytes, max_degradation: 1%}\n"


@pytest.mark.slow
def test_a_matrix_of_two_ladders_is_climbed_job_by_job_and_covered_together(runner: Runner) -> None:
    done = runner.workflow(WORKFLOW, {"ladders": LADDERS, "by": "target"})
    assert list(done) == ["plan", "climb", "gate"], runner.log
    names = [job["name"] for job in json.loads(done["plan"][0].outputs["matrix"])["include"]]
    assert names == ["tiny_cpu-fp32", "tiny_cpu-int8", "other_alone"]
    assert [end.ok for end in done["climb"]] == [True, True, True], runner.log
    assert (done["gate"][0].ok, done["gate"][0].outputs["code"]) == (True, "0"), runner.log
    assert "COVERED: every target of every ladder reached its goal" in runner.summaries
    assert [name for name, _ in runner.attested] == []
    roots = sorted((runner.folder / "job-5/temp/roots").iterdir())
    assert [root.name for root in roots] == [f"qualify-root-all.{name}" for name in sorted(names)]
    for root in roots:
        assert all(stat.S_IMODE(path.stat().st_mode) & stat.S_IWUSR for path in root.rglob("*"))
        assert verify(root).ok
    facts = json.loads((roots[0] / "environment.json").read_text(encoding="utf-8"))["facts"]
    assert (facts["ci_system"], facts["ci_run_id"], facts["ci_run_attempt"]) == ("github-actions", "77", "1")
    assert (facts["ci_workflow"], facts["ci_job"], facts["ci_sha"]) == ("qualify", "climb", "5" * 40)
    assert facts["ci_action"] is None  # the action is one of a checkout, which has no name

    said = qualify(
        "cover", *(root for root in roots if "int8" not in root.name), "--ladder", runner.workspace / "two/tiny.yaml"
    )
    assert said.code == 30
    assert "cpu-int8 MISSING: no root climbed it" in said.out
    shipped = runner.folder / "shipped" / "root"
    assert qualify("run", runner.workspace / "one/tiny.yaml", "--out", shipped).code == 0
    _reviewer_comments_once(runner, "qualify-root-all.other_alone", str(verify(roots[0]).digest), shipped)


def _reviewer_comments_once(runner: Runner, artifact: str, digest: str, baseline: Path) -> None:
    """The other side: another job downloads one of those roots, and says on the pull request what it found."""
    with served() as api:
        runner.variables["GITHUB_API_URL"] = api.url
        api.add("<!-- qualify:qualify -->\nby somebody else", author="stranger")
        policy = runner.workspace / "policy.yaml"
        policy.write_text(POLICY, encoding="utf-8")
        given = {"artifact": artifact, "digest": digest, "pull-request": "7"}
        given |= {"baseline": str(baseline), "policy": "policy.yaml"}
        for _ in range(2):
            seen = runner.action("ci/verify", given)
            assert (seen.ok, seen.outputs["verdict"], seen.outputs["digest"]) == (True, "PASS", digest), runner.log
        assert [comment["user"]["login"] for comment in api.comments] == ["stranger", "github-actions[bot]"]
        assert [request.partition(" ")[0] for request in api.requests] == ["GET", "POST", "GET", "PATCH"]
        assert api.tokens == {"Bearer token-of-the-job"}
        body = api.comments[1]["body"]
        assert body.startswith("<!-- qualify:qualify -->\n## ✓ PASS: <code>other</code>")
        assert "✓ APPROVE: nothing stands in the way, under policy small" in body
        assert "payload_bytes" in body
        assert "OK" in body
        names = sorted(path.name for path in Path(seen.outputs["review"]).iterdir())
        assert names == [f"{artifact}.review.{end}" for end in ("intoto.json", "json", "md")]
        gone = runner.action("ci/verify", given | {"baseline": str(baseline.parent / "gone"), "pull-request": ""})
        assert (gone.ok, gone.outputs["code"]) == (False, "64"), runner.log
        assert "There is no review: `qualify review` ended 64; see the log." in runner.summaries
        other = runner.action("ci/verify", given | {"digest": "blake3:" + "0" * 64, "pull-request": ""})
        assert (other.ok, other.outputs["code"], other.outputs["verdict"]) == (False, "20", "NONE")
        assert len(api.requests) == 4


@pytest.mark.slow
def test_a_verdict_that_is_not_pass_uploads_and_attests_the_root_and_ends_the_job(runner: Runner) -> None:
    ladder = runner.workspace / "one/tiny.yaml"
    text = ladder.read_text(encoding="utf-8")
    ladder.write_text(text.replace("opset: {exactly: 17}", "opset: {exactly: 18}"), encoding="utf-8")
    runner.variables["ACTIONS_ID_TOKEN_REQUEST_URL"] = "https://127.0.0.1/token"  # noqa: S105 - its address, not the token
    ended = runner.action("ci/qualify", {"ladder": "one/tiny.yaml"})
    assert (ended.ok, ended.outputs["verdict"], ended.outputs["code"]) == (False, "FAIL", "10"), runner.log
    assert (runner.artifacts / "qualify-root.zip").exists()
    assert "::error title=FAIL other alone L0 build::opset: opset: expected exactly 18, got 17 version" in runner.log
    assert "✗ FAIL" in runner.summaries
    root = Path(ended.outputs["root"])
    assert runner.attested == [("SEAL", hashlib.sha256((root / "SEAL").read_bytes()).hexdigest())]


def test_a_ladder_that_is_none_ends_the_job_without_a_root(runner: Runner) -> None:
    (runner.workspace / "broken.yaml").write_text("format: 1\n", encoding="utf-8")
    ended = runner.action("ci/qualify", {"ladder": "broken.yaml"})
    assert (ended.ok, ended.outputs["root"]) == (False, "")
    assert "broken.yaml: name: expected" in runner.log
    assert not runner.artifacts.exists()
