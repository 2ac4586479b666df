"""Tamper with a small root in every way, and see that each is refused: prints how many were tried, and with which codes.

Bytes: every byte of every file flipped (one bit, in turn), deleted, and one inserted before it and at the end. Structure: for every
file, folder and pair of files what can be done to a tree without touching bytes (remove, rename, swap, link, ...). Resealed: each
structural change and each byte that was flipped, sealed again by whoever made it, and read with ``--expect`` of the digest that was
kept: E-PIN. Fixtures: the roots of ``tests/roots`` that must be refused, against the codes their READMEs name.

    python -m benchmarks.tamper [--every N]    (N > 1: only every N-th byte)
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from evidence.verify import verify
from tests.roots import make

SLOWEST_SECONDS = 10.0
CASES = {item.name: item for item in make.cases()}
WHOLE = CASES["preserved"].files  # a climb that carries a step, so that every rule has something to look at
EXPECTED = {  # of what is done to one sealed file or folder, the code that must be among those reported
    "removed": "E-MISSING",
    "emptied": "E-HASH",
    "doubled": "E-HASH",
    "renamed": "E-EXTRA",
    "other case": "E-EXTRA",
    "copied beside": "E-EXTRA",
    "link out": "E-LINK",
    "link in": "E-LINK",
    "second name": "E-HARDLINK",
    "pipe": "E-TYPE",
    "socket": "E-TYPE",
    "folder instead": "E-EMPTY",
    "swapped": "E-HASH",
    "empty folder": "E-EMPTY",
    "dotfile": "E-EXTRA",
    "folder removed": "E-MISSING",
    "folder renamed": "E-EXTRA",
    "folder is a link": "E-LINK",
    "case twin": "E-EXTRA",
}
OWN = {"SEAL", "MANIFEST.b3"}  # what is spoiled of these is told by one of several codes


class Tally:
    """What was tried, what was refused with which codes, and what went wrong."""

    def __init__(self) -> None:
        self.tried: Counter[str] = Counter()
        self.codes: dict[str, Counter[str]] = {}
        self.wrong: list[str] = []
        self.slowest = 0.0

    def look(self, kind: str, what: str, root: Path, code: str = "", expect: str | None = None) -> None:
        """Verify; count it, and keep it as wrong unless it is refused (with `code`, if given)."""
        begin = time.perf_counter()
        try:
            found = verify(root, expect)
        except Exception as error:  # noqa: BLE001 - a crash is one of the things that are looked for
            self.wrong.append(f"{kind}: {what}: {error!r}")
            return
        self.slowest = max(self.slowest, time.perf_counter() - begin)
        rules = {item.rule for item in found.faults}
        self.tried[kind] += 1
        self.codes.setdefault(kind, Counter()).update(rules)
        if found.exit_code != 20 or (code and code not in rules):
            self.wrong.append(f"{kind}: {what}: exit {found.exit_code}, {sorted(rules)}, expected {code or 'a fault'}")


def sealed(place: Path, files: make.Files) -> Path:
    """The root of `files`, well sealed."""
    make.Case("case", (), "", files).write(place)
    return place / "case/root"


def spellings(data: bytes, every: int) -> Iterator[tuple[str, bytes]]:
    """Each byte flipped, deleted, and one inserted."""
    for at in range(0, len(data), every):
        yield "flipped", data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]
        yield "deleted", data[:at] + data[at + 1 :]
    for at in range(0, len(data) + 1, every):
        yield "inserted", data[:at] + b"\n" + data[at:]


def tamper_bytes(root: Path, tally: Tally, every: int) -> None:
    """Every byte of every file, SEAL and MANIFEST.b3 among them."""
    for path in sorted(item for item in root.rglob("*") if item.is_file()):
        data, name = path.read_bytes(), path.relative_to(root).as_posix()
        for kind, spelled in spellings(data, every):
            path.write_bytes(spelled)
            tally.look(kind, f"{name} {spelled[:40]!r}", root, "" if name in OWN else "E-HASH")
        path.write_bytes(data)


def of_file(path: Path, other: Path, outside: Path) -> dict[str, Callable[[], object]]:
    """What can be done to one file."""

    def instead(make_it: Callable[[], object]) -> Callable[[], object]:
        return lambda: _then(path.unlink, make_it)

    return {
        "removed": path.unlink,
        "emptied": lambda: path.write_bytes(b""),
        "doubled": lambda: path.write_bytes(path.read_bytes() * 2),
        "renamed": lambda: path.rename(path.with_name("other.txt")),
        "other case": lambda: path.rename(path.with_name(path.name.swapcase())),
        "copied beside": lambda: shutil.copy(path, path.with_name("copy.txt")),
        "case twin": lambda: shutil.copy(path, path.with_name(path.name.swapcase())),
        "dotfile": lambda: shutil.copy(path, path.with_name("." + path.name)),
        "link out": lambda: _then(lambda: path.rename(outside / "moved"), lambda: path.symlink_to(outside / "moved")),
        "link in": instead(lambda: path.symlink_to(other)),
        "second name": lambda: (outside / "same").hardlink_to(path),
        "pipe": instead(lambda: os.mkfifo(path)),
        "socket": instead(lambda: _socket(path, outside)),
        "folder instead": instead(path.mkdir),
    }


def of_folder(path: Path, outside: Path) -> dict[str, Callable[[], object]]:
    """What can be done to one folder."""
    return {
        "empty folder": (path / "empty").mkdir,
        "folder removed": lambda: shutil.rmtree(path),
        "folder renamed": lambda: path.rename(path.with_name("other")),
        "folder is a link": lambda: _then(
            lambda: path.rename(outside / "folder"), lambda: path.symlink_to(outside / "folder")
        ),
    }


def _then(*steps: Callable[[], object]) -> None:
    for step in steps:
        step()


def _socket(path: Path, outside: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(outside / "s"))  # the path of a socket must be short
    (outside / "s").rename(path)


def swap(one: Path, other: Path) -> None:
    """Two files change places."""
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)


def tamper_structure(scratch: Path, tally: Tally) -> None:
    """Every structural change, each in a fresh copy."""
    names = sorted(sealed(scratch / "names", WHOLE).rglob("*"))
    files = [path.relative_to(scratch / "names/case/root").as_posix() for path in names if path.is_file()]
    folders = [path.relative_to(scratch / "names/case/root").as_posix() for path in names if path.is_dir()]

    def fresh() -> tuple[Path, Path]:
        place = Path(tempfile.mkdtemp(dir=scratch))
        (place / "outside").mkdir()
        return sealed(place, WHOLE), place / "outside"

    for name in files:
        for kind in of_file(Path("a"), Path("b"), Path("c")):
            root, outside = fresh()
            other = root / next(item for item in files if item not in {name, *OWN})
            of_file(root / name, other, outside)[kind]()
            tally.look(f"structure, {kind}", name, root, "" if name in OWN else EXPECTED[kind])
    for name in folders:
        for kind in of_folder(Path("a"), Path("b")):
            root, outside = fresh()
            of_folder(root / name, outside)[kind]()
            tally.look(f"structure, {kind}", name, root, EXPECTED[kind])
    for number, name in enumerate(files):
        for second in files[number + 1 :]:
            root, _ = fresh()
            if (root / name).read_bytes() == (root / second).read_bytes():
                continue
            swap(root / name, root / second)
            tally.look("structure, swapped", f"{name} and {second}", root, "" if {name, second} & OWN else "E-HASH")


def tamper_resealed(scratch: Path, tally: Tally, every: int) -> None:
    """What somebody changes and seals again is told by the digest that was kept elsewhere."""
    kept = verify(sealed(scratch / "kept", WHOLE)).digest
    for path in sorted(WHOLE):
        without = {name: data for name, data in WHOLE.items() if name != path}
        changes = {"removed": without, "renamed": without | {path + "x": WHOLE[path]}}
        for at in range(0, len(WHOLE[path]), every):
            data = WHOLE[path]
            changes[f"byte {at}"] = WHOLE | {path: data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]}
        for what, files in changes.items():
            place = Path(tempfile.mkdtemp(dir=scratch))
            tally.look("resealed, read with --expect", f"{path} {what}", sealed(place, files), "E-PIN", kept)
            shutil.rmtree(place)


def tamper_fixtures(tally: Tally) -> None:
    """The stored roots that must be refused."""
    for name, item in CASES.items():
        if name.endswith("_fail"):
            said = (make.HERE / name / "README.md").read_text(encoding="utf-8")
            for code in re.findall(r"E-[A-Z]+", said.partition(";")[0]):
                tally.look("fixture", item.name, make.HERE / name / "root", code)


def main() -> int:
    """Tamper, and print what was tried; 1 when anything was not refused as it must be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", type=int, default=1)
    asked = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory() as scratch:
        root = sealed(Path(scratch) / "bytes", WHOLE)
        if verify(root).exit_code != 0:
            raise SystemExit("expected a root that is intact to begin with")
        tamper_bytes(root, tally, asked.every)
        tamper_structure(Path(scratch), tally)
        tamper_resealed(Path(scratch), tally, 16 * asked.every)
    tamper_fixtures(tally)
    for kind, number in tally.tried.items():
        codes = ", ".join(f"{code} {count}" for code, count in sorted(tally.codes[kind].items()))
        print(f"{kind}: {number} tried: {codes}")
    print("\n".join(tally.wrong[:50]))
    print(
        f"all: {tally.tried.total()} tried, {len(tally.wrong)} not refused as they must be, slowest {tally.slowest:.2f} s"
    )
    return 1 if tally.wrong or tally.slowest > SLOWEST_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
