"""What the records of a root say about each other: nothing left out, run out of order or swapped. Rules: FORMAT.md.

What the numbers mean is judged elsewhere, by a reader of the raw samples; here it is only shown that plan, inputs, artifacts,
steps and claim belong together. Steps that a root carries from an earlier one are looked at likewise (see `preserved`).

    E-PLAN       every step and the claim name the digest of `plan.json`; E-LADDER: the plan names that of `ladder.yaml`
    E-CANDIDATE  one candidate everywhere, and its digest is that of the files it lists
    E-INPUT      each input has the digest the plan pins, and there is no other
    E-STEP       the planned steps, in order, none left out, none after one that is not PASS, none that was not planned
    E-GATE       the planned gates, in order, and no step where one did not pass
    E-ARTIFACT   one artifact digest per target through its tiers, and it is that of the sealed files
    E-TIME       UTC times, RFC 3339 `Z`, in order
    E-CLAIM      the claim gives each tier the verdict of its step
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime

from evidence import preserved
from evidence.manifest import Entry, Fault, FormatError, digest_of, fault, render_digests, tree_digest
from evidence.records import CLAIM, GATE, LADDER, OUTCOME, PLAN, REQUEST, TIERS, Read, Root, load, step_folder

INTERRUPTED = "interrupted by the user"
VERDICTS = ("PASS", "FAIL", "BLOCKED", "INCONCLUSIVE")  # of a step that ran
_GATE_FILES = (GATE, "stdout.log", "stderr.log")
# What a tier may read.
_INPUTS_OF = {"L0": ("calibration", "pairs"), "L1": ("baseline", "pairs"), "L2": ("pairs",), "L3": ("groups",)}
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")


def check(digests: Mapping[str, str], read: Read) -> tuple[list[Fault], str, str]:
    """Check the records of the sealed tree `digests` (64 hex by path). Never raises for what the root holds.

    Returns the faults, the last check of `report.CHECKS` that ran, and why those after it did not.
    """
    if PLAN not in digests:
        return [], "hashes", f"there is no {PLAN}, so nothing says what was to be done"
    try:
        root = load(digests, read)
    except FormatError as error:
        return list(error.faults), "records", "a record cannot be read"
    origins, faults = preserved.load_origins(root, read)
    if faults:
        return faults, "origins", "what is carried of an earlier root cannot be relied on"
    carried = {folder: place for place, origin in origins.items() for folder in origin.steps}
    root = root._replace(origins=origins, preserved=carried)
    rules = (_plan, _candidate, _inputs, _gates, _steps, _places, _artifacts, _times, _claim, preserved.lineage)
    faults = [found for rule in rules for found in rule(root)]
    for place, origin in origins.items():
        within = (_plan, _candidate, _places, _times, _claim_of_steps)
        faults += [preserved.inside(place, found) for rule in within for found in rule(origin)]
    return faults, "lineage", ""


# --- rules -----------------------------------------------------------------------------------------------------------


def _plan(root: Root) -> Iterator[Fault]:
    digest = "blake3:" + root.digests[PLAN]
    for path, value in root.values.items():
        if path.endswith((OUTCOME, REQUEST, GATE, CLAIM)) and value["plan_digest"] != digest:  # E-PLAN
            yield fault("E-PLAN", path, f"plan_digest {digest}, that of {PLAN}", value["plan_digest"])
    stated = root.values[PLAN]["ladder_digest"]
    if stated != root.ladder_digest:  # E-LADDER
        yield fault("E-LADDER", PLAN, f"ladder_digest {root.ladder_digest}, that of {LADDER}", stated)


def _candidate(root: Root) -> Iterator[Fault]:
    candidate = root.values[PLAN]["candidate"]
    try:
        listed = tree_digest(Entry(file["path"], file["blake3"]) for file in candidate["files"])
    except FormatError as error:
        yield from error.faults
        return
    stated = {path: step["candidate_digest"] for path, step in root.in_order()}
    stated |= {place + PLAN: origin.values[PLAN]["candidate"]["digest"] for place, origin in root.origins.items()}
    for path, digest in {PLAN: candidate["digest"], **stated, CLAIM: root.values[CLAIM]["candidate_digest"]}.items():
        if digest != listed:  # E-CANDIDATE
            yield fault("E-CANDIDATE", path, f"candidate digest {listed}, that of the files listed in {PLAN}", digest)


def _inputs(root: Root) -> Iterator[Fault]:
    sealed = {path: "blake3:" + digest for path, digest in root.digests.items() if path.startswith("inputs/")}
    facts = [fact for fact in root.values[PLAN]["inputs"].values() if isinstance(fact, dict)]
    pins = {fact["path"]: fact["digest"] for fact in facts}
    for path in sorted(sealed.keys() | pins.keys()):
        pinned, there = pins.get(path, "no such input"), sealed.get(path, "no such file")
        if pinned != there:  # E-INPUT
            yield fault("E-INPUT", path, f"what {PLAN} pins ({pinned})", there)
    for place, origin in root.origins.items():
        for name in sorted({name for step in origin.steps.values() for name in _INPUTS_OF.get(step["tier"], ())}):
            here, there = (_pin(side, name) for side in (root, origin))
            if here != there:  # E-INPUT: a step is carried with the data that it scored
                yield fault("E-INPUT", place + PLAN, f"inputs/{name} as {PLAN} pins it ({here})", there)


def _pin(root: Root, name: str) -> str:
    fact = root.values[PLAN]["inputs"].get(name)
    return f"{fact['path']} {fact['digest']}" if isinstance(fact, dict) else "none"


def _verdict(root: Root, target: str, tier: str) -> str | None:
    """The verdict of a step, None where there is none. What a carried step is worth here, this root's claim says."""
    folder = step_folder(target, tier)
    if folder in root.steps:
        return str(root.steps[folder]["verdict"])
    return str(root.claims.get(target, {}).get(tier)) if folder in root.preserved else None


