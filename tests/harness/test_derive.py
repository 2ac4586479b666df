from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness import derive, derive_rerank
from harness.errors import RecordError
from harness.metrics import catalogue, sampling
from harness.raw import BuildRaw, MemoryRaw, PerfRaw, Probe
from harness.records import TIERS, Limit, Measurement, Tier, from_json, to_json
from tests.support.steps import OPTIONS, Bench

Read = Callable[[str], bytes]


def reader(bench: Bench, changed: dict[str, bytes] | None = None) -> Read:
    return lambda path: changed[path] if changed and path in changed else (bench.root / path).read_bytes()


@pytest.mark.parametrize("target", ["cpu-fp32", "cpu-fp16", "cpu-int8"])
@pytest.mark.parametrize("tier", TIERS)
def test_the_verifier_derives_what_the_worker_wrote(climbed: Bench, tier: Tier, target: str) -> None:
    ran = climbed.earlier(tier, target)
    assert to_json(derive.measure(ran.request, reader(climbed))) == ran.file("measurements.json")
    if tier == "L3":
        assert to_json(derive_rerank.per_query(ran.request, reader(climbed))) == ran.file("per_query.json")


@pytest.mark.parametrize("tier", TIERS)
def test_every_metric_of_the_catalogue_is_measured_once_in_its_order_and_unit(climbed: Bench, tier: Tier) -> None:
    measured = list(climbed.earlier(tier).measured().values())
    bases = list(dict.fromkeys(catalogue.base(item.metric) for item in measured))
    judged = {
        "passing_sentinels",
        *catalogue.ADAPTER_LIMITS.get(tier, {}),
    }  # by the judge; those of adapters need one
    unnamed = {"sentinel"}  # measured for the metrics that a limit names
    assert bases == [
        name for name, metric in catalogue.METRICS.items() if metric.tier == tier and name not in judged | unnamed
    ]
    assert len({item.metric for item in measured}) == len(measured)
    for item in measured:
        found = catalogue.find(item.metric)
        assert found is not None, item.metric
        assert item.unit == found.unit
        assert item.value is None or isinstance(item.value, found.kind)


