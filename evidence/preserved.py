"""What a root carries of earlier roots, shown to be part of them, and what its lineage says of it. Rules: FORMAT.md.

Below `preserved/<16 hex>/` stand the `SEAL` and `MANIFEST.b3` of an earlier root, its records, and the folders of the steps that
are carried, byte for byte. So nobody needs that root to see that each file was sealed in it.

    E-ORIGIN   each carried file is one that the origin's manifest names, whole steps are carried, and the folder names the origin
    E-LINEAGE  `lineage.json` lists exactly what is carried; no step is there twice; what it supersedes is named, with a reason
"""

from collections.abc import Iterator, Mapping
from functools import partial

from evidence.manifest import DIGEST, MANIFEST_NAME, SEAL_NAME, Fault, FormatError, fault, parse_digests, parse_seal
from evidence.records import LINEAGE, RECORDS, Read, Root, load, step_folder

PRESERVED = "preserved/"


def inside(place: str, found: Fault) -> Fault:
    """A fault of an origin, told with the place of that origin (`preserved/<16 hex>/`)."""
    return Fault(found.rule, place + found.path, place + found.message)


def load_origins(root: Root, read: Read) -> tuple[dict[str, Root], list[Fault]]:
    """The records of each origin by its place, and the faults of those that cannot be relied on."""
    parts: dict[str, dict[str, str]] = {}
    for path, digest in root.digests.items():
        if path.startswith(PRESERVED):
            name, _, rest = path.removeprefix(PRESERVED).partition("/")
            parts.setdefault(f"{PRESERVED}{name}/", {})[rest] = digest
    origins: dict[str, Root] = {}
    faults: list[Fault] = []
    for place, files in parts.items():
        try:
            origins[place] = _origin(place, files, partial(_read_inside, read, place))
        except FormatError as error:
            faults += [inside(place, found) for found in error.faults]
    return origins, faults


def _read_inside(read: Read, place: str, path: str) -> bytes:
    return read(place + path)


def _origin(place: str, files: Mapping[str, str], read: Read) -> Root:
    """The part of an earlier root that stands at `place`. Raises FormatError unless it is shown to be one."""
    own = (SEAL_NAME, MANIFEST_NAME)
    missing = [fault("E-ORIGIN", path, "this file of the origin", "none") for path in own if path not in files]
    if missing:  # E-ORIGIN
        raise FormatError(missing)
    digest, stated = "blake3:" + files[MANIFEST_NAME], parse_seal(read(SEAL_NAME))  # E-SEAL
    sealed = parse_digests(read(MANIFEST_NAME))  # E-MANIFEST and the rules of names
    faults = []
    if stated != digest:  # E-ORIGIN
        faults.append(fault("E-ORIGIN", SEAL_NAME, f"{digest}, the digest of {MANIFEST_NAME}", stated))
    if place != f"{PRESERVED}{files[MANIFEST_NAME][:16]}/":  # E-ORIGIN
        expected = f"a folder named {files[MANIFEST_NAME][:16]}, as its digest begins"
        faults.append(fault("E-ORIGIN", MANIFEST_NAME, expected, place))
    carried = {path: found for path, found in files.items() if path not in own}
    faults += [
        fault("E-ORIGIN", path, f"blake3 {sealed[path]}, that of the origin", carried[path])
        for path in sorted(carried.keys() & sealed.keys())
        if carried[path] != sealed[path]  # E-ORIGIN
    ]
    faults += _not_whole(carried, sealed)
    if faults:
        raise FormatError(faults)
    return load(carried, read)


def _not_whole(carried: Mapping[str, str], sealed: Mapping[str, str]) -> Iterator[Fault]:
    """E-ORIGIN: what is carried is the records, whole step folders, and with L0 of a target its artifact; no more, no less."""
    steps = {top for path in carried if path.startswith("steps/") and (top := _top(path))}
    build = step_folder("", "L0")
    whole = steps | {f"artifacts/{step.removeprefix(build)}" for step in steps if step.startswith(build)}
    expected = {path for path in sealed if path in RECORDS or _top(path) in whole}
    for path in sorted(expected - carried.keys()):  # E-ORIGIN
        yield fault("E-ORIGIN", path, "this file of the origin, since its step is carried", "none")
    for path in sorted(carried.keys() - expected):  # E-ORIGIN
        yield fault("E-ORIGIN", path, "only records, carried steps and their artifacts", "this")


def _top(path: str) -> str | None:
    """The step or artifact that a file is part of: `steps/<step>` or `artifacts/<target>`; None for a file that is in no such folder."""
    names = path.split("/")
    return "/".join(names[:2]) if len(names) > 2 else None


def lineage(root: Root) -> Iterator[Fault]:
    """E-LINEAGE, and that a carried step is a planned one that did not run again."""
    record = root.values[LINEAGE]
    there = {"blake3:" + root.digests[place + MANIFEST_NAME]: sorted(o.steps) for place, o in root.origins.items()}
    listed = {entry["origin"]: entry["steps"] for entry in record["preserved"]}
    for digest in sorted(there.keys() | listed.keys()):
        if there.get(digest) != listed.get(digest) or not listed[digest]:  # E-LINEAGE
            expected = f"of {digest} the steps that are carried ({', '.join(there.get(digest, ())) or 'none'})"
            yield fault("E-LINEAGE", LINEAGE, expected, f"{listed.get(digest, 'no such origin')}")
    if list(listed) != sorted(listed) or len(listed) != len(record["preserved"]):  # E-LINEAGE
        yield fault("E-LINEAGE", LINEAGE, "each origin once, sorted", ", ".join(listed))
    planned = {step_folder(target, tier) for target, tiers in root.targets.items() for tier in tiers}
    seen = set(root.steps)
    for place, origin in root.origins.items():
        for folder in sorted(origin.steps):
            if folder not in planned or folder in seen:  # E-LINEAGE
                got = "it twice" if folder in seen else "one that is not planned"
                yield fault("E-LINEAGE", place + folder, "a planned step, in one place", got)
            seen.add(folder)
    superseded = [entry["digest"] for entry in record["supersedes"]]
    for entry in record["supersedes"]:
        if not DIGEST.fullmatch(entry["digest"]) or not entry["reason"].strip():  # E-LINEAGE
            yield fault("E-LINEAGE", LINEAGE, "a root digest and a reason for what it supersedes", str(entry))
    if len(set(superseded)) != len(superseded):  # E-LINEAGE
        yield fault("E-LINEAGE", LINEAGE, "each superseded root once", ", ".join(superseded))
