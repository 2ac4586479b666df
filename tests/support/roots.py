"""A root's records and raw samples made from fixed numbers: one target passes, one fails at L2, one is blocked at L1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from harness import data, judge, records
from harness.metrics.catalogue import METRICS, base, fixed_limits
from harness.raw import (
    BuildRaw,
    Conversion,
    MachineRaw,
    MemoryRaw,
    PerfRaw,
    PerQuery,
    Probe,
    QueryRow,
    QueryScores,
    SessionFacts,
)
from harness.records import (
    BuildOptions,
    Candidate,
    DataFact,
    Environment,
    Exit,
    FileFact,
    Inputs,
    Limit,
    Limits,
    Lineage,
    Measurement,
    Measurements,
    Outcome,
    ParityOptions,
    PerfOptions,
    Plan,
    PlannedStep,
    PlannedTarget,
    RerankOptions,
    Tier,
    TierOptions,
    Value,
    measured,
    step_folder,
    to_json,
)
from harness.root import RootRecords, StepRecords

DIGEST = "blake3:" + "7d3f" * 16

LIMITS: dict[Tier, Limits] = {
    "L0": {"opset": Limit(exactly=17), "payload_bytes": Limit(at_most=8_000_000)},
    "L1": {
        "p50_ms": Limit(at_most=60),
        "pairs_per_s": Limit(at_least=400),
        "peak_rss_bytes": Limit(at_most=512 * 2**20),
        "drift_ratio": Limit(at_least=0.9, at_most=1.1),
    },
    "L2": {
        "max_abs_gap": Limit(at_most=1e-2),
        "kendall_tau_b": Limit(at_least=0.99),
        "order_kept": Limit(exactly=True),
    },
    "L3": {"ndcg_at_10_drop": Limit(at_most=0.01), "ndcg_at_10_over_random": Limit(at_least=0.2)},
}


class Example(NamedTuple):
    """Records of a root, the bytes of its raw samples by path, its digest and its path."""

    records: RootRecords
    files: dict[str, bytes]
    digest: str = DIGEST
    path: str = "runs/quickstart-20261130-1412"

    def read(self, path: str) -> bytes:
        return self.files[path]


def example(*, groups: int = 60) -> Example:
    """The whole example; with fewer than 30 groups its L3 is a smoke test."""
    plan = _plan(groups)
    files: dict[str, bytes] = {}
    steps: dict[tuple[str, Tier], StepRecords] = {}
    for name in ("cpu-fp32", "cpu-fp16", "cpu-int8"):
        target = next(t for t in plan.targets if t.name == name)
        for step in target.steps:
            left = _step(plan, target, step, groups, files)
            steps[name, step.tier] = left
            if left.outcome.verdict != "PASS":
                break
    claim = judge.qualification(
        plan,
        "blake3:" + "1b" * 32,
        {key: step.outcome for key, step in steps.items()},
        "2026-11-30T14:12:05.120Z",
        "2026-11-30T14:13:02.480Z",
    )
    return Example(
        RootRecords(plan=plan, claim=claim, environment=_environment(), lineage=Lineage(format=1), steps=steps),
        files,
    )


def with_bounds(found: Example, **bounds: Value) -> Example:
    """The example as if its groups had been asked for within these bounds too."""
    plan = found.records.plan
    assert plan.inputs.groups is not None
    fact = msgspec.structs.replace(plan.inputs.groups, bounds={**plan.inputs.groups.bounds, **bounds})
    inputs = msgspec.structs.replace(plan.inputs, groups=fact)
    return found._replace(
        records=msgspec.structs.replace(found.records, plan=msgspec.structs.replace(plan, inputs=inputs))
    )


def limited(found: Example, tier: Tier, limits: Limits) -> Example:
    """The example with these limits in the place of the tier's own, and no fixed ones: planned, and judged on what was measured."""
    plan = found.records.plan
    targets = tuple(
        msgspec.structs.replace(
            target,
            steps=tuple(msgspec.structs.replace(s, limits=limits) if s.tier == tier else s for s in target.steps),
        )
        for target in plan.targets
    )
    steps = {
        (name, which): msgspec.structs.replace(step, outcome=_again(step, limits) if which == tier else step.outcome)
        for (name, which), step in found.records.steps.items()
    }
    changed = msgspec.structs.replace(plan, targets=targets)
    return found._replace(records=msgspec.structs.replace(found.records, plan=changed, steps=steps))