def test_deriving_needs_no_ml_library(climbed: Bench, tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "for name in ('torch', 'onnx', 'onnxruntime', 'transformers', 'tokenizers', 'scipy'): sys.modules[name] = None\n"
        "from pathlib import Path\n"
        "from harness import derive\n"
        "from harness.records import Request, from_json\n"
        "root = Path(sys.argv[1])\n"
        "read = lambda path: (root / path).read_bytes()\n"
        "for step in sorted((root / 'steps').iterdir()):\n"
        "    request = from_json((step / 'request.json').read_bytes(), Request, 'request.json')\n"
        "    print(len(derive.measure(request, read).measurements))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script, str(climbed.root)], capture_output=True, text=True, check=False)
    assert len(ran.stdout.split()) == 12, ran.stderr


@pytest.mark.parametrize(
    ("tier", "name"),
    [
        ("L0", "build.json"),
        ("L1", "samples.json"),
        ("L1", "memory.json"),
        ("L1", "machine.json"),
        ("L1", "sweep.json"),
        ("L1", "load.json"),
        ("L1", "load.f32"),
        ("L1", "end_to_end.json"),
        ("L2", "logits.json"),
        ("L2", "artifact.f32"),
        ("L3", "scores.json"),
        ("L3", "reference.f32"),
    ],
)
def test_a_missing_raw_file_is_named(climbed: Bench, tier: Tier, name: str) -> None:
    request = climbed.request(tier)
    missing = f"{request.step}/{name}"

    def read(path: str) -> bytes:
        if path == missing:
            raise FileNotFoundError(path)
        return (climbed.root / path).read_bytes()

    with pytest.raises(RecordError) as caught:
        derive.measure(request, read)
    assert str(caught.value) == (
        f"{missing}: expected the raw samples of a step, got no such file; the root is not whole"
    )


def test_logits_cut_short_are_refused(climbed: Bench) -> None:
    request = climbed.request("L2")
    path = f"{request.step}/artifact.f32"
    changed = {path: (climbed.root / path).read_bytes()[:-1]}
    with pytest.raises(RecordError, match=r"artifact\.f32: expected 26 float32 of 4 bytes, got 103 bytes"):
        derive.measure(request, reader(climbed, changed))


def test_fewer_pairs_than_planned_are_refused(climbed: Bench) -> None:
    request = climbed.request("L2")
    assert request.inputs.pairs is not None
    pairs = msgspec.structs.replace(request.inputs.pairs, rows=27)
    asked = msgspec.structs.replace(request, inputs=msgspec.structs.replace(request.inputs, pairs=pairs))
    with pytest.raises(RecordError, match=r"logits\.json: expected 27 pairs, as planned, got 26"):
        derive.measure(asked, reader(climbed))


def test_one_nan_among_the_logits_leaves_no_summary_clean(climbed: Bench) -> None:
    request = climbed.request("L2")
    path = f"{request.step}/artifact.f32"
    logits = np.frombuffer((climbed.root / path).read_bytes(), "<f4").copy()
    logits[3] = np.nan
    measured = {m.metric: m for m in derive.measure(request, reader(climbed, {path: logits.tobytes()})).measurements}
    assert measured["non_finite_count"].value == 1
    for name in ("max_abs_gap", "pearson", "order_kept", "cosine", "distinct_logits"):
        assert measured[name].value is None
        assert measured[name].note == "1 logits are not finite"


def perf_with(climbed: Bench, steady: tuple[float, ...], memory: MemoryRaw | None = None) -> dict[str, Measurement]:
    assert OPTIONS.L1 is not None
    perf = msgspec.structs.replace(OPTIONS.L1, calls=len(steady))
    request = climbed.request("L1", options=msgspec.structs.replace(OPTIONS, L1=perf))
    path = f"{request.step}/samples.json"
    _, ended_by = sampling.stopped(steady, sampling.Rule(len(steady), perf.min_calls, perf.interval, perf.seconds))
    was = from_json((climbed.root / path).read_bytes(), PerfRaw, path)
    events = was.events_ms | {"end": was.events_ms["steady"] + sum(steady) + 1}
    events["grown"] = events["end"]
    raw = msgspec.structs.replace(was, steady_ms=steady, ended_by=ended_by, events_ms=events)
    changed = {path: to_json(raw)} | ({f"{request.step}/memory.json": to_json(memory)} if memory else {})
    return {item.metric: item for item in derive.measure(request, reader(climbed, changed)).measurements}


def test_p99_needs_enough_samples(climbed: Bench) -> None:
    few = perf_with(climbed, tuple(map(float, range(1, 459))))["p99_ms"]
    assert (few.value, few.note) == (None, "needs at least 459 samples, has 458")
    enough = perf_with(climbed, tuple(map(float, range(1, 460))))["p99_ms"]
    assert enough.value == pytest.approx(454.42)
    assert enough.note.partition("; ")[0] == "drifts: the last third took 4.97 times the first"


def test_drift_is_the_last_third_over_the_first(climbed: Bench) -> None:
    drift = perf_with(climbed, (1.0,) * 10 + (1.5,) * 10 + (2.0,) * 10)["drift_ratio"]
    assert (drift.value, drift.interval) == (2.0, (2.0, 2.0))


def test_unknown_memory_is_null_and_never_zero(climbed: Bench) -> None:
    nothing = MemoryRaw(format=1, interval_ms=10.0, at_ms=(), rss_bytes=())
    measured = perf_with(climbed, (1.0,) * 20, nothing)
    for name in ("baseline_rss_bytes", "loaded_rss_bytes", "peak_rss_bytes"):
        assert (measured[name].value, measured[name].note) == (None, "no sample of the process tree tells")


def test_a_slow_call_that_was_left_out_is_noticed(climbed: Bench) -> None:
    request = climbed.request("L1")
    path = f"{request.step}/samples.json"
    raw = from_json((climbed.root / path).read_bytes(), PerfRaw, path)
    left = ((1.0, 9.0) * 30)[1:]  # of 60 calls that end by their number, whatever this machine's took
    fewer = msgspec.structs.replace(raw, steady_ms=left, ended_by="calls")
    with pytest.raises(RecordError, match=r"samples\.json: expected .* after 59 by nothing yet, got 59 ended by calls"):
        derive.measure(request, reader(climbed, {path: to_json(fewer)}))


def test_samples_that_contradict_each_other_are_refused_and_nothing_crashes(climbed: Bench) -> None:
    falling = MemoryRaw(format=1, interval_ms=10.0, at_ms=(2.0, 1.0), rss_bytes=(1, 1))
    with pytest.raises(RecordError, match=r"^steps/L1-perf\.cpu-fp32: expected raw samples that agree with each other"):
        perf_with(climbed, (1.0,) * 20, falling)


def build_with(climbed: Bench, **changes: object) -> dict[str, Measurement]:
    request = climbed.request("L0")
    path = f"{request.step}/build.json"
    raw = msgspec.structs.replace(from_json((climbed.root / path).read_bytes(), BuildRaw, path), **changes)
    return {item.metric: item for item in derive.measure(request, reader(climbed, {path: to_json(raw)})).measurements}


def test_a_session_that_did_not_load_leaves_no_number(climbed: Bench) -> None:
    measured = build_with(climbed, session=None, load_error="not this file", probes=())
    assert (measured["session_load_ms"].value, measured["session_load_ms"].note) == (None, "not this file")
    assert (measured["probe_faults"].value, measured["probe_faults"].note) == (None, "no probe ran: not this file")


def test_a_probe_that_failed_is_told(climbed: Bench) -> None:
    probes = (Probe(batch=1, length=8, fault=""), Probe(batch=7, length=13, fault="logit nan"))
    found = build_with(climbed, probes=probes)["probe_faults"]
    assert (found.value, found.samples, found.note) == (1, 2, "batch 7 length 13: logit nan")


def test_a_head_that_was_not_found_is_null_with_the_reason(climbed: Bench) -> None:
    found = build_with(climbed, head=(), head_note="no tensor has its shape")["head_gap_ratio"]
    assert (found.value, found.note) == (None, "no tensor has its shape")


def test_what_of_the_head_was_not_compared_is_told_beside_the_gap(climbed: Bench) -> None:
    found = build_with(climbed, head_note="not compared: classifier.bias")["head_gap_ratio"]
    assert found.value == 0.0
    assert found.note.endswith("classifier.weight: 0.0; not compared: classifier.bias")


def test_a_dtype_that_a_limit_names_and_the_graph_does_not_hold_is_counted_as_zero(climbed: Bench) -> None:
    request = climbed.earlier("L0").request
    limits = {f"initializer_count.{dtype}": Limit(exactly=0) for dtype in ("FLOAT16", "FLOAT")}
    step = msgspec.structs.replace(request.target.steps[0], limits=limits)
    asked = msgspec.structs.replace(request, target=msgspec.structs.replace(request.target, steps=(step,)))
    found = {item.metric: item.value for item in derive.measure(asked, reader(climbed)).measurements}
    assert found["initializer_count.FLOAT16"] == 0
    assert found["initializer_count.FLOAT"] not in {0, None}
