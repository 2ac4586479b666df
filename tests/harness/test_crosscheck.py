"""Nothing that a step seals goes unread: every field of every record of a real root, changed, sealed again and judged again.

What only the machine that ran could know is listed in ``NOBODY_CAN_CHECK`` with the reason; everything else must be found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from evidence import meaning, seal
from evidence.manifest import Fault, digest_of
from evidence.verify import open_root
from harness import perf_events, plan, recheck, records
from harness.answer import check
from harness.errors import RecordError
from harness.raw import MachineRaw
from harness.recheck import rejudge
from harness.records import Measurement, Request, step_folder
from harness.root import load, step_records
from harness.where import Where
from tests.support.ladders import qualify, writable_copy, write_ladder
from tests.support.once import once

Pointer = tuple[str | int, ...]
Change = Callable[[Any], Any]

NOBODY_CAN_CHECK = {
    "build.json /warnings/* longer": "words of the exporter, shown as they are; nothing follows from them but their number",
    **{
        f"machine.json /{series}/*": "a reading within a part of L1 is context; what is measured is from its first to its last"
        for series in ("busy_ms", "idle_ms", "stolen_ms", "own_ms", "load_1min", "mhz", "pressure_ms")
    },
    **{
        f"{name} {how}": "loading is measured where samples.json has it; what these sessions took to load is context"
        for name in ("load.json /session/load_ms", "sweep.json /sessions/*/load_ms")
        for how in ("larger", "smaller")
    },
    "outcome.json /exit/seconds smaller": "as long as all that was timed in the step still fits into it",
    "qualification.json /started_at earlier": "the clock of the machine that ran: only the order of all times is held (E-TIME)",
    "qualification.json /ended_at later": "likewise",
    "lineage.json": "this root has none; tests/evidence changes every field of one",
    "environment.json": "facts of the machine that ran: they decide what may be preserved, never a verdict",
}


class Sealed:
    """The files of a sealed root, one of them changed, looked at as if all had been sealed so."""

    measured: ClassVar[dict[tuple[str, str], tuple[Request, dict[str, bytes | None], Measured]]] = {}

    def __init__(self, root: Path) -> None:
        opened = open_root(root)
        assert opened.report.ok
        self.files = {path: opened.read(path) for path in opened.paths}
        self.digests = opened.digests
        self.plan = load(self.files.__getitem__, self.files).plan

    @classmethod
    def measure(cls, request: Request, where: Where) -> Measured:
        """As ``recheck`` measures: a pure function, so what it read before, and reads again as it was, gives what it gave."""

        def read(path: str) -> bytes | None:
            try:
                return where.read(path)
            except LookupError:
                return None

        key = request.plan_digest, request.step
        asked, seen, known = cls.measured.get(key, (None, {}, ((), [])))
        if asked == request and all(read(path) == data for path, data in seen.items()):
            return known[0], [*known[1]]  # the judge adds to the list that it is given
        paths: set[str] = set()

        def noted(path: str) -> bytes:
            paths.add(path)
            return where.read(path)

        found = MEASURE(request, where._replace(read=noted))
        cls.measured.setdefault(key, (request, {path: read(path) for path in paths}, found))
        return found[0], [*found[1]]

    def found(self, path: str, data: bytes) -> list[str]:
        """The rules that are broken: of the records of the bundle, of the samples of the step, or of all."""
        files = self.files | {path: data}
        rules: list[str] = []
        if path.rpartition("/")[2] in BUNDLE:
            digests = self.digests | {path: digest_of(data).removeprefix("blake3:")}
            rules = [fault.rule for fault in meaning.check(digests, files.__getitem__)[0]]
        if path.startswith("steps/") and not rules:
            rules = self._step(files, path.rpartition("/")[0])
        return rules or [fault.rule for fault in rejudge(files.__getitem__, files).faults]

    def _step(self, files: dict[str, bytes], folder: str) -> list[str]:
        """As ``rejudge`` judges this step, and quicker: there are many changes to try."""
        target, step = next((t, s) for t in self.plan.targets for s in t.steps if step_folder(s.tier, t.name) == folder)
        artifact = records.artifact_folder(target.name)
        request = plan.request(self.plan, digest_of(files[records.PLAN]), target, step.tier, artifact)
        where = Where(self.plan, files.__getitem__, lambda name: digest_of(files[name])[7:] if name in files else None)
        try:
            left = step_records(files.__getitem__, files, folder)
        except RecordError:
            return ["Q-RECORD"]
        return [fault.rule for fault in recheck._step(request, step, left, where)[2]]


Measured = tuple[tuple[Measurement, ...], list[Fault]]
MEASURE = recheck._measure
BUNDLE = {"outcome.json", "request.json", "plan.json", "qualification.json"}
"""Records that the rules of ``evidence`` read."""


@pytest.fixture(scope="module")
def sealed(tiny_root: Path) -> Iterator[Sealed]:
    """The root, judged once as it is: what was derived then is not derived again where nothing of it was changed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recheck, "_measure", Sealed.measure)
        yield _judged(tiny_root)


