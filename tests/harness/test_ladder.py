"""A ladder is read exactly, and refused with one line that says where, what was expected, what was there and what to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import ladder
from harness.errors import LadderError
from harness.metrics.catalogue import METRICS
from harness.records import Limit

GOOD = b"""\
format: 1
name: quickstart
candidate: {model: ./model}
goal: L3
tiers:
  L0: {opset: 17, limits: {payload_bytes: {at_most: 8e6}}}
  L1: {candidates: 32, limits: {p95_ms: {at_most: 1000}}}
  L2: {pairs: pairs.jsonl, limits: {max_abs_gap: {at_most: 1e-4}, order_kept: {exactly: true}}}
  L3: {data: groups.jsonl, limits: {ndcg_at_10_drop: {at_most: 0.005}}}
targets:
  - {precision: fp32, threads: 4}
  - {name: half, precision: fp16, limits: {L2: {max_abs_gap: {at_most: 1e-2}}}}
  - {precision: fp32, name: mine, artifact: mine.onnx}
  - {precision: int8, provider: cuda, deferred: no GPU in this job}
"""
COMMIT = b"777b2f369bc1c2f850df8bd367ed1654bda4497b"
NAME = "at most 64 of a-z, 0-9 and -"
PRECISION = "one of fp16, fp32, int8"
SHAPE = "[an integer of at least 1, an integer of at least 1]"
THREADS = "an integer of at least 1 and at most 1024"
TARGET_KEYS = "precision, provider, threads, name, session, artifact, deferred, limits"


def changed(old: bytes, new: bytes) -> bytes:
    assert GOOD.count(old) >= 1
    return GOOD.replace(old, new, 1)


def refusal(data: bytes) -> str:
    with pytest.raises(LadderError) as caught:
        ladder.parse(data)
    return str(caught.value)


def test_a_good_ladder_gives_its_values_and_the_defaults() -> None:
    found = ladder.parse(GOOD)
    assert (found.name, found.goal, found.seed, found.candidate.model) == ("quickstart", "L3", 0, "./model")
    assert found.tiers.L0.exporter == "torchscript"
    assert found.tiers.L0.limits == {"payload_bytes": Limit(at_most=8e6)}
    assert [(t.name, t.precision, t.provider, t.threads) for t in found.targets] == [
        ("cpu-fp32", "fp32", "cpu", 4),
        ("half", "fp16", "cpu", 2),
        ("mine", "fp32", "cpu", 2),
        ("cuda-int8", "int8", "cuda", 2),
    ]
    assert found.targets[2].artifact == "mine.onnx"
    assert found.targets[3].deferred == "no GPU in this job"


def test_a_fixed_shape_and_a_hub_dataset_are_read() -> None:
    data = b"{dataset: mteb/scidocs-reranking, revision: " + COMMIT + b"}"
    found = ladder.parse(changed(b"groups.jsonl", data).replace(b"opset: 17", b"shape: [1, 512]"))
    assert found.tiers.L0.shape == (1, 512)
    assert found.tiers.L3 is not None
    assert not isinstance(found.tiers.L3.data, str)
    assert found.tiers.L3.data.revision == COMMIT.decode()


def test_a_commit_of_digits_alone_needs_no_quotes() -> None:
    found = ladder.parse(changed(b"{model: ./model}", b"{model: org/x, revision: " + b"1234567890" * 4 + b"}"))
    assert found.candidate.revision == "1234567890" * 4


def test_a_targets_limit_replaces_the_tiers_limit_of_that_metric_and_no_other() -> None:
    found = ladder.parse(GOOD)
    assert ladder.limits_of(found, found.targets[1], "L2") == {
        "max_abs_gap": Limit(at_most=1e-2),
        "order_kept": Limit(exactly=True),
    }


def test_defaults_are_the_values_that_the_ladder_did_not_give() -> None:
    assert ladder.defaults(GOOD) == (
        "/seed",
        "/tiers/L0/exporter",
        "/tiers/L0/shape",
        "/tiers/L0/integers",
        "/tiers/L0/optimize",
        "/tiers/L0/external_data",
        "/tiers/L0/repeat_export",
        "/tiers/L0/fp16",
        "/tiers/L0/int8",
        "/tiers/L0/time_limit_s",
        "/tiers/L0/memory_limit_bytes",
        "/tiers/L1/batch_size",
        "/tiers/L1/max_length",
        "/tiers/L1/warm_up",
        "/tiers/L1/calls",
        "/tiers/L1/min_calls",
        "/tiers/L1/interval",
        "/tiers/L1/seconds",
        "/tiers/L1/growth_calls",
        "/tiers/L1/end_to_end_calls",
        "/tiers/L1/paired",
        "/tiers/L1/eager",
        "/tiers/L1/time_limit_s",
        "/tiers/L1/memory_limit_bytes",
        "/tiers/L2/batch_size",
        "/tiers/L2/max_length",
        "/tiers/L2/noise",
        "/tiers/L2/invariance_pairs",
        "/tiers/L2/invariance_tokens",
        "/tiers/L2/deadlock_s",
        "/tiers/L2/time_limit_s",
        "/tiers/L2/memory_limit_bytes",
        "/tiers/L3/select",
        "/tiers/L3/negatives",
        "/tiers/L3/unjudged",
        "/tiers/L3/batch_size",
        "/tiers/L3/max_length",
        "/tiers/L3/resamples",
        "/tiers/L3/time_limit_s",
        "/tiers/L3/memory_limit_bytes",
        "/targets/0/name",
        "/targets/0/provider",
        "/targets/0/session",
        "/targets/1/provider",
        "/targets/1/threads",
        "/targets/1/session",
        "/targets/2/provider",
        "/targets/2/threads",
        "/targets/2/session",
        "/targets/3/name",
        "/targets/3/threads",
        "/targets/3/session",
    )


def test_defaults_of_a_hub_dataset_are_listed() -> None:
    data = b"{dataset: a/b, config: en, query: question, revision: " + COMMIT + b"}"
    found = [name for name in ladder.defaults(changed(b"groups.jsonl", data)) if "/data/" in name]
    assert found == ["/tiers/L3/data/split", "/tiers/L3/data/positive", "/tiers/L3/data/negative"]


def test_all_targets_may_be_deferred() -> None:
    data = GOOD[: GOOD.index(b"  - {precision")] + b"  - {precision: fp32, deferred: later}\n"
    assert ladder.parse(data).targets[0].deferred == "later"


def test_a_tier_may_leave_its_limits_to_the_targets() -> None:
    data = GOOD[: GOOD.index(b"  - {precision")].replace(b", limits: {payload_bytes: {at_most: 8e6}}", b"")
    data += b"  - {precision: fp32, limits: {L0: {payload_ratio: {at_most: 1.1}}}}\n"
    found = ladder.parse(data)
    assert ladder.limits_of(found, found.targets[0], "L0") == {"payload_ratio": Limit(at_most=1.1)}


STRUCTURE = {
    "empty": (b"", ": expected a table with format, name, candidate, tiers, targets, got nothing"),
    "list": (b"[1]", ": expected a table with format, name, candidate, tiers, targets, got a list"),
    "version": (changed(b"format: 1", b"format: 2"), ": format: expected 1, got 2; this version of qualify reads no other"),
    "no-version": (changed(b"format: 1\n", b""), ": format: expected 1, got nothing; add the key"),
    "version-text": (changed(b"format: 1", b"format: one"), ": format: expected 1, got 'one'"),
    "version-bool": (changed(b"format: 1", b"format: true"), ": format: expected 1, got true"),
    "version-float": (changed(b"format: 1", b"format: 1.0"), ": format: expected 1, got 1.0"),
    "duplicate": (
        changed(b"goal: L3", b"goal: L3\ngoal: L2"),
        ": line 5: expected each key once, got the key 'goal' again; remove one of the two",
    ),
    "unknown-key": (
        changed(b"goal: L3", b"gaol: L3"),
        (
            ": expected only the keys format, name, candidate, tiers, targets, goal, seed, gates, lock, record, got 'gaol';"
            " did you mean 'goal'?"
        ),
    ),
    "unknown-key-unlike-any": (
        changed(b"threads: 4", b"zzz: 4"),
        f": targets[0]: expected only the keys {TARGET_KEYS}, got 'zzz'; remove it",
    ),
    "missing-key": (changed(b"name: quickstart\n", b""), f": name: expected {NAME}, got nothing; add the key"),
    "missing-precision": (changed(b"precision: fp32, ", b""), f": targets[0].precision: expected {PRECISION}, got nothing; add the key"),
    "missing-data": (
        changed(b"data: groups.jsonl, ", b""),
        (
            ": tiers.L3.data: expected text or a table with dataset, mteb, trec, file, revision, split, config, query,"
            " positive, negative, documents, gains, got nothing; add the key"
        ),
    ),
    "wrong-precision": (
        changed(b"precision: fp16", b"precision: fp61"),
        f": targets[1].precision: expected {PRECISION}, got 'fp61'; did you mean 'fp16'?",
    ),
    "unknown-provider": (
        changed(b"provider: cuda", b"provider: cudda"),
        ": targets[3].provider: expected one of cpu, cuda, directml, migraphx, openvino, qnn, tensorrt, got 'cudda'; did you mean 'cuda'?",
    ),
    "bool-for-int": (changed(b"threads: 4", b"threads: true"), f": targets[0].threads: expected {THREADS}, got true"),
    "float-for-int": (changed(b"threads: 4", b"threads: 4.0"), f": targets[0].threads: expected {THREADS}, got 4.0"),
    "octal-for-int": (changed(b"threads: 4", b"threads: 04"), f": targets[0].threads: expected {THREADS}, got '04'"),
    "zero": (changed(b"threads: 4", b"threads: 0"), f": targets[0].threads: expected {THREADS}, got 0"),
    "text-for-number": (changed(b"8e6", b"8MB"), ": tiers.L0.limits.payload_bytes.at_most: expected a finite number, got '8MB'"),
    "quoted-number": (changed(b"8e6", b"'8e6'"), ": tiers.L0.limits.payload_bytes.at_most: expected a finite number, got '8e6'"),
    "more-digits-than-are-exact": (
        changed(b"8e6", b"1234567890123456"),
        (": tiers.L0.limits.payload_bytes.at_most: expected a finite number, got '1234567890123456'; a number has at most 15 digits,"
        " which JSON keeps exact"),
    ),
    "nan": (changed(b"8e6", b".nan"), ": tiers.L0.limits.payload_bytes.at_most: expected a finite number, got NaN"),
    "infinity": (changed(b"8e6", b"1e999"), ": tiers.L0.limits.payload_bytes.at_most: expected a finite number, got infinity"),
    "minus-infinity": (changed(b"8e6", b"-.inf"), ": tiers.L0.limits.payload_bytes.at_most: expected a finite number, got minus infinity"),
    "null": (
        changed(b"deferred: no GPU in this job", b"deferred:"),
        ": targets[3].deferred: expected text, got null; write a value or leave the key out",
    ),
    "blank": (changed(b"no GPU in this job", b"' '"), ": targets[3].deferred: expected text, got ' '"),
    "shape-word": (
        changed(b"opset: 17", b"shape: dinamic"),
        f": tiers.L0.shape: expected dynamic or {SHAPE}, got 'dinamic'; did you mean 'dynamic'?",
    ),
    "shape-length": (
        changed(b"opset: 17", b"shape: [1]"),
        f": tiers.L0.shape: expected {SHAPE}, got a list of 1",
    ),
    "shape-item": (changed(b"opset: 17", b"shape: [1, x]"), ": tiers.L0.shape[1]: expected an integer of at least 1, got 'x'"),
    "opset": (changed(b"opset: 17", b"opset: 9"), ": tiers.L0.opset: expected an integer of at least 11 and at most 23, got 9"),
    "name": (changed(b"name: quickstart", b"name: Quick Start"), f": name: expected {NAME}, got 'Quick Start'"),
    "name-newline": (changed(b"name: quickstart", b'name: "quick\\n"'), f": name: expected {NAME}, got 'quick\\n'"),
    "no-targets": (GOOD[: GOOD.index(b"targets:")] + b"targets: []", ": targets: expected a list of at least 1, got an empty list"),
    "targets-table": (GOOD[: GOOD.index(b"targets:")] + b"targets: {a: 1}", ": targets: expected a list, got a table"),
    "anchor": (
        changed(b"{model: ./model}", b"&a {model: ./model}"),
        ": line 3: expected every value written out, got the anchor or alias 'a'; write it twice",
    ),
}  # fmt: skip

RULES = {
    "folder-with-revision": (
        changed(b"./model}", b"./model, revision: " + COMMIT + b"}"),
        (
            ": candidate.revision: expected none, since the model is a folder, got"
            f" '{COMMIT.decode()}'; a folder is pinned by digest; remove it"
        ),
    ),
    "hub-without-revision": (
        changed(b"./model", b"org/model"),
        (
            ": candidate.revision: expected 40 hex digits, since 'org/model' is a hub id, got nothing;"
            " pin the commit, or write './org/model' for a folder"
        ),
    ),
    "branch": (
        changed(b"./model", b"org/model, revision: main"),
        ": candidate.revision: expected 40 hex digits of a commit, got 'main'",
    ),
    "short-hash": (
        changed(b"./model", b"org/model, revision: 777b2f3"),
        ": candidate.revision: expected 40 hex digits of a commit, got '777b2f3'",
    ),
    "upper-case-hash": (
        changed(b"./model", b"org/model, revision: " + COMMIT.upper()),
        f": candidate.revision: expected 40 hex digits of a commit, got '{COMMIT.decode().upper()}'",
    ),
    "neither-folder-nor-id": (
        changed(b"./model", b"a b/c"),
        ": candidate.model: expected a folder (./, ../ or /) or a hub id (org/name), got 'a b/c'; for a folder write './a b/c'",
    ),
    "dataset-branch": (
        changed(b"groups.jsonl", b"{dataset: a/b, revision: main}"),
        ": tiers.L3.data.revision: expected 40 hex digits of a commit, got 'main'",
    ),
    "dataset-name": (
        changed(b"groups.jsonl", b"{dataset: ../b, revision: " + COMMIT + b"}"),
        ": tiers.L3.data.dataset: expected a hub id (org/name), got '../b'",
    ),
    "digest": (
        changed(b"data: groups.jsonl", b"data: groups.jsonl, digest: abc"),
        ": tiers.L3.digest: expected blake3: and 64 hex digits, got 'abc'",
    ),
    "tier-below-goal": (
        b"".join(line for line in GOOD.splitlines(keepends=True) if not line.startswith(b"  L2")),
        ": tiers.L2: expected a table, since the goal is L3, got nothing; add it or lower the goal",
    ),
    "tier-above-goal": (
        changed(b"goal: L3", b"goal: L1"),
        ": tiers.L2: expected no tier above the goal L1, got a table; remove it or raise the goal",
    ),
    "override-above-goal": (
        b"".join(line for line in GOOD.splitlines(keepends=True) if not line.startswith((b"  L2", b"  L3"))).replace(
            b"goal: L3", b"goal: L1"
        ),
        ": targets[1].limits.L2: expected no tier above the goal L1, got a table; remove it or raise the goal",
    ),
    "empty-limits": (
        changed(b"{payload_bytes: {at_most: 8e6}}", b"{}"),
        ": tiers.L0.limits: expected at least one entry, got an empty table; fill it or leave the key out",
    ),
    "no-limits-for-a-target": (
        changed(b", limits: {payload_bytes: {at_most: 8e6}}", b""),
        (
            ": tiers.L0.limits: expected at least one limit for the target cpu-fp32, got none;"
            " a tier without limits would decide nothing; add a limit"
        ),
    ),
    "parity-by-cosine-alone": (
        changed(
            b"{max_abs_gap: {at_most: 1e-4}, order_kept: {exactly: true}}",
            b"{cosine: {at_least: 0.99}, pairs: {at_least: 64}}",
        ),
        (
            ": tiers.L2.limits: expected a limit on the gap or the order for the target cpu-fp32, got only cosine, pairs;"
            " such limits would pass other logits; add max_abs_gap or order_kept"
        ),
    ),
    "empty-override": (
        changed(b"{L2: {max_abs_gap: {at_most: 1e-2}}}", b"{L2: {}}"),
        ": targets[1].limits.L2: expected at least one entry, got an empty table; fill it or leave the key out",
    ),
    "unknown-metric": (
        changed(b"payload_bytes", b"payload_byte"),
        ": tiers.L0.limits: expected a metric of L0, got 'payload_byte'; did you mean 'payload_bytes'?",
    ),
    "unknown-metric-unlike-any": (
        changed(b"max_abs_gap: {at_most: 1e-2}", b"speed: {at_most: 1}"),
        ": targets[1].limits.L2: expected a metric of L2, got 'speed'; they are "
        + ", ".join(name for name, metric in METRICS.items() if metric.tier == "L2"),
    ),
    "metric-of-another-tier": (
        changed(b"payload_bytes", b"p50_ms"),
        ": tiers.L0.limits: expected a metric of L0, got 'p50_ms', a metric of L1; move it to the limits of L1",
    ),
    "fixed-metric": (
        changed(b"payload_bytes: {at_most: 8e6}", b"realised_precision: {exactly: mixed}"),
        (
            ": tiers.L0.limits: expected a metric that a ladder decides, got 'realised_precision',"
            " whose limit is fixed; remove it; it is always judged"
        ),
    ),
    "fixed-count": (
        changed(b"max_abs_gap: {at_most: 1e-4}", b"non_finite_count: {at_most: 5}"),
        (
            ": tiers.L2.limits: expected a metric that a ladder decides, got 'non_finite_count',"
            " whose limit is fixed; remove it; it is always judged"
        ),
    ),
    "parameter-missing": (
        changed(b"payload_bytes", b"initializer_count"),
        ": tiers.L0.limits: expected initializer_count.<ONNX dtype>, got 'initializer_count' alone",
    ),
    "parameter-malformed": (
        changed(b"payload_bytes", b"initializer_count.float"),
        ": tiers.L0.limits: expected initializer_count.<ONNX dtype>, got 'initializer_count.float'",
    ),
    "parameter-unknown": (
        changed(b"ndcg_at_10_drop", b"row_ndcg_at_10.bm52"),
        ": tiers.L3.limits: expected row_ndcg_at_10.<scorer>, got 'row_ndcg_at_10.bm52'; did you mean 'bm25'?",
    ),
    "parameter-unwanted": (
        changed(b"payload_bytes", b"payload_bytes.FLOAT"),
        ": tiers.L0.limits: expected the metric 'payload_bytes' without a parameter, got 'payload_bytes.FLOAT'; write payload_bytes",
    ),
    "number-for-limit": (
        changed(b"{at_most: 8e6}", b"8e6"),
        ": tiers.L0.limits.payload_bytes: expected a table with at_most, at_least, exactly, got 8000000.0",
    ),
    "no-bound": (
        changed(b"{at_most: 8e6}", b"{}"),
        ": tiers.L0.limits.payload_bytes: expected at_most, at_least or exactly, got none of them; add a bound",
    ),
    "unknown-bound": (
        changed(b"{at_most: 8e6}", b"{atmost: 8e6}"),
        ": tiers.L0.limits.payload_bytes: expected only the keys at_most, at_least, exactly, got 'atmost'; did you mean 'at_most'?",
    ),
    "exactly-and-another": (
        changed(b"{at_most: 8e6}", b"{at_most: 8e6, exactly: 5}"),
        ": tiers.L0.limits.payload_bytes: expected exactly alone, got another bound beside it; remove one",
    ),
    "empty-range": (
        changed(b"{at_most: 8e6}", b"{at_most: 1, at_least: 2}"),
        ": tiers.L0.limits.payload_bytes: expected bounds that a value can meet, got at_least 2 above at_most 1; swap them",
    ),
    "bound-on-truth": (
        changed(b"order_kept: {exactly: true}", b"order_kept: {at_least: 1}"),
        ": tiers.L2.limits.order_kept: expected exactly, since the metric is true or false, got a bound for numbers; write exactly",
    ),
    "number-on-truth": (
        changed(b"order_kept: {exactly: true}", b"order_kept: {exactly: 1}"),
        ": tiers.L2.limits.order_kept.exactly: expected true or false, got 1",
    ),
    "bound-on-text": (
        changed(b"payload_bytes: {at_most: 8e6}", b"inputs: {at_most: 3}"),
        ": tiers.L0.limits.inputs: expected exactly, since the metric is text, got a bound for numbers; write exactly",
    ),
    "truth-on-number": (
        changed(b"{at_most: 8e6}", b"{exactly: true}"),
        ": tiers.L0.limits.payload_bytes.exactly: expected a number of bytes, got true",
    ),
    "text-on-number": (
        changed(b"{at_most: 8e6}", b"{exactly: lots}"),
        ": tiers.L0.limits.payload_bytes.exactly: expected a number of bytes, got 'lots'",
    ),
    "fraction-of-a-count": (
        changed(b"{at_most: 8e6}", b"{exactly: 1.5}"),
        ": tiers.L0.limits.payload_bytes.exactly: expected a whole number of bytes, got 1.5",
    ),
    "same-name": (
        changed(b"name: mine", b"name: half"),
        ": targets[2].name: expected each target's name once, got 'half', as targets[1]; name this target",
    ),
    "same-default-name": (
        changed(b"name: mine, ", b""),
        ": targets[2].name: expected each target's name once, got 'cpu-fp32', as targets[0]; name this target",
    ),
    "reserved-name": (
        changed(b"name: mine", b"name: nul"),
        ": targets[2].name: expected a name that every file system takes, got 'nul'; choose another",
    ),
    "a-cell-that-is-not-swept": (
        changed(
            b"{candidates: 32, limits: {",
            b"{sweep: {candidates: [10], max_length: [128], batch_size: [8]},"
            b" limits: {sweep_p50_ms.c10-l128-b8-t2: {at_most: 9}, ",
        ),
        (
            ": tiers.L1: expected that cell in its sweep, for the limit on sweep_p50_ms.c10-l128-b8-t2 of cpu-fp32, got none; ask for it,"
            " or remove the limit"
        ),
    ),
    "a-level-that-is-not-called": (
        changed(b"limits: {p95_ms", b"load: {concurrency: [1]}, limits: {load_p95_ms.8: {at_most: 9}, p95_ms"),
        ": tiers.L1: expected 8 in load.concurrency, for the limit on load_p95_ms.8 of cpu-fp32, got none; ask for it, or remove the limit",
    ),
    "no-whole-requests": (
        changed(b"limits: {p95_ms", b"limits: {end_to_end_p95_ms: {at_most: 9}, p95_ms"),
        (
            ": tiers.L1: expected end_to_end_calls above 0, for the limit on end_to_end_p95_ms of cpu-fp32, got none; ask for it, or remove"
            " the limit"
        ),
    ),
    "a-cell-that-stands-twice": (
        changed(
            b"limits: {p95_ms", b"sweep: {candidates: [10, 10], max_length: [64], batch_size: [1]}, limits: {p95_ms"
        ),
        ": tiers.L1.sweep.candidates: expected each number once, got 10, 10; remove what stands twice",
    ),
    "a-level-that-stands-twice": (
        changed(b"limits: {p95_ms", b"load: {concurrency: [1, 4, 1]}, limits: {p95_ms"),
        ": tiers.L1.load.concurrency: expected each number once, got 1, 4, 1; remove what stands twice",
    ),
    "a-limit-of-load-that-is-fixed": (
        changed(b"limits: {p95_ms", b"limits: {load_unfinished_calls: {exactly: 3}, p95_ms"),
        (
            ": tiers.L1.limits: expected a metric that a ladder decides, got 'load_unfinished_calls', whose limit is fixed; remove it;"
            " it is always judged"
        ),
    ),
    "an-option-that-openvino-has-not": (
        changed(b"{precision: fp32, threads: 4}", b"{precision: fp32, provider: openvino, session: {spinning: false}}"),
        ": targets[0].session: expected only cpus, since OpenVINO has none of the others, got an option of ONNX Runtime; remove it",
    ),
}


@pytest.mark.parametrize(("data", "message"), STRUCTURE.values(), ids=STRUCTURE.keys())
def test_a_wrong_structure_is_refused_with_its_place(data: bytes, message: str) -> None:
    assert refusal(data) == "ladder.yaml" + message


@pytest.mark.parametrize(("data", "message"), RULES.values(), ids=RULES.keys())
def test_a_ladder_that_could_not_be_carried_out_is_refused(data: bytes, message: str) -> None:
    assert refusal(data) == "ladder.yaml" + message


def test_the_message_begins_with_the_name_of_the_file() -> None:
    with pytest.raises(LadderError, match=r"^my\.yaml: format: expected 1"):
        ladder.parse(b"format: 3", "my.yaml")


@given(st.data())
def test_any_bytes_give_a_ladder_or_one_line(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(GOOD)))
    stop = data.draw(st.integers(start, min(len(GOOD), start + 20)))
    middle = data.draw(
        st.binary(max_size=12) | st.sampled_from([b"{}", b"[]", b"null", b"true", b"-1", b"1e400", b"''"])
    )
    mutated = GOOD[:start] + middle + GOOD[stop:]
    try:
        ladder.parse(mutated)
    except LadderError as error:
        said = str(error)
    else:
        said = f"ladder.yaml: {len(ladder.defaults(mutated))} defaults"
    assert said.startswith("ladder.yaml: ")
    assert "\n" not in said


@given(st.binary(max_size=300))
def test_arbitrary_bytes_give_a_ladder_or_one_line(data: bytes) -> None:
    assert "\n" not in refusal(data)