def _gates(root: Root) -> Iterator[Fault]:
    """E-GATE. A climb that the user interrupted in a gate has none after that one."""
    if len(root.gates) != len(root.values[PLAN].get("gates", ())):  # E-GATE
        yield fault("E-GATE", PLAN, "each gate once", "one twice")
    going = True
    for name, gate in root.gates.items():
        if (gate is not None) != going:  # E-GATE
            expected = f"this planned gate, with {GATE}" if going else "no gate after the one that was interrupted"
            yield fault("E-GATE", f"gates/{name}", expected, "none" if gate is None else "one")
        elif gate is not None and gate["name"] != name:  # E-GATE
            yield fault("E-GATE", f"gates/{name}", f"the gate {name}", gate["name"])
        going = going and (gate is None or gate["reason"] != INTERRUPTED)
    for path in root.digests:
        folder, _, name = path.removeprefix("gates/").rpartition("/")
        if path.startswith("gates/") and (folder not in root.gates or name not in _GATE_FILES):  # E-GATE
            yield fault("E-GATE", path, f"only {', '.join(_GATE_FILES)} of planned gates", "this")
    claimed = [(gate["name"], gate["verdict"]) for gate in root.values[CLAIM].get("gates", ())]
    found = [(name, gate["verdict"] if gate else "NOT_RUN") for name, gate in root.gates.items()]
    if claimed != found:  # E-CLAIM
        yield fault("E-CLAIM", CLAIM, f"the verdicts of the gates ({found})", str(claimed))


def _steps(root: Root) -> Iterator[Fault]:
    """E-STEP. A climb that the user interrupted has no step after that one, on any target; one whose gates did not pass has none."""
    interrupted = not all(gate and gate["verdict"] == "PASS" for gate in root.gates.values())
    if len(root.targets) != len(root.values[PLAN]["targets"]):  # E-STEP
        yield fault("E-STEP", PLAN, "each target once", "one twice")
    for target, tiers in root.targets.items():
        going = not interrupted
        if tiers != tuple(TIERS)[: len(tiers)]:  # E-STEP
            yield fault("E-STEP", PLAN, f"{', '.join(TIERS)} of {target} without a gap", ", ".join(tiers))
        for tier in tiers:
            folder, verdict = step_folder(target, tier), _verdict(root, target, tier)
            if verdict is None:
                if going:  # E-STEP
                    expected = f"this planned step, since all before it passed, with {OUTCOME}"
                    yield fault("E-STEP", folder, expected, "none")
                continue
            if not going:  # E-STEP
                yield fault("E-STEP", folder, "no step after one that did not pass", "one")
            going = going and verdict == "PASS"
            reason = root.steps[folder]["reason"] if folder in root.steps else ""
            interrupted = interrupted or (verdict == "BLOCKED" and reason == INTERRUPTED)


