"""What the records of a root say about each other: nothing left out, run out of order or swapped. Rules: FORMAT.md.

Every record is parsed from bytes whose hash was just compared. What the numbers mean is judged elsewhere, by a reader of the
raw samples; here it is only shown that plan, inputs, artifacts, steps and claim belong together.

    E-RECORD     each record is there and has the fields used here
    E-JSON       each record has its one spelling: sorted keys, two spaces, ASCII, no NaN; in bounds (E-SIZE)
    E-PLAN       every step and the claim name the digest of `plan.json`; E-LADDER: the plan names that of `ladder.yaml`
    E-CANDIDATE  one candidate everywhere, and its digest is that of the files it lists
    E-INPUT      each input has the digest the plan pins, and there is no other
    E-STEP       the planned steps, in order, none left out, none after one that is not PASS, none that was not planned
    E-ARTIFACT   one artifact digest per target through its tiers, and it is that of the sealed files
    E-TIME       UTC times, RFC 3339 `Z`, in order
    E-CLAIM      the claim gives each tier the verdict of its step
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from evidence.manifest import Entry, Fault, FormatError, digest_of, fault, tree_digest

Read = Callable[[str], bytes]  # path -> bytes whose hash was just compared; raises FormatError

JSON_LIMIT_BYTES = 16 * 1024 * 1024
JSON_DEPTH_LIMIT = 32
INTERRUPTED = "interrupted by the user"
LADDER, PLAN, LINEAGE, CLAIM = "ladder.yaml", "plan.json", "lineage.json", "qualification.json"
OUTCOME, REQUEST = "outcome.json", "request.json"
RECORDS = (LADDER, PLAN, "environment.json", LINEAGE, CLAIM)
FOLDERS = ("inputs", "steps", "artifacts", "preserved")
TIERS = {"L0": "build", "L1": "perf", "L2": "parity", "L3": "rerank"}
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")

# The fields that rules use, by file name: keys joined by /, where * stands for each item of a list or each table in a table.
_FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    PLAN: {
        **dict.fromkeys(
            ("ladder_digest", "candidate/digest", "candidate/files/*/path", "candidate/files/*/blake3"), (str,)
        ),
        **dict.fromkeys(("inputs/*/path", "inputs/*/digest", "targets/*/name", "targets/*/steps/*/tier"), (str,)),
        **dict.fromkeys(("candidate/files", "targets", "targets/*/steps"), (list,)),
        "inputs": (dict,),
    },
    OUTCOME: {
        **dict.fromkeys(("tier", "target", "verdict", "reason", "plan_digest", "candidate_digest"), (str,)),
        **dict.fromkeys(("started_at", "ended_at"), (str,)),
        "artifact_digest": (str, type(None)),
    },
    REQUEST: {"plan_digest": (str,)},
    CLAIM: {
        **dict.fromkeys(("plan_digest", "candidate_digest", "started_at", "ended_at", "targets/*/name"), (str,)),
        "targets": (list,),
        "targets/*/tiers": (dict,),
    },
    LINEAGE: {"preserved": (list,)},
}


@dataclass(frozen=True, slots=True)
class _Root:
    """The records of a root, with the fields of `_FIELDS`; `steps` holds each `outcome.json` by its folder."""

    digests: Mapping[str, str]  # 64 hex by path, of every sealed file
    ladder_digest: str
    values: Mapping[str, Any]  # every record by path
    steps: Mapping[str, Any]
    targets: Mapping[str, tuple[str, ...]]  # the planned tiers by target, in the order of the plan

    def in_order(self) -> Iterator[tuple[str, Any]]:
        """The path and outcome of each step that is there, in the order of the plan."""
        for target, tiers in self.targets.items():
            for folder in (_folder(target, tier) for tier in tiers):
                if folder in self.steps:
                    yield f"{folder}/{OUTCOME}", self.steps[folder]


def check(digests: Mapping[str, str], read: Read) -> tuple[list[Fault], str, str]:
    """Check the records of the sealed tree `digests` (64 hex by path). Never raises for what the root holds.

    Returns the faults, the last check of `report.CHECKS` that ran, and why those after it did not.
    """
    if PLAN not in digests:
        return [], "hashes", f"there is no {PLAN}, so nothing says what was to be done"
    try:
        root = _load(digests, read)
    except FormatError as error:
        return list(error.faults), "records", "a record cannot be read"
    rules = (_plan, _candidate, _inputs, _steps, _artifacts, _times, _claim)
    faults = [found for rule in rules for found in rule(root)]
    if root.values[LINEAGE]["preserved"] or any(path.startswith("preserved/") for path in digests):
        return faults, "claim", "this version does not check preserved evidence"
    return faults, "preserved evidence", ""


# --- reading ---------------------------------------------------------------------------------------------------------


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


def _load(digests: Mapping[str, str], read: Read) -> _Root:
    """Read every record; raises FormatError with all faults of reading."""
    faults = [fault("E-RECORD", path, "this record", "none") for path in RECORDS if path not in digests]
    values: dict[str, Any] = {}
    for path in digests:
        top, _, rest = path.partition("/")
        name = path.rpartition("/")[2]
        if path not in RECORDS and not (rest and top in FOLDERS):  # E-RECORD
            expected = f"one of {', '.join(RECORDS)}, or a file in {', '.join(FOLDERS)}"
            faults.append(fault("E-RECORD", path, expected, "this"))
        elif path in RECORDS or (top == "steps" and name in {OUTCOME, REQUEST}):
            try:
                data = read(path)
                values[path] = data if path == LADDER else parse_json(path, data)
                faults += [] if path == LADDER else _wrong_fields(path, values[path], _FIELDS.get(name, {}))
            except FormatError as error:
                faults += error.faults
    if faults:
        raise FormatError(faults)
    return _Root(
        digests=digests,
        ladder_digest=digest_of(values[LADDER]),
        values=values,
        steps={path.rpartition("/")[0]: value for path, value in values.items() if path.endswith("/" + OUTCOME)},
        targets={target["name"]: tuple(step["tier"] for step in target["steps"]) for target in values[PLAN]["targets"]},
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


# --- rules -----------------------------------------------------------------------------------------------------------


def _folder(target: str, tier: str) -> str:
    return f"steps/{tier}-{TIERS.get(tier, '')}.{target}"


def _plan(root: _Root) -> Iterator[Fault]:
    digest = "blake3:" + root.digests[PLAN]
    for path, value in root.values.items():
        if path.endswith((OUTCOME, REQUEST, CLAIM)) and value["plan_digest"] != digest:  # E-PLAN
            yield fault("E-PLAN", path, f"plan_digest {digest}, that of {PLAN}", value["plan_digest"])
    stated = root.values[PLAN]["ladder_digest"]
    if stated != root.ladder_digest:  # E-LADDER
        yield fault("E-LADDER", PLAN, f"ladder_digest {root.ladder_digest}, that of {LADDER}", stated)


def _candidate(root: _Root) -> Iterator[Fault]:
    candidate = root.values[PLAN]["candidate"]
    try:
        listed = tree_digest(Entry(file["path"], file["blake3"]) for file in candidate["files"])
    except FormatError as error:
        yield from error.faults
        return
    stated = {path: step["candidate_digest"] for path, step in root.in_order()}
    for path, digest in {PLAN: candidate["digest"], **stated, CLAIM: root.values[CLAIM]["candidate_digest"]}.items():
        if digest != listed:  # E-CANDIDATE
            yield fault("E-CANDIDATE", path, f"candidate digest {listed}, that of the files listed in {PLAN}", digest)


def _inputs(root: _Root) -> Iterator[Fault]:
    sealed = {path: "blake3:" + digest for path, digest in root.digests.items() if path.startswith("inputs/")}
    facts = [fact for fact in root.values[PLAN]["inputs"].values() if isinstance(fact, dict)]
    pins = {fact["path"]: fact["digest"] for fact in facts}
    for path in sorted(sealed.keys() | pins.keys()):
        pinned, there = pins.get(path, "no such input"), sealed.get(path, "no such file")
        if pinned != there:  # E-INPUT
            yield fault("E-INPUT", path, f"what {PLAN} pins ({pinned})", there)


def _steps(root: _Root) -> Iterator[Fault]:
    """E-STEP. A climb that the user interrupted has no step after that one, on any target."""
    interrupted, planned = False, set()
    if len(root.targets) != len(root.values[PLAN]["targets"]):  # E-STEP
        yield fault("E-STEP", PLAN, "each target once", "one twice")
    for target, tiers in root.targets.items():
        going = not interrupted
        if tiers != tuple(TIERS)[: len(tiers)]:  # E-STEP
            yield fault("E-STEP", PLAN, f"{', '.join(TIERS)} of {target} without a gap", ", ".join(tiers))
        for tier in tiers:
            folder = _folder(target, tier)
            planned.add(folder)
            step = root.steps.get(folder)
            if step is None:
                if going:  # E-STEP
                    yield fault(
                        "E-STEP", folder, f"this planned step, since all before it passed, with {OUTCOME}", "none"
                    )
                continue
            if not going:  # E-STEP
                yield fault("E-STEP", folder, "no step after one that did not pass", "one")
            if (step["target"], step["tier"]) != (target, tier):  # E-STEP
                yield fault("E-STEP", folder, f"{tier} on {target}", f"{step['tier']} on {step['target']}")
            going = going and step["verdict"] == "PASS"
            interrupted = interrupted or (step["verdict"] == "BLOCKED" and step["reason"] == INTERRUPTED)
    there = {"/".join(path.split("/")[:2]) for path in root.digests if path.startswith("steps/")}
    for folder in sorted(there - (planned & root.steps.keys())):  # E-STEP
        yield fault("E-STEP", folder, f"only folders of planned steps, with {OUTCOME}", "this")


def _artifacts(root: _Root) -> Iterator[Fault]:
    files: dict[str, list[Entry]] = {}
    for path, digest in root.digests.items():
        if path.startswith("artifacts/"):
            target, _, name = path.removeprefix("artifacts/").partition("/")
            files.setdefault(target, []).append(Entry(name, digest))
    sealed = {target: tree_digest(entries) for target, entries in files.items()}
    for path, step in root.in_order():
        stated, there = step["artifact_digest"], sealed.get(step["target"])
        if stated is None and step["verdict"] != "PASS":
            continue  # E-ARTIFACT: it ended before there was one
        if stated is None or stated != there:  # E-ARTIFACT
            expected = f"artifact_digest {there or 'none'}, that of artifacts/{step['target']}/"
            yield fault("E-ARTIFACT", path, expected, stated or "none")
    for target in sorted(sealed.keys() - root.targets.keys()):  # E-ARTIFACT
        yield fault("E-ARTIFACT", f"artifacts/{target}", "artifacts of planned targets", "this")


def _times(root: _Root) -> Iterator[Fault]:
    """E-TIME: the climb starts, each step starts and ends in turn, the climb ends."""
    latest: datetime | None = None
    claim = root.values[CLAIM]
    stated = [(path, step[key]) for path, step in root.in_order() for key in ("started_at", "ended_at")]
    for path, text in [(CLAIM, claim["started_at"]), *stated, (CLAIM, claim["ended_at"])]:
        try:
            time = datetime.fromisoformat(text) if _TIME.fullmatch(text) else None
        except ValueError:
            time = None
        if time is None:  # E-TIME
            yield fault("E-TIME", path, "times in UTC as RFC 3339 with Z", repr(text))
        elif latest is not None and time < latest:  # E-TIME
            yield fault("E-TIME", path, f"no time before the one that came earlier ({latest.isoformat()})", text)
        latest = time or latest


def _claim(root: _Root) -> Iterator[Fault]:
    claims = {claim["name"]: claim["tiers"] for claim in root.values[CLAIM]["targets"]}
    if len(claims) != len(root.values[CLAIM]["targets"]):  # E-CLAIM
        yield fault("E-CLAIM", CLAIM, "each target once", "one twice")
    for target in sorted(root.targets.keys() | claims.keys()):
        found = {tier: root.steps.get(_folder(target, tier)) for tier in root.targets.get(target, ())}
        verdicts = {tier: step["verdict"] if step else "NOT_RUN" for tier, step in found.items()}
        if claims.get(target) != verdicts or target not in root.targets:  # E-CLAIM
            yield fault(
                "E-CLAIM", CLAIM, f"for {target} the verdicts of its steps ({verdicts})", str(claims.get(target))
            )
