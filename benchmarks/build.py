"""How long the build of the published L4 shape takes beside a bare ``torch.onnx.export`` of it, whole processes that take turns.

The median wall time of L0 on fp32 (load, export, optimisation, full check, probes at [1,512], head, placement) over that of
a process that only loads the checkpoint and exports it, and the same of processor time, which a busy machine falsifies less.
``--peer COMMAND`` also times another builder on the same folder; in COMMAND
``MODEL`` and ``OUT`` stand for the checkpoint's folder and a folder to write to.

    python -m benchmarks.build [--rounds N] [--peer "winml build -m MODEL -o OUT ..."]
"""

from __future__ import annotations

import argparse
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from harness.records import BuildOptions, TierOptions
from tests.support.models import make_l4
from tests.support.steps import Bench, bench

BARE = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
from transformers import AutoModelForSequenceClassification
torch.set_num_threads(1)
module = AutoModelForSequenceClassification.from_pretrained(sys.argv[1], attn_implementation="eager").eval()
module.config.return_dict = False
ids = torch.ones(1, 512, dtype=torch.int32)
given = {"input_ids": ids, "attention_mask": ids.clone(), "token_type_ids": torch.zeros_like(ids)}
names = list(given)
torch.onnx.export(
    module, (), sys.argv[2], kwargs=given, input_names=names, output_names=["logits"], opset_version=17, dynamo=False
)
"""
OPTIONS = TierOptions(L0=BuildOptions(shape=(1, 512), integers="int32", optimize="fused"))


def bare(model: Path, place: Path) -> None:
    """A process that loads and exports, and nothing else."""
    run([sys.executable, "-c", BARE, str(model), str(place / "bare.onnx")])


def ours(there: Bench) -> None:
    """The worker of L0."""
    ran = there.run(there.request("L0", options=OPTIONS))
    if ran.reason:
        raise SystemExit(ran.reason)


def run(command: list[str]) -> None:
    """Run a command that must end well."""
    subprocess.run(command, check=True, capture_output=True)


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """Wall seconds, and processor seconds of the children that ended in them."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    work()
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Run the rounds and print the line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", help="another builder's command, with MODEL and OUT in it")
    asked = parser.parse_args()
    seconds: dict[str, list[tuple[float, float]]] = {"bare": [], "ours": [], "peer": []}
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch) / "model"
        model.mkdir()
        make_l4(model)
        for number in range(asked.rounds):
            place = Path(scratch) / str(number)
            place.mkdir()
            there = bench(place / "root", model)
            seconds["bare"].append(timed(partial(bare, model, place)))
            seconds["ours"].append(timed(partial(ours, there)))
            if asked.peer:
                command = asked.peer.replace("MODEL", str(model)).replace("OUT", str(place / "peer"))
                seconds["peer"].append(timed(partial(run, shlex.split(command))))
    for kind, name in enumerate(("wall", "processor")):
        middle = {who: statistics.median(item[kind] for item in found) for who, found in seconds.items() if found}
        ratios = ", ".join(f"{middle['ours'] / value:.2f} of {who}" for who, value in middle.items() if who != "ours")
        shown = ", ".join(f"{who} {value:.1f} s" for who, value in middle.items())
        print(f"L0 of the L4 shape, {name} time: {ratios} ({shown}; {asked.rounds} rounds)")


if __name__ == "__main__":
    main()
