"""Make the fixture roots again, byte for byte: `python tests/roots/make.py [FOLDER]`.

It uses nothing of `evidence`, so that a mistake there cannot hide here. Each case is a folder with a README, whose first line
names the rules that must be reported and the exit code, and the root itself. What git cannot store (empty folders, hard
links, pipes, unreadable files) the tests make for themselves.
"""

from __future__ import annotations

import copy
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blake3 import blake3

HERE = Path(__file__).parent
Files = dict[str, bytes]
WORDS = {0: "intact", 20: "not intact", 30: "undetermined"}


def digest(data: bytes) -> str:
    return "blake3:" + blake3(data).hexdigest()


def lines(files: Files) -> bytes:
    return b"".join(b"%s  %s\n" % (blake3(files[path]).hexdigest().encode(), path.encode()) for path in sorted(files))


def to_json(record: Any) -> bytes:
    return (json.dumps(record, sort_keys=True, indent=2) + "\n").encode()


@dataclass
class Climb:
    """The records of a small climb before they are bytes, so that a case can change one thing and the rest still agrees."""

    ladder: bytes = b"format: 1\n"
    files: Files = field(default_factory=lambda: {"inputs/pairs.jsonl": b'{"document": "b", "query": "a"}\n'})
    artifacts: dict[str, Files] = field(
        default_factory=lambda: {"cpu-fp32": {"model.onnx": b"graph", "model.data": b"weights"}}
    )
    targets: dict[str, list[str]] = field(default_factory=lambda: {"cpu-fp32": ["L0", "L1"], "cpu-fp16": []})
    verdicts: dict[tuple[str, str], str] = field(
        default_factory=lambda: {("cpu-fp32", "L0"): "PASS", ("cpu-fp32", "L1"): "FAIL"}
    )
    gates: dict[str, str] = field(default_factory=dict)
    candidate: Files = field(default_factory=lambda: {"config.json": b"{}", "model.safetensors": b"w"})
    plan: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)
    gate_records: dict[str, dict[str, Any]] = field(default_factory=dict)
    claim: dict[str, Any] = field(default_factory=dict)
    lineage: dict[str, Any] = field(default_factory=lambda: {"format": 1, "preserved": [], "supersedes": []})

    def build(self, change: Callable[[Climb], object] = type) -> Files:
        """All sealed files; `change` sees the finished records just before they become bytes."""
        self.plan = {
            "format": 1,
            "ladder_digest": digest(self.ladder),
            "candidate": {
                "digest": digest(lines(self.candidate)),
                "files": [
                    {"path": p, "blake3": blake3(data).hexdigest()} for p, data in sorted(self.candidate.items())
                ],
            },
            "inputs": {
                "groups": None,
                "groups_blocked": None,
                "pairs": {"path": "inputs/pairs.jsonl", "digest": digest(self.files["inputs/pairs.jsonl"])},
            },
            "targets": [
                {"name": name, "steps": [{"tier": tier} for tier in tiers]} for name, tiers in self.targets.items()
            ],
        }
        if self.gates:
            self.plan["gates"] = [{"name": name} for name in self.gates]
        plan_digest = digest(to_json(self.plan))
        same = {"plan_digest": plan_digest, "candidate_digest": self.plan["candidate"]["digest"]}
        clock = 1
        for (target, tier), verdict in self.verdicts.items():
            folder = step_folder(tier, target)
            self.requests[folder] = {"format": 1, "tier": tier, "plan_digest": plan_digest}
            self.outcomes[folder] = same | {
                "format": 1,
                "tier": tier,
                "target": target,
                "verdict": verdict,
                "reason": "",
                "artifact_digest": digest(lines(self.artifacts[target])),
                "started_at": f"2026-01-01T00:00:{clock:02}.000Z",
                "ended_at": f"2026-01-01T00:00:{clock + 1:02}.500Z",
            }
            clock += 2
        self.claim = same | {
            "format": 1,
            "targets": [
                {"name": name, "tiers": {tier: self.verdicts.get((name, tier), "NOT_RUN") for tier in tiers}}
                for name, tiers in self.targets.items()
            ],
            "started_at": "2026-01-01T00:00:00Z",
            "ended_at": "2026-01-01T00:01:00Z",
        }
        for clock, (name, verdict) in enumerate(self.gates.items(), 1):
            self.gate_records[name] = {
                "format": 1,
                "name": name,
                "verdict": verdict,
                "reason": "",
                "plan_digest": plan_digest,
                "started_at": f"2026-01-01T00:00:00.{clock}00Z",
                "ended_at": f"2026-01-01T00:00:00.{clock}50Z",
            }
        if self.gates:
            self.claim["gates"] = [{"name": name, "verdict": verdict} for name, verdict in self.gates.items()]
        change(self)
        files = dict(self.files) | {"ladder.yaml": self.ladder, "plan.json": to_json(self.plan)}
        files |= {"environment.json": to_json({"format": 1}), "lineage.json": to_json(self.lineage)}
        files["qualification.json"] = to_json(self.claim)
        for folder, outcome in self.outcomes.items():
            files |= {f"{folder}/outcome.json": to_json(outcome)}
        files |= {f"{folder}/request.json": to_json(request) for folder, request in self.requests.items()}
        files |= {f"gates/{name}/gate.json": to_json(gate) for name, gate in self.gate_records.items()}
        for target, artifact in self.artifacts.items():
            files |= {f"artifacts/{target}/{name}": data for name, data in artifact.items()}
        return files


