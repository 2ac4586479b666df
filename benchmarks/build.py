"""How long the build of the published L4 shape takes beside a bare ``torch.onnx.export`` of it, whole processes that take turns.

One line: the median wall time of L0 on fp32 (load, export, optimisation, full check, probes at [1,512], head, placement) over that of
a process that only loads the checkpoint and exports it. ``--peer COMMAND`` also times another builder on the same folder; in COMMAND
``MODEL`` and ``OUT`` stand for the checkpoint's folder and a folder to write to.

    python -m benchmarks.build [--rounds N] [--peer "winml build -m MODEL -o OUT ..."]
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
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


def bare(model: Path, place: Path) -> float:
    """Wall seconds of a process that loads and exports, and nothing else."""
    return timed([sys.executable, "-c", BARE, str(model), str(place / "bare.onnx")])


def ours(there: Bench) -> float:
    """Wall seconds of the worker of L0, as the parent sees them."""
    ran = there.run(there.request("L0", options=OPTIONS))
    if ran.reason:
        raise SystemExit(ran.reason)
    return ran.exit.seconds


def timed(command: list[str]) -> float:
    """Wall seconds of a command that must end well."""
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begin


def main() -> None:
    """Run the rounds and print the line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", help="another builder's command, with MODEL and OUT in it")
    asked = parser.parse_args()
    seconds: dict[str, list[float]] = {"bare": [], "ours": [], "peer": []}
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch) / "model"
        model.mkdir()
        make_l4(model)
        for number in range(asked.rounds):
            place = Path(scratch) / str(number)
            place.mkdir()
            seconds["bare"].append(bare(model, place))
            seconds["ours"].append(ours(bench(place / "root", model)))
            if asked.peer:
                command = asked.peer.replace("MODEL", str(model)).replace("OUT", str(place / "peer"))
                seconds["peer"].append(timed(shlex.split(command)))
    middle = {name: statistics.median(found) for name, found in seconds.items() if found}
    shown = ", ".join(f"{name} {value:.1f} s" for name, value in middle.items())
    print(
        f"L0 of the L4 shape over a bare export: {middle['ours'] / middle['bare']:.2f} ({shown}; {asked.rounds} rounds)"
    )
    if asked.peer:
        print(f"L0 of the L4 shape over the peer: {middle['ours'] / middle['peer']:.2f}")


if __name__ == "__main__":
    main()
