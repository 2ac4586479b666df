"""How long `qualify history` takes on 200 roots of 20 targets, and `qualify diff` on two roots of 50,000 scored queries each.

One real climb of one target is made (or taken from ``--root``); the others are made from it. For the history each root has that
target's steps under 20 names; for the comparison the ranked set is replaced by generated groups with generated scores, and everything
that follows from it is derived anew, so that both roots verify and are judged again like any other. Both commands are whole
processes. Times are of one machine: read them beside the hashing and judging that is timed apart.

    python -m benchmarks.compare_speed [--root ROOT] [--roots N] [--targets N] [--queries N] [--candidates N] [--folder DIR]
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from evidence import manifest, seal
from evidence.verify import open_root
from harness import data, derive, derive_rerank, judge, ladder, plan, records
from harness.bounds import Bounds, whole
from harness.files import hash_file
from harness.group_facts import facts
from harness.raw import ScoresRaw
from harness.recheck import rejudge
from harness.records import GROUPS, Plan, PlannedTarget, Qualification, Tier, from_json, to_json
from harness.root import RootRecords, load

REPO = Path(__file__).parent.parent
QUICKSTART = REPO / "ladders" / "quickstart"
ARTIFACT = b"onnx" * 5_000
"""In place of each artifact of the history: hashing real weights costs what their bytes cost, and is not what is timed here."""
WORDS = [word for line in (QUICKSTART / "pairs.jsonl").read_text(encoding="utf-8").split() for word in line.split()]


def climb(folder: Path) -> Path:
    """A real root of the quickstart reranker on one target, 20 groups."""
    text = f"""format: 1
name: bench
candidate: {{model: {QUICKSTART / "model"}}}
goal: L3
tiers:
  L0: {{limits: {{opset: {{at_least: 11}}}}}}
  L1: {{candidates: 8, max_length: 128, warm_up: 2, calls: 72, limits: {{p50_ms: {{at_most: 1e6}}}}}}
  L2: {{invariance_pairs: 8, limits: {{max_abs_gap: {{at_most: 1.0}}}}}}
  L3: {{data: groups.jsonl, limits: {{ndcg_at_10_over_random: {{at_least: 0.05}}}}}}
targets: [{{precision: fp32, threads: 1}}]
"""
    (folder / "ladder.yaml").write_text(text, encoding="utf-8")
    lines = (QUICKSTART / "groups.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "groups.jsonl").write_text("".join(lines[:20]), encoding="utf-8")
    command = [sys.executable, "-m", "harness.cli", "run", str(folder / "ladder.yaml"), "--out", str(folder / "source")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "source"


def timed(command: list[str]) -> tuple[float, int]:
    """Wall seconds of a command and how it ended."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "harness.cli", *command], stdout=subprocess.DEVNULL, check=False, cwd=REPO
    )
    return time.perf_counter() - begin, done.returncode


# --- many roots of many targets ---------------------------------------------------------------------------------------


def widen(source: Path, place: Path, targets: int) -> Path:
    """The source's one target under many names, as an unsealed folder. Only what the bundle's verifier reads is made anew."""
    opened = open_root(source)
    found = load(opened.read, opened.paths)
    (one,) = found.plan.targets
    names = [f"target-{number:02}" for number in range(targets)]
    widened = msgspec.structs.replace(
        found.plan, targets=tuple(msgspec.structs.replace(one, name=name) for name in names)
    )
    plan_bytes = to_json(widened)
    digest = manifest.digest_of(plan_bytes)
    shutil.copytree(
        source, place, ignore=shutil.ignore_patterns("SEAL", "MANIFEST.b3", "steps", "artifacts", "plan.json")
    )
    _writable(place)
    outcomes = {}
    artifact = tree_of({"model.onnx": ARTIFACT})
    for target in widened.targets:
        (place / "artifacts" / target.name).mkdir(parents=True)
        (place / "artifacts" / target.name / "model.onnx").write_bytes(ARTIFACT)
        for step in target.steps:
            was, to = (records.step_folder(step.tier, name) for name in (one.name, target.name))
            shutil.copytree(source / was, place / to)
            _writable(place / to)
            left = found.steps[one.name, step.tier]
            outcome = msgspec.structs.replace(
                left.outcome, target=target.name, plan_digest=digest, artifact_digest=artifact
            )
            outcomes[target.name, step.tier] = outcome
            (place / to / "outcome.json").write_bytes(to_json(outcome))
            asked = plan.request(widened, digest, target, step.tier, f"artifacts/{target.name}")
            (place / to / "request.json").write_bytes(to_json(asked))
    (place / "plan.json").write_bytes(plan_bytes)
    _write_times(place, outcomes, found.claim)
    claim = judge.qualification(widened, digest, outcomes, found.claim.started_at, "2030-01-01T00:00:00Z")
    (place / "qualification.json").write_bytes(to_json(claim))
    return place


