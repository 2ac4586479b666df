"""L2 steps judged as a plan would judge them, and raw samples changed before the verifier derives from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness import candidate, derive, derive_tokens, judge
from harness.metrics.catalogue import fixed_limits
from harness.records import Finding, Limit, Measurement, Precision, to_json
from harness.runtimes import tokens
from harness.stages import second_path
from tests.support import graphs
from tests.support.steps import PAIRS, Bench, Ran, bench

LIMITS = {
    "max_abs_gap": Limit(at_most=1e-3),
    "gap_over_spread": Limit(at_most=0.1),
    "kendall_tau_b": Limit(at_least=0.99),
    "pearson": Limit(at_least=0.99),
    "order_kept": Limit(exactly=True),
}
STEP = "steps/L2-parity.cpu-fp32"


def judged(measured: dict[str, Measurement], precision: Precision = "fp32") -> dict[str, Finding]:
    """Every finding by metric."""
    found = judge.judge(LIMITS | fixed_limits("L2", precision), measured.values())
    return {finding.metric: finding for finding in found}


def failed(measured: dict[str, Measurement], precision: Precision = "fp32") -> dict[str, str]:
    """The text of every finding that is FAIL, by metric."""
    return {name: found.text for name, found in judged(measured, precision).items() if found.verdict == "FAIL"}


def derived(climbed: Bench, changed: dict[str, bytes], target: str = "cpu-fp32") -> dict[str, Measurement]:
    """What the verifier derives for L2 when some files of the root are other bytes."""

    def read(path: str) -> bytes:
        return changed[path] if path in changed else (climbed.root / path).read_bytes()

    found = derive.measure(climbed.request("L2", target), read).measurements
    return {item.metric: item for item in found}


def floats(climbed: Bench, path: str) -> NDArray[np.float32]:
    """A flat float32 file of the root, to be changed."""
    return np.frombuffer((climbed.root / path).read_bytes(), "<f4").copy()


def record(climbed: Bench, path: str, kind: type[Any], **changes: object) -> dict[str, bytes]:
    """A record of the root with some fields changed, as ``derived`` takes it."""
    value = msgspec.json.decode((climbed.root / path).read_bytes(), type=kind)
    return {path: to_json(msgspec.structs.replace(value, **changes))}


def with_graph(climbed: Bench, root: Path, change: Callable[[Any], None]) -> Ran:
    """L2 of a target whose artifact is the fp32 graph as ``change`` leaves it; the reference is the one that is there."""
    there = climbed.copy(root)
    good = there.root / "artifacts/cpu-fp32/model.onnx"
    graphs.edited(good, there.root / "artifacts/other-fp32/model.onnx", change)
    return there.run(there.request("L2", "other-fp32"))


def changed_model(climbed: Bench, folder: Path, files: dict[str, Callable[[Any], None]]) -> Path:
    """The candidate's folder with some of its JSON files changed."""
    model = folder / "model"
    shutil.copytree(climbed.model, model)
    for name, change in files.items():
        value = json.loads((model / name).read_bytes())
        change(value)
        (model / name).write_text(json.dumps(value), encoding="utf-8")
    return model


def retokenised(climbed: Bench, folder: Path, files: dict[str, Callable[[Any], None]]) -> dict[str, Measurement]:
    """What is measured of the tensors that the changed candidate's tokenizer makes of the same pairs."""
    model = changed_model(climbed, folder, files)
    pinned = candidate.resolve("./model", None, folder).candidate
    encoded = tokens.encode(model, pinned, PAIRS, 48)
    made = {
        f"{STEP}/tokens.json": to_json(second_path.says(model, encoded, PAIRS, 48)),
        f"{STEP}/tokens.i32": second_path.columns(model, encoded, PAIRS),
    }
    request = msgspec.structs.replace(climbed.request("L2"), candidate=pinned)
    found = derive_tokens.measurements(request, *derive_tokens.read_tensors(request, made.__getitem__))
    return {item.metric: item for item in found}


def with_tokenizer(
    climbed: Bench,
    folder: Path,
    files: dict[str, Callable[[Any], None]],
    texts: tuple[tuple[str, str], ...] | None = None,
) -> Ran:
    """L2 of the fp32 graph for the candidate with some of its JSON files changed, reference and all."""
    model = changed_model(climbed, folder, files)
    there = bench(folder / "root", model, texts) if texts is not None else bench(folder / "root", model)
    shutil.copytree(climbed.root / "artifacts/cpu-fp32", there.root / "artifacts/cpu-fp32")
    return there.run(there.request("L2"))
