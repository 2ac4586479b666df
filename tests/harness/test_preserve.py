"""Roots that replace and carry from earlier ones, made by real climbs; and every refusal to do so, with its whole message."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evidence.manifest import digest_of, parse_digests, render_digests, render_seal
from evidence.verify import VerifiedRoot, open_root, verify
from harness import VERSION, preserve
from harness.environment import observe
from harness.errors import AskedWrongly, NotIntact
from harness.files import hash_file
from harness.preserve import Asked
from harness.recheck import rejudge
from harness.records import Environment, Plan
from harness.report import escape
from harness.root import RootRecords
from harness.run import prepare
from tests.roots import make
from tests.support.ladders import TARGETS, qualify, seal_again, writable_copy, write_ladder
from tests.support.once import once

replace = msgspec.structs.replace


@dataclass(frozen=True)
class Family:
    """``first`` ran whole; ``second`` replaces it and ran L1 of int8 again; ``third`` carries from both and ran L1 of fp16 again."""

    folder: Path

    @property
    def ladder(self) -> Path:
        return self.folder / "ladder" / "tiny.yaml"

    def root(self, name: str) -> Path:
        return self.folder / "roots" / name

    def digest(self, name: str) -> str:
        return digest_of((self.root(name) / "MANIFEST.b3").read_bytes())

    def place(self, name: str) -> str:
        return f"preserved/{self.digest(name)[7:23]}"


@pytest.fixture(scope="session")
def family(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, tiny_root: Path) -> Family:
    """Read only."""

    def climb(folder: Path) -> None:
        made = Family(folder)
        write_ladder(made.ladder.parent, tiny_model)
        (folder / "roots").mkdir()
        shutil.copytree(tiny_root, made.root("first"))
        said = qualify(
            "run", made.ladder, "--out", made.root("second"), "--preserve", made.root("first"), "--rerun", "L1:cpu-int8",
            "--supersede", made.root("first"), "--reason", " a busy neighbour ",
        )  # fmt: skip
        assert said.code == 0, said.err + said.out
        said = qualify(
            "run", made.ladder, "--out", made.root("third"), "--preserve", made.root("second"), "--rerun", "L1:cpu-fp16"
        )
        assert said.code == 0, said.err + said.out

    return Family(once(tmp_path_factory, "family", climb))


@pytest.fixture(scope="session")
def here(family: Family) -> tuple[Plan, Environment, RootRecords]:
    """The plan of the ladder, this machine, and the records of ``first``."""
    opened = open_root(family.root("first"))
    found = rejudge(opened.read, opened.paths).records
    assert found is not None
    return prepare(family.ladder).plan, observe(family.ladder.parent), found


def lineage_of(root: Path) -> Any:
    return json.loads((root / "lineage.json").read_bytes())


# --- what is made -----------------------------------------------------------------------------------------------------


def test_only_the_named_step_runs_again(family: Family) -> None:
    second = family.root("second")
    assert [path.name for path in (second / "steps").iterdir()] == ["L1-perf.cpu-int8"]
    assert not (second / "artifacts").exists()
    record = lineage_of(second)
    assert record["supersedes"] == [{"digest": family.digest("first"), "reason": "a busy neighbour"}]
    (kept,) = record["preserved"]
    assert kept["origin"] == family.digest("first")
    assert len(kept["steps"]) == 11
    assert "steps/L1-perf.cpu-int8" not in kept["steps"]


def test_what_is_carried_is_the_origin_byte_for_byte_and_stands_once(family: Family) -> None:
    first, second = family.root("first"), family.root("second")
    place = second / family.place("first")
    carried = [path.relative_to(place) for path in place.rglob("*") if path.is_file()]
    assert all((place / path).read_bytes() == (first / path).read_bytes() for path in carried)
    assert not (place / "inputs").exists()
    assert not (place / "steps/L1-perf.cpu-int8").exists()


def test_the_step_that_ran_again_ran_the_carried_artifact(family: Family) -> None:
    request = json.loads((family.root("second") / "steps/L1-perf.cpu-int8/request.json").read_bytes())
    assert request["artifact"] == f"{family.place('first')}/artifacts/cpu-int8"


@pytest.mark.parametrize("name", ["first", "second", "third"])
def test_every_root_of_the_family_verifies(family: Family, name: str) -> None:
    said = qualify("verify", family.root(name), "--json")
    assert (said.code, said.json["faults"], said.json["verdict"]) == (0, [], "PASS")


def test_a_root_that_carries_is_carried_from_with_the_origin_in_which_each_step_ran(family: Family) -> None:
    kept = {entry["origin"]: entry["steps"] for entry in lineage_of(family.root("third"))["preserved"]}
    assert kept.pop(family.digest("second")) == ["steps/L1-perf.cpu-int8"]
    assert len(kept.pop(family.digest("first"))) == 10
    assert kept == {}
    assert [path.name for path in (family.root("third") / "steps").iterdir()] == ["L1-perf.cpu-fp16"]


def test_show_and_report_say_from_where_a_step_is_preserved(family: Family, tmp_path: Path) -> None:
    second, digest = family.root("second"), family.digest("first")
    steps = qualify("show", second, "--json").json["steps"]
    assert steps["L0.cpu-fp32"]["preserved_from"] == digest
    assert steps["L0.cpu-fp32"]["measurements"]
    assert steps["L1.cpu-int8"]["preserved_from"] is None
    text = qualify("show", second).out
    assert "✓ PASS preserved" in text
    assert f"replaces {digest}: a busy neighbour" in " ".join(text.split())
    assert all(len(line) <= 80 for line in text.splitlines())
    markdown = qualify("report", second, "--markdown").out
    assert f"- Preserved from {escape.markdown(digest)}: {escape.markdown('L0 of cpu-fp32')}, " in markdown
    page = tmp_path / "report.html"
    assert qualify("report", second, "--html", page).code == 0
    assert "These steps did not run here" in page.read_text(encoding="utf-8")
    assert "The step left no samples." not in page.read_text(encoding="utf-8")


def test_history_lists_the_family(family: Family) -> None:
    said = qualify("history", family.root("first").parent, "--json")
    assert said.code == 0, said.err
    lines = {line["name"]: line for line in said.json["lines"]}
    assert {name: line["state"] for name, line in lines.items()} == {
        "first": "superseded",
        "second": "older",
        "third": "current",
    }
    assert lines["second"]["supersedes"] == [[family.digest("first"), "a busy neighbour"]]
    assert lines["third"]["preserved"] == sorted([[family.digest("first"), 10], [family.digest("second"), 1]])
    assert all(line["notes"] == [] for line in lines.values())
    assert lines["third"]["targets"] == dict.fromkeys(("cpu-fp32", "cpu-fp16", "cpu-int8"), "PASS")
    assert "✓ PASS  third  current" in qualify("history", family.root("first").parent).out


def test_history_lists_what_is_not_intact_and_skips_what_is_no_root(family: Family, tmp_path: Path) -> None:
    spoiled = writable_copy(family.root("first"), tmp_path / "spoiled")
    (spoiled / "qualification.json").write_bytes(b"{}\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "file.txt").write_text("x", encoding="utf-8")
    shutil.copytree(family.root("first"), tmp_path / "x.staging-999999999-00000000")
    (tmp_path / "quarantine" / "y.staging-1-00000000").mkdir(parents=True)
    said = qualify("history", tmp_path, "--json")
    assert said.code == 20
    (line,) = said.json["lines"]
    assert (line["name"], line["state"], line["verdict"]) == ("spoiled", "not intact", None)
    assert line["notes"][0].startswith("E-HASH qualification.json: expected blake3 ")
    assert said.json["leftovers"] == ["quarantine/y.staging-1-00000000", "x.staging-999999999-00000000"]
    said = qualify("history", family.root("first"))
    assert (said.code, said.err) == (
        64,
        f"qualify: {family.root('first')}: expected a folder of roots, got a root; give the folder that it is in\n",
    )
    assert qualify("history", tmp_path / "nowhere").err == (
        f"qualify: {tmp_path}/nowhere: expected a folder of roots, got No such file or directory; give another path\n"
    )


def test_a_listing_rehashes_what_it_shows_and_says_so_and_verify_rehashes_all(family: Family, tmp_path: Path) -> None:
    spoiled = writable_copy(family.root("first"), tmp_path / "spoiled")
    samples = spoiled / "steps/L3-rerank.cpu-fp32/artifact.f32"
    samples.write_bytes(bytes(len(samples.read_bytes())))
    listed = qualify("history", tmp_path, "--json")
    assert (listed.code, listed.json["lines"][0]["state"]) == (0, "current")
    assert listed.json["checked"].startswith("seal, manifest, the records shown; artifacts, raw samples")
    whole = qualify("history", tmp_path, "--verify", "--json")
    assert (whole.code, whole.json["lines"][0]["state"]) == (20, "not intact")
    assert whole.json["lines"][0]["notes"][0].startswith(f"E-HASH {samples.relative_to(spoiled)}: expected blake3 ")
    assert whole.json["checked"].startswith("every file of every root")
    (spoiled / "SEAL").write_bytes(b"qualify-seal/1 blake3:" + b"0" * 64 + b"\n")
    for more in ((), ("--verify",)):
        assert qualify("history", tmp_path, *more).code == 20


def test_a_root_whose_records_another_version_wrote_is_not_called_broken(family: Family, tmp_path: Path) -> None:
    foreign = writable_copy(family.root("first"), tmp_path / "foreign")
    for path, old, new in (
        ("environment.json", f'"qualify": "{VERSION}"', '"qualify": "0.0.9"'),
        ("lineage.json", '"format": 1,', '"format": 1,\n  "later": 1,'),
    ):
        text = (foreign / path).read_text(encoding="utf-8")
        assert old in text
        (foreign / path).write_text(text.replace(old, new), encoding="utf-8")
    digests = parse_digests((foreign / "MANIFEST.b3").read_bytes())
    rendered = render_digests({path: hash_file(foreign / path) for path in digests})
    (foreign / "MANIFEST.b3").write_bytes(rendered)
    (foreign / "SEAL").write_bytes(render_seal(digest_of(rendered)))
    for more in ((), ("--verify",)):
        said = qualify("history", tmp_path, *more, "--json")
        (line,) = said.json["lines"]
        assert (said.code, line["state"], line["verdict"]) == (0, "another version", None)
        assert line["notes"] == [f"made by qualify 0.0.9, this is {VERSION}: verify it with that version, or run again"]


def test_carried_samples_are_judged_by_the_limits_of_the_new_plan(
    family: Family, tiny_model: Path, tmp_path: Path
) -> None:
    """A limit that int8 cannot meet: what was PASS fails, its L3 is not carried, the other targets stay."""
    targets = TARGETS.replace("max_abs_gap: {at_most: 2}", "max_abs_gap: {at_most: 1e-6}")
    ladder = write_ladder(tmp_path, tiny_model, targets)
    shutil.copytree(family.root("first"), tmp_path / "first")
    said = qualify(
        "run", ladder, "--out", tmp_path / "root", "--preserve", tmp_path / "first", "--rerun", "L1:cpu-fp32", "--json"
    )
    assert said.code == 10, said.err
    tiers = {target["name"]: target["tiers"] for target in said.json["claim"]["targets"]}
    assert tiers["cpu-int8"] == {"L0": "PASS", "L1": "PASS", "L2": "FAIL", "L3": "NOT_RUN"}
    assert set(tiers["cpu-fp32"].values()) == {"PASS"}
    said = qualify("verify", tmp_path / "root", "--json")
    assert (said.code, said.json["faults"], said.json["verdict"]) == (10, [], "FAIL")
    text = qualify("show", tmp_path / "root").out
    assert "judged by other limits than there: L2 of cpu-int8" in " ".join(text.split())


@pytest.mark.slow
def test_a_higher_goal_runs_what_the_origin_never_ran(family: Family, tiny_model: Path, tmp_path: Path) -> None:
    one = "\n  - {precision: fp32, threads: 1}\n"
    low = write_ladder(tmp_path / "low", tiny_model, one, goal="L1")
    high = write_ladder(tmp_path / "high", tiny_model, one, goal="L2")
    (tmp_path / "origin").mkdir()
    shutil.copytree(family.root("first"), tmp_path / "origin/first")
    said = qualify("run", low, "--out", tmp_path / "a", "--preserve", tmp_path / "origin/first", "--rerun", "L1")
    assert said.code == 0, said.err
    said = qualify("run", high, "--out", tmp_path / "b", "--preserve", tmp_path / "a", "--rerun", "L2")
    assert said.code == 0, said.err
    assert [path.name for path in (tmp_path / "b/steps").iterdir()] == ["L2-parity.cpu-fp32"]
    assert qualify("verify", tmp_path / "b").code == 0


# --- what is refused, before anything runs ----------------------------------------------------------------------------


def refusal(command: Callable[[], object]) -> str:
    with pytest.raises((AskedWrongly, NotIntact)) as refused:
        command()
    return str(refused.value)


def test_options_are_refused_without_each_other() -> None:
    root = Path("r")
    cases = {
        Asked(supersede=root): "--supersede r: expected --reason TEXT, got none; say why it is replaced",
        Asked(supersede=root, reason=" "): "--supersede r: expected --reason TEXT, got none; say why it is replaced",
        Asked(reason="x"): "--reason: expected it with --supersede ROOT, got it alone; name the root",
        Asked(preserve=root): "--preserve r: expected --rerun TIER[:TARGET], got none; say what runs again",
        Asked(rerun=("L1",)): "--rerun L1: expected it with --preserve ROOT, got it alone; name the root",
    }
    assert {asked: refusal(asked.check) for asked in cases} == cases


def test_a_refusal_is_one_line_and_leaves_nothing(family: Family, tmp_path: Path) -> None:
    said = qualify("run", family.ladder, "--out", tmp_path / "x" / "root", "--preserve", tmp_path, "--rerun", "L1")
    assert (said.code, said.out) == (20, "")
    assert said.err == (
        f"qualify: --preserve {tmp_path}: expected a root that is intact, got: MANIFEST.b3: expected this file, got none; "
        "see qualify verify\n"
    )
    assert not (tmp_path / "x").exists()


def test_a_root_that_is_not_intact_is_neither_replaced_nor_carried_from(
    family: Family, here: tuple[Plan, Environment, RootRecords], tmp_path: Path
) -> None:
    plan, environment, _ = here
    root = writable_copy(family.root("first"), tmp_path / "root")
    (root / "steps/L2-parity.cpu-int8/artifact.f32").unlink()
    got = "steps/L2-parity.cpu-int8/artifact.f32: expected this file, got none; see qualify verify"
    assert refusal(lambda: preserve.reuse(root, ["L1"], plan, environment)) == (
        f"--preserve {root}: expected a root that is intact, got: {got}"
    )
    assert refusal(lambda: preserve.superseded(root, "old", plan)) == (
        f"--supersede {root}: expected a root that is intact, got: {got}"
    )


def test_a_root_whose_claim_does_not_hold_is_not_carried_from(
    family: Family, here: tuple[Plan, Environment, RootRecords], tmp_path: Path
) -> None:
    plan, environment, _ = here
    root = writable_copy(family.root("first"), tmp_path / "root")
    edit(root / "steps/L2-parity.cpu-int8/measurements.json", '"value": 76', '"value": 77')
    seal_again(root)
    said = refusal(lambda: preserve.reuse(root, ["L1"], plan, environment))
    assert said.startswith(f"--preserve {root}: expected a root whose claim its samples bear out, got: steps/L2-parity")
    assert said.endswith("pairs: expected 76 from the samples, got 77; see qualify verify")


def test_evidence_that_another_root_replaced_is_withdrawn(
    family: Family, here: tuple[Plan, Environment, RootRecords]
) -> None:
    plan, environment, _ = here
    root = family.root("first")
    assert refusal(lambda: preserve.reuse(root, ["L1"], plan, environment)) == (
        f"--preserve {root}: expected evidence that no other root replaces, got that of {family.digest('first')}, which "
        "second beside it replaces (a busy neighbour); give that one, or run without"
    )


def test_what_was_carried_from_a_root_that_was_withdrawn_since_is_not_carried_on(
    family: Family, here: tuple[Plan, Environment, RootRecords], tmp_path: Path
) -> None:
    plan, environment, _ = here
    third = tmp_path / "third"
    shutil.copytree(family.root("third"), third)
    preserve.reuse(third, ["L1"], plan, environment)
    record = {"format": 1, "preserved": [], "supersedes": [{"digest": family.digest("first"), "reason": "wrong"}]}
    (tmp_path / "other").mkdir()
    (tmp_path / "other/lineage.json").write_bytes(make.to_json(record))
    said = refusal(lambda: preserve.reuse(third, ["L1"], plan, environment))
    assert "which other beside it replaces (wrong)" in said
    assert family.digest("first") in said


def changed_plans(plan: Plan) -> dict[str, Plan]:
    """One change each, and the words for it."""
    other = "blake3:" + "0" * 64
    first, *rest = plan.targets
    assert plan.options.L1 is not None
    assert plan.inputs.pairs is not None
    return {
        f"candidate '{other}'": replace(plan, candidate=replace(plan.candidate, digest=other)),
        "seed 99": replace(plan, seed=99),
        "target.threads 4": replace(plan, targets=(replace(first, threads=4), *rest)),
        "tiers.L1.calls 73": replace(plan, options=replace(plan.options, L1=replace(plan.options.L1, calls=73))),
        f"inputs.pairs.digest '{other}'": replace(
            plan, inputs=replace(plan.inputs, pairs=replace(plan.inputs.pairs, digest=other))
        ),
    }


def test_a_step_that_relied_on_something_else_is_refused_with_both_sides(
    family: Family, here: tuple[Plan, Environment, RootRecords]
) -> None:
    plan, environment, found = here
    root, step = family.root("first"), ("cpu-fp32", "L1")
    preserve._check(root, found, step, plan, environment)  # type: ignore[arg-type]
    for words, changed in changed_plans(plan).items():
        said = refusal(lambda: preserve._check(root, found, step, changed, environment))  # type: ignore[arg-type] # noqa: B023
        assert said.startswith(f"--preserve {root}: L1 on cpu-fp32: expected {words}, got ")
        assert said.endswith("; add --rerun L1:cpu-fp32")


def test_a_ranking_of_one_group_is_not_reused_as_the_complete_one(
    family: Family, here: tuple[Plan, Environment, RootRecords]
) -> None:
    plan, environment, found = here
    options, groups = plan.options.L3, plan.inputs.groups
    assert options is not None
    assert groups is not None
    limited = replace(
        plan,
        options=replace(plan.options, L3=replace(options, groups=1)),
        inputs=replace(plan.inputs, groups=replace(groups, rows=1, bounds={"groups": 1}, digest="blake3:" + "0" * 64)),
    )
    step, root = ("cpu-fp32", "L3"), family.root("first")
    preserve._check(root, found, step, plan, environment)  # type: ignore[arg-type]
    origin = replace(found, plan=limited)
    said = refusal(lambda: preserve._check(root, origin, step, plan, environment))  # type: ignore[arg-type]
    assert said.startswith(f"--preserve {root}: L3 on cpu-fp32: expected inputs.groups.")
    assert said.endswith("; add --rerun L3:cpu-fp32")
    only_bound = replace(plan, inputs=replace(plan.inputs, groups=replace(groups, bounds={"groups": 1})))
    said = refusal(lambda: preserve._check(root, replace(found, plan=only_bound), step, plan, environment))  # type: ignore[arg-type]
    assert said == (
        f"--preserve {root}: L3 on cpu-fp32: expected inputs.groups.bounds.groups unknown, got 1; add --rerun L3:cpu-fp32"
    )


def test_perf_of_another_machine_is_refused_and_parity_is_not(
    family: Family, here: tuple[Plan, Environment, RootRecords]
) -> None:
    plan, environment, found = here
    root = family.root("first")
    cores = environment.facts["usable_cores"]
    elsewhere = replace(environment, facts=environment.facts | {"usable_cores": 96})
    assert refusal(lambda: preserve._check(root, found, ("cpu-fp32", "L1"), plan, elsewhere)) == (
        f"--preserve {root}: L1 on cpu-fp32: expected machine.usable_cores 96, got {cores}; add --rerun L1:cpu-fp32"
    )
    preserve._check(root, found, ("cpu-fp32", "L2"), plan, elsewhere)


@pytest.mark.parametrize("change", ["no measurements", "killed"])
def test_a_step_without_numbers_cannot_be_carried(
    family: Family, here: tuple[Plan, Environment, RootRecords], change: str
) -> None:
    plan, environment, found = here
    step, root = ("cpu-fp32", "L1"), family.root("first")
    left = found.steps[step]  # type: ignore[index]
    outcome = replace(left.outcome, verdict="BLOCKED", exit=None if change == "killed" else left.outcome.exit)
    left = replace(left, outcome=outcome, measurements=left.measurements if change == "killed" else None)
    blocked = replace(found, steps=found.steps | {step: left})
    assert refusal(lambda: preserve._check(root, blocked, step, plan, environment)) == (  # type: ignore[arg-type]
        f"--preserve {root}: L1 on cpu-fp32: expected a step with numbers, got BLOCKED; add --rerun L1:cpu-fp32"
    )


def test_a_root_that_is_replaced_and_carried_from_is_rehashed_once(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []

    def counted(root: Path, *more: Any) -> VerifiedRoot:
        opened.append(root)
        return open_root(root, *more)

    monkeypatch.setattr(preserve, "open_root", counted)
    root, other = family.root("third"), family.root("third") / ".." / "third"
    past = preserve.look_back(Asked(root, "old", other, ["L1"]), prepare(family.ladder).plan, family.ladder.parent)
    assert opened == [root]
    assert [item.digest for item in past.supersedes] == [family.digest("third")]
    assert past.reuse is not None
    assert past.reuse.opened.folder == root


def test_only_the_same_question_can_be_answered_anew(
    family: Family, here: tuple[Plan, Environment, RootRecords]
) -> None:
    plan, root = here[0], family.root("first")
    assert preserve.superseded(root, " old ", plan).reason == "old"
    preserve.superseded(
        root, "retrained", replace(plan, candidate=replace(plan.candidate, digest="blake3:" + "0" * 64))
    )
    other = replace(plan, ladder="other")
    assert refusal(lambda: preserve.superseded(root, "old", other)) == (
        f"--supersede {root}: expected a root of ladder other, got tiny; only the same question can be answered anew"
    )


# --- what a reader refuses --------------------------------------------------------------------------------------------


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_carried_sample_that_was_changed_is_not_of_the_origin(family: Family, tmp_path: Path) -> None:
    root = writable_copy(family.root("second"), tmp_path / "root")
    path = f"{family.place('first')}/steps/L2-parity.cpu-int8/artifact.f32"
    (root / path).write_bytes((root / path).read_bytes()[::-1])
    seal_again(root)
    assert [(item.rule, item.path) for item in verify(root).faults] == [("E-ORIGIN", path)]


def test_steps_swapped_between_targets_are_not_those_of_the_origin(family: Family, tmp_path: Path) -> None:
    root = writable_copy(family.root("second"), tmp_path / "root")
    one, other = (root / family.place("first") / f"steps/L2-parity.cpu-{name}" for name in ("fp32", "fp16"))
    one.rename(tmp_path / "x")
    other.rename(one)
    (tmp_path / "x").rename(other)
    seal_again(root)
    assert {item.rule for item in verify(root).faults} == {"E-ORIGIN"}


def test_an_origin_sealed_again_with_another_metric_is_found_by_judging_its_samples(
    family: Family, tmp_path: Path
) -> None:
    root = writable_copy(family.root("second"), tmp_path / "root")
    first = writable_copy(family.root("first"), tmp_path / "first")
    metrics = "steps/L2-parity.cpu-int8/measurements.json"
    edit(first / metrics, '"value": 76', '"value": 77')
    seal_again(first)
    forged = digest_of((first / "MANIFEST.b3").read_bytes())
    place = root / family.place("first")
    for path in ("SEAL", "MANIFEST.b3", metrics):
        (place / path).write_bytes((first / path).read_bytes())
    moved = place.rename(place.with_name(forged[7:23]))
    edit(root / "lineage.json", f'"origin": "{family.digest("first")}"', f'"origin": "{forged}"')
    edit(root / "steps/L1-perf.cpu-int8/request.json", family.place("first"), f"preserved/{moved.name}")
    seal_again(root)
    assert verify(root).faults == ()
    said = qualify("verify", root, "--json")
    assert said.code == 20
    path = f"preserved/{moved.name}/{metrics}"
    assert said.json["faults"] == [
        {"rule": "Q-METRIC", "path": path, "message": f"{path}: pairs: expected 76 from the samples, got 77"}
    ]


def test_perf_carried_to_another_machine_is_refused_by_a_reader_too(family: Family, tmp_path: Path) -> None:
    root = writable_copy(family.root("second"), tmp_path / "root")
    record = json.loads((root / "environment.json").read_bytes())
    cores = record["facts"]["usable_cores"]
    record["facts"]["usable_cores"] = 96
    (root / "environment.json").write_bytes(make.to_json(record))
    seal_again(root)
    said = qualify("verify", root, "--json")
    assert said.code == 20
    assert [(fault["rule"], fault["message"]) for fault in said.json["faults"]] == [
        (
            "Q-PRESERVED",
            f"{family.place('first')}/steps/L1-perf.cpu-{name}: expected machine.usable_cores 96, as in this root, got {cores}",
        )
        for name in ("fp16", "fp32")
    ]


def test_a_verdict_that_carried_samples_do_not_give_is_found(family: Family, tmp_path: Path) -> None:
    root = writable_copy(family.root("second"), tmp_path / "root")
    record = json.loads((root / "qualification.json").read_bytes())
    next(t for t in record["targets"] if t["name"] == "cpu-fp32")["tiers"]["L3"] = "FAIL"
    (root / "qualification.json").write_bytes(make.to_json(record))
    seal_again(root)
    assert verify(root).faults == ()
    said = qualify("verify", root, "--json")
    assert [(fault["rule"], fault["message"]) for fault in said.json["faults"]] == [
        ("Q-CLAIM", "qualification.json#/targets/0/tiers/L3: expected 'PASS', got 'FAIL'")
    ]