def tree_of(files: dict[str, bytes]) -> str:
    """The tree digest of an artifact."""
    return manifest.tree_digest(
        manifest.Entry(name, manifest.digest_of(content).removeprefix("blake3:")) for name, content in files.items()
    )


def _write_times(place: Path, outcomes: dict[tuple[str, Tier], records.Outcome], claim: Qualification) -> None:
    """Steps one after another: each starts and ends when the climb began, which is in order."""
    for (target, tier), outcome in outcomes.items():
        again = msgspec.structs.replace(outcome, started_at=claim.started_at, ended_at=claim.started_at)
        (place / records.step_folder(tier, target) / "outcome.json").write_bytes(to_json(again))


def many(template: Path, folder: Path, count: int) -> None:
    """``count`` sealed roots that differ in when they ended. Sealed here, since sealing for good waits for the disk each time."""
    digests = {path.relative_to(template).as_posix(): hash_file(path) for path in template.rglob("*") if path.is_file()}
    claim = from_json((template / "qualification.json").read_bytes(), Qualification, "template")
    for number in range(count):
        root = folder / f"root-{number:03}"
        shutil.copytree(template, root)
        ended = f"2030-01-01T{number // 60:02}:{number % 60:02}:00Z"
        own = to_json(msgspec.structs.replace(claim, ended_at=ended))
        (root / "qualification.json").write_bytes(own)
        rendered = manifest.render_digests(
            dict(sorted({**digests, "qualification.json": manifest.digest_of(own).removeprefix("blake3:")}.items()))
        )
        (root / manifest.MANIFEST_NAME).write_bytes(rendered)
        (root / manifest.SEAL_NAME).write_bytes(manifest.render_seal(manifest.digest_of(rendered)))


# --- two roots with many queries --------------------------------------------------------------------------------------


def groups(queries: int, candidates: int) -> tuple[data.Group, ...]:
    """Generated groups: a query of 6 words, documents of 12, one to three of them relevant."""
    random = np.random.Generator(np.random.PCG64(0))
    words = random.integers(0, len(WORDS), (queries, candidates + 1, 12))
    relevant = random.integers(1, 4, queries)
    places = random.permuted(np.tile(np.arange(candidates), (queries, 1)), axis=1)
    return tuple(
        data.Group(
            query_id=f"q{number}",
            query=" ".join(WORDS[place] for place in words[number, -1, :6]),
            candidates=tuple(
                data.Doc(
                    id=f"d{doc}",
                    text=" ".join(WORDS[place] for place in words[number, doc]),
                    gain=float(places[number, doc] < relevant[number]),
                )
                for doc in range(candidates)
            ),
        )
        for number in range(queries)
    )


def rank(source: Path, out: Path, ranked: tuple[data.Group, ...], seed: int) -> Path:
    """The source with another ranked set and generated scores, all of it derived again and sealed."""
    opened = open_root(source)
    found = load(opened.read, opened.paths)
    staging = seal.stage(out)
    shutil.copytree(source, staging, dirs_exist_ok=True, ignore=shutil.ignore_patterns("SEAL", "MANIFEST.b3"))
    _writable(staging)
    rendered = data.render_groups(ranked)
    (staging / GROUPS).write_bytes(rendered)
    fact = facts(whole(ranked), source="groups.jsonl", bounds=Bounds())
    made = _replanned(found, opened.read, fact)
    (target,) = made.targets
    digest = manifest.digest_of(to_json(made))
    (staging / records.PLAN).write_bytes(to_json(made))
    _scores(staging / records.step_folder("L3", target.name), ranked, seed)
    outcomes = {}
    for step in target.steps:
        folder = records.step_folder(step.tier, target.name)
        request = plan.request(made, digest, target, step.tier, f"artifacts/{target.name}")
        (staging / folder / "request.json").write_bytes(to_json(request))
        outcome = msgspec.structs.replace(found.steps[target.name, step.tier].outcome, plan_digest=digest)
        if step.tier == "L3":
            outcome = _derived(staging, request, target, outcome)
        outcomes[target.name, step.tier] = outcome
        (staging / folder / "outcome.json").write_bytes(to_json(outcome))
    claim = judge.qualification(made, digest, outcomes, found.claim.started_at, found.claim.ended_at)
    (staging / records.CLAIM).write_bytes(to_json(claim))
    seal.seal(staging, out)
    return out


