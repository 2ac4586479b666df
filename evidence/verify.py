"""Verify a sealed root, trusting nobody: the seal line, the manifest, the tree, the hashes, then what the records say.

`verify(folder)` never raises for a bad root: every path ends in a Report. `open_root(folder)` gives a reader of a root that
verified. There is no option that checks less. Rules and their order: FORMAT.md. Also `python -m evidence.verify ROOT`.

    E-SEAL      `SEAL` is there, well spelled, and names the BLAKE3 of `MANIFEST.b3`
    E-MANIFEST  `MANIFEST.b3` is there and well spelled (E-PATH, E-DOTFILE, E-KIND, E-CASE, E-SIZE likewise)
    E-PIN       the root digest is the one that was expected
    E-MISSING   every file of the manifest is there      E-EXTRA   no other file is
    E-HASH      every file has the bytes that were sealed
    and the rules of `tree`, `records`, `meaning` and `preserved`
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from evidence import manifest, meaning, records, tree
from evidence.manifest import FAULTS_LIMIT, MANIFEST_NAME, SEAL_NAME, Fault, FormatError, digest_of, fault
from evidence.report import Bar, Check, Report, as_json, as_text, checks_until, escape

__all__ = ["NotVerifiedError", "Report", "VerifiedRoot", "main", "open_root", "verify"]

ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC  # the caller named the root: only its path may lead through links


class NotVerifiedError(Exception):
    """Bytes were asked of a root that did not verify, or of a file that is not as it was verified; `faults` say why."""

    def __init__(self, folder: Path, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        why = "; ".join(f"{item.rule} {item.message}" for item in faults[:5]) or "a check that could not run"
        super().__init__(f"{folder}: expected a root that verifies, got {why}")


class VerifiedRoot(NamedTuple):
    """A root that was looked at: `report`, and a reader that gives only bytes whose hash it has just compared.

    When `report.ok` is false there is nothing to read: `paths` is empty and `read` raises.
    """

    folder: Path
    report: Report
    digests: dict[str, str]  # 64 hex by path, sorted by path
    sizes: dict[str, int]  # bytes by path, as they were hashed

    @property
    def digest(self) -> str | None:
        """The root digest."""
        return self.report.digest

    @property
    def paths(self) -> tuple[str, ...]:
        """Every sealed path, sorted."""
        return tuple(self.digests)

    def read(self, path: str) -> bytes:
        """The sealed bytes of a file. Raises NotVerifiedError, and KeyError for a path that was not sealed."""
        if not self.report.ok:
            raise NotVerifiedError(self.folder, self.report.faults)
        digest = self.digests[path]
        try:
            with tree.opened(self.folder, ROOT) as root:
                return read(root, path, digest, self.sizes[path])
        except FormatError as error:
            raise NotVerifiedError(self.folder, error.faults) from error
        except OSError as error:
            raise NotVerifiedError(self.folder, (tree.fault_of(error, ""),)) from error


def open_root(folder: Path, expect: str | None = None, progress: tree.Progress | None = None) -> VerifiedRoot:
    """Verify a root and return a reader of it. Never raises for a bad root: look at `.report`.

    `expect` is a digest kept elsewhere; `progress(bytes done, bytes in all)` is told how far it is.
    """
    digest: str | None = None
    digests: dict[str, str] = {}
    sizes: dict[str, int] = {}
    faults: list[Fault] = []
    last, why = "", "the folder cannot be opened"
    try:
        with tree.opened(folder, ROOT) as root:
            digest, digests, faults = sealed(root, expect)
            last, why = "manifest", "there is no manifest to compare with"
            if digests:
                faults += _compare(root, digests, sizes, progress)
                last, why = "hashes", "the files are not those that were sealed"
                if not faults:
                    limit = records.JSON_LIMIT_BYTES
                    faults, last, why = meaning.check(digests, lambda path: read(root, path, digests[path], limit))
    except OSError as error:
        faults = [tree.fault_of(error, "")]
    except MemoryError:  # what is held has limits (E-SIZE), but so has a machine
        why = "this machine has too little memory for it"
    pin = (Check("pin", ("E-PIN",)),) if expect is not None else ()
    authenticity = "pinned" if expect is not None and digest == expect else "none"
    report = Report(digest, tuple(_listed(faults)), pin + checks_until(last, why), authenticity)
    return VerifiedRoot(folder, report, digests if report.ok else {}, sizes)


def _listed(faults: Iterable[Fault]) -> list[Fault]:
    """Each fault once, sorted; of those of one rule the first, and how many there are."""
    by_rule: dict[str, set[Fault]] = {}
    for item in faults:
        by_rule.setdefault(item.rule, set()).add(item)
    for rule, found in by_rule.items():
        if len(found) > FAULTS_LIMIT:
            more = fault(rule, "", f"at most {FAULTS_LIMIT} of its faults listed", f"{len(found)}")
            by_rule[rule] = {
                *sorted(found, key=tuple)[:FAULTS_LIMIT],
                more,
            }  # plain tuples are sorted in a third of the time
    return sorted(item for found in by_rule.values() for item in found)


def verify(folder: Path, expect: str | None = None, progress: tree.Progress | None = None) -> Report:
    """Look at every rule of a root, as `open_root` does."""
    return open_root(folder, expect, progress).report


def sealed(root: int, expect: str | None = None) -> tuple[str | None, dict[str, str], list[Fault]]:
    """The digest of an open root, its manifest as 64 hex by path (empty unless it can be relied on), and the faults of both."""
    faults: list[Fault] = []
    digests: dict[str, str] = {}
    claimed = digest = None
    try:
        claimed = manifest.parse_seal(read(root, SEAL_NAME, None, manifest.SEAL_LIMIT_BYTES, missing="E-SEAL"))
    except FormatError as error:  # E-SEAL
        faults += error.faults
    try:
        data = read(root, MANIFEST_NAME, None, manifest.MANIFEST_LIMIT_BYTES, missing="E-MANIFEST")
        digest = digest_of(data)
        digests = manifest.parse_digests(data)
    except FormatError as error:  # E-MANIFEST and the rules of names
        faults += error.faults
    if digest and claimed and digest != claimed:  # E-SEAL
        faults.append(fault("E-SEAL", SEAL_NAME, f"{digest}, the digest of {MANIFEST_NAME}", claimed))
    if expect is not None and digest != expect:  # E-PIN
        faults.append(fault("E-PIN", "", f"the root digest {expect}", digest or "no manifest"))
    return digest, digests, faults


def _compare(root: int, digests: dict[str, str], sizes: dict[str, int], tell: tree.Progress | None) -> list[Fault]:
    """The faults of the tree against the manifest; only files that the manifest names are opened. Adds their bytes to `sizes`."""
    listing = tree.list_files(root, sizes=tell is not None)
    faults, named = list(listing.faults), {item.path for item in listing.faults}
    there = listing.files.keys() - {SEAL_NAME, MANIFEST_NAME}
    missing, extra = digests.keys() - there - named, there - digests.keys()
    faults += [fault("E-MISSING", path, "this file", "none") for path in missing]  # E-MISSING
    faults += [fault("E-EXTRA", path, "only files that the manifest names", "this") for path in extra]  # E-EXTRA
    sizes |= {path: size for path, size in listing.files.items() if path in digests}
    found, unsure = tree.hash_files(root, sizes, tell)
    wrong = [path for path, digest in found.items() if digest != digests[path]]
    faults += [fault("E-HASH", path, f"blake3 {digests[path]}", found[path]) for path in wrong]  # E-HASH
    return faults + unsure


def read(
    root: int, path: str, digest: str | None, limit_bytes: int, *, missing: str = "E-READ", other: str = "E-CHANGED"
) -> bytes:
    """The bytes of a file of an open root, whose BLAKE3 is `digest` if that is given; raises FormatError for whatever is wrong with it.

    `missing` is the rule for a file that is not there, `other` that for other bytes: by default of a file that was hashed a moment ago.
    """
    try:
        data, found = tree.read_file(root, path, limit_bytes)
    except OSError as error:
        raise FormatError([tree.fault_of(error, path, missing)]) from error
    if digest is not None and found != digest:  # E-CHANGED or E-HASH
        raise FormatError([fault(other, path, f"blake3 {digest}", found)])
    return data


USAGE = "usage: python -m evidence.verify ROOT [--expect blake3:<64 hex>] [--json]"


def main() -> int:
    """`python -m evidence.verify ROOT [--expect DIGEST] [--json]`: 0 intact, 20 not, 30 undetermined, 64 asked wrongly."""
    roots, expect, wants_json = [], None, False
    words = iter(sys.argv[1:])  # argparse would double the time that this module takes to start
    for word in words:
        if word in {"-h", "--help"}:
            sys.stdout.write(f"{USAGE}\n")
            return 0
        if word == "--json":
            wants_json = True
        elif word == "--expect":
            expect = next(words, "")
        else:
            roots.append(word)
    if len(roots) != 1 or roots[0].startswith("-") or not (expect is None or manifest.DIGEST.fullmatch(expect)):
        got = escape(" ".join(sys.argv[1:])) or "nothing"
        sys.stderr.write(f"evidence.verify: expected a root and known options, got {got}; {USAGE}\n")
        return 64
    folder, bar = Path(roots[0]), Bar()
    report = verify(folder, expect, bar if sys.stderr.isatty() else None)
    bar.clear()
    sys.stdout.write(as_json(report) if wants_json else as_text(folder, report))
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
