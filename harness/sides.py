"""The roots that are compared: found by what the user named, verified, judged again. Nothing is read from one that does not verify.

An argument is a root; a folder of roots, of which the current one is meant (``history``); or a YAML file of the user's repository that
pins a root by digest (``baseline: {path, digest}``, also in a policy).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from evidence.manifest import MANIFEST_NAME, SEAL_NAME
from harness import records
from harness.answer import Checked
from harness.diff_values import Side
from harness.errors import AskedWrongly
from harness.files import read_small
from harness.history import Line
from harness.policy import parse_pin
from harness.root import merged
from harness.survey import Looked, look, survey

Progress = Callable[[int, int], None]


class Named(NamedTuple):
    """A root on disk, and the digest that a file pins it to, if one does."""

    root: Path
    expect: str | None = None


def find(what: Path) -> Named | Path:
    """The root that an argument means, or the folder of roots that it is. Raises ``AskedWrongly``, ``PolicyError``."""
    if what.is_file():
        return pinned(what)
    if not what.is_dir():
        raise AskedWrongly(
            f"{what}: expected a root, a folder of roots or a file that pins one, got nothing; check the path"
        )
    is_root = (what / SEAL_NAME).exists() or (what / MANIFEST_NAME).exists()
    return Named(what) if is_root else what


def pinned(file: Path) -> Named:
    """The root that a file pins. Raises ``PolicyError``."""
    pin = parse_pin(read_small(file), file.name)
    return Named(file.parent / pin.path, pin.digest)


def single(folder: Path) -> Line:
    """The one current root of a folder. Raises ``AskedWrongly`` where there is none, or more than one."""
    lines = [line for line in survey(folder).lines if line.state == "current"]
    if len(lines) != 1:
        raise AskedWrongly(
            f"{folder}: expected a folder with one current root, got {len(lines)}; name the root that is meant"
        )
    return lines[0]


def like(folder: Path, digest: str | None, ladder: str, model: str) -> Named:
    """The current root of a ladder and model in a folder, the one with ``digest`` left out. Raises ``AskedWrongly`` for none."""
    line = current(look(folder), digest, ladder, model)
    if line is None:
        raise AskedWrongly(
            f"{folder}: expected a root of ladder {ladder} and model {model} other than the one it is compared with, got none; "
            "name the root that is meant"
        )
    return Named(folder / line.name)


def current(looked: Looked, without: str | None, ladder: str, model: str) -> Line | None:
    """The line of the current root; None where the folder has none."""
    lines = looked.history(without).lines
    ours = [line for line in lines if line.state == "current" and (line.ladder, line.model) == (ladder, model)]
    return ours[0] if ours else None


def side(checked: Checked) -> Side:
    """A checked root as a side. Raises ``NotIntact`` for one that does not verify or whose claim its samples do not give."""
    found = checked.records
    assert checked.judged is not None
    opened = checked.opened
    read, _ = merged(found.lineage, opened.read, opened.paths)
    return Side(str(checked.path), str(opened.digest), opened.read(records.LADDER), checked.judged, read)