@pytest.fixture(scope="module")
def loaded(sealed: Sealed, tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, tiny_root: Path) -> Sealed:
    """A root of one target that L1 asks for all it can: sweep, callers at once, arrivals, whole requests, a baseline, PyTorch."""

    def climb(folder: Path) -> None:
        ladder = write_ladder(folder, tiny_model, "\n  - {precision: fp32, threads: 1}\n", goal="L2", L1=ALL)
        said = qualify("run", ladder, "--out", folder / "root", "--baseline", tiny_root)
        assert said.code == 0, said.err + said.out

    return _judged(once(tmp_path_factory, "loaded", climb) / "root")


def _judged(root: Path) -> Sealed:
    made = Sealed(root)
    assert rejudge(made.files.__getitem__, made.files).faults == ()
    return made


ALL = """{candidates: 8, batch_size: 4, max_length: 48, warm_up: 2, calls: 60, growth_calls: 12, end_to_end_calls: 6,
    sweep: {candidates: [2, 8], max_length: [16, 48], batch_size: [4], threads: [1, 2], calls: 6},
    load: {concurrency: [1, 2], calls: 6, arrival_per_s: 200, arrivals: 8}, eager: true, paired: {sessions: 6, calls: 4},
    limits: {ratio_p50: {at_most: 1e3}, ratio_eager: {at_least: 1e-3}}}"""


