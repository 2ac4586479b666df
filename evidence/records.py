"""The records of a root as values, each parsed from bytes whose hash was just compared. Rules: FORMAT.md.

E-RECORD     each record is there and has the fields used here
E-JSON       each record has its one spelling: sorted keys, two spaces, ASCII, no NaN; in bounds (E-SIZE)
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from evidence.manifest import Fault, FormatError, digest_of, fault

Read = Callable[[str], bytes]  # path -> bytes whose hash was just compared; raises FormatError

JSON_LIMIT_BYTES = 16 * 1024 * 1024
JSON_DEPTH_LIMIT = 32
LADDER, PLAN, LINEAGE, CLAIM = "ladder.yaml", "plan.json", "lineage.json", "qualification.json"
OUTCOME, REQUEST, GATE = "outcome.json", "request.json", "gate.json"
RECORDS = (LADDER, PLAN, "environment.json", LINEAGE, CLAIM)
FOLDERS = ("inputs", "gates", "steps", "artifacts", "preserved")
GATE_FILES = (GATE, "stdout.log", "stderr.log")
TIERS = {"L0": "build", "L1": "perf", "L2": "parity", "L3": "rerank"}

# The fields that rules use, by file name: keys joined by /, where * stands for each item of a list or each table in a table.
_FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    PLAN: {
        **dict.fromkeys(
            ("ladder_digest", "candidate/digest", "candidate/files/*/path", "candidate/files/*/blake3"), (str,)
        ),
        **dict.fromkeys(("inputs/*/path", "inputs/*/digest", "targets/*/name", "targets/*/steps/*/tier"), (str,)),
        **dict.fromkeys(("candidate/files", "targets", "targets/*/steps"), (list,)),
        "gates/*/name": (str,),
        "inputs": (dict,),
    },
    OUTCOME: {
        **dict.fromkeys(("tier", "target", "verdict", "reason", "plan_digest", "candidate_digest"), (str,)),
        **dict.fromkeys(("started_at", "ended_at"), (str,)),
        "artifact_digest": (str, type(None)),
    },
    REQUEST: {"plan_digest": (str,)},
    GATE: dict.fromkeys(("name", "verdict", "reason", "plan_digest", "started_at", "ended_at"), (str,)),
    CLAIM: {
        **dict.fromkeys(("gates/*/name", "gates/*/verdict"), (str,)),
        **dict.fromkeys(("plan_digest", "candidate_digest", "started_at", "ended_at", "targets/*/name"), (str,)),
        "targets": (list,),
        "targets/*/tiers": (dict,),
    },
    LINEAGE: {
        **dict.fromkeys(("preserved", "preserved/*/steps", "supersedes"), (list,)),
        **dict.fromkeys(("preserved/*/origin", "supersedes/*/digest", "supersedes/*/reason"), (str,)),
    },
}


@dataclass(frozen=True, slots=True)
class Root:
    """The records of a root, or of the part of an earlier root that a later one carries; with the fields of `_FIELDS`."""

    digests: Mapping[str, str]  # 64 hex by path, of every sealed file
    ladder_digest: str
    values: Mapping[str, Any]  # every record by path
    steps: Mapping[str, Any]  # each outcome that is in steps/ itself, by its folder
    targets: Mapping[str, tuple[str, ...]]  # the planned tiers by target, in the order of the plan
    origins: Mapping[str, "Root"]  # what is carried of earlier roots, by `preserved/<16 hex>/`

    @property
    def preserved(self) -> dict[str, str]:
        """The place (`preserved/<16 hex>/`) of each step that is carried, by its folder."""
        return {folder: place for place, origin in self.origins.items() for folder in origin.steps}

    @property
    def claims(self) -> dict[str, dict[str, object]]:
        """The claimed verdict of each tier, by target."""
        return {claim["name"]: claim["tiers"] for claim in self.values[CLAIM]["targets"]}

    def gates(self) -> Iterator[tuple[str, Any]]:
        """The folder and record of each planned gate that is there, in the order of the plan."""
        for planned in self.values[PLAN].get("gates", ()):
            folder = f"gates/{planned['name']}"
            if f"{folder}/{GATE}" in self.values:
                yield folder, self.values[f"{folder}/{GATE}"]

    def in_order(self) -> Iterator[tuple[str, Any]]:
        """The path and outcome of each step that is in steps/ itself, in the order of the plan."""
        for target, tiers in self.targets.items():
            for folder in (step_folder(target, tier) for tier in tiers):
                if folder in self.steps:
                    yield f"{folder}/{OUTCOME}", self.steps[folder]


def step_folder(target: str, tier: str) -> str:
    """Where a step stands, e.g. `steps/L0-build.cpu-fp32`."""
    return f"steps/{tier}-{TIERS.get(tier, '')}.{target}"


def parse_json(path: str, data: bytes) -> Any:
    """A record as plain values. Raises FormatError unless the bytes are its one spelling (E-JSON)."""

    def refuse(name: str) -> NoReturn:
        message = f"{name}, which JSON does not have"
        raise ValueError(message)

    try:
        value = json.loads(data.decode("ascii"), parse_constant=refuse)
        if _depth(value) > JSON_DEPTH_LIMIT:
            raise RecursionError
        spelled = json.dumps(value, sort_keys=True, indent=2, allow_nan=False) + "\n"
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        got = "deeper nesting" if isinstance(error, RecursionError) else str(error)
        raise FormatError([fault("E-JSON", path, f"JSON of depth at most {JSON_DEPTH_LIMIT}", got)]) from error
    if spelled.encode() != data:  # E-JSON: also what refuses a key given twice
        raise FormatError([fault("E-JSON", path, "its one spelling (keys sorted and once, two spaces)", "another")])
    return value


def _depth(value: object) -> int:
    deepest, left = 0, [(value, 1)]
    while left:
        item, depth = left.pop()
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        deepest = max(deepest, depth)
        left += [(child, depth + 1) for child in inner if isinstance(child, dict | list)]
    return deepest


def load(digests: Mapping[str, str], read: Read) -> Root:
    """Read every record of the files `digests` (64 hex by path), `preserved/` apart; raises FormatError with all faults of reading."""
    faults = [fault("E-RECORD", path, "this record", "none") for path in RECORDS if path not in digests]
    values: dict[str, Any] = {}
    for path in digests:
        top, _, rest = path.partition("/")
        name = path.rpartition("/")[2]
        if path not in RECORDS and not (rest and top in FOLDERS):  # E-RECORD
            expected = f"one of {', '.join(RECORDS)}, or a file in {', '.join(FOLDERS)}"
            faults.append(fault("E-RECORD", path, expected, "this"))
        elif path in RECORDS or (top == "steps" and name in {OUTCOME, REQUEST}) or (top == "gates" and name == GATE):
            try:
                data = read(path)
                values[path] = data if path == LADDER else parse_json(path, data)
                faults += [] if path == LADDER else _wrong_fields(path, values[path], _FIELDS.get(name, {}))
            except FormatError as error:
                faults += error.faults
    if faults:
        raise FormatError(faults)
    return Root(
        digests=digests,
        ladder_digest=digest_of(values[LADDER]),
        values=values,
        steps={path.rpartition("/")[0]: value for path, value in values.items() if path.endswith("/" + OUTCOME)},
        targets={target["name"]: tuple(step["tier"] for step in target["steps"]) for target in values[PLAN]["targets"]},
        origins={},
    )


def _wrong_fields(path: str, record: object, fields: Mapping[str, tuple[type, ...]]) -> Iterator[Fault]:
    for pointer, kinds in fields.items():
        for value in _find(record, pointer.split("/")):
            if type(value) not in kinds:  # E-RECORD: exactly that kind, so no bool for a number
                expected = f"`{pointer}` as {' or '.join(kind.__name__ for kind in kinds)}"
                yield fault("E-RECORD", path, expected, "nothing" if value is ... else repr(value)[:80])


def _find(value: object, keys: list[str]) -> Iterator[object]:
    """Every value at a pointer; `...` for one that is not there."""
    if not keys:
        yield value
    elif keys[0] != "*":
        yield from _find(value.get(keys[0], ...) if isinstance(value, dict) else ..., keys[1:])
    elif isinstance(value, dict | list):
        for item in (
            value if isinstance(value, list) else (inner for inner in value.values() if isinstance(inner, dict))
        ):
            yield from _find(item, keys[1:])
