"""Every architecture in every precision with both exporters: verdict of L0 and the largest gap to PyTorch, into docs/architectures.md.

``python -m benchmarks.architectures`` takes some minutes on two cores. Checkpoints are tiny, made from a seed, with real tokenizers
(tests/support/architectures.py); limits are those that every ladder carries.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from pathlib import Path

from harness import judge
from harness.metrics.catalogue import fixed_limits
from harness.records import Precision
from tests.support import architectures
from tests.support.steps import Bench, bench

PAGE = Path(__file__).parent.parent / "docs/architectures.md"
EXPORTERS = ("torchscript", "torch_export")
PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "int8")
LIBRARIES = ("torch", "transformers", "onnx", "onnxruntime")
HEAD = """\
# Architectures

What was exported, converted and compared with PyTorch, by `python -m benchmarks.architectures`, with {versions}.
Each row is a checkpoint of two layers (ModernBERT: four, GTE: three), 32 wide, made from a seed, with a real fast tokenizer of its family:
WordPiece, byte-level BPE or Unigram. `qualify inspect` says of a model whether it is one of these.

*Verdict* is L0 under the limits that every ladder carries: the head's weights, named inputs and outputs, realised precision, the full
ONNX check, and probes at batches of 1, 2, 3 and 7 and lengths of 1, 8, 13 and 48 with rows that are almost all padding. *Gap* is the
largest difference of a logit to PyTorch in fp32, each pair alone there and in padded batches of 4 here; *over spread* divides it by
the standard deviation of PyTorch's logits. int8 of weights drawn from a seed is coarser than of learned ones: those figures show that
the way works, not what it costs. *Executed* are the nodes that ONNX Runtime's CPU provider runs in the end.

The exporter based on `torch.export` is asked for opset 20, the other for 17. *gte* is a ModernBERT whose classifier takes the mean over
the tokens, as the GTE rerankers of that family do; those with code of their own (`auto_map`) are refused, and so are decoders (Qwen3
and others), by name.

| architecture | tokenizer | exporter | precision | verdict | gap | over spread | nodes | executed | Casts executed |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def rows(name: str) -> Iterator[str]:
    """The table's lines of one architecture."""
    with tempfile.TemporaryDirectory() as place:
        model = Path(place) / "model"
        model.mkdir()
        architectures.make(name, model)
        kind = architectures.ARCHITECTURES[name].tokenizer.__name__.replace("_", " ")
        for exporter in EXPORTERS:
            there = bench(Path(place) / exporter, model)
            for precision in PRECISIONS:
                yield f"| {name} | {kind} | {exporter} | {precision} | {_outcome(there, model, exporter, precision)} |"


def _lines(name: str) -> list[str]:
    return list(rows(name))


def _outcome(there: Bench, model: Path, exporter: str, precision: Precision) -> str:
    ran = architectures.exported(there, exporter, precision)
    if ran.reason:
        return f"BLOCKED: {ran.reason} | | | | | "
    measured = ran.measured()
    verdict = judge.step_verdict(judge.judge(fixed_limits("L0", precision), measured.values()))
    gap, spread = architectures.largest_gap(ran, model)
    counts = " | ".join(str(measured[metric].value) for metric in ("nodes", "optimised_nodes", "optimised_casts"))
    return f"{verdict} | {gap:.2g} | {gap / spread:.2g} | {counts}"


def main() -> None:
    """Run everything and write the page."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in LIBRARIES)
    lines = []
    with ProcessPoolExecutor(max_workers=2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for made in pool.map(_lines, architectures.ARCHITECTURES):
            print(*made, sep="\n", file=sys.stderr)
            lines += made
    PAGE.write_text(HEAD.format(versions=versions) + "\n".join(lines) + "\n", encoding="utf-8")
    print(PAGE.name)


if __name__ == "__main__":
    main()