def leaves(value: Any, at: Pointer = ()) -> Iterator[tuple[Pointer, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*at, key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, (*at, index))
    else:
        yield at, value


def changes(value: Any) -> Iterator[tuple[str, Any]]:
    """What a forger might put instead of a value: of the same kind, so that it is not refused for its form."""
    if isinstance(value, bool):
        yield "negated", not value
    elif isinstance(value, int | float):
        yield "larger", value * 2 + 1
        if value:
            yield "smaller", type(value)(value / 2)
    elif isinstance(value, str) and re.fullmatch(r"[0-9-]{10}T[0-9:.]+Z", value):
        yield "earlier", value.replace("20", "19", 1)
        yield "later", value.replace("20", "21", 1)
    elif isinstance(value, str):
        yield "longer", value + "x"
    elif value is None:
        yield "something", "x"
    else:
        yield "something", ["x"] if isinstance(value, list) else {"x": 1}


def put(value: Any, at: Pointer, new: Any) -> Any:
    copy = json.loads(json.dumps(value))
    inner = copy
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = new
    return copy


def kind_of(at: Pointer) -> str:
    return "/" + "/".join("*" if isinstance(key, int) else key for key in at)


def several(value: Any) -> Iterator[tuple[str, Pointer, Any]]:
    """Of each kind of field the last leaf: the samples of one list are all read alike."""
    yield from {kind_of(at): (kind_of(at), at, leaf) for at, leaf in leaves(value)}.values()


def chosen(name: str, value: Any) -> list[tuple[str, Pointer, Any]]:
    """``several``; of ``machine.json`` the second leaf of each list, a reading in the middle of a part of L1."""
    if name != "machine.json":
        return [*several(value)]
    early = [(at, leaf) for at, leaf in leaves(value) if at[-1] in (0, 1) or len(at) == 1]
    return [*{kind_of(at): (kind_of(at), at, leaf) for at, leaf in early}.values()]


@pytest.mark.parametrize(
    "place", [*(f"steps/{tier}.cpu-fp16/" for tier in ("L0-build", "L1-perf", "L2-parity", "L3-rerank")), records.CLAIM]
)
def test_every_field_of_every_record_is_read(sealed: Sealed, place: str) -> None:
    """On fp16, whose export and reference were taken over from fp32, so that there is most to compare."""
    assert (
        unread(sealed, place, 20 if place == records.CLAIM else 30) == []
    )  # the claim says little that its steps do not


@pytest.mark.slow
def test_every_field_of_all_that_l1_can_be_asked_for_is_read(loaded: Sealed) -> None:
    assert unread(loaded, "steps/L1-perf.cpu-fp32/", 300) == []


def unread(sealed: Sealed, place: str, fewest: int) -> list[str]:
    """Changes of the records of one place that nothing is said of, of more than ``fewest``."""
    missed: list[str] = []
    tried = 0
    for path in (path for path in sealed.files if path.startswith(place)):
        name = path.rpartition("/")[2]
        if not name.endswith(".json") or name in NOBODY_CAN_CHECK:
            continue
        value = json.loads(sealed.files[path])
        for kind, at, leaf in chosen(name, value):
            for how, new in changes(leaf):
                tried += 1
                what = f"{name} {kind} {how}"
                excused = what in NOBODY_CAN_CHECK or f"{name} {kind}" in NOBODY_CAN_CHECK
                if not excused and not sealed.found(path, records.to_json(put(value, at, new))):
                    missed.append(f"{what}: {leaf!r:.60} became {new!r:.60}")
    assert tried > fewest
    return missed


def test_nothing_is_excused_that_is_found(sealed: Sealed, loaded: Sealed) -> None:
    """The list of what nobody can check holds no entry that the verifier does find."""
    for entry in NOBODY_CAN_CHECK:
        if " " not in entry:
            continue
        name, pointer, *how = entry.split(" ")
        missed = untold = False
        root = loaded if name in {"load.json", "sweep.json"} else sealed
        for path in (path for path in root.files if not missed and (path.endswith(f"/{name}") or path == name)):
            value = json.loads(root.files[path])
            places = [(at, leaf) for kind, at, leaf in chosen(name, value) if kind == pointer]
            new = [(at, made) for at, leaf in places for word, made in changes(leaf) if not how or word in how]
            missed = missed or any(not root.found(path, records.to_json(put(value, at, made))) for at, made in new)
            untold = not how and value[pointer.split("/")[1]] is None  # a series that this system does not tell
        assert missed or untold, entry


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"interval_ms": 50.0}, "interval_ms: expected 100.0, got 50.0"),
        ({"cpus": (977,)}, "cpus, as the session says: expected {cpus}, got 977"),
        ({"at_ms": (2.0, 1.0)}, "times in order, within the child's life: expected True, got False"),
        ({"at_ms": (1.0, 1e9)}, "times in order, within the child's life: expected True, got False"),
        ({"at_ms": ()}, "times in order, within the child's life: expected True, got False"),
        ({"at_ms": (1.0, 2.0)}, "a reading after all that was timed: expected True, got False"),
    ],
)
def test_readings_of_another_time_or_of_other_processors_are_a_fault(
    sealed: Sealed, change: dict[str, Any], message: str
) -> None:
    path = "steps/L1-perf.cpu-fp16/machine.json"
    machine = records.from_json(sealed.files[path], MachineRaw, path)
    files = sealed.files | {path: records.to_json(msgspec.structs.replace(machine, **change))}
    said = [fault.message for fault in rejudge(files.__getitem__, files).faults if fault.rule == "Q-RAW"]
    assert f"{path}: {message.format(cpus=','.join(map(str, machine.cpus)))}" in said


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("reference.f32", lambda data: data[:-4] + b"\0\0\x80\x3f"),
        ("invariance_reference.f32", lambda data: data[:-4] + b"\0\0\x80\x3f"),
        ("tokens.i32", lambda data: data[:-4] + b"\1\0\0\0"),
        ("stderr.log", lambda data: data + b"[REDACTED]"),
        ("stdout.log", lambda data: data + b"[REDACTED]"),
    ],
)
def test_a_file_that_was_taken_over_or_counted_is_compared(
    sealed: Sealed, name: str, change: Callable[[bytes], bytes]
) -> None:
    path = f"steps/L2-parity.cpu-fp16/{name}"
    assert "Q-RAW" in sealed.found(path, change(sealed.files[path]))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("steps/L1-perf.cpu-fp32/notes.txt", "expected only files that L1 leaves, got this"),
        ("steps/L1-perf.cpu-fp32/reference.f32", "expected only files that L1 leaves, got this"),
        ("steps/L3-rerank.cpu-int8/more/stderr.log", "expected only files that L3 leaves, got this"),
        ("artifacts/cpu-fp16/readme.txt", "expected only the artifact (model.onnx, model.onnx.data), got this"),
    ],
)
def test_a_file_that_nothing_names_is_a_fault(tiny_root: Path, tmp_path: Path, path: str, message: str) -> None:
    copy = writable_copy(tiny_root, tmp_path / "staging")
    for name in ("SEAL", "MANIFEST.b3"):
        (copy / name).unlink()
    (copy / path).parent.mkdir(exist_ok=True)
    (copy / path).write_bytes(b"unread")
    if path.startswith("artifacts/"):
        found = rejudge(
            lambda name: (copy / name).read_bytes(), [p.relative_to(copy).as_posix() for p in copy.rglob("*.*")]
        )
        assert Fault("Q-FILE", path, f"{path}: {message}") in found.faults
        return
    seal.seal(copy, tmp_path / "root")
    checked = check(tmp_path / "root")
    assert (checked.exit_code, checked.faults) == (20, (Fault("Q-FILE", path, f"{path}: {message}"),))