TIERS = {"L0": "build", "L1": "perf", "L2": "parity", "L3": "rerank"}


def step_folder(tier: str, target: str) -> str:
    return f"steps/{tier}-{TIERS[tier]}.{target}"


L0, L1 = step_folder("L0", "cpu-fp32"), step_folder("L1", "cpu-fp32")


@dataclass
class Case:
    """One fixture: what stands in the root, and what a verifier must say."""

    name: str
    rules: tuple[str, ...]
    why: str
    files: Files  # all that the manifest should name, and (unless `disk` says otherwise) all that is there
    manifest: bytes | None = None
    seal: bytes | None = None
    disk: Callable[[Files], object] = type  # `type` looks at a value and leaves it as it is
    links: dict[str, str] = field(default_factory=dict)
    exit_code: int = 20

    def on_disk(self) -> Files:
        manifest = lines(self.files) if self.manifest is None else self.manifest
        seal = f"qualify-seal/1 {digest(manifest)}\n".encode() if self.seal is None else self.seal
        files = dict(self.files) | {"MANIFEST.b3": manifest, "SEAL": seal}
        self.disk(files)
        return files

    def write(self, folder: Path) -> None:
        for path, data in self.on_disk().items():
            place = folder / self.name / "root" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        for path, to in self.links.items():
            (folder / self.name / "root" / path).symlink_to(to)
        rules = ", ".join(self.rules) or "no rule"
        text = f"# {self.name}\n\nExpected: {rules}; exit {self.exit_code} ({WORDS[self.exit_code]}).\n\n{self.why}\n"
        (folder / self.name / "README.md").write_text(text, encoding="utf-8")


SMALL: Files = {"a.txt": b"one\n", "b/c.txt": b"two\n"}
LINES = lines(SMALL)
LEAST: Files = Climb(artifacts={}, targets={}, verdicts={}).build()  # the least that a root can be
GOOD = Climb().build()


def changed(path: str, data: bytes) -> Callable[[Files], object]:
    return lambda files: files.update({path: data})


def removed(path: str) -> Callable[[Files], object]:
    return lambda files: files.pop(path)


LINEAGE = {"format": 1, "preserved": [], "supersedes": []}


def origin_place(origin: Files) -> str:
    return f"preserved/{blake3(lines(origin)).hexdigest()[:16]}/"


def carry(origin: Files, steps: tuple[str, ...]) -> Files:
    """What a root that carries `steps` of `origin` holds of it. An origin's own origins are not among it."""
    manifest = lines(origin)
    own = {"SEAL": f"qualify-seal/1 {digest(manifest)}\n".encode(), "MANIFEST.b3": manifest}
    artifacts = tuple(f"artifacts/{step.partition('.')[2]}/" for step in steps if "/L0-" in step)
    places = (*(f"{step}/" for step in steps), *artifacts)
    kept = {path: data for path, data in origin.items() if "/" not in path or path.startswith(places)}
    return {origin_place(origin) + path: data for path, data in (own | kept).items()}


PASSED = {("cpu-fp32", "L0"): "PASS", ("cpu-fp32", "L1"): "PASS"}


def keep(
    change: Callable[[Climb], object] = type,
    *,
    steps: tuple[str, ...] = (L0,),
    origin: Files = GOOD,
    climb: Climb | None = None,
    beside: Files | None = None,
) -> Files:
    """A climb in which L0 and L1 pass, and `steps` are carried from `origin`; `beside` is carried from elsewhere."""

    def take(made: Climb) -> None:
        for step in steps:
            made.outcomes.pop(step, None)
            made.requests.pop(step, None)
        if beside is not None or any("/L0-" in step for step in steps):
            made.artifacts = {}
        made.files |= carry(origin, steps) | (beside or {})
        listed = [(digest(lines(origin)), sorted(steps))]
        if beside is not None:
            made.outcomes.pop(L0)
            made.requests.pop(L0)
            listed.append((digest(lines(GOOD)), [L0]))
        made.lineage = LINEAGE | {"preserved": [{"origin": o, "steps": kept} for o, kept in sorted(listed)]}
        change(made)

    return (climb or Climb(verdicts=dict(PASSED))).build(take)


