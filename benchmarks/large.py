"""A reranker beyond 2 GiB, climbed in fp32, fp16 and int8 with its weights beside the graph; into docs/large-models.md.

``python -m benchmarks.large [FOLDER]`` takes some ten minutes on two cores that do nothing else, and 25 GB of disk: in FOLDER, where
what is there already is not made again, or in a temporary one. The checkpoint is an XLM-RoBERTa as wide as the large one, with weights
drawn from a seed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from benchmarks.architectures import LIBRARIES
from harness.answer import check
from harness.derive_raw import raw_record
from harness.raw import BuildRaw
from harness.records import Value, step_folder
from harness.root import RootRecords
from tests.support.architectures import xlm_unigram
from tests.support.models import TEXTS

PAGE = Path(__file__).parent.parent / "docs/large-models.md"
POSITIONS = 64
LADDER = """\
format: 1
name: large
candidate: {model: ./model}
goal: L2
tiers:
  L0:
    external_data: true
    time_limit_s: 3600
    limits: {external_files: {exactly: 1}}
  L1:
    candidates: 2
    warm_up: 1
    calls: 72
    growth_calls: 0
    time_limit_s: 3600
    limits: {p50_ms: {at_most: 10000}}
  L2:
    invariance_pairs: 8
    time_limit_s: 3600
    limits: {max_abs_gap: {at_most: 1e-3}}
targets:
  - {precision: fp32}
  - {precision: fp16, limits: {L2: {max_abs_gap: {at_most: 0.05}}}}
  - {precision: int8, limits: {L2: {max_abs_gap: {at_most: 1.0}}}}
"""
STATIC = """\
format: 1
name: large-static
candidate: {model: ./model}
goal: L0
tiers:
  L0:
    external_data: true
    int8: {method: static, calibration: pairs.jsonl, pairs: 4}
    time_limit_s: 3600
    limits: {external_files: {exactly: 1}}
targets:
  - {name: cpu-int8-static, precision: int8}
"""
HEAD = """\
# Models beyond 2 GiB

An ONNX file is one protobuf message, and that ends at 2 GiB. A model with more weights keeps them beside the graph, in
`model.onnx.data`: `external_data: true` in L0 asks for that. Without it, L0 of such a model is BLOCKED, with the option that helps.
No step puts those weights into one message with the graph: not export, optimisation, conversion to fp16 or int8, the checks, sealing
or verifying. That is tested on small models, and was tried on one that is large enough, by `python -m benchmarks.large`, with {versions}:

```yaml
{ladder}```

The checkpoint is an XLM-RoBERTa of 4 layers, 1,024 wide, with a vocabulary of 500,000, for texts of {positions} tokens:
{parameters:,} parameters, {bytes:,} bytes in fp32, drawn from a seed. So the gaps say what rounding does to such weights, not to
learned ones. *cpu-int8-static* is of a ladder of its own that ends at L0. Every root verifies.

| target | verdict | converted by | bytes | of fp32 | largest gap | over spread |
| --- | --- | --- | --- | --- | --- | --- |
"""
TAIL = """
All this ran within the 16 GiB of `memory_limit_bytes` that a step has unless the ladder says otherwise. Conversion to fp16 needs most,
here about six times the fp32 weights, since one tensor holds most of them: raise the limit for a larger model, or L0 is BLOCKED by it.
L0 may also need more than the 900 s of `time_limit_s`. Optimisation and conversion write copies where `TMPDIR` says: keep four
times the fp32 weights free there, and the sum of all targets where the root is.
"""


def make(folder: Path) -> None:
    """Write checkpoint, pairs and ladders into ``folder``."""
    import torch
    from transformers import XLMRobertaConfig, XLMRobertaForSequenceClassification

    model = folder / "model"
    model.mkdir()
    xlm_unigram(model, POSITIONS)
    torch.manual_seed(0)
    made = XLMRobertaForSequenceClassification(
        XLMRobertaConfig(
            vocab_size=500_000,
            hidden_size=1024,
            num_hidden_layers=4,
            num_attention_heads=16,
            intermediate_size=4096,
            max_position_embeddings=POSITIONS + 2,
            type_vocab_size=1,
            num_labels=1,
            pad_token_id=1,
        )
    )
    made.save_pretrained(model)
    pairs = [{"query": query, "document": document} for query in TEXTS[:4] for document in TEXTS[:4]]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")
    for name, text in (("large", LADDER), ("static", STATIC)):
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def climbed(folder: Path, name: str) -> Path:
    """The root of the ladder, made if it is not there."""
    root = folder / "roots" / name
    if not root.exists():
        command = [sys.executable, "-m", "harness.cli", "run", str(folder / f"{name}.yaml"), "--out", str(root)]
        subprocess.run(command, env={**os.environ, "TMPDIR": str(folder)}, check=False)  # the page states the verdicts
    return root


def rows(root: Path) -> Iterator[str]:
    """The table's lines of one root, verified."""
    found = check(root).records
    for target in found.plan.targets:
        outcomes = {
            tier: found.steps[target.name, tier].outcome for tier in ("L0", "L2") if (target.name, tier) in found.steps
        }
        values = _values(found, target.name)
        raw = raw_record(
            lambda path: (root / path).read_bytes(), f"{step_folder('L0', target.name)}/build.json", BuildRaw
        )
        converter = raw.conversion.name.rpartition(".")[2] if raw.conversion is not None else "as exported"
        verdict = ", ".join(f"{tier} {outcome.verdict}" for tier, outcome in outcomes.items())
        cells = [target.name, verdict, converter, f"{values['payload_bytes']:,}", _short(values["payload_over_export"])]
        cells += [_short(values.get("max_abs_gap")), _short(values.get("gap_over_spread"))]
        yield f"| {' | '.join(cells)} |"


def _values(found: RootRecords, target: str) -> dict[str, Value]:
    """All that was measured of the target in L0 and L2, by metric."""
    steps = [step for (name, tier), step in found.steps.items() if name == target and tier != "L1"]
    measured = [step.measurements for step in steps if step.measurements is not None]
    return {item.metric: item.value for one in measured for item in one.measurements}


def _short(value: Value) -> str:
    return f"{value:.2g}" if isinstance(value, int | float) else "not asked for"


def main(folder: Path) -> None:
    """Run what is not there yet in ``folder`` and write the page."""
    if not (folder / "model").exists():
        make(folder)
    roots = [climbed(folder, name) for name in ("large", "static")]
    lines = [line for root in roots for line in rows(root)]
    parameters = check(roots[0]).records.plan.candidate.parameters
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in LIBRARIES)
    head = HEAD.format(
        versions=versions, ladder=LADDER, parameters=parameters, bytes=4 * parameters, positions=POSITIONS
    )
    PAGE.write_text(head + "\n".join(lines) + "\n" + TAIL, encoding="utf-8")
    print(PAGE.name)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place))