def _places(root: Root) -> Iterator[Fault]:
    """E-STEP: in `steps/` is nothing but outcomes in the folder of their own tier and target, with what goes with them."""
    planned = {step_folder(target, tier): (target, tier) for target, tiers in root.targets.items() for tier in tiers}
    there = {"/".join(path.split("/")[:2]) for path in root.digests if path.startswith("steps/")}
    for folder in sorted(there):
        step = root.steps.get(folder)
        if step is None or folder not in planned:  # E-STEP
            yield fault("E-STEP", folder, f"only folders of planned steps, with {OUTCOME}", "this")
        elif (step["target"], step["tier"]) != planned[folder]:  # E-STEP
            target, tier = planned[folder]
            yield fault("E-STEP", folder, f"{tier} on {target}", f"{step['tier']} on {step['target']}")


def _trees(root: Root, place: str = "") -> dict[str, tuple[str, str]]:
    """Where the artifact of each target stands, and its tree digest."""
    files: dict[str, dict[str, str]] = {}
    for path, digest in root.digests.items():
        if path.startswith("artifacts/"):
            target, _, name = path.removeprefix("artifacts/").partition("/")
            files.setdefault(target, {})[name] = digest
    return {name: (f"{place}artifacts/{name}/", digest_of(render_digests(lines))) for name, lines in files.items()}


def _artifacts(root: Root) -> Iterator[Fault]:
    sealed, steps = _trees(root), list(root.in_order())
    for target in sorted(sealed.keys() - root.targets.keys()):  # E-ARTIFACT
        yield fault("E-ARTIFACT", f"artifacts/{target}", "artifacts of planned targets", "this")
    for place, origin in root.origins.items():
        steps += [(place + path, step) for path, step in origin.in_order()]
        for target, (at, digest) in _trees(origin, place).items():
            if target in sealed:  # E-ARTIFACT
                yield fault("E-ARTIFACT", at, f"one artifact for {target}", f"this beside {sealed[target][0]}")
            sealed.setdefault(target, (at, digest))
    for path, step in steps:
        at, there = sealed.get(step["target"], (f"artifacts/{step['target']}/", "none"))
        stated = step["artifact_digest"]
        if stated is None and step["verdict"] != "PASS":
            continue  # E-ARTIFACT: it ended before there was one
        if stated != there:  # E-ARTIFACT
            yield fault("E-ARTIFACT", path, f"artifact_digest {there}, that of {at}", stated or "none")


def _times(root: Root) -> Iterator[Fault]:
    """E-TIME: the climb starts, each gate and each step starts and ends in turn, the climb ends."""
    latest: datetime | None = None
    claim = root.values[CLAIM]
    done = [*((f"gates/{name}/{GATE}", gate) for name, gate in root.gates.items() if gate), *root.in_order()]
    stated = [(path, record[key]) for path, record in done for key in ("started_at", "ended_at")]
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


def _claim(root: Root) -> Iterator[Fault]:
    claims = root.claims
    if len(claims) != len(root.values[CLAIM]["targets"]):  # E-CLAIM
        yield fault("E-CLAIM", CLAIM, "each target once", "one twice")
    for target in sorted(root.targets.keys() | claims.keys()):
        found = {tier: _verdict(root, target, tier) for tier in root.targets.get(target, ())}
        verdicts = {tier: "NOT_RUN" if verdict is None else verdict for tier, verdict in found.items()}
        if claims.get(target) != verdicts or target not in root.targets:  # E-CLAIM
            expected = f"for {target} the verdicts of its steps ({verdicts})"
            yield fault("E-CLAIM", CLAIM, expected, str(claims.get(target)))
        for tier in (tier for tier, verdict in found.items() if verdict not in {*VERDICTS, None}):  # E-CLAIM
            yield fault("E-CLAIM", CLAIM, f"for {tier} of {target} one of {', '.join(VERDICTS)}", str(found[tier]))


def _claim_of_steps(origin: Root) -> Iterator[Fault]:
    """E-CLAIM of the steps that are carried: the others are not here to compare with."""
    for path, step in origin.in_order():
        claimed = origin.claims.get(step["target"], {}).get(step["tier"])
        if claimed != step["verdict"]:  # E-CLAIM
            yield fault("E-CLAIM", CLAIM, f"the verdict of {path} ({step['verdict']})", str(claimed))
