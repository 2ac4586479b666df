"""The records of a root as values, each parsed from bytes whose hash was just compared. Rules: FORMAT.md.

E-RECORD     each record is there and has the fields used here
E-JSON       each record has its one spelling: sorted keys, two spaces, ASCII, no NaN; in bounds (E-SIZE)
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

from evidence.manifest import Fault, FormatError, digest_of, fault

Read = Callable[[str], bytes]  # path -> bytes whose hash was just compared; raises FormatError

JSON_LIMIT_BYTES = 16 * 1024 * 1024
JSON_DEPTH_LIMIT = 32
LADDER, PLAN, LINEAGE, CLAIM = "ladder.yaml", "plan.json", "lineage.json", "qualification.json"
OUTCOME, REQUEST, GATE = "outcome.json", "request.json", "gate.json"
RECORDS = (LADDER, PLAN, "environment.json", LINEAGE, CLAIM)
FOLDERS = ("inputs", "gates", "steps", "artifacts", "preserved")
TIERS = {"L0": "build", "L1": "perf", "L2": "parity", "L3": "rerank"}

_ABSENT = type(...)  # of a field that an older version did not write
# The fields that rules use, by file name: keys joined by /, where * stands for each item of a list or each table in a table.
_FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    PLAN: {
        "ladder_digest candidate/digest candidate/files/*/path candidate/files/*/blake3 gates/*/name": (str,),
        "inputs/*/path inputs/*/digest targets/*/name targets/*/steps/*/tier": (str,),
        "candidate/files targets targets/*/steps": (list,),
        "inputs": (dict,),
        "gates": (list, _ABSENT),
    },
    OUTCOME: {
        "tier target verdict reason plan_digest candidate_digest started_at ended_at": (str,),
        "artifact_digest": (str, type(None)),
    },
    REQUEST: {"plan_digest": (str,)},
    GATE: {"name verdict reason plan_digest started_at ended_at": (str,)},
    CLAIM: {
        "plan_digest candidate_digest started_at ended_at targets/*/name gates/*/name gates/*/verdict": (str,),
        "targets": (list,),
        "targets/*/tiers": (dict,),
        "gates": (list, _ABSENT),
    },
    LINEAGE: {
        "preserved/*/origin supersedes/*/digest supersedes/*/reason": (str,),
        "preserved preserved/*/steps supersedes": (list,),
    },
}


class Root(NamedTuple):
    """The records of a root, or of the part of an earlier root that a later one carries; with the fields of `_FIELDS`."""

    digests: Mapping[str, str]  # 64 hex by path, of every sealed file
    ladder_digest: str
    values: Mapping[str, Any]  # every record by path
    steps: Mapping[str, Any]  # each outcome that is in steps/ itself, by its folder
    targets: Mapping[str, tuple[str, ...]]  # the planned tiers by target, in the order of the plan
    gates: Mapping[str, Any]  # the record of each planned gate by its name, or None, in the order of the plan
    claims: Mapping[str, Any]  # the claimed verdict of each tier, by target
    origins: Mapping[str, "Root"]  # what is carried of earlier roots, by `preserved/<16 hex>/`
    preserved: Mapping[str, str]  # that place of each step that is carried, by its folder

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
    except (ValueError, RecursionError) as error:  # E-JSON: UnicodeDecodeError and JSONDecodeError are ValueErrors
        got = "deeper nesting" if isinstance(error, RecursionError) else str(error)
        raise FormatError([fault("E-JSON", path, f"JSON of depth at most {JSON_DEPTH_LIMIT}", got)]) from error
    if spelled.encode() != data:  # E-JSON: also what refuses a key given twice
        raise FormatError([fault("E-JSON", path, "its one spelling (keys sorted and once, two spaces)", "another")])
    return value


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
        depth += 1
    return depth


def load(digests: Mapping[str, str], read: Read) -> Root:
    """Read every record of the files `digests` (64 hex by path), `preserved/` apart; raises FormatError with all faults of reading."""
    faults = [fault("E-RECORD", path, "this record", "none") for path in RECORDS if path not in digests]  # E-RECORD
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
        gates={gate["name"]: values.get(f"gates/{gate['name']}/{GATE}") for gate in values[PLAN].get("gates", ())},
        claims={claim["name"]: claim["tiers"] for claim in values[CLAIM]["targets"]},
        origins={},
        preserved={},
    )


def _wrong_fields(path: str, record: object, fields: Mapping[str, tuple[type, ...]]) -> Iterator[Fault]:
    for pointer, kinds in ((pointer, kinds) for pointers, kinds in fields.items() for pointer in pointers.split()):
        for value in _find(record, pointer.split("/")):
            if type(value) not in kinds:  # E-RECORD: exactly that kind, so no bool for a number
                expected = f"`{pointer}` as {' or '.join(kind.__name__ for kind in kinds if kind is not _ABSENT)}"
                yield fault("E-RECORD", path, expected, "nothing" if value is ... else repr(value)[:80])


def _find(value: object, keys: list[str]) -> Iterator[object]:
    """Every value at a pointer; `...` for one that is not there."""
    if not keys:
        yield value
    elif keys[0] != "*":
        yield from _find(value.get(keys[0], ...) if isinstance(value, dict) else ..., keys[1:])
    else:
        items = [inner for inner in value.values() if isinstance(inner, dict)] if isinstance(value, dict) else value
        for item in items if isinstance(items, list) else ():
            yield from _find(item, keys[1:])