def test_weights_that_the_graph_does_not_name_are_a_fault(sealed: Sealed) -> None:
    path = "artifacts/cpu-fp16/model.onnx.data"
    judged = rejudge((sealed.files | {path: b"unread"}).__getitem__, [*sealed.files, path])
    stated = "steps/L0-build.cpu-fp16/artifact.json"
    said = f"{stated}: weights beside the graph: expected {{'model.onnx.data'}}, got set()"
    assert judged.faults == (Fault("Q-RAW", stated, said),)


@pytest.mark.parametrize("name", ["request.json", "stdout.log", "stderr.log"])
def test_a_step_that_ran_has_its_request_and_logs(sealed: Sealed, name: str) -> None:
    path = f"steps/L1-perf.cpu-fp32/{name}"
    files = {kept: data for kept, data in sealed.files.items() if kept != path}
    faults = rejudge(files.__getitem__, files.keys()).faults
    assert Fault("Q-FILE", path, f"{path}: expected this file, since the step ran, got none") in faults


# --- L1, forged whole and derived again -------------------------------------------------------------------------------


def times(record: Any, key: str, by: float) -> None:
    record[key] = [by * ms for ms in record[key]]


def doubled(sweep: Any) -> None:
    for cell in sweep["cells"]:
        times(cell, "samples_ms", 2)


def before_the_load(sweep: Any) -> None:
    for cell in sweep["cells"]:
        cell["memory_ms"] = [1.0, 2.0]