GATE_LOGS: Files = {**Climb().files, "gates/lint/stdout.log": b"fine\n", "gates/lint/stderr.log": b""}


def gate_cases() -> list[Case]:
    """Gates left out, not planned, of another name, or not heeded."""
    passed = {"lint": "PASS", "tests": "PASS"}

    def left_out(climb: Climb) -> None:
        del climb.gate_records["tests"]
        climb.claim["gates"][1]["verdict"] = "NOT_RUN"
        climb.outcomes, climb.requests, climb.artifacts = {}, {}, {}
        for target in climb.claim["targets"]:
            target["tiers"] = dict.fromkeys(target["tiers"], "NOT_RUN")

    def other_file(climb: Climb) -> None:
        climb.files["gates/lint/report.txt"] = b"x\n"

    def unplanned(climb: Climb) -> None:
        climb.gate_records["types"] = climb.gate_records["lint"] | {"name": "types"}

    def renamed(climb: Climb) -> None:
        climb.gate_records["lint"]["name"] = "tests"

    def after_interrupt(climb: Climb) -> None:
        climb.gate_records["lint"] |= {"verdict": "BLOCKED", "reason": "interrupted by the user"}
        climb.claim["gates"][0]["verdict"] = "BLOCKED"

    def claimed(climb: Climb) -> None:
        climb.claim["gates"][0]["verdict"] = "FAIL"

    def other_plan(climb: Climb) -> None:
        climb.gate_records["lint"]["plan_digest"] = digest(b"another")

    rows: list[tuple[str, str, str, Climb, Callable[[Climb], object]]] = [
        ("gate_left_out", "E-GATE", "A planned gate was left out.", Climb(gates=passed), left_out),
        ("gate_other_file", "E-GATE", "A file beside the record and logs of a gate.", Climb(gates=passed), other_file),
        ("gate_unplanned", "E-GATE", "A gate that was not planned.", Climb(gates=passed), unplanned),
        ("gate_renamed", "E-GATE", "A gate's record names another.", Climb(gates=passed), renamed),
        ("gate_after_interrupt", "E-GATE", "A gate ran after the one in which the user stopped the climb.",
         Climb(gates=passed, verdicts={}, artifacts={}), after_interrupt),
        ("gate_claim", "E-CLAIM", "The claim gives a gate another verdict.", Climb(gates=passed), claimed),
        ("gate_plan", "E-PLAN", "A gate names another plan.", Climb(gates=passed), other_plan),
        ("gate_not_heeded", "E-STEP", "A step ran though a gate had failed.", Climb(gates={"lint": "FAIL"}), type),
    ]  # fmt: skip
    return [Case(f"{name}_fail", (rule,), why, climb.build(change)) for name, rule, why, climb, change in rows]


def good_cases() -> list[Case]:
    fp16 = Climb(
        targets={"cpu-fp32": ["L0", "L1", "L2"], "cpu-fp16": ["L0", "L1", "L2"]},
        artifacts={"cpu-fp32": {"model.onnx": b"graph"}},
        verdicts={("cpu-fp32", "L0"): "PASS", ("cpu-fp32", "L1"): "BLOCKED"},
    )

    def interrupt(climb: Climb) -> None:
        climb.outcomes[L1] |= {"reason": "interrupted by the user", "artifact_digest": None}

    return [
        Case(
            "failed_climb",
            (),
            "A climb whose second tier failed, with a deferred target: whole, so intact.",
            GOOD,
            exit_code=0,
        ),
        Case(
            "interrupted",
            (),
            "The user stopped the climb: no later step, on any target.",
            fp16.build(interrupt),
            exit_code=0,
        ),
        Case(
            "gates_passed",
            (),
            "Two gates passed before the first step.",
            Climb(files=GATE_LOGS, gates={"lint": "PASS", "tests": "PASS"}).build(),
            exit_code=0,
        ),
        Case(
            "gate_failed",
            (),
            "A gate failed, so no step was run: whole, so intact.",
            Climb(gates={"lint": "FAIL", "tests": "PASS"}, verdicts={}, artifacts={}).build(),
            exit_code=0,
        ),
        Case(
            "no_plan",
            (),
            "Files that agree with their manifest, but no plan: nothing says what was to be done, so it is never verified.",
            SMALL,
            exit_code=30,
        ),
        Case(
            "superseding",
            (),
            "A climb that replaces an earlier root, and says why.",
            Climb(lineage=LINEAGE | {"supersedes": [{"digest": digest(LINES), "reason": "a wrong limit"}]}).build(),
            exit_code=0,
        ),
        Case(
            "preserved",
            (),
            "The first tier is carried from an earlier root, in which the second failed; the second ran again, on its artifact.",
            keep(),
            exit_code=0,
        ),
        Case(
            "preserved_other_limits",
            (),
            "A step that failed under the limits of its own plan is carried: what it is worth here is judged from its samples.",
            keep(steps=(L0, L1)),
            exit_code=0,
        ),
        Case(
            "preserved_deeper",
            (),
            "Both tiers are carried from a root that itself carries the first: each stands below the root in which it ran.",
            keep(steps=(L1,), origin=keep(), beside=carry(GOOD, (L0,))),
            exit_code=0,
        ),
    ]


