"""The metrics of L0, for ``catalogue``: what the artifact is. Pure; no import of numpy."""

from __future__ import annotations

from harness.metrics.metric import Metric

METRICS: dict[str, Metric] = {
    "opset": Metric("L0", "version", int, "opset version of the default ONNX domain"),
    "ir_version": Metric("L0", "version", int, "ONNX IR version of the file"),
    "inputs": Metric("L0", "signature", str, "graph inputs as name:dtype[dims], sorted by name"),
    "outputs": Metric("L0", "signature", str, "graph outputs as name:dtype[dims], in order"),
    "logits_width": Metric("L0", "columns", int, "last dimension of the output named logits; 0 without such an output"),
    "unfed_inputs": Metric("L0", "inputs", int, "graph inputs that the tokenizer does not give"),
    "unused_tokenizer_inputs": Metric(
        "L0", "inputs", int, "tensors the model takes of the tokenizer that the graph does not"
    ),
    "nodes": Metric("L0", "nodes", int, "operators in the top-level graph"),
    "operator_types": Metric("L0", "types", int, "distinct operator types in the top-level graph"),
    "operator_count": Metric("L0", "nodes", int, "top-level nodes of one operator type", "operator type"),
    "initializer_count": Metric("L0", "tensors", int, "initializers of one dtype", "ONNX dtype"),
    "initializer_bytes": Metric("L0", "bytes", int, "bytes of the initializers of one dtype", "ONNX dtype"),
    "external_files": Metric("L0", "files", int, "files beside the graph that hold weights"),
    "payload_bytes": Metric("L0", "bytes", int, "bytes of all files of the artifact"),
    "payload_ratio": Metric("L0", "ratio", float, "payload bytes over 4 bytes a checkpoint parameter"),
    "payload_over_export": Metric(
        "L0", "ratio", float, "payload bytes over those of the fp32 export; null for a prebuilt artifact"
    ),
    "realised_precision": Metric(
        "L0", "precision", str, "fp32, fp16, int8 or mixed, from initializer bytes and operators"
    ),
    "half_range_constants": Metric(
        "L0", "values", int, "constants beyond the range of half precision before conversion"
    ),
    "clipped_constants": Metric("L0", "values", int, "constants that the conversion to half precision changed"),
    "kept_nodes": Metric("L0", "nodes", int, "nodes that the conversion to half precision left in fp32"),
    "searched_nodes": Metric(
        "L0", "nodes", int, "of the kept nodes, those without which the fp16 graph did not load or was not finite"
    ),
    "checker_faults": Metric("L0", "faults", int, "faults found by the full ONNX check with shape inference"),
    "head_gap_ratio": Metric(
        "L0",
        "ratio",
        float,
        "largest gap between the graph's head weights and the checkpoint's, over the largest weight",
    ),
    "adapter_head_equal": Metric(
        "L0", "boolean", bool, "whether the merged classifier is bit for bit the trained one; only with an adapter"
    ),
    "missing_keys": Metric("L0", "tensors", int, "tensors of the model class that the checkpoint does not hold"),
    "unexpected_keys": Metric("L0", "tensors", int, "tensors of the checkpoint that the model class does not take"),
    "raw_logits": Metric(
        "L0", "boolean", bool, "whether no activation stands between the last matrix product and the output"
    ),
    "probe_faults": Metric(
        "L0", "probes", int, "batch and length probes that crashed, or gave a wrong shape or a non-finite logit"
    ),
    "provider_nodes": Metric("L0", "nodes", int, "nodes that one provider of the runtime took", "provider"),
    "own_provider_nodes": Metric("L0", "nodes", int, "nodes that the target's provider took"),
    "optimised_nodes": Metric("L0", "nodes", int, "nodes of the graph that the runtime executes"),
    "optimised_casts": Metric("L0", "nodes", int, "Cast nodes of the graph that the runtime executes"),
    "export_repeat_equal": Metric(
        "L0", "boolean", bool, "whether a second export gave the same bytes; null where it was not asked for"
    ),
    "session_load_ms": Metric("L0", "ms", float, "time to load the artifact on the named provider"),
    "build_seconds": Metric("L0", "s", float, "wall time to export and convert; zero for a prebuilt artifact"),
}
