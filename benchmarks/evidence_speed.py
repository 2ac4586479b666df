"""How long ``python -m evidence.verify`` takes beside ``b3sum --check`` and ``model_signing verify``, whole processes that take turns.

Two roots are made (one big file; many small ones), each command runs once to warm the page cache, then all take turns. Each line
gives the ratio of median wall times and its bar; memory is the peak resident set of the process. Start-up is the wall time on a
small root less that of ``python -c pass``. ``--model-signing BIN`` is the ``model_signing`` of a venv made by hand
(``pip install model-signing==1.1.1 pyopenssl``); without it that line is skipped, which is said.

    python -m benchmarks.evidence_speed [--rounds N] [--big MIB] [--files N] [--model-signing BIN] [--folder DIR]
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from evidence import seal
from harness import leftovers
from tests.roots.make import GOOD, L0

REPO = Path(__file__).parent.parent
STARTS = 20
BLOCK = 2**20


class Ran(NamedTuple):
    """One process: wall seconds, and peak resident set in MB."""

    seconds: float
    megabytes: float


def timed(command: list[str], folder: Path) -> Ran:
    """Run a command that must end well."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    said = child.stderr.read().decode() if child.stderr else ""
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: expected exit 0, got {child.returncode}: {said}")
    return Ran(seconds, usage.ru_maxrss / 1024)


def turns(commands: dict[str, tuple[list[str], Path]], rounds: int) -> dict[str, Ran]:
    """Median seconds and highest memory of each command; all take turns, after one round that does not count."""
    runs: dict[str, list[Ran]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, (command, folder) in commands.items():
            ran = timed(command, folder)
            if number:
                runs[name].append(ran)
    return {
        name: Ran(statistics.median(ran.seconds for ran in found), max(ran.megabytes for ran in found))
        for name, found in runs.items()
    }


def root(place: Path, sizes: list[int]) -> Path:
    """A sealed climb with random files of `sizes` bytes beside the outcome of its first step, a hundred to a folder."""
    staging = seal.stage(place)
    for path, data in GOOD.items():
        seal.write_new(staging, path, data)
    chance = random.Random(0)
    for number, size in enumerate(sizes):
        file = staging / L0 / f"samples/{number // 100:04}/{number:06}.bin"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as out:
            out.write(b"raw ")  # never the first bytes of an archive
            for left in range(size - 4, 0, -BLOCK):
                out.write(chance.randbytes(min(left, BLOCK)))
    seal.seal(staging, place)
    return place


def compared(name: str, ours: Ran, theirs: Ran, at_most: float) -> None:
    """One line: a ratio beside its bar."""
    ratio = ours.seconds / theirs.seconds
    said = "met" if ratio <= at_most else "NOT MET"
    print(f"{name}: {ratio:.2f}, bar at most {at_most} {said} ({ours.seconds:.3f} s over {theirs.seconds:.3f} s)")


def main() -> None:
    """Make the roots, run the rounds and print the lines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--big", type=int, default=2048, help="MiB of the big file")
    parser.add_argument("--files", type=int, default=20_000, help="number of files of 300 to 5,000 bytes")
    parser.add_argument("--model-signing", type=Path, help="the model_signing command to compare with")
    parser.add_argument("--folder", type=Path, help="where to make the roots: a file system with room")
    asked = parser.parse_args()
    verify = [sys.executable, "-m", "evidence.verify"]
    check = ["b3sum", "--check", "--quiet", "MANIFEST.b3"]
    with tempfile.TemporaryDirectory(dir=asked.folder) as scratch:
        chance = random.Random(1)
        big = root(Path(scratch) / "big", [asked.big * 2**20])
        many = root(Path(scratch) / "many", [chance.randint(300, 5000) for _ in range(asked.files)])
        small = root(Path(scratch) / "small", [])
        both = turns({"ours": ([*verify, str(big)], REPO), "b3sum": (check, big)}, asked.rounds)
        compared(f"verify of {asked.big} MiB over b3sum --check", both["ours"], both["b3sum"], 1.1)
        commands = {"many": ([*verify, str(many)], REPO), "b3sum": (check, many)}
        if asked.model_signing:
            commands["peer"] = (signed(asked.model_signing, many, Path(scratch)), REPO)
        found = turns(commands, asked.rounds)
        compared(f"verify of {asked.files} files over b3sum --check", found["many"], found["b3sum"], 2.5)
        if asked.model_signing:
            compared(f"verify of {asked.files} files over model_signing verify", found["many"], found["peer"], 0.2)
        else:
            print("model_signing: skipped, since --model-signing was not given")
        for name, ran in (("big", both["ours"]), ("many", found["many"])):
            said = "met" if ran.megabytes <= 150 else "NOT MET"
            print(f"peak memory of verify, {name}: {ran.megabytes:.0f} MB, bar 150 MB {said}")
        starts = turns({"ours": ([*verify, str(small)], REPO), "bare": ([sys.executable, "-c", "pass"], REPO)}, STARTS)
        extra = 1000 * (starts["ours"].seconds - starts["bare"].seconds)
        print(f"start-up over a bare interpreter: {extra:.0f} ms, bar 60 ms {'met' if extra <= 60 else 'NOT MET'}")
        for place in (big, many, small):
            leftovers.remove(place)


def signed(command: Path, folder: Path, scratch: Path) -> list[str]:
    """Sign `folder` with a new key; returns the command that verifies it."""
    key, public, signature = (scratch / name for name in ("key.pem", "public.pem", "signature.json"))
    for made in (
        ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key)],
        ["openssl", "ec", "-in", str(key), "-pubout", "-out", str(public)],
        [str(command), "sign", "key", str(folder), "--private_key", str(key), "--signature", str(signature)],
    ):
        timed(made, REPO)
    return [str(command), "verify", "key", str(folder), "--public_key", str(public), "--signature", str(signature)]


if __name__ == "__main__":
    main()
