"""A small ladder on disk for a tiny candidate, and the command line run on it as a user would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence import seal
from harness.records import to_json
from tests.roots import make
from tests.support.models import TEXTS

REPO = Path(__file__).parent.parent.parent
TARGETS = """
  - {precision: fp32, threads: 1}
  - {precision: fp16, threads: 1, limits: {L2: {max_abs_gap: {at_most: 0.05}}}}
  - {precision: int8, threads: 1, limits: {L2: {max_abs_gap: {at_most: 2}}}}
"""


@dataclass(frozen=True)
class Said:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def write_ladder(folder: Path, model: Path | str, targets: str = TARGETS, goal: str = "L3", **changes: str) -> Path:
    """A ladder named ``tiny.yaml`` and its groups in ``folder``. ``changes`` replace text: ``old=new`` by keyword pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    groups = [
        {
            "query": query,
            "positive": [query],
            "negative": [text for other, text in enumerate(TEXTS) if other != number],
        }
        for number, query in enumerate(TEXTS)
    ]
    (folder / "groups.jsonl").write_text("".join(json.dumps(group) + "\n" for group in groups), encoding="utf-8")
    tiers = {
        "L0": "{limits: {opset: {exactly: 17}}}",
        "L1": "{candidates: 8, batch_size: 4, warm_up: 2, calls: 72, growth_calls: 12, limits: {p50_ms: {at_most: 1e4}}}",
        "L2": "{limits: {max_abs_gap: {at_most: 1e-4}}}",
        "L3": "{data: groups.jsonl, limits: {ndcg_at_10_drop: {at_most: 0.9}, kendall_tau_b_by_query: {at_least: 0.4}}}",
    }
    text = f"format: 1\nname: tiny\ncandidate: {{model: {model}}}\ngoal: {goal}\ntiers:\n"
    text += "".join(f"  {tier}: {changes.get(tier, table)}\n" for tier, table in tiers.items() if tier <= goal)
    path = folder / "tiny.yaml"
    path.write_text(f"{text}targets:{targets}", encoding="utf-8")
    return path


def write_groups(folder: Path, number: int = 32) -> None:
    """More groups for a ladder of ``write_ladder``: as many as an interval needs, so that they are no smoke test."""
    groups = [
        {
            "query": f"{TEXTS[place % len(TEXTS)]} {place}",
            "positive": [TEXTS[place % len(TEXTS)]],
            "negative": [text for other, text in enumerate(TEXTS) if other != place % len(TEXTS)],
        }
        for place in range(number)
    ]
    (folder / "groups.jsonl").write_text("".join(json.dumps(group) + "\n" for group in groups), encoding="utf-8")


def qualify(*arguments: str | Path, folder: Path | None = None, **environment: str) -> Said:
    """Run ``qualify`` in a process of its own. Variables set to an empty string are taken out of its environment."""
    kept = {name: value for name, value in {**os.environ, **environment}.items() if value}
    command = [sys.executable, "-m", "harness.cli", *map(str, arguments)]
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, [kept.get("PYTHONPATH"), str(REPO)]))
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=kept, check=False, timeout=600)
    return Said(done.returncode, done.stdout, done.stderr)


def writable_copy(root: Path, to: Path) -> Path:
    """A copy of a sealed root that a test may change."""
    shutil.copytree(root, to)
    for path in (to, *to.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return to


def edited(name: str, edit: Callable[[Any], object]) -> Callable[[Path], object]:
    """A change of one JSON record."""

    def change(root: Path) -> None:
        value = json.loads((root / name).read_bytes())
        edit(value)
        (root / name).write_bytes(to_json(value))

    return change


def changed(root: Path, to: Path, change: Callable[[Path], object]) -> Path:
    """A copy of a root with one thing changed, ``resealed`` at ``to``."""
    copy = writable_copy(root, to.with_name(f"{to.name}.open"))
    change(copy)
    return resealed(copy, to)


def resealed(root: Path, to: Path) -> Path:
    """A changed copy sealed by the harness at ``to``, as somebody who wants to deceive would."""
    (root / "SEAL").unlink()
    (root / "MANIFEST.b3").unlink()
    seal.seal(root, to)
    return to


def seal_again(root: Path) -> None:
    """Write the manifest and the seal anew, as somebody would who changed a file."""
    own = {root / "SEAL", root / "MANIFEST.b3"}
    files = {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file() and p not in own}
    (root / "MANIFEST.b3").write_bytes(make.lines(files))
    (root / "SEAL").write_bytes(f"qualify-seal/1 {make.digest(make.lines(files))}\n".encode())
