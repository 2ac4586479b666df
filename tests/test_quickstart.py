"""The README's main job on the real quickstart reranker: run, verify, tamper, check with b3sum."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from evidence.verify import verify
from tests.support.ladders import qualify, writable_copy
from tests.support.once import once
from tests.support.readme import BLOCK, README, REPO, as_shown, demo, shape

QUICKSTART = REPO / "ladders" / "quickstart"


@pytest.fixture(scope="session")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one demo: ``root`` and what was printed in ``said.txt``. Read only."""

    def climb(folder: Path) -> None:
        done = demo(folder / "root")
        assert done.returncode == 0, done.stdout + done.stderr
        (folder / "said.txt").write_text(as_shown(done.stdout, folder / "root"), encoding="utf-8")

    return once(tmp_path_factory, "quickstart", climb)


def test_the_demo_prints_what_the_readme_shows(quickstart: Path) -> None:
    found = BLOCK.search(README.read_text(encoding="utf-8"))
    assert found is not None
    assert shape((quickstart / "said.txt").read_text(encoding="utf-8")) == shape(found[2])


def test_every_target_reaches_the_goal_with_its_realised_precision(quickstart: Path) -> None:
    said = qualify("show", quickstart / "root", "--json").json
    assert said["claim"]["coverage"]["complete"] is True
    for target in ("fp32", "fp16", "int8"):
        metrics = {m["metric"]: m["value"] for m in said["steps"][f"L0.cpu-{target}"]["measurements"]}
        assert metrics["realised_precision"] == target
    gap = next(m for m in said["steps"]["L2.cpu-fp32"]["measurements"] if m["metric"] == "max_abs_gap")
    assert gap["value"] <= 1e-4


def test_nothing_in_its_logs_is_taken_for_a_secret(quickstart: Path) -> None:
    outcomes = [json.loads(path.read_bytes()) for path in quickstart.glob("root/steps/*/outcome.json")]
    assert [outcome["redactions"] for outcome in outcomes] == [0] * 12


def test_the_model_ranks_well_above_chance_and_the_trivial_scorers(quickstart: Path) -> None:
    said = qualify("show", quickstart / "root", "--json").json
    found = {m["metric"]: m["value"] for m in said["steps"]["L3.cpu-fp32"]["measurements"]}
    assert found["ndcg_at_10_over_random"] >= 0.2
    assert found["ndcg_at_10"] > found["row_ndcg_at_10.constant"]
    assert found["ndcg_at_10"] > found["row_ndcg_at_10.length"]


def test_the_figures_of_the_model_card_are_those_of_the_demo(quickstart: Path) -> None:
    said = qualify("show", quickstart / "root", "--json").json
    found = {m["metric"]: m["value"] for m in said["steps"]["L3.cpu-fp32"]["measurements"]}
    card = (QUICKSTART / "MODEL_CARD.md").read_text(encoding="utf-8")
    row = re.search(r"\| \**quickstart reranker\** \| \**([0-9.]+)", card)
    bm25 = re.search(r"\| BM25[^|]*\| ([0-9.]+)", card)
    assert row is not None
    assert bm25 is not None
    assert float(row[1]) == pytest.approx(found["ndcg_at_10"], abs=0.0015)
    assert float(bm25[1]) == pytest.approx(found["row_ndcg_at_10.bm25"], abs=0.0015)


def test_the_evaluation_set_is_what_the_ladder_needs() -> None:
    groups = [json.loads(line) for line in (QUICKSTART / "groups.jsonl").read_bytes().split(b"\n") if line]
    assert len(groups) >= 60
    assert all(len(group["candidates"]) >= 10 for group in groups)
    assert sum({1, 2} <= {doc["gain"] for doc in group["candidates"]} for group in groups) >= 20
    assert sum(group["candidates"][0]["gain"] > 0 for group in groups) < len(groups) / 2
    assert all(len({doc["text"] for doc in group["candidates"]}) == len(group["candidates"]) for group in groups)


def test_the_pairs_for_parity_share_no_text_with_the_evaluation_set() -> None:
    groups = [json.loads(line) for line in (QUICKSTART / "groups.jsonl").read_bytes().split(b"\n") if line]
    pairs = [json.loads(line) for line in (QUICKSTART / "pairs.jsonl").read_bytes().split(b"\n") if line]
    held = {text for group in groups for text in (group["query"], *(doc["text"] for doc in group["candidates"]))}
    assert len(pairs) >= 40
    assert held.isdisjoint(text for pair in pairs for text in (pair["query"], pair["document"]))


def test_the_weights_are_safetensors_of_at_most_8_mb() -> None:
    sizes = {path.name: path.stat().st_size for path in (QUICKSTART / "model").iterdir()}
    assert sizes["model.safetensors"] <= 8_000_000
    assert not any(name.endswith((".bin", ".pt", ".pkl")) for name in sizes)


def test_b3sum_checks_the_root_and_any_flipped_byte_is_found(quickstart: Path, tmp_path: Path) -> None:
    root = writable_copy(quickstart / "root", tmp_path / "root")
    done = subprocess.run(["b3sum", "--check", "--quiet", "MANIFEST.b3"], cwd=root, capture_output=True, check=False)
    assert done.returncode == 0
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.stat().st_size)
    for number, path in enumerate(files):
        data = bytearray(path.read_bytes())
        place = (number * 7919) % len(data)
        data[place] ^= 1 << (number % 8)
        path.write_bytes(data)
        assert verify(root).exit_code == 20, path
        data[place] ^= 1 << (number % 8)
        path.write_bytes(data)
    assert verify(root).exit_code == 0


def test_the_page_of_the_root_is_one_file_that_asks_nothing_of_the_network(quickstart: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert qualify("report", quickstart / "root", "--html", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "quickstart" in text
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", text)


def test_chromium_opens_the_page(quickstart: Path, tmp_path: Path) -> None:
    chromium = shutil.which("chromium")
    assert chromium, "chromium is missing (apt install chromium): it shows that the report opens in a real browser"
    page = tmp_path / "report.html"
    assert qualify("report", quickstart / "root", "--html", page).code == 0
    switches = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync"
    command = [chromium, *switches.split(), f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "cpu-int8" in done.stdout
