"""The import rules of the design, read from the source."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).parent.parent
ML = {
    "torch",
    "onnxruntime",
    "transformers",
    "datasets",
    "mteb",
    "onnx",
    "onnxscript",
    "openvino",
    "tokenizers",
    "safetensors",
    "peft",
}
ML_PLACES = ("harness/stages/", "harness/runtimes/", "harness/worker.py")
PURE = (
    "harness/ladder.py",
    "harness/plan.py",
    "harness/judge.py",
    "harness/diff",
    "harness/gate.py",
    "harness/policy.py",
    "harness/metrics/",
)
IO = {"os", "io", "subprocess", "socket", "pathlib", "shutil", "tempfile", "requests", "urllib", "psutil"}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for package in ("evidence", "harness"):
        for path in sorted((REPO / package).rglob("*.py")):
            yield path.relative_to(REPO).as_posix(), ast.parse(path.read_text())


def imported(node: ast.AST) -> set[str]:
    found: set[str] = set()
    for item in ast.walk(node):
        if isinstance(item, ast.Import):
            found |= {alias.name for alias in item.names}
        elif isinstance(item, ast.ImportFrom) and item.module:
            found |= {item.module} | {f"{item.module}.{alias.name}" for alias in item.names}
    return found


def tops(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


SOURCES = dict(sources())


@pytest.mark.parametrize("path", [path for path in SOURCES if path.startswith("evidence/")])
def test_evidence_imports_the_standard_library_blake3_and_itself(path: str) -> None:
    assert tops(imported(SOURCES[path])) <= sys.stdlib_module_names | {"blake3", "evidence"}


@pytest.mark.parametrize("path", [path for path in SOURCES if path.startswith(PURE)])
def test_pure_modules_do_no_io_and_import_no_ml_library(path: str) -> None:
    assert tops(imported(SOURCES[path])).isdisjoint(ML | IO)


@pytest.mark.parametrize("path", [path for path in SOURCES if not path.startswith(ML_PLACES)])
def test_ml_libraries_are_imported_only_in_stages_runtimes_and_the_worker(path: str) -> None:
    assert tops(imported(SOURCES[path])).isdisjoint(ML)


@pytest.mark.parametrize("path", [path for path in SOURCES if path.startswith(ML_PLACES)])
def test_ml_libraries_are_imported_inside_the_function_that_needs_them(path: str) -> None:
    top_level = [node for node in SOURCES[path].body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert all(tops(imported(node)).isdisjoint(ML) for node in top_level)


@pytest.mark.parametrize("path", list(SOURCES))
def test_nothing_imports_the_cli(path: str) -> None:
    assert "harness.cli" not in imported(SOURCES[path])


@pytest.mark.parametrize(
    "module",
    [
        *("harness.cli", "harness.recheck", "harness.report.terminal", "evidence.verify"),
        *("harness.comparison", "harness.reviewing", "harness.cli_approve", "harness.cli_diff"),
    ],
)
def test_reviewer_modules_load_no_ml_library(module: str) -> None:
    code = f"import sys, {module}; print(sorted({ML!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPO)
    assert done.stdout == "[]\n"
