"""A baseline and a policy in the pieces of ``ci/``: what the gates decide, by the steps' own scripts on real small roots."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evidence.verify import verify
from tests.ci.test_steps import step
from tests.support.ladders import qualify, write_ladder
from tests.support.once import once
from tests.support.runner import Ended, Runner

pytestmark = pytest.mark.slow

WORKFLOW = ".github/workflows/qualify.yml"
GATES = "format: 1\nname: small\ngates:\n"
OK = f"{GATES}  - {{metric: payload_bytes, max_degradation: 1%}}\n"
BROKEN = f"{GATES}  - {{metric: payload_bytes, at_most: 1}}\n"
ONE = "\n  - {precision: fp32, threads: 1}\n"
PAIRED = "{candidates: 4, batch_size: 4, warm_up: 1, calls: 6, paired: {sessions: 6, calls: 4}, limits: {ratio_p50: {at_most: 1e3}}}"
UNPAIRED = "{candidates: 4, batch_size: 4, warm_up: 1, calls: 6, limits: {p50_ms: {at_most: 1e4}}}"


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """The baseline: a root of the ladder of two targets, all of it. Read only."""

    def climb(folder: Path) -> None:
        path = write_ladder(
            folder, tiny_model, "\n  - {precision: fp32, threads: 1}\n  - {precision: int8, threads: 1}\n", goal="L0"
        )
        said = qualify("run", path, "--out", folder / "root")
        assert said.code == 0, said.err

    return once(tmp_path_factory, "shipped", climb) / "root"


def pin(folder: Path, root: Path, policy: str = OK) -> Path:
    """A policy that pins its own baseline, as docs/reference/diff.md shows one."""
    path = folder / "pinned.yaml"
    path.write_text(f'{policy}baseline: {{path: {root}, digest: "{verify(root).digest}"}}\n', encoding="utf-8")
    return path


def check(place: Path, root: Path, **settings: str) -> tuple[str, str]:
    """The exit code that the step gives to ``decide``, and the report that it leaves."""
    said = step("check", ROOT=str(root), PLACE=str(place), **settings)
    assert said.code == 0, said.err
    (code,) = [line.removeprefix("code=") for line in said.out.splitlines() if line.startswith("code=")]
    return code, (place / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("policy", "code", "word"), [(OK, "0", "OK"), (BROKEN, "10", "REGRESSION")])
def test_a_policy_that_pins_its_own_baseline_decides(
    shipped: Path, tmp_path: Path, policy: str, code: str, word: str
) -> None:
    found, report = check(tmp_path / "place", shipped, POLICY=str(pin(tmp_path, shipped, policy)))
    assert found == code
    assert word in report.partition("### Reproduce")[2]


def test_a_baseline_given_beside_a_policy_takes_the_place_of_the_one_it_pins(shipped: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(f'{OK}baseline: {{path: gone, digest: "blake3:{"0" * 64}"}}\n', encoding="utf-8")
    assert check(tmp_path / "one", shipped, POLICY=str(policy), BASELINE=str(shipped))[0] == "0"
    assert check(tmp_path / "two", shipped, POLICY=str(policy))[0] == "64"


def test_a_policy_without_a_baseline_and_one_that_is_not_there_are_asked_wrongly(shipped: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(OK, encoding="utf-8")
    code, report = check(tmp_path / "one", shipped, POLICY=str(policy))
    assert code == "64"
    assert "The roots could not be compared: `qualify diff` ended 64." in report
    assert check(tmp_path / "two", shipped, POLICY=str(tmp_path / "gone.yaml"))[0] == "64"


def test_without_a_policy_a_baseline_is_shown_and_decides_nothing(shipped: Path, tmp_path: Path) -> None:
    code, report = check(tmp_path / "place", shipped, BASELINE=str(shipped))
    assert code == "0"
    assert "no policy" in report


def test_the_action_ends_as_the_gates_of_its_policy_say(runner: Runner, shipped: Path) -> None:
    for policy, ok, code in ((OK, True, "0"), (BROKEN, False, "10")):
        (runner.workspace / "pinned.yaml").unlink(missing_ok=True)
        pin(runner.workspace, shipped, policy)
        ended = runner.action("ci/qualify", {"ladder": "two/tiny.yaml", "policy": "pinned.yaml"})
        assert (ended.ok, ended.outputs["verdict"], ended.outputs["code"]) == (ok, "PASS", code), runner.log


# --- a matrix: no root of it holds all targets -------------------------------------------------------------------------


def matrix(runner: Runner, shipped: Path, policy: str, **given: str) -> Ended:
    """The last job of the reusable workflow on the ladder of two targets, a job each."""
    (runner.workspace / "policy.yaml").write_text(policy, encoding="utf-8")
    asked = {"ladders": "two/tiny.yaml", "by": "target", "baseline": str(shipped), "policy": "policy.yaml", **given}
    done = runner.workflow(WORKFLOW, asked)
    assert [end.ok for end in done["climb"]] == [True, True], runner.log
    return done["gate"][0]


def test_a_matrix_whose_roots_meet_the_policy_together_passes_by_default(runner: Runner, shipped: Path) -> None:
    named = f"""{OK}  - {{metric: payload_bytes, target: cpu-int8, at_most: 1e9}}
  - {{metric: payload_bytes, target: "*-fp32", at_least: 1}}
  - {{identity: model, must_not_change: true}}
