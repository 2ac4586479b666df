"""fp16 and int8 with every choice stated; graphs that half precision breaks are mended with the fewest nodes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from evidence.seal import write_new
from harness import candidate, data, records
from harness.metrics.catalogue import HEAD_GAP
from harness.raw import ArtifactRef
from harness.records import BuildOptions, HalfOptions, IntegerOptions, Precision, to_json
from harness.runtimes import RUNTIMES
from harness.stages import convert, export, onnx_file
from harness.stages.job import folder_digest
from tests.support import graphs
from tests.support.models import make_bert
from tests.support.steps import OPTIONS, Bench, Ran


def converted(climbed: Bench, tmp_path: Path, change: Any, options: BuildOptions, precision: str = "fp16") -> Ran:
    """L0 of a target that converts the fp32 export of the first, after ``change`` of that export."""
    there = climbed.copy(tmp_path / "root")
    folder = there.root / "artifacts/cpu-fp32"
    graphs.edited(folder / "model.onnx", folder / "model.onnx", change)
    stated = there.root / "steps/L0-build.cpu-fp32/artifact.json"
    stated.write_bytes(to_json(ArtifactRef(format=1, digest=folder_digest(folder))))
    for name in (f"artifacts/cpu-{precision}", f"steps/L0-build.cpu-{precision}"):
        shutil.rmtree(there.root / name)
    return there.run(
        there.request("L0", f"cpu-{precision}", options=msgspec.structs.replace(OPTIONS, L0=options))
    )  # fmt: skip


def test_a_graph_that_overflows_in_half_precision_keeps_the_fewest_nodes_in_fp32(
    climbed: Bench, tmp_path: Path
) -> None:
    ran = converted(climbed, tmp_path, graphs.beyond_half, BuildOptions())
    search = ran.raw("build.json")["conversion"]["search"]
    assert search["repaired"]
    assert search["minimal"]
    assert search["fault"] == "Mul planted_Mul_1 leaves the range of half precision"
    assert search["kept"] == ["planted_Mul_1", "planted_Reshape_2", "planted_Mul_3"]
    assert ran.value("searched_nodes") == len(search["kept"])
    assert ran.measured()["searched_nodes"].note.startswith("without them: Mul planted_Mul_1 leaves ")
    assert "the smallest set found" in ran.measured()["searched_nodes"].note
    assert ran.value("probe_faults") == 0
    assert ran.value("realised_precision") == "fp16"
    assert set(search["kept"]) <= set(ran.raw("build.json")["conversion"]["kept_nodes"])


def test_a_graph_that_does_not_load_in_half_precision_keeps_the_operator_that_has_none(
    climbed: Bench, tmp_path: Path
) -> None:
    ran = converted(climbed, tmp_path, graphs.float_range, BuildOptions(fp16=HalfOptions(block=())))
    search = ran.raw("build.json")["conversion"]["search"]
    assert search["kept"] == ["planted_range"]
    assert search["operators"] == ["Range"]
    assert "float16" in search["fault"]
    assert ran.value("probe_faults") == 0


def test_the_converters_own_block_list_keeps_such_an_operator_without_a_search(climbed: Bench, tmp_path: Path) -> None:
    ran = converted(climbed, tmp_path, graphs.float_range, BuildOptions())
    conversion = ran.raw("build.json")["conversion"]
    assert conversion["search"] is None
    assert "planted_range" in conversion["kept_nodes"]
    assert "Range" in conversion["options"]["op_block_list"]


def test_no_nodes_are_searched_for_a_fault_that_fp32_has_too(climbed: Bench, tmp_path: Path) -> None:
    ran = converted(climbed, tmp_path, graphs.nan_head, BuildOptions())
    assert ran.raw("build.json")["conversion"]["search"] is None
    assert ran.value("probe_faults") != 0


@pytest.mark.parametrize(("keep_io", "dtype"), [(True, "FLOAT"), (False, "FLOAT16")])
def test_inputs_and_outputs_keep_their_dtype_only_where_the_ladder_says_so(
    climbed: Bench, tmp_path: Path, keep_io: bool, dtype: str
) -> None:
    ran = converted(climbed, tmp_path, lambda _model: None, BuildOptions(fp16=HalfOptions(keep_io=keep_io)))
    assert ran.value("outputs") == f"logits:{dtype}[batch,1]"
    assert ran.raw("build.json")["conversion"]["options"]["keep_io_types"] is keep_io
    assert ran.value("probe_faults") == 0


def test_a_static_conversion_states_its_calibration_by_digest(climbed: Bench, tmp_path: Path) -> None:
    there = climbed.copy(tmp_path / "root")
    pairs = tuple(data.Pair(query=f"sort a list {n}", document="open the file and read it") for n in range(4))
    write_new(there.root, records.CALIBRATION, data.render_pairs(pairs))
    facts = msgspec.structs.replace(data.pair_facts(pairs, source="calibration.jsonl"), path=records.CALIBRATION)
    options = msgspec.structs.replace(
        OPTIONS,
        L0=BuildOptions(int8=IntegerOptions(method="static", calibration="calibration.jsonl", per_channel=True)),
    )
    request = there.request("L0", "static-int8", options=options)
    ran = there.run(msgspec.structs.replace(request, inputs=msgspec.structs.replace(there.inputs, calibration=facts)))
    stated = ran.raw("build.json")["conversion"]
    assert stated["name"] == "onnxruntime.quantization.quantize_static"
    assert (stated["options"]["calibration"], stated["options"]["calibration_pairs"]) == (facts.digest, 4)
    assert stated["options"]["calibration_batches"] == 4  # of one pair each, since the graph takes any batch
    assert (stated["options"]["per_channel"], stated["options"]["calibrate_method"]) == (True, "MinMax")
    assert most_scales(ran) > 1
    assert ran.value("realised_precision") == "int8"
    assert ran.value("probe_faults") == 0
    assert float(str(ran.value("head_gap_ratio"))) <= HEAD_GAP["int8"]
    assert ran.raw("build.json")["head_note"] == ""


def test_a_dynamic_conversion_states_whether_scales_are_per_channel(climbed: Bench, tmp_path: Path) -> None:
    options = BuildOptions(int8=IntegerOptions(per_channel=True))
    ran = converted(climbed, tmp_path, lambda _model: None, options, "int8")
    assert ran.raw("build.json")["conversion"]["options"] == {
        "weight_type": "QInt8",
        "per_channel": True,
        "reduce_range": False,
    }
    assert most_scales(ran) > 1
    assert most_scales(climbed.earlier("L0", "cpu-int8")) == 1
    assert ran.value("realised_precision") == "int8"


def most_scales(ran: Ran) -> int:
    """How many scales the quantised weight that has most of them has."""
    model = onnx_file.outline(ran.root / ran.request.artifact / "model.onnx")
    return max(int(np.prod(item.dims)) for item in model.graph.initializer if item.name.endswith("_scale"))


def test_constants_on_either_side_of_half_precision_are_counted_apart(climbed: Bench, tmp_path: Path) -> None:
    planted = {"planted_least": 1e-10, "planted_small": -1e-9, "planted_large": 1e6, "planted_zero": 0.0}
    source = graphs.edited(
        climbed.graph(), tmp_path / "fp32" / "model.onnx", lambda model: graphs.constants(model, planted)
    )
    _, before = convert.convert(
        climbed.graph(), "fp16", BuildOptions(), tmp_path / "1", convert.Checks(loads, feed), None
    )
    _, after = convert.convert(source, "fp16", BuildOptions(), tmp_path / "2", convert.Checks(loads, feed), None)
    assert before is not None
    assert after is not None
    assert (after.clipped_high - before.clipped_high, after.clipped_low - before.clipped_low) == (1, 2)


def test_fp16_on_the_cpu_is_said_to_be_storage_only(climbed: Bench) -> None:
    half, single = (climbed.earlier("L0", f"cpu-{name}") for name in ("fp16", "fp32"))
    casts = half.measured()["optimised_casts"]
    assert casts.note == "storage only: the CPU computes in fp32, between Casts"
    assert int(str(casts.value)) > int(str(single.value("optimised_casts")))
    assert int(str(casts.value)) > int(str(half.value("operator_count.Cast")))
    assert single.measured()["optimised_casts"].note == ""


NAMES = ("input_ids", "attention_mask", "token_type_ids")


@contextmanager
def messages() -> Iterator[list[int]]:
    """The bytes of every protobuf message that Python code, the libraries' too, turns into one string meanwhile."""
    sizes: list[int] = []

    def note(_frame: Any, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ in {"SerializeToString", "SerializePartialToString"}:
            sizes.append(called.__self__.ByteSize())

    sys.setprofile(note)
    try:
        yield sizes
    finally:
        sys.setprofile(None)


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An fp32 graph whose weights, 7.7 MB and nearly all of them embeddings, lie beside it."""
    folder = tmp_path_factory.mktemp("beside")
    make_bert(folder / "model", vocabulary=60_000)
    found = candidate.resolve("./model", None, folder)
    return export.export(found.folder, found.candidate, BuildOptions(external_data=True), NAMES, 1, folder).graph


def feed() -> convert.Feed:
    return {name: np.ones((1, 8), dtype=np.int64) for name in NAMES}


def loads(graph: Path) -> str:
    RUNTIMES["cpu"].load(graph, 1)
    return ""


@pytest.mark.parametrize(
    ("precision", "method"), [("fp32", "dynamic"), ("fp16", "dynamic"), ("int8", "dynamic"), ("int8", "static")]
)
def test_weights_beside_the_graph_are_at_no_time_in_one_message_with_it(
    beside: Path, tmp_path: Path, precision: Precision, method: Any
) -> None:
    """A message ends at 2 GiB, whatever the size of the model here: so a model larger than that goes the same way."""
    options = BuildOptions(external_data=True, int8=IntegerOptions(method=method))
    facts = data.pair_facts((data.Pair(query="a", document="b"),), source="one")
    weights = onnx_file.size(beside)
    assert weights > 7_000_000
    with messages() as sizes:
        graph, _ = convert.convert(
            beside, precision, options, tmp_path, convert.Checks(loads, feed), (facts, lambda: iter([feed()]))
        )
    assert max(sizes, default=0) < weights / 20
    assert bool(sizes) == (precision != "fp32")
    assert onnx_file.files(graph) == (onnx_file.WEIGHTS,)
    assert graph.stat().st_size < weights / 20
    assert loads(graph) == ""


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_the_export_of_another_target_is_only_read(beside: Path, tmp_path: Path, precision: Precision) -> None:
    """Its folder is sealed later: nothing may be written there even for a moment, since a run can end at any time."""
    before = beside.parent.stat().st_mtime_ns
    options = BuildOptions(external_data=True)
    convert.convert(beside, precision, options, tmp_path, convert.Checks(loads, feed), None)
    assert beside.parent.stat().st_mtime_ns == before


def test_a_search_leaves_the_first_graph_and_the_mended_one(climbed: Bench, tmp_path: Path) -> None:
    """Sixty trials of a model of gigabytes would fill a disk."""
    source = graphs.edited(climbed.graph(), tmp_path / "fp32" / "model.onnx", graphs.beyond_half)
    made = tmp_path / "scratch"
    graph, done = convert.convert(source, "fp16", BuildOptions(), made, convert.Checks(loads, feed), None)
    assert done is not None
    assert done.search is not None
    assert done.search.trials > 2
    assert sorted(path.name for path in (made / "half").iterdir()) == sorted({"1", graph.parent.name})
    assert graph.parent.name != "1"
