"""An environment for a reviewer: this interpreter with the packages that verifying needs and no other, so without torch."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.support.ladders import REPO

NEEDED = ("blake3", "click", "markdown-it-py", "mdurl", "msgspec", "numpy", "psutil", "pygments", "pyyaml", "rich")


def make(folder: Path) -> Path:
    """Make it in ``folder``; returns its ``bin``, with ``python`` and ``qualify``. Packages are linked, nothing is fetched."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = link(folder, NEEDED)
    info = Path(str(importlib.metadata.distribution("qualify").locate_file("")))
    for place in info.glob("qualify-*.dist-info"):
        (site / place.name).symlink_to(place, target_is_directory=True)
    (site / "harness.pth").write_text(f"{REPO}\n", encoding="utf-8")
    command = folder / "bin" / "qualify"
    command.write_text(f"#!{folder / 'bin' / 'python'}\nfrom harness.cli import main\n\nmain()\n", encoding="utf-8")
    command.chmod(0o755)
    return folder / "bin"


def link(folder: Path, names: Iterable[str]) -> Path:
    """Link installed packages into the environment ``folder``; returns its ``site-packages``."""
    site = next(folder.glob("lib/python*/site-packages"))
    for name in names:
        found = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] not in {"..", "__pycache__"}}:
            place = Path(str(found.locate_file(top)))
            if place.exists():
                (site / top).symlink_to(place, target_is_directory=place.is_dir())
    return site