def of_one_token(sweep: Any) -> None:
    for cell in sweep["cells"]:
        cell["shapes"] = [[batch, 1] for batch, _ in cell["shapes"]]


def other_threads(sweep: Any) -> None:
    for facts in sweep["sessions"]:
        facts["options"]["execution_mode"] = "parallel"


def slower_requests(raw: Any) -> None:
    for call in raw["calls"]:
        call["total_ms"] *= 2


def longer_pairs(raw: Any) -> None:
    for pair in raw["sessions"]:
        times(pair, "candidate_ms", 3)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("sweep.json", doubled, "rounds: calls that fit and fill their time"),
        ("sweep.json", before_the_load, "memory_ms after what was before"),
        ("sweep.json", of_one_token, "micro-batches of 2 pairs, at most 16 tokens and 4 a batch"),
        ("sweep.json", other_threads, "session options, as in L0"),
        ("end_to_end.json", slower_requests, "requests: calls that fit and fill their time"),
        ("paired.json", longer_pairs, "a pair of sessions: calls that fit and fill their time"),
        (
            "load.json",
            lambda raw: raw["session"]["options"].update(execution_mode="parallel"),
            "session options, as in L0",
        ),
        ("samples.json", lambda raw: raw.update(truncated=raw["truncated"] + 1), "truncated"),
    ],
)
def test_l1_that_does_not_fit_its_time_its_sessions_or_its_pairs_is_a_fault(
    loaded: Sealed, name: str, change: Callable[[Any], object], said: str
) -> None:
    """By what is compared alone, whatever became of the numbers that are derived: whoever forges derives them again."""
    path = f"steps/L1-perf.cpu-fp32/{name}"
    raw = json.loads(loaded.files[path])
    change(raw)
    faults = rejudge((files := loaded.files | {path: records.to_json(raw)}).__getitem__, files).faults
    assert f"{path}: {said}: expected" in " ".join(fault.message for fault in faults if fault.rule == "Q-RAW")


def test_the_machine_is_read_until_all_is_compared(loaded: Sealed) -> None:
    path = "steps/L1-perf.cpu-fp32/machine.json"
    machine = records.from_json(loaded.files[path], MachineRaw, path)
    compared = json.loads(loaded.files[path.replace("machine", "eager")])["sessions"][-1]["span_ms"]
    assert machine.at_ms[-1] >= compared[1]
    kept = sum(at < compared[0] for at in machine.at_ms)
    cut = {
        field: value[:kept]
        for field, value in msgspec.structs.asdict(machine).items()
        if isinstance(value, tuple) and len(value) == len(machine.at_ms)
    }
    files = loaded.files | {path: records.to_json(msgspec.structs.replace(machine, **cut))}
    said = f"{path}: a reading after all that was timed: expected True, got False"
    assert said in [fault.message for fault in rejudge(files.__getitem__, files).faults]


def test_a_file_that_the_plan_does_not_ask_for_is_a_fault(sealed: Sealed, loaded: Sealed) -> None:
    path = "steps/L1-perf.cpu-fp32/sweep.json"
    files = sealed.files | {path: loaded.files[path]}
    said = f"{path}: a file only where the plan asks for it: expected False, got True"
    assert said in [fault.message for fault in rejudge(files.__getitem__, files).faults]


@pytest.mark.parametrize(
    ("span", "calls", "expected"),
    [
        ((0.0, 100.0), [50.0, 49.0], True),
        ((0.0, 100.0), [50.0, 50.1], False),
        ((0.0, 999.0), [1.0], True),  # it may have been held up for a second
        ((0.0, 10_000.0), [2600.0], True),
        ((0.0, 10_000.0), [1000.0], False),  # divided by ten
        ((0.0, 100.0), [-1.0], False),
    ],
)
def test_calls_fit_into_their_time_and_fill_it(span: tuple[float, float], calls: list[float], expected: bool) -> None:
    assert perf_events.fits(span, calls) is expected
