"""Optimisation by ONNX Runtime: of an exported graph before conversion, and of an artifact when it is loaded."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from harness.metrics.onnx_graph import census
from harness.raw import Optimisation
from harness.runtimes import RUNTIMES
from harness.runtimes.onnxruntime import Provider
from harness.stages import onnx_file

COMPILING = ("TensorrtExecutionProvider", "QNNExecutionProvider", "MIGraphXExecutionProvider")
"""Providers that compile what they take into a form of their own, after which the graph cannot be written."""

LEFT_OUT = {
    # Joins MatMul and Add into a Gemm between two Reshapes: more nodes as long as the Reshapes are not joined too.
    "basic": ("MatMulAddFusion",),
    # Fusions of the extended level into operators that only ONNX Runtime has, all but Gelu.
    "fused": (
        "AttentionFusion",
        "BiasDropoutFusion",
        "BiasGeluFusion",
        "BiasSoftmaxFusion",
        "DynamicQuantizeMatMulFusion",
        "EmbedLayerNormFusion",
        "FastGeluFusion",
        "GemmActivationFusion",
        "MatMulActivationFusion",
        "MatMulScaleFusion",
        "MatmulTransposeFusion",
        "QuickGeluFusion",
        "SkipLayerNormFusion",
    ),
}
"""What is left out of each level, by the runtime's names."""

MOST_PASSES = 6
"""The runtime is run again on what it wrote until it finds nothing more; two or three passes are what it takes."""


def optimise(source: Path, level: str, folder: Path, *, external: bool) -> tuple[Path, Optimisation]:
    """Write ``source`` as ONNX Runtime optimises it on the CPU at ``level`` into ``folder``; returns the graph and what was done.

    ``basic`` folds constants and drops what is redundant. ``fused`` joins each Gelu (into an operator of ``com.microsoft``, or of the
    default domain from opset 20) and each MatMul with its Add besides. Initializers are sorted by name, so that two runs give the
    same bytes.
    """
    import onnxruntime as ort

    levels = ort.GraphOptimizationLevel
    at = levels.ORT_ENABLE_EXTENDED if level == "fused" else levels.ORT_ENABLE_BASIC
    before, latest = onnx_file.outline(source), source
    sizes = [len(before.graph.node)]
    for number in range(MOST_PASSES):
        written = folder / f"pass-{number}" / onnx_file.GRAPH
        written.parent.mkdir(parents=True)
        _write_optimised(latest, written, "CPUExecutionProvider", at, LEFT_OUT[level])
        found = onnx_file.load(written)
        if len(found.graph.node) == sizes[-1] and number:
            break  # nothing more was found; this pass would only name and share constants anew
        if latest != source:
            shutil.rmtree(latest.parent)
        model, latest = found, written
        sizes.append(len(model.graph.node))
    model.ir_version = before.ir_version
    model.producer_name, model.producer_version = before.producer_name, before.producer_version
    onnx_file.strip(model)
    model.graph.initializer.sort(key=lambda item: item.name)
    path = onnx_file.save(model, folder / "optimised", external=external)
    done = Optimisation(
        level=level,
        by=f"onnxruntime {ort.__version__}",
        left_out=LEFT_OUT[level],
        nodes_before=sizes[0],
        nodes_after=sizes[-1],
    )
    return path, done


def executed(artifact: Path, provider: str, scratch: Path) -> dict[str, int] | None:
    """Operators, by type, of the graph that the runtime executes: after all fusions, with the Casts it put in.

    None for a provider that compiles the graph or is not one of ONNX Runtime. ``artifact`` is one that loads.
    """
    import onnxruntime as ort

    runtime = RUNTIMES[provider]
    if not isinstance(runtime, Provider) or runtime.name in COMPILING:
        return None
    to = scratch / "executed" / onnx_file.GRAPH
    to.parent.mkdir()
    _write_optimised(artifact, to, runtime.name, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
    return census(to.read_bytes()).operators


def _write_optimised(source: Path, to: Path, provider: str, level: Any, left_out: tuple[str, ...] = ()) -> None:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(to)
    options.log_severity_level = 4  # it warns that the written graph fits this machine, which is what it is for
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", onnx_file.WEIGHTS)
    ort.InferenceSession(str(source), options, providers=[provider], disabled_optimizers=list(left_out))