"""
    gate = matrix(runner, shipped, named)
    assert (gate.ok, gate.outputs["code"]) == (True, "0"), runner.log
    shown = runner.summaries.partition("## Gates\n\n```")[
        2
    ]  # not the table of a job, of which some gates are no matter
    assert shown.count("OK tiny: gate payload_bytes cpu-fp32 max_degradation 1%") == 1
    assert shown.count("OK tiny: gate payload_bytes cpu-int8 max_degradation 1%") == 1
    assert shown.count("OK tiny: gate payload_bytes cpu-int8 at_most 1,000,000,000") == 1
    assert shown.count("OK tiny: gate payload_bytes cpu-fp32 at_least 1") == 1
    assert "OK tiny: gate model * must_not_change" in shown
    assert "INCOMPARABLE" not in shown


@pytest.mark.parametrize(
    ("policy", "code", "word"),
    [
        (f"{OK}  - {{metric: payload_bytes, target: cpu-int8, at_most: 1}}\n", "10", "REGRESSION"),
        (f"{OK}  - {{metric: payload_bytes, target: cuda-*, at_most: 1}}\n", "30", "INCOMPARABLE"),
    ],
    ids=["broken on one target", "a target that nobody has"],
)
def test_a_matrix_that_does_not_meet_the_policy_ends_by_its_last_job(
    runner: Runner, shipped: Path, policy: str, code: str, word: str
) -> None:
    gate = matrix(runner, shipped, policy)
    assert (gate.ok, gate.outputs["code"]) == (False, code), runner.log
    assert f"{word} tiny: gate payload_bytes" in runner.summaries.partition("## Gates\n\n```")[2]


def test_a_gate_on_a_target_that_no_root_climbed_is_not_lost(shipped: Path, tmp_path: Path, tiny_model: Path) -> None:
    path = write_ladder(
        tmp_path, tiny_model, "\n  - {precision: fp32, threads: 1}\n  - {precision: int8, threads: 1}\n", goal="L0"
    )
    assert qualify("run", path, "--target", "cpu-fp32", "--out", tmp_path / "roots/fp32").code == 0
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        f"{GATES}  - {{metric: payload_bytes, target: cpu-int8, max_degradation: 1%}}\n", encoding="utf-8"
    )
    settings = {"ROOTS": str(tmp_path / "roots"), "LADDERS": str(path), "POLICY": str(policy), "BASELINE": str(shipped)}
    said = step("together", PLACE=str(tmp_path / "place"), **settings)
    assert "code=30\n" in said.out
    assert "INCOMPARABLE tiny: gate payload_bytes cpu-int8 max_degradation 1%" in said.out


def test_two_calls_of_one_workflow_keep_to_their_own_roots(runner: Runner) -> None:
    for name, ladders in (("a", "one/tiny.yaml"), ("a-b", "two/tiny.yaml")):
        done = runner.workflow(WORKFLOW, {"ladders": ladders, "name": name})
        assert done["gate"][0].ok, runner.log  # a root of the other call would belong to none of its ladders
    assert sorted(path.name for path in runner.artifacts.iterdir()) == [
        "qualify-root-a-b.tiny_cpu.zip",
        "qualify-root-a.other_cpu.zip",
    ]


@pytest.mark.parametrize("name", ["a.b", "A", "a*", "x" * 41, "ä"])
def test_a_name_that_would_reach_into_another_call_is_refused(name: str) -> None:
    said = step("matrix", LADDERS="ladder.yaml", NAME=name)
    assert (said.code, said.err) == (
        64,
        f"NAME: expected at most 40 of a-z 0-9 and -, got {name!r}; name the call otherwise\n",
    )


# --- a baseline that L1 is timed beside --------------------------------------------------------------------------------


def test_a_baseline_that_a_policy_pins_is_timed_in_turn_where_paired_says_so(tmp_path: Path, tiny_model: Path) -> None:
    old = write_ladder(tmp_path / "old", tiny_model, ONE, goal="L1", L1=UNPAIRED)
    assert qualify("run", old, "--out", tmp_path / "march").code == 0
    ladder = write_ladder(tmp_path / "new", tiny_model, ONE, goal="L1", L1=PAIRED)
    policy = pin(tmp_path, tmp_path / "march", f"{GATES}  - {{metric: ratio_p50, at_most: 1e3}}\n")
    settings = {"LADDER": str(ladder), "POLICY": str(policy)}
    alone = step("climb", PLACE=str(tmp_path / "alone"), **settings)
    assert "L1 limit ratio_p50: expected a baseline to compare with, got none" in alone.err
    said = step("climb", PLACE=str(tmp_path / "place"), PAIRED="true", **settings)
    assert (said.code, "verdict=PASS\n" in said.out) == (0, True), said.err
    root = tmp_path / "place/root"
    assert (
        json.loads((root / "plan.json").read_bytes())["inputs"]["baseline"]["digest"]
        == verify(tmp_path / "march").digest
    )
    assert check(tmp_path / "seen", root, POLICY=str(policy))[0] == "0"


def test_paired_without_a_baseline_is_refused_before_anything_runs(tmp_path: Path) -> None:
    said = step("climb", LADDER="ladder.yaml", PLACE=str(tmp_path / "place"), PAIRED="true")
    assert (said.code, said.err) == (
        64,
        "PAIRED: expected a BASELINE, or a POLICY that pins one, got neither; name the baseline\n",
    )


# --- attesting ---------------------------------------------------------------------------------------------------------


def test_a_job_that_may_not_keep_attestations_ends_as_the_root_says_with_a_warning(runner: Runner) -> None:
    runner.variables["ACTIONS_ID_TOKEN_REQUEST_URL"] = "https://127.0.0.1/token"  # noqa: S105 - its address, not the token
    runner.may_keep_attestations = False
    ended = runner.action("ci/qualify", {"ladder": "one/tiny.yaml"})
    assert (ended.ok, ended.outputs["verdict"], runner.attested) == (True, "PASS", []), runner.log
    assert "::warning title=qualify::The root was not attested" in runner.log
    runner.log = ""
    ladder = runner.workspace / "one/tiny.yaml"
    text = ladder.read_text(encoding="utf-8")
    ladder.write_text(text.replace("opset: {exactly: 17}", "opset: {exactly: 18}"), encoding="utf-8")
    ended = runner.action("ci/qualify", {"ladder": "one/tiny.yaml"})
    assert (ended.ok, "::error title=qualify::The job ends with exit code 10" in runner.log) == (False, True)