def bytes_cases() -> list[Case]:
    """SEAL and MANIFEST.b3."""
    first, second, *rest = LINES.splitlines(keepends=True)
    other = f"qualify-seal/1 {digest(b'another manifest')}\n".encode()
    crlf = f"qualify-seal/1 {digest(LINES)}\r\n".encode()
    seals = [
        ("seal_missing", removed("SEAL"), "There is no SEAL."),
        ("seal_other_digest", changed("SEAL", other), "SEAL names the digest of another manifest."),
        ("seal_crlf", changed("SEAL", crlf), "SEAL ends in CRLF: it has one spelling."),
        ("seal_upper_hex", changed("SEAL", crlf.upper()), "SEAL is in upper case: it has one spelling."),
        (
            "seal_unknown_version",
            changed("SEAL", crlf.replace(b"/1", b"/2").replace(b"\r", b"")),
            "SEAL is of an unknown format.",
        ),
        ("seal_second_line", changed("SEAL", crlf.replace(b"\r", b"") + b"\n"), "SEAL has a second line."),
    ]
    manifests = [
        ("manifest_empty", b"", "The manifest names no file: an empty file never passes."),
        ("manifest_crlf", LINES.replace(b"\n", b"\r\n"), "Lines end in CRLF."),
        ("manifest_upper_hex", LINES[:64].upper() + LINES[64:], "A digest is in upper case."),
        ("manifest_unsorted", second + first + b"".join(rest), "Lines are not sorted by path."),
        ("manifest_duplicate", first + LINES, "A line stands twice."),
        ("manifest_no_last_newline", LINES[:-1], "The last line is not ended."),
        (
            "manifest_one_space",
            LINES.replace(b"  ", b" ", 1),
            "One space between digest and path: a malformed line is never skipped.",
        ),
        ("manifest_comment", b"# comment\n" + LINES, "A line that is not of the format is never skipped."),
        ("manifest_star", LINES.replace(b"  ", b" *", 1), "The binary mark of other checksum tools."),
        ("manifest_blank_line", LINES + b"\n", "An empty line at the end."),
    ]
    return [
        *(Case(f"{name}_fail", ("E-SEAL",), why, SMALL, disk=change) for name, change, why in seals),
        Case("seal_long_fail", ("E-SIZE",), "SEAL is longer than any seal line.", SMALL, seal=b"x" * 300),
        Case("manifest_missing_fail", ("E-MANIFEST",), "There is no MANIFEST.b3.", SMALL, disk=removed("MANIFEST.b3")),
        *(Case(f"{name}_fail", ("E-MANIFEST",), why, SMALL, manifest=data) for name, data, why in manifests),
    ]


def name_cases() -> list[Case]:
    """Names in the manifest. The files are not there: such a root is refused before any file is opened."""
    paths = [
        ("parent", "../a.txt", "leaves the root"),
        ("inner_parent", "b/../../a.txt", "leaves the root"),
        ("absolute", "/etc/hostname", "is absolute"),
        ("dot", "./a.txt", "has a second spelling"),
        ("empty_name", "b//a.txt", "has a second spelling"),
        ("folder", "b/", "names a folder"),
        ("backslash", "b\\a.txt", "is another file on Windows"),
        ("drive", "C:a.txt", "is a drive on Windows"),
        ("control", "a\x1b[31m.txt", "holds a terminal escape"),
        ("nul", "a\0.txt", "holds a NUL"),
        ("space", "a b.txt", "holds a space"),
        ("unicode", "caf\u00e9.txt", "is not ASCII"),
        ("option", "-rf", "looks like an option"),
        ("trailing_dot", "a.", "ends with a dot, which Windows drops"),
        ("reserved", "nul.txt", "is a device on Windows"),
        ("reserved_folder", "b/COM1/a.txt", "is a device on Windows"),
        ("long_name", "a" * 129, "is longer than 128"),
        ("long_path", "/".join(["a" * 60] * 4), "is longer than 240"),
        ("deep", "/".join("a" * 17), "has more than 16 names"),
        ("own_name", "manifest.B3", "has the name of the manifest"),
    ]
    cases = [(f"path_{name}_fail", "E-PATH", path, f"A path that {why}.") for name, path, why in paths]
    cases += [
        ("dotfile_fail", "E-DOTFILE", "b/.hidden", "A dotfile: uploads of CI drop them."),
        ("dot_folder_fail", "E-DOTFILE", ".cache/a.txt", "A folder that begins with a dot."),
        ("kind_archive_fail", "E-KIND", "b/data.tar.gz", "An archive, by its name."),
        ("kind_pickle_fail", "E-KIND", "b/scores.PKL", "A pickle, by its name."),
        ("kind_program_fail", "E-KIND", "b/setup.sh", "A program, by its name."),
        ("case_file_fail", "E-CASE", "A.txt", "Two names that differ in case: on many machines, one file."),
        ("case_folder_fail", "E-CASE", "B/d.txt", "Two folders that differ in case."),
        ("case_file_is_folder_fail", "E-CASE", "b", "A file with the name of a folder."),
    ]
    return [Case(name, (rule,), why, SMALL, manifest=lines(SMALL | {path: b"x"})) for name, rule, path, why in cases]