def _again(step: StepRecords, limits: Limits) -> Outcome:
    return judge.again(step.outcome, limits, step.measurements.measurements if step.measurements else None)


def rewritten(found: Example, texts: Mapping[str, str]) -> Example:
    """The example with every text that is a key of ``texts`` replaced, wherever it stands in records or raw rows."""
    bare = msgspec.structs.replace(found.records, steps={})
    kept = msgspec.convert(_replace(msgspec.to_builtins(bare), texts), RootRecords)
    steps = {
        (_swap(target, texts), tier): msgspec.convert(_replace(msgspec.to_builtins(step), texts), StepRecords)
        for (target, tier), step in found.records.steps.items()
    }
    files = {_swap(path, texts): _swap_bytes(content, texts) for path, content in found.files.items()}
    return found._replace(records=msgspec.structs.replace(kept, steps=steps), files=files)


def _replace(value: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _swap(value, texts)
    if isinstance(value, dict):
        return {_swap(key, texts): _replace(item, texts) for key, item in value.items()}
    return [_replace(item, texts) for item in value] if isinstance(value, list | tuple) else value


def _swap(value: str, texts: Mapping[str, str]) -> str:
    for old, new in texts.items():
        value = value.replace(old, new)
    return value


def _swap_bytes(content: bytes, texts: Mapping[str, str]) -> bytes:
    """A raw file with its texts replaced; numbers as they are."""
    try:
        return to_json(_replace(json.loads(content), texts))
    except ValueError:
        pass
    try:
        lines = content.decode().splitlines()
    except ValueError:
        return content
    if content.startswith(b"{"):
        return "".join(f"{json.dumps(_replace(json.loads(line), texts))}\n" for line in lines).encode()
    return _swap(content.decode(), texts).encode()


def _plan(groups: int) -> Plan:
    def target(name: str, precision: records.Precision, threads: int = 2) -> PlannedTarget:
        def limits(tier: Tier) -> Limits:
            return {**fixed_limits(tier, precision), **LIMITS[tier]}

        steps = tuple(PlannedStep(tier=t, limits=limits(t), time_limit_s=900.0) for t in records.TIERS)
        return PlannedTarget(
            name=name,
            precision=precision,
            provider="CPUExecutionProvider",
            threads=threads,
            artifact=None,
            deferred=None,
            steps=steps,
        )

    files = (
        FileFact(path="config.json", bytes=688, blake3="0a" * 32),
        FileFact(path="model.safetensors", bytes=6_912_448, blake3="0b" * 32),
        FileFact(path="tokenizer.json", bytes=371_204, blake3="0c" * 32),
    )
    return Plan(
        format=1,
        ladder="quickstart",
        ladder_digest="blake3:" + "2c" * 32,
        seed=20261130,
        goal="L3",
        candidate=Candidate(
            model="quickstart/reranker",
            revision=None,
            digest="blake3:" + "3d" * 32,
            files=files,
            architecture="BertForSequenceClassification",
            model_type="bert",
            num_labels=1,
            parameters=1_727_105,
            weight_dtypes={"F32": 1_727_105},
            max_length=256,
            type_vocab_size=2,
            pad_token_id=0,
            padding_side="right",
        ),
        options=TierOptions(
            L0=BuildOptions(),
            L1=PerfOptions(max_length=256),
            L2=ParityOptions(max_length=256),
            L3=RerankOptions(data="groups.jsonl", groups=groups, candidates=12),
        ),
        inputs=Inputs(
            pairs=DataFact(path=records.PAIRS, digest="blake3:" + "4e" * 32, source="built-in", rows=96),
            groups=DataFact(
                path=records.GROUPS,
                digest="blake3:" + "5f" * 32,
                source="groups.jsonl",
                rows=groups,
                bounds={"groups": groups, "candidates": 12},
                notes=("3 candidates stand in two groups",),
            ),
        ),
        targets=(target("cpu-fp32", "fp32"), target("cpu-fp16", "fp16"), target("cpu-int8", "int8")),
        defaults=("/seed", "/tiers/L0/exporter", "/tiers/L1/warm_up", "/tiers/L2/noise", "/tiers/L3/resamples"),
    )


def _step(plan: Plan, target: PlannedTarget, step: PlannedStep, groups: int, files: dict[str, bytes]) -> StepRecords:
    blocked = target.name == "cpu-fp16" and step.tier == "L1"
    made = {} if blocked else _MAKE[step.tier](target, groups, files)
    found = tuple(made[name] for name in sorted(made, key=_catalogue_order))
    findings = () if blocked else judge.judge(step.limits, found)
    verdict = judge.step_verdict(findings)
    ended = Exit(code=None, signal="SIGKILL", timed_out=True, seconds=900.2) if blocked else None
    outcome = Outcome(
        format=1,
        tier=step.tier,
        target=target.name,
        verdict=verdict,
        reason="timed out: expected the step to end within 900 s, got SIGKILL after 900.2 s; see stderr.log"
        if blocked
        else judge.outcome_reason(verdict, findings),
        plan_digest="blake3:" + "1b" * 32,
        candidate_digest=plan.candidate.digest,
        artifact_digest="blake3:" + {"fp32": "6a", "fp16": "6b", "int8": "6c"}[target.precision] * 32,
        started_at="2026-11-30T14:12:05.120Z",
        ended_at="2026-11-30T14:12:09.020Z",
        exit=ended
        or Exit(code=0, signal=None, timed_out=False, seconds={"L0": 3.9, "L1": 6.2, "L2": 2.4, "L3": 8.8}[step.tier]),
        redactions=0,
        findings=findings,
    )
    if blocked:
        log = f"{step_folder(step.tier, target.name)}/stderr.log"
        files[log] = b"loading session\nwarm-up call 3 of 5\nno answer for 600 s\n"
    sealed = None if blocked else Measurements(format=1, tier=step.tier, target=target.name, measurements=found)
    return StepRecords(request=None, outcome=outcome, measurements=sealed)


def _catalogue_order(metric: str) -> tuple[int, str]:
    return list(METRICS).index(base(metric)), metric


def _all(values: dict[str, Value], intervals: dict[str, tuple[float, float]]) -> dict[str, Measurement]:
    return {
        name: measured(name, value, METRICS[base(name)].unit, interval=intervals.get(name))
        for name, value in values.items()
    }


def _build(target: PlannedTarget, _groups: int, files: dict[str, bytes]) -> dict[str, Measurement]:
    files[f"{step_folder('L0', target.name)}/build.json"] = to_json(
        BuildRaw(
            format=1,
            source="exported",
            exporter="torchscript",
            export_from=None if target.precision == "fp32" else "artifacts/cpu-fp32",
            warnings=("the exporter is on its way out",),
            phases_s={"export": 1.92, "convert": 0.4, "check": 0.29},
            half_range_constants=1,
            conversion=Conversion(name="float16", options={}, clipped_high=1, clipped_low=0, kept_nodes=())
            if target.precision == "fp16"
            else None,
            checker_faults=(),
            session=SessionFacts(load_ms=18.42, providers=(target.provider,), options={"intra_op_num_threads": 2}),
            load_error="",
            probes=(Probe(batch=1, length=8, fault=""), Probe(batch=7, length=256, fault="")),
            tokenizer_inputs=("attention_mask", "input_ids", "token_type_ids"),
            head=(),
            head_note="",
        )
    )
    size = {"fp32": 6_983_221, "fp16": 3_541_870, "int8": 1_902_377}[target.precision]
    dtype = {"fp32": "FLOAT", "fp16": "FLOAT16", "int8": "INT8"}[target.precision]
    values: dict[str, Value] = {
        "opset": 17,
        "ir_version": 8,
        "inputs": "attention_mask:int64[batch,sequence], input_ids:int64[batch,sequence], token_type_ids:int64[batch,sequence]",
        "outputs": "logits:float32[batch,1]",
        "logits_width": 1,
        "unfed_inputs": 0,
        "unused_tokenizer_inputs": 0,
        "nodes": 287,
        "operator_types": 19,
        **{f"operator_count.{name}": count for name, count in _OPERATORS.items()},
        f"initializer_count.{dtype}": 43,
        "initializer_count.INT64": 14,
        f"initializer_bytes.{dtype}": size - 71_000,
        "initializer_bytes.INT64": 216,
        "payload_bytes": size,
        "payload_ratio": size / (4 * 1_727_105),
        "realised_precision": target.precision,
        "half_range_constants": 1,
        "checker_faults": 0,
        "missing_keys": 0,
        "unexpected_keys": 0,
        "raw_logits": True,
        "own_provider_nodes": 281,
        "optimised_casts": 14,
        "head_gap_ratio": {"fp32": 0.0, "fp16": 3.1e-4, "int8": 7.6e-3}[target.precision],
        "probe_faults": 0,
        "session_load_ms": 18.42,
        "build_seconds": 2.61,
    }
    notes = {"own_provider_nodes": "of 281", "optimised_casts": "storage only: the CPU computes in fp32, between Casts"}
    return {name: msgspec.structs.replace(m, note=notes.get(name, "")) for name, m in _all(values, {}).items()}


_OPERATORS = {
    "Add": 61, "Cast": 3, "Concat": 14, "Constant": 44, "Div": 9, "Erf": 3, "Gather": 15, "Gemm": 2, "MatMul": 26,
    "Mul": 15, "Pow": 7, "ReduceMean": 14, "Reshape": 12, "Shape": 14, "Softmax": 3, "Sqrt": 7, "Sub": 8, "Tanh": 1,
    "Transpose": 12, "Unsqueeze": 17,
}  # fmt: skip


def _perf(target: PlannedTarget, _groups: int, files: dict[str, bytes]) -> dict[str, Measurement]:
    random = np.random.Generator(np.random.PCG64(7))
    middle = {"fp32": 46.0, "int8": 33.0}[target.precision]
    steady = middle * (1 + 0.03 * random.gamma(2.0, 1.0, 60)) + np.where(random.random(60) > 0.95, 9.0, 0.0)
    warm = middle * np.array([1.31, 1.12, 1.05, 1.02, 1.04])
    time = np.arange(0, 5200, 50.0)
    rss = (
        148e6
        + 92e6 / (1 + np.exp(-(time - 700) / 90))
        + 21e6 / (1 + np.exp(-(time - 1300) / 60))
        + 1.5e6 * np.sin(time / 170)
    )
    folder = step_folder("L1", target.name)
    files[f"{folder}/samples.json"] = to_json(
        PerfRaw(
            format=1,
            session=SessionFacts(load_ms=17.9, providers=(target.provider,), options={"intra_op_num_threads": 2}),
            load_ms=17.9,
            first_call_ms=71.4,
            warm_up_ms=tuple(warm.tolist()),
            steady_ms=tuple(steady.tolist()),
            pairs_per_call=32,
            truncated=0,
            shapes=((16, 96), (16, 104)),
            events_ms={"start": 81_400.0, "loaded": 82_000.0, "steady": 82_400.0, "end": 86_100.0},
        )
    )
    files[f"{folder}/memory.json"] = to_json(
        MemoryRaw(
            format=1,
            interval_ms=50.0,
            at_ms=tuple((time + 81_000).tolist()),
            rss_bytes=tuple(int(v) for v in rss),
        )
    )
    read = np.arange(0, 5200, 100.0)
    files[f"{folder}/machine.json"] = to_json(
        MachineRaw(
            format=1,
            interval_ms=100.0,
            cpus=(0, 1),
            at_ms=tuple((read + 81_000).tolist()),
            busy_ms=tuple((1.9 * read).tolist()),
            idle_ms=tuple((0.1 * read).tolist()),
            stolen_ms=tuple((0.0 * read).tolist()),
            own_ms=tuple((1.86 * read).tolist()),
            load_1min=tuple((0.8 + 0.0 * read).tolist()),
            mhz=None,
            pressure_ms=None,
            busy_processes=0,
        )
    )
    p50, p95 = float(np.median(steady)), float(np.quantile(steady, 0.95))
    values: dict[str, Value] = {
        "load_ms": 17.9,
        "first_call_ms": 71.4,
        "mean_ms": float(steady.mean()),
        "min_ms": float(steady.min()),
        "p50_ms": p50,
        "p90_ms": float(np.quantile(steady, 0.9)),
        "p95_ms": p95,
        "p99_ms": None,
        "std_ms": float(steady.std()),
        "calls": 60,
        "pairs_per_s": 32_000 / float(steady.mean()),
        "drift_ratio": float(np.median(steady[40:]) / np.median(steady[:20])),
        "baseline_rss_bytes": 148_202_496,
        "loaded_rss_bytes": 239_140_864,
        "peak_rss_bytes": int(rss.max()),
    }
    found = _all(values, {"p50_ms": (p50 - 0.55, p50 + 0.61), "p95_ms": (p95 - 2.2, p95 + 5.1)})
    note = "needs 459 samples, got 60"
    return {**found, "p99_ms": measured("p99_ms", None, "ms", samples=60, note=note)}


def _parity(target: PlannedTarget, _groups: int, files: dict[str, bytes]) -> dict[str, Measurement]:
    random = np.random.Generator(np.random.PCG64(11))
    reference = (6.0 * np.tanh(random.normal(0, 1.2, 96)) - 1.0).astype("<f4")
    scale = {"fp32": 8e-7, "int8": 6e-2}[target.precision]
    artifact = (reference + random.normal(0, scale, 96)).astype("<f4")
    folder = step_folder("L2", target.name)
    files[f"{folder}/reference.f32"] = reference.tobytes()
    files[f"{folder}/artifact.f32"] = artifact.tobytes()
    files[f"{folder}/logits.json"] = json.dumps({"shape": [96, 1]}).encode()
    gap = np.abs(reference.astype(float) - artifact.astype(float))
    exact = target.precision == "fp32"
    values: dict[str, Value] = {
        "pairs": 96,
        "refused_pairs": 0,
        "non_finite_count": 0,
        "max_abs_gap": float(gap.max()),
        "mean_abs_gap": float(gap.mean()),
        "gap_over_spread": float(gap.max() / reference.std()),
        "pearson": 1.0 if exact else 0.99987,
        "kendall_tau_b": 1.0 if exact else 0.9671,
        "discordant_pairs": 0 if exact else 75,
        "order_kept": exact,
        "cosine": 1.0 if exact else 0.99991,
        "distinct_logits": 96,
        "effective_length": 512,
        "truncated_pairs": 5,
        "truncation_faults": 0,
        "token_mismatches": 0,
        "separator_faults": 0,
        "padding_id_agrees": True,
        **{f"{what}_gap_{side}": 2e-7 for side in ("reference", "runtime") for what in ("batch", "order", "padding")},
        **{f"repeat_gap_{side}": 0.0 for side in ("reference", "runtime")},
        "segment_faults": 0,
        "threads_gap": 0.0,
        "threads_deadlocked": 0,
        "fallback_nodes": 0,
    }
    return _all(values, {})


def _rerank(target: PlannedTarget, groups: int, files: dict[str, bytes]) -> dict[str, Measurement]:
    random = np.random.Generator(np.random.PCG64(13))
    ndcg = np.clip(random.beta(4, 1.2, groups), 0.05, 1)
    change = np.where(random.random(groups) > 0.8, random.normal(-0.002, 0.02, groups), 0.0)
    changed = np.clip(ndcg + change, 0, 1)
    mrr = np.round(1 / random.integers(1, 5, groups), 4)
    rows = tuple(
        QueryRow(
            query_id=f"q{place:03d}",
            candidates=12,
            positives=3,
            judged=True,
            artifact=_query(float(changed[place]), float(mrr[place])),
            reference=_query(float(ndcg[place]), float(mrr[place])),
            agreement={"kendall_tau_b_by_query": 0.97},
        )
        for place in range(groups)
    )
    files[f"{step_folder('L3', target.name)}/per_query.json"] = to_json(PerQuery(format=1, rows=rows))
    files[records.GROUPS] = data.render_groups(
        data.Group(
            query_id=f"q{place:03d}",
            query=f"how do I close file {place}",
            candidates=tuple(data.Doc(id=f"d{n}", text=f"text {n}", gain=float(n < 3)) for n in range(12)),
        )
        for place in range(groups)
    )
    own, drop = float(changed.mean()), float((ndcg - changed).mean())
    values: dict[str, Value] = {
        "groups": groups,
        "judged_groups": groups,
        "scored_pairs": groups * 12,
        "non_finite_scores": 0,
        "ndcg_at_10": own,
        "mrr_at_10": 0.7031,
        "map": 0.6712,
        "ndcg_at_10_drop": drop,
        "mrr_at_10_drop": 0.0,
        "map_drop": 0.0004,
        "ndcg_at_10_over_random": own - 0.4331,
        "ndcg_at_10_over_sentinels": own - 0.4713,
        "row_ndcg_at_10.reference": own + drop,
        "row_ndcg_at_10.source_order": 0.4288,
        "row_ndcg_at_10.random": 0.4331,
        "row_ndcg_at_10.oracle": 1.0,
        "row_ndcg_at_10.constant": 0.4331,
        "row_ndcg_at_10.length": 0.4713,
        "row_ndcg_at_10.word_overlap": 0.7013,
        "row_ndcg_at_10.bm25": 0.7322,
        **{f"row_mrr_at_10.{name}": 0.5 for name in ("constant", "random", "bm25")},
        **{
            f"sentinel.{name}.ndcg_at_10_drop": own + drop - 0.4331
            for name in ("constant", "random", "reversed", "length")
        },
        **{f"sentinel.{name}.ndcg_at_10_over_random": 0.0 for name in ("constant", "random", "reversed", "length")},
        "sentinel.nan.ndcg_at_10_drop": None,
        "sentinel.nan.ndcg_at_10_over_random": None,
        "random_pass_chance": 1e-9,
        "rerank_pairs_per_s": 812.4,
    }
    return _all(values, {"ndcg_at_10": (own - 0.04, own + 0.038), "ndcg_at_10_drop": (drop - 0.0018, drop + 0.0021)})


def _query(ndcg: float, mrr: float) -> QueryScores:
    return QueryScores(expected={"ndcg_at_10": ndcg, "mrr_at_10": mrr, "map": 0.7}, worst={}, best={})


_MAKE = {"L0": _build, "L1": _perf, "L2": _parity, "L3": _rerank}


def _environment() -> Environment:
    return Environment(
        format=1,
        facts={
            "python": "3.11.7",
            "system": "Linux",
            "machine": "x86_64",
            "cpu_model": "Example CPU @ 2.60GHz",
            "instruction_sets": "avx2 avx512f avx512_vnni",
            "physical_cores": 1,
            "logical_cores": 2,
            "memory_bytes": 25_217_990_656,
            "load_average_1min": 0.42,
            "ci": False,
            "harness_commit": None,
        },
        packages={
            "numpy": "2.4.6",
            "onnx": "1.23.2",
            "onnxruntime": "1.32.0",
            "torch": "2.13.0",
            "transformers": "5.24.0",
        },
    )
