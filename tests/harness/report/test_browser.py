"""The page in a real browser: desktop, phone and dark, with an accessibility checker; also a page full of hostile text."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.ladders import REPO, qualify

pytestmark = pytest.mark.slow

NODE = REPO / "tests/node"


def look(page: str, folder: Path) -> list[dict[str, Any]]:
    chromium, node = shutil.which("chromium"), shutil.which("node")
    assert chromium, "chromium is missing (apt install chromium): it shows that the report opens in a real browser"
    assert node, "node is missing (apt install nodejs): it drives the browser"
    assert (NODE / "node_modules/axe-core").exists(), "axe is missing (npm ci --prefix tests/node)"
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    command = [node, str(NODE / "look.mjs"), chromium, path.as_uri(), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.fixture
def comparison_page(tiny_root: Path, tmp_path: Path) -> str:
    """Two targets of a real root, with gates, as ``qualify diff --html`` writes it."""
    policy, page = tmp_path / "policy.yaml", tmp_path / "diff.html"
    policy.write_text(
        "format: 1\nname: release\ngates:\n  - {metric: ndcg_at_10, max_degradation: 0}\n  - {metric: opset, must_not_change: true}\n",
        encoding="utf-8",
    )
    pair = ("--pair", "cpu-fp32=cpu-int8", "--policy", policy, "--html", page)
    said = qualify("diff", tiny_root, tiny_root, *pair)
    assert said.code == 30, said.err
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("which", ["page", "hostile_page", "comparison_page"])
def test_the_page_is_quiet_fits_and_is_accessible(which: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    found = look(request.getfixturevalue(which), tmp_path)
    if which == "comparison_page":
        assert [view["violations"] for view in found] == [[], [], []]
    assert [view["name"] for view in found] == ["desktop", "phone", "dark"]
    for view in found:
        assert view["console"] == []
        assert view["requests"] == [(tmp_path / "report.html").as_uri()]
        assert view["wide"] <= 0, f"{view['name']}: {view['wide']} pixels wider than the screen"
        assert view["checked"] > 10
        assert [found for found in view["violations"] if found["impact"] in {"serious", "critical"}] == []
        assert (tmp_path / f"{view['name']}.png").stat().st_size > 10_000
