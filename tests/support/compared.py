"""Six roots of the quickstart reranker made for real, each but the first with one thing changed, and the page that compares them.

``python -m tests.support.compared`` makes them anew and writes what ``qualify diff`` says of them into the page.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.support.ladders import REPO, Said, qualify

QUICKSTART = REPO / "ladders" / "quickstart"
PAGE = REPO / "docs" / "how-to-compare-two-roots.md"
BLOCK = re.compile(r"(<!-- diff: ([a-z0-9]+) -->\n```text\n)(.*?)(```\n)", re.DOTALL)
POLICY = re.compile(r"```yaml\n(format: 1\nname: shipped\n.*?)```", re.DOTALL)
BASELINE = "march"
CHANGED = ("same", "int8", "perturbed", "bound", "opset")
EXITS = {"same": 0, "int8": 10, "perturbed": 10, "bound": 30, "opset": 10}

LADDER = """format: 1
name: shipped
candidate: {{model: ./model}}
goal: L3
tiers:
  L0: {{opset: {opset}, limits: {{payload_ratio: {{at_most: 1.05}}}}}}
  L1: {{candidates: 8, max_length: 128, warm_up: 2, calls: 72, growth_calls: 0, limits: {{p95_ms: {{at_most: 1e4}}}}}}
  L2: {{invariance_pairs: 8, limits: {{max_abs_gap: {{at_most: 1.0}}}}}}
  L3:
    data: groups.jsonl
    groups: {groups}
    limits: {{ndcg_at_10_drop: {{at_most: 0.05}}, ndcg_at_10_over_random: {{at_least: 0.1}}, ndcg_at_10_over_sentinels: {{at_least: 0.0}}}}
targets:
  - {{name: cpu, precision: {precision}, threads: 1}}
"""


def make(folder: Path) -> None:
    """Climb all six into ``folder/runs``."""
    (folder / "runs").mkdir()
    shutil.copytree(QUICKSTART / "model", folder / "model")
    shutil.copyfile(QUICKSTART / "groups.jsonl", folder / "groups.jsonl")
    other = folder / "other"
    other.mkdir()
    shutil.copytree(QUICKSTART / "model", other / "model")
    shutil.copyfile(QUICKSTART / "groups.jsonl", other / "groups.jsonl")
    _perturb(other / "model" / "model.safetensors")
    _climb(folder, BASELINE)
    _climb(folder, "same")
    _climb(folder, "int8", precision="int8")
    _climb(other, "perturbed", out=folder)
    _climb(folder, "bound", "--preserve", folder / "runs" / BASELINE, "--rerun", "L3", groups=40)
    _climb(folder, "opset", opset=18)


def _climb(
    folder: Path,
    name: str,
    *more: str | Path,
    out: Path | None = None,
    opset: int = 17,
    precision: str = "fp32",
    groups: int = 60,
) -> None:
    ladder = folder / f"{name}.yaml"
    ladder.write_text(LADDER.format(opset=opset, precision=precision, groups=groups), encoding="utf-8")
    said = qualify("run", ladder, "--out", (out or folder) / "runs" / name, *more)
    assert said.code == 0, said.err + said.out


def _perturb(file: Path, share: float = 0.5) -> None:
    """Add noise to every fp32 tensor of a safetensors file: ``share`` of the tensor's own standard deviation."""
    data = bytearray(file.read_bytes())
    (size,) = struct.unpack_from("<Q", data)
    random = np.random.Generator(np.random.PCG64(0))
    for name, tensor in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and tensor["dtype"] == "F32":
            begin, end = (8 + size + offset for offset in tensor["data_offsets"])
            values = np.frombuffer(data[begin:end], dtype="<f4")
            noise = random.normal(0, share * float(values.std()), values.size)
            data[begin:end] = (values + noise).astype("<f4").tobytes()
    file.write_bytes(data)


def compare(folder: Path, name: str, *more: str) -> Said:
    """What ``qualify diff`` says of a changed root and the first one, under the policy of the page."""
    found = POLICY.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    (folder / "policy.yaml").write_text(found[1], encoding="utf-8")
    return qualify("diff", f"runs/{BASELINE}", f"runs/{name}", "--policy", "policy.yaml", *more, folder=folder)


def shown(out: str) -> str:
    """The part of an answer that the page shows: everything before the sides."""
    return out.partition("\n\nSides\n")[0] + "\n"


def main() -> None:
    """Write the page's blocks from roots that are there, or are made now."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(made)
        if not (folder / "runs").exists():
            make(folder)
        said = {name: shown(compare(folder, name).out) for name in CHANGED}
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda found: found[1] + said[found[2]] + found[4], text), encoding="utf-8")


if __name__ == "__main__":
    main()
