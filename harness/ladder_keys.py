"""What each key of a ladder means, in one sentence."""

from __future__ import annotations

KEYS: dict[str, dict[str, str]] = {
    "Ladder": {
        "format": "Version of this format; 1.",
        "name": "What the ladder is called, in every report.",
        "candidate": "The model that is qualified.",
        "goal": "The highest tier that is asked for. Every tier up to it needs a table under `tiers`.",
        "seed": "Seed of everything random: bootstrap resamples, order of calls.",
        "gates": "Commands of your own repository (lint, types, tests) that must end well before L0.",
        "lock": "A file of pinned versions that the installed packages are compared with.",
        "record": "What is recorded of the machine beyond the stated facts: its host name, the name of the user. Neither without it.",
        "tiers": "Options and limits of each tier.",
        "targets": "What the candidate is qualified for, at least one.",
    },
    "QualityGate": {
        "name": "What the gate is called; each name once.",
        "command": "Program and arguments, a list; there is no shell.",
        "folder": "Where it runs, relative to the ladder.",
        "time_limit_s": "Seconds after which it is stopped and BLOCKED.",
    },
    "Lock": {
        "file": "Constraints or requirements of `name==version`, relative to the ladder.",
        "parity": (
            "`versions`: what is installed has the version that is pinned. `exact`: also, all that is pinned is installed and all that"
            " is installed is pinned. `recorded`: every difference is sealed, and decides nothing."
        ),
    },
    "CandidateReference": {
        "model": "A folder, relative to the ladder, that starts with `./`, `../` or `/`; anything else is a hub id (`org/name`).",
        "revision": "The commit of a hub id, 40 hex digits. A branch or tag is refused, since it can move. Not for a folder.",
        "adapter": "A LoRA adapter that is loaded onto the model, and merged into it for the export.",
    },
    "AdapterReference": {
        "model": "The adapter's folder, relative to the ladder, or its hub id: as the candidate's `model`.",
        "revision": "The commit of the adapter's hub id, 40 hex digits. Not for a folder.",
    },
    "Target": {
        "name": "What the target is called; by default `<provider>-<precision>`.",
        "precision": "Precision of the weights, asked for here and measured in L0.",
        "provider": "Execution provider of ONNX Runtime.",
        "threads": "Threads within one operator.",
        "session": "How the sessions of this target are made, in every tier.",
        "artifact": "An ONNX file, relative to the ladder, that is checked instead of built.",
        "deferred": "Why this target is not climbed now. Coverage is then partial and says so.",
        "limits": "Limits of this target, by tier. A metric named here replaces the tier's limit of that metric whole.",
    },
    "SessionOptions": {
        "spinning": "Whether idle threads wait for work in a loop: faster calls, and cores that nobody else can use.",
        "memory_arena": "Whether freed tensors are kept for the next call: faster, and more resident memory.",
        "graph_optimization": "What the runtime does to the graph as it loads it.",
        "inter_op_threads": "Threads across operators; more than 1 runs independent operators at once.",
        "cpus": "Processors that the step may use, by number; without it, those that the system allows.",
    },
    "BuildTier": {
        "exporter": "Which exporter of PyTorch makes the ONNX graph.",
        "opset": "Opset version of the default ONNX domain that is asked for.",
        "shape": "`dynamic`, or a fixed `[batch, sequence]`.",
        "integers": "Width of the graph's integer inputs.",
        "optimize": (
            "What is done to the graph before conversion: `none`; `basic` folds constants and drops what is redundant, in standard"
            " operators; `fused` also joins each Gelu into one operator of ONNX Runtime, and each MatMul with its Add."
        ),
        "external_data": "Whether weights lie beside the graph, in `model.onnx.data`; needed beyond 2 GB.",
        "repeat_export": "Whether to export twice and compare the bytes.",
        "fp16": "How the fp16 targets are converted.",
        "int8": "How the int8 targets are converted.",
        "time_limit_s": "Seconds after which the step is stopped and BLOCKED.",
        "memory_limit_bytes": "Resident bytes of the step's processes beyond which it is stopped and BLOCKED.",
        "limits": "Limits of L0 on every target, by metric.",
    },
    "HalfOptions": {
        "block": "Operator types that stay in fp32; without it, the converter's own list.",
        "keep_io": "Whether inputs and outputs keep the dtype they have in fp32.",
    },
    "IntegerOptions": {
        "method": "`dynamic` measures activations at each call; `static` once, on `calibration`.",
        "per_channel": "Whether each column of a weight has a scale of its own.",
        "calibration": "JSONL of `query` and `document`, relative to the ladder, for `static`.",
        "pairs": "Only the first so many calibration pairs.",
    },
    "PerfTier": {
        "candidates": "Pairs scored by one call.",
        "batch_size": "Largest micro-batch of a call. With a fixed shape it is the shape's batch.",
        "max_length": "Tokens after which a pair is cut; at most what the candidate takes.",
        "warm_up": "Calls after the first that are not counted as steady.",
        "calls": "Most steady calls; each is kept as a sample.",
        "min_calls": "Steady calls before the interval may end them; 72 are the fewest that give the 95th percentile an interval.",
        "interval": "Steady calls end when the 95% interval of their median is no wider than this share of it.",
        "seconds": "Steady calls end when they have taken so many seconds.",
        "growth_calls": "Calls of mixed shapes after them, over which growth of memory is measured; 0 for none.",
        "end_to_end_calls": "Whole requests from text to ranking; 0 for none.",
        "sweep": "Cells of candidates a call, tokens, micro-batch and threads that are timed beside the calls above.",
        "load": "Several callers on one session at once.",
        "paired": "How L1 is timed in turn with something else: the artifact of `--baseline`, or PyTorch.",
        "eager": "Whether to time PyTorch fp32 eager beside it, in turn, in a process of its own.",
        "time_limit_s": "Seconds after which the step is stopped and BLOCKED.",
        "memory_limit_bytes": "Resident bytes of the step's processes beyond which it is stopped and BLOCKED.",
        "limits": "Limits of L1 on every target, by metric.",
    },
    "PairedOptions": {
        "sessions": "Fresh pairs of sessions; each gives one ratio, and the interval is over those.",
        "calls": "Call pairs in each pair of sessions; who goes first is drawn by the seed.",
    },
    "SweepOptions": {
        "candidates": "Pairs scored by one call.",
        "max_length": "Tokens after which a pair is cut; `sweep_longest_tokens` tells whether a cell has a pair that long.",
        "batch_size": "Largest micro-batch of a call.",
        "threads": "Threads within one operator, a session for each; without it, the target's.",
        "calls": "Calls of each cell, in shuffled order; 59 are the fewest that give a 95th percentile.",
    },
    "LoadOptions": {
        "concurrency": "Callers at once, one level after another, each calling again when its call is done.",
        "calls": "Calls of each caller; 59 are the fewest that give each a 95th percentile, of which `load_slowest_p95_ms` is the largest.",
        "arrival_per_s": "Rate of calls that come by themselves, at random; their latency counts from when they were due.",
        "arrivals": "How many of those.",
        "deadlock_s": "Seconds in which all calls of a level must have come back.",
    },
    "ParityTier": {
        "pairs": "JSONL of `query` and `document`, relative to the ladder, scored beside the built-in pairs.",
        "batch_size": "Pairs in a batch of the artifact. With a fixed shape it is the shape's batch.",
        "max_length": "Tokens after which a pair is cut; at most what the candidate takes.",
        "noise": "Reference gap up to which a reversed order of two pairs is no fault, in logits.",
        "invariance_pairs": "Pairs that are scored again: alone, in other batches, padding and order, and from several threads.",
        "invariance_tokens": "Those pairs are drawn from the pairs of at most so many tokens, where there are enough.",
        "deadlock_s": "Seconds in which 80 calls from 8 threads must have come back.",
        "time_limit_s": "Seconds after which the step is stopped and BLOCKED.",
        "memory_limit_bytes": "Resident bytes of the step's processes beyond which it is stopped and BLOCKED.",
        "limits": "Limits of L2 on every target, by metric.",
    },
    "RerankTier": {
        "data": "JSONL (or `.parquet`) of groups, relative to the ladder; or a dataset on a hub, an mteb task, or TREC files.",
        "digest": "Digest that the groups must have after the bounds; anything else is refused.",
        "groups": "At most so many groups.",
        "candidates": (
            "At most so many candidates a group: positives first, but one place for a negative where there is one; then negatives."
        ),
        "pairs": "At most so many pairs in all: the selection ends before the first group that would go beyond it.",
        "select": (
            "Which groups: the `first`; a `seeded` sample; or one `stratified` by the number of positives. A sample reads the whole"
            " source and needs a bound of `groups` or `pairs`."
        ),
        "negatives": "Which negatives of a group that is cut: the `first`, or a `seeded` choice.",
        "unjudged": (
            "Groups without both a positive and a negative: `keep` scores them and leaves them out of the means, `drop` leaves them"
            " out before the bounds. Both are counted."
        ),
        "batch_size": "Pairs in a batch. With a fixed shape it is the shape's batch.",
        "max_length": "Tokens after which a pair is cut; at most what the candidate takes.",
        "resamples": "Bootstrap resamples of queries for an interval; from 4,096 queries on it is calculated.",
        "time_limit_s": "Seconds after which the step is stopped and BLOCKED.",
        "memory_limit_bytes": "Resident bytes of the step's processes beyond which it is stopped and BLOCKED.",
        "limits": "Limits of L3 on every target, by metric.",
    },
    "DataSource": {
        "dataset": "Repository id of a dataset on a hub.",
        "mteb": "Name of a task of mteb that reranks text, as `mteb.get_task` takes it.",
        "trec": "The files of a TREC collection.",
        "file": "A `.parquet` file, relative to the ladder, whose columns are named below.",
        "revision": "Commit of the dataset, 40 hex digits; for a task, the one that mteb itself loads.",
        "split": "The split to read.",
        "config": "The configuration of a dataset, or the subset of a task, where there are several.",
        "query": "The column with the query, text.",
        "positive": "The column with the relevant documents, a list of text.",
        "negative": "The column with the other documents, a list of text.",
        "documents": "The column with all documents, a list of text, where relevance is graded; instead of `positive` and `negative`.",
        "gains": "The column with the gain of each of `documents`, a list of numbers of at least 0.",
    },
    "TrecFiles": {
        "queries": "`id`, a tab, the text; or `.jsonl` of `id` (or `_id`) and `text`.",
        "docs": "As `queries`, with a `title` if wanted.",
        "qrels": "`query 0 document relevance`. A relevance below 0 is gain 0, as is no judgement.",
        "run": "`query Q0 document rank score tag`: the candidates of each query, the highest score first.",
    },
    "Limit": {
        "at_most": "The measurement must not be above it.",
        "at_least": "The measurement must not be below it.",
        "exactly": "The measurement must equal it. Excludes the other two.",
    },
}
"""One sentence on every key, by struct: the source of the JSON Schema's descriptions and of docs/reference/ladder.md."""