def tree_cases() -> list[Case]:
    """The tree and the hashes."""

    def renamed(files: Files) -> None:
        files["b/d.txt"] = files.pop("b/c.txt")

    kinds = [
        ("zip", b"PK\x03\x04rest", "a zip archive"),
        ("gzip", b"\x1f\x8b\x08\x00rest", "a gzip archive"),
        ("pickle", b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x01a\x94.", "a pickle"),
        ("elf", b"\x7fELF\x02\x01\x01\x00", "a program"),
    ]
    return [
        Case(
            "extra_fail",
            ("E-EXTRA",),
            "A file that the manifest does not name.",
            SMALL,
            disk=changed("b/extra.txt", b"x"),
        ),
        Case("missing_fail", ("E-MISSING",), "A file of the manifest is gone.", SMALL, disk=removed("b/c.txt")),
        Case("renamed_fail", ("E-EXTRA", "E-MISSING"), "A file was renamed: both names are said.", SMALL, disk=renamed),
        Case("hash_fail", ("E-HASH",), "One byte of a file is another one.", SMALL, disk=changed("b/c.txt", b"twO\n")),
        Case("hash_emptied_fail", ("E-HASH",), "A file was emptied.", SMALL, disk=changed("a.txt", b"")),
        Case(
            "link_fail",
            ("E-LINK",),
            "A file is a symbolic link, to bytes that were sealed.",
            SMALL | {"d.txt": b"one\n"},
            disk=removed("a.txt"),
            links={"a.txt": "d.txt"},
        ),
        Case(
            "link_extra_fail",
            ("E-LINK",),
            "A link stands beside the sealed files.",
            SMALL,
            links={"b/d.txt": "../a.txt"},
        ),
        *(
            Case(
                f"kind_{name}_bytes_fail",
                ("E-KIND",),
                f"The first bytes are those of {what}.",
                SMALL | {"raw.bin": data},
            )
            for name, data, what in kinds
        ),
    ]


def record_cases() -> list[Case]:
    """Records that cannot be read. All roots from here on are well sealed: whoever sealed them made the fault."""
    lineage = GOOD["lineage.json"]
    spelled = [
        ("duplicate_key", lineage.replace(b'"format": 1,', b'"format": 1,\n  "format": 1,'), "A key stands twice."),
        ("nan", lineage.replace(b": 1,", b": NaN,"), "NaN is not JSON."),
        ("infinity", lineage.replace(b": 1,", b": 1e999,"), "A number that is infinite once it is read."),
        ("unsorted", to_json({"preserved": [], "supersedes": []}).replace(b'"pre', b'"zpre'), "Keys are not sorted."),
        ("compact", b'{"format":1,"preserved":[],"supersedes":[]}\n', "Other white space: a record has one spelling."),
        ("utf16", lineage.decode().encode("utf-16"), "UTF-16, which some readers guess."),
        ("byte_order_mark", b"\xef\xbb\xbf" + lineage, "A byte order mark."),
        ("deep", to_json(json.loads("[" * 40 + "]" * 40)), "Nested deeper than 32."),
        ("very_deep", b"[" * 100_000, "Nested so deep that a reader's stack may end."),
        ("truncated", lineage[:-10], "Cut off."),
        ("empty", b"", "An empty file is no record."),
    ]
    without = {path: data for path, data in GOOD.items() if path != "lineage.json"}

    def wrong_type(climb: Climb) -> None:
        climb.outcomes[L1]["verdict"] = True

    return [
        *(Case(f"json_{name}_fail", ("E-JSON",), why, GOOD | {"lineage.json": data}) for name, data, why in spelled),
        Case("record_missing_fail", ("E-RECORD",), "`lineage.json` was left out.", without),
        Case(
            "record_unknown_file_fail",
            ("E-RECORD",),
            "A file that format 1 has no place for.",
            GOOD | {"notes.txt": b"x"},
        ),
        Case("record_type_fail", ("E-RECORD",), "A verdict that is true instead of text.", Climb().build(wrong_type)),
        Case("record_list_fail", ("E-RECORD",), "`plan.json` is a list.", GOOD | {"plan.json": b"[]\n"}),
        Case(
            "record_gates_fail",
            ("E-RECORD",),
            "The gates of the plan are a table, which a reader of a list would stumble over.",
            Climb().build(lambda climb: climb.plan.update(gates={"lint": {"name": "lint"}})),
        ),
    ]


def meaning_cases() -> list[Case]:
    """Records that can be read but do not belong together."""
    cases: list[Case] = []

    def add(name: str, rule: str, why: str, change: Callable[[Climb], None], climb: Climb | None = None) -> None:
        cases.append(Case(f"{name}_fail", (rule,), why, (climb or Climb()).build(change)))

    def edit(path: str, record: str, **values: object) -> Callable[[Climb], None]:
        def change(climb: Climb) -> None:
            where = getattr(climb, record)
            (where[path] if path else where).update(values)

        return change

    other = digest(b"another")
    add("plan_outcome", "E-PLAN", "A step says it was judged by another plan.", edit(L1, "outcomes", plan_digest=other))
    add("plan_request", "E-PLAN", "A step was asked under another plan.", edit(L1, "requests", plan_digest=other))
    add("plan_claim", "E-PLAN", "The claim is about another plan.", edit("", "claim", plan_digest=other))
    add("plan_changed", "E-PLAN", "The plan was changed after the steps ran.", edit("", "plan", seed=7))
    add(
        "ladder",
        "E-LADDER",
        "The ladder is not the one the plan was made from.",
        lambda c: setattr(c, "ladder", b"format: 1 \n"),
    )
    add(
        "candidate_outcome",
        "E-CANDIDATE",
        "A step ran another candidate.",
        edit(L1, "outcomes", candidate_digest=other),
    )
    add(
        "candidate_claim",
        "E-CANDIDATE",
        "The claim is about another candidate.",
        edit("", "claim", candidate_digest=other),
    )
    moved = "2026-01-01T00:00:02.000Z"
    add(
        "time_step_overlap",
        "E-TIME",
        "A step starts before the one before it ended.",
        edit(L1, "outcomes", started_at=moved),
    )
    add("time_backwards", "E-TIME", "A step ends before it starts.", edit(L1, "outcomes", ended_at=moved))
    add("time_claim", "E-TIME", "The climb ends before its last step.", edit("", "claim", ended_at=moved))
    add("time_offset", "E-TIME", "A time that is not UTC.", edit(L1, "outcomes", ended_at="2026-01-01T00:00:05+00:00"))
    add("time_impossible", "E-TIME", "A month that there is not.", edit("", "claim", ended_at="2026-13-01T00:00:00Z"))
    add(
        "artifact_of_tier",
        "E-ARTIFACT",
        "Perf was measured on another artifact.",
        edit(L1, "outcomes", artifact_digest=other),
    )
    add(
        "artifact_unsaid",
        "E-ARTIFACT",
        "A step passed and does not say on what.",
        edit(L0, "outcomes", artifact_digest=None),
    )
    add("artifact_gone", "E-ARTIFACT", "The artifact that was measured is not sealed.", lambda c: c.artifacts.clear())
    add(
        "artifact_changed",
        "E-ARTIFACT",
        "The sealed artifact is not the one that was measured.",
        lambda c: c.artifacts["cpu-fp32"].update({"model.data": b"others"}),
    )
    add(
        "artifact_unplanned",
        "E-ARTIFACT",
        "An artifact of no target.",
        lambda c: c.artifacts.update({"gpu": {"model.onnx": b"g"}}),
    )
    add(
        "input_changed",
        "E-INPUT",
        "The data is not what the plan pins.",
        lambda c: c.files.update({"inputs/pairs.jsonl": b"{}\n"}),
    )
    add(
        "input_unpinned",
        "E-INPUT",
        "Data that the plan does not know.",
        lambda c: c.files.update({"inputs/more.jsonl": b"{}\n"}),
    )
    add("input_missing", "E-INPUT", "The data that was scored is not sealed.", lambda c: c.files.clear())
    claimed = [{"name": "cpu-fp32", "tiers": {"L0": "PASS", "L1": "PASS"}}, {"name": "cpu-fp16", "tiers": {}}]
    add("claim_verdict", "E-CLAIM", "The claim says PASS where the step says FAIL.", edit("", "claim", targets=claimed))
    add("claim_target", "E-CLAIM", "The claim leaves a target out.", edit("", "claim", targets=claimed[1:]))
    cases += step_cases()
    return cases


def step_cases() -> list[Case]:
    """Steps left out, out of order, after a step that did not pass, or that nobody planned."""
    passed = {("cpu-fp32", "L0"): "PASS", ("cpu-fp32", "L1"): "PASS", ("cpu-fp32", "L2"): "PASS"}
    tiers = {"cpu-fp32": ["L0", "L1", "L2"]}

    def left_out(climb: Climb) -> None:
        del climb.outcomes[L1], climb.requests[L1]
        climb.claim["targets"][0]["tiers"]["L1"] = "NOT_RUN"

    def unplanned(climb: Climb) -> None:
        climb.outcomes[step_folder("L0", "gpu")] = copy.deepcopy(climb.outcomes[L0])

    def swapped(climb: Climb) -> None:
        for one, other in ((L0, L1), (L1, L0)):
            climb.outcomes[one] |= {"tier": other[6:8]}

    def no_outcome(climb: Climb) -> None:
        climb.files["steps/L2-parity.cpu-fp32/stdout.log"] = b"x\n"

    after_fail = dict(passed) | {("cpu-fp32", "L1"): "FAIL"}
    missing_target = Climb(targets={"cpu-fp32": ["L0"], "cpu-fp16": ["L0"]}, verdicts={("cpu-fp32", "L0"): "PASS"})
    no_first = Climb(
        targets={"cpu-fp32": ["L1", "L2"]}, verdicts={("cpu-fp32", "L1"): "PASS", ("cpu-fp32", "L2"): "PASS"}
    )
    blocked = Climb(targets=tiers, verdicts={("cpu-fp32", "L0"): "PASS", ("cpu-fp32", "L1"): "BLOCKED"})
    return [
        Case(
            "step_left_out_fail",
            ("E-STEP",),
            "A planned step was left out.",
            Climb(targets=tiers, verdicts=passed).build(left_out),
        ),
        Case(
            "step_after_fail_fail",
            ("E-STEP",),
            "A step ran after one that failed.",
            Climb(targets=tiers, verdicts=after_fail).build(),
        ),
        Case(
            "step_target_left_out_fail",
            ("E-STEP",),
            "A target was left out, and nobody interrupted.",
            missing_target.build(),
        ),
        Case("step_gap_in_plan_fail", ("E-STEP",), "A plan that begins at L1.", no_first.build()),
        Case("step_unplanned_fail", ("E-STEP",), "A step that was not planned.", Climb().build(unplanned)),
        Case("step_swapped_fail", ("E-STEP",), "Two steps stand in each other's folder.", Climb().build(swapped)),
        Case("step_no_outcome_fail", ("E-STEP",), "A step's folder without an outcome.", blocked.build(no_outcome)),
    ]


def origin_cases() -> list[Case]:
    """What is carried is not shown to be part of the root it is said to come from."""
    whole, at = keep(), origin_place(GOOD)

    def moved(files: Files) -> Files:
        return {path.replace(at, "preserved/0123456789abcdef/"): data for path, data in files.items()}

    def without(path: str) -> Files:
        return {name: data for name, data in whole.items() if name != at + path}

    other = f"qualify-seal/1 {digest(b'another manifest')}\n".encode()
    rows: list[tuple[str, str, Files]] = [
        (
            "changed",
            "A carried file is not the one that was sealed there.",
            whole | {f"{at}{L0}/outcome.json": b"{}\n"},
        ),
        ("extra", "A file that the origin never sealed.", whole | {f"{at}{L0}/notes.txt": b"x"}),
        ("step_file_missing", "A file of a carried step was left out.", without(f"{L0}/request.json")),
        ("artifact_missing", "A part of the carried artifact was left out.", without("artifacts/cpu-fp32/model.data")),
        ("record_missing", "The plan under which the step ran was left out.", without("plan.json")),
        ("input", "Data is carried: that stands once, in `inputs/`.", whole | {f"{at}inputs/pairs.jsonl": b"x"}),
        ("folder", "The folder has the name of another origin.", moved(whole)),
        ("seal_missing", "There is no SEAL of the origin.", without("SEAL")),
        ("manifest_missing", "There is no manifest of the origin.", without("MANIFEST.b3")),
        ("seal_other_digest", "The SEAL is that of another root.", whole | {f"{at}SEAL": other}),
        ("file", "A file where the folder of an origin belongs.", whole | {"preserved/SEAL": b"x"}),
    ]
    return [Case(f"origin_{name}_fail", ("E-ORIGIN",), why, files) for name, why, files in rows]


def lineage_cases() -> list[Case]:
    """What is carried is part of an earlier root, but does not belong here, or is not said."""

    def listed(*entries: tuple[str, list[str]]) -> Callable[[Climb], object]:
        return lambda c: c.lineage.update(preserved=[{"origin": o, "steps": steps} for o, steps in entries])

    def superseding(*entries: tuple[str, str]) -> Files:
        record = LINEAGE | {"supersedes": [{"digest": o, "reason": reason} for o, reason in entries]}
        return Climb(lineage=record).build()

    def twice(climb: Climb) -> None:
        climb.outcomes[L0] = json.loads(GOOD[f"{L0}/outcome.json"]) | {
            "plan_digest": climb.claim["plan_digest"],
            "ended_at": "2026-01-01T00:00:02.000Z",
        }

    def failed(climb: Climb) -> None:
        climb.claim["targets"][0]["tiers"]["L0"] = "FAIL"

    def unsaid(climb: Climb) -> None:
        climb.claim["targets"][0]["tiers"]["L1"] = "NOT_RUN"

    def edited(record: str, key: str, value: object) -> Files:
        """An origin whose records were already wrong when it was sealed."""
        return Climb().build(lambda c: getattr(c, record)[L0].update({key: value}))

    def second_artifact(climb: Climb) -> None:
        climb.artifacts = {"cpu-fp32": {"model.onnx": b"graph", "model.data": b"weights"}}

    one, zeros = digest(lines(GOOD)), "blake3:" + "0" * 64
    other_data = Climb(files={"inputs/pairs.jsonl": b"{}\n"}).build()
    rebuilt = Climb(artifacts={"cpu-fp32": {"model.onnx": b"another"}}).build()
    unplanned = Climb(targets={"cpu-fp32": ["L0"], "cpu-fp16": []}, verdicts={("cpu-fp32", "L0"): "PASS"})
    swapped = Climb().build(lambda c: c.outcomes.update({L0: c.outcomes[L1], L1: c.outcomes[L0]}))
    wrong_claim = Climb().build(lambda c: c.claim["targets"][0]["tiers"].update(L0="FAIL"))
    other_model = Climb(candidate={"config.json": b"other"}).build()
    other_ladder = Climb().build(lambda c: setattr(c, "ladder", b"other"))
    judged, asked = (edited(record, "plan_digest", zeros) for record in ("outcomes", "requests"))
    late = edited("outcomes", "started_at", "2025-12-31T00:00:00Z")
    rows: list[tuple[str, str, str, Files]] = [
        ("lineage_unlisted", "E-LINEAGE", "The lineage does not say what is carried.", keep(listed())),
        ("lineage_step", "E-LINEAGE", "The lineage names another step.", keep(listed((one, [L1])))),
        ("lineage_origin", "E-LINEAGE", "The lineage names an origin that is not here.", keep(listed((zeros, [L0]), (one, [L0])))),
        ("lineage_repeated", "E-LINEAGE", "An origin is listed twice.", keep(listed((one, [L0]), (one, [L0])))),
        ("lineage_no_step", "E-LINEAGE", "Nothing is carried of an origin but its records.", keep(steps=())),
        ("lineage_twice", "E-LINEAGE", "A carried step ran again: which one counts?", keep(twice)),
        ("lineage_unplanned", "E-LINEAGE", "A step is carried that this plan does not have.", keep(climb=unplanned, steps=(L0, L1))),
        ("supersedes_digest", "E-LINEAGE", "What is replaced is not named by a root digest.", superseding(("last month", "old"))),
        ("supersedes_reason", "E-LINEAGE", "No reason is given.", superseding((zeros, " "))),
        ("supersedes_twice", "E-LINEAGE", "One root is replaced twice.", superseding((zeros, "old"), (zeros, "wrong"))),
        ("preserved_candidate", "E-CANDIDATE", "A step of another candidate.", keep(origin=other_model)),
        ("preserved_input", "E-INPUT", "A step that scored other data.", keep(origin=other_data, steps=(L1,))),
        ("preserved_artifact", "E-ARTIFACT", "A step that measured another artifact.", keep(origin=rebuilt, steps=(L1,))),
        ("preserved_artifact_twice", "E-ARTIFACT", "The artifact stands here a second time.", keep(second_artifact)),
        ("preserved_plan", "E-PLAN", "A step that was judged by another plan.", keep(origin=judged)),
        ("preserved_request", "E-PLAN", "A step that was asked under another plan.", keep(origin=asked)),
        ("preserved_ladder", "E-LADDER", "The origin's plan does not follow from its ladder.", keep(origin=other_ladder)),
        ("preserved_time", "E-TIME", "A step that started before the climb that it was part of.", keep(origin=late)),
        ("preserved_swapped", "E-STEP", "Two steps stood in each other's folder when the origin was sealed.", keep(origin=swapped)),
        ("preserved_origin_claim", "E-CLAIM", "The origin claims another verdict than its step has.", keep(origin=wrong_claim)),
        ("preserved_claim", "E-CLAIM", "No verdict is claimed for a carried step.", keep(unsaid, steps=(L0, L1))),
        ("preserved_after_fail", "E-STEP", "A step ran after a carried one that did not pass here.", keep(failed)),
    ]  # fmt: skip
    return [Case(f"{name}_fail", (rule,), why, files) for name, rule, why, files in rows]


def cases() -> list[Case]:
    lists = (
        *(good_cases, bytes_cases, name_cases, tree_cases, record_cases, meaning_cases, origin_cases, lineage_cases),
        gate_cases,
    )
    return [case for make in lists for case in make()]


def main(folder: Path) -> None:
    for case in cases():
        shutil.rmtree(folder / case.name, ignore_errors=True)
        case.write(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