def _replanned(found: RootRecords, read: Callable[[str], bytes], fact: records.DataFact) -> Plan:
    inputs = msgspec.structs.replace(found.plan.inputs, groups=fact)
    sealed = read(records.LADDER)
    return plan.make(ladder.parse(sealed, records.LADDER), sealed, found.plan.candidate, inputs, {})


def _scores(folder: Path, ranked: tuple[data.Group, ...], seed: int) -> None:
    """Scores that know something of the gains; the artifact's are the reference's with a little noise."""
    gains = np.array([doc.gain for group in ranked for doc in group.candidates])
    reference = (gains + np.random.Generator(np.random.PCG64(1)).normal(0, 1, gains.size)).astype("<f4")
    noise = np.random.Generator(np.random.PCG64(seed)).normal(0, 0.02, gains.size)
    (folder / "reference.f32").write_bytes(reference.tobytes())
    (folder / "artifact.f32").write_bytes((reference + noise).astype("<f4").tobytes())
    was = from_json((folder / "scores.json").read_bytes(), ScoresRaw, "scores.json")
    now = msgspec.structs.replace(was, shape=(int(gains.size),), groups=len(ranked))
    (folder / "scores.json").write_bytes(to_json(now))


def _derived(
    staging: Path, request: records.Request, target: PlannedTarget, outcome: records.Outcome
) -> records.Outcome:
    def read(path: str) -> bytes:
        return (staging / path).read_bytes()

    measured = derive.measure(request, read)
    (staging / request.step / "measurements.json").write_bytes(to_json(measured))
    (staging / request.step / "per_query.json").write_bytes(to_json(derive_rerank.per_query(request, read)))
    limits = next(step.limits for step in target.steps if step.tier == "L3")
    return judge.again(outcome, limits, measured.measurements)


def _writable(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def main() -> None:
    """Make the roots, time both commands, print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, help="a root of one target that climbed to L3; made when not given")
    parser.add_argument(
        "--folder", type=Path, help="where the roots are made and left; a temporary folder when not given"
    )
    for name, number in (("roots", 200), ("targets", 20), ("queries", 50_000), ("candidates", 10)):
        parser.add_argument(f"--{name}", type=int, default=number)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        source = asked.root or climb(folder)
        print(f"{os.cpu_count()} cores")
        _history(folder, source, asked.roots, asked.targets)
        _diff(folder, source, asked.queries, asked.candidates)


def _history(folder: Path, source: Path, roots: int, targets: int) -> None:
    runs = folder / "runs"
    if not runs.exists():
        template = widen(source, folder / "template", targets)
        runs.mkdir()
        many(template, runs, roots)
    files = sum(1 for path in runs.rglob("*") if path.is_file())
    timed(["history", str(runs)])  # the page cache
    before = _children()
    seconds, code = timed(["history", str(runs)])
    print(f"history  {roots} roots of {targets} targets ({files:,} files): {seconds:.2f} s, exit {code} (bar 3 s)")
    print(f"         user and system time: {_children() - before:.2f} s")


def _diff(folder: Path, source: Path, queries: int, candidates: int) -> None:
    sides = [folder / name for name in ("one", "two")]
    if not sides[0].exists():
        ranked = groups(queries, candidates)
        for number, side in enumerate(sides):
            rank(source, side, ranked, number + 2)
    begin = time.perf_counter()
    opened = [open_root(side) for side in sides]
    hashed = time.perf_counter() - begin
    found = [rejudge(root.read, root.paths, root.digests) for root in opened]
    judged = time.perf_counter() - begin - hashed
    assert not any(one.faults for one in found), [one.faults[:3] for one in found]
    before = _children()
    seconds, code = timed(["diff", *map(str, sides)])
    print(f"diff     two roots of {queries:,} queries x {candidates}: {seconds:.2f} s, exit {code} (bar 3 s)")
    print(f"         user and system time: {_children() - before:.2f} s")
    print(f"         of that, in this process: hashing {hashed:.2f} s, judging both again {judged:.2f} s")


def _children() -> float:
    """Processor seconds of all commands so far, which a busy machine stretches less than wall time."""
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return now.ru_utime + now.ru_stime


if __name__ == "__main__":
    main()
