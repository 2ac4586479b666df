from __future__ import annotations

from pathlib import Path

import pytest

from evidence.manifest import Fault, digest_of
from harness.glance import glance
from tests.roots import make

SHOWN = ("plan.json", "lineage.json")


def good(folder: Path) -> Path:
    """A whole root that may be changed."""
    make.Case("good", (), "", make.GOOD).write(folder)
    return folder / "good" / "root"


def test_a_glance_reads_what_it_is_asked_for_and_nothing_else(tmp_path: Path) -> None:
    root = good(tmp_path)
    for path in root.glob("steps/*/*.log"):
        path.write_bytes(b"changed")
    found = glance(root, SHOWN)
    assert (found.digest, found.faults) == (digest_of((root / "MANIFEST.b3").read_bytes()), ())
    assert found.files == {path: (root / path).read_bytes() for path in SHOWN}


@pytest.mark.parametrize(
    ("path", "rule", "message"),
    [
        ("SEAL", "E-SEAL", "SEAL: expected "),
        ("MANIFEST.b3", "E-SEAL", "SEAL: expected blake3:"),
        ("plan.json", "E-HASH", "plan.json: expected blake3 "),
    ],
)
def test_a_glance_gives_nothing_of_a_root_whose_parts_disagree(
    tmp_path: Path, path: str, rule: str, message: str
) -> None:
    root = good(tmp_path)
    (root / path).write_bytes((root / path).read_bytes()[:-1] + b" ")
    found = glance(root, SHOWN)
    assert found.files == {}
    assert rule in {item.rule for item in found.faults}
    assert any(item.message.startswith(message) for item in found.faults)


def test_a_glance_names_every_record_that_is_not_sealed_or_not_there(tmp_path: Path) -> None:
    root = good(tmp_path)
    (root / "lineage.json").unlink()
    assert glance(root, (*SHOWN, "other.json")).faults == (
        Fault("E-MISSING", "lineage.json", "lineage.json: expected this file, got none"),
        Fault("E-RECORD", "other.json", "other.json: expected this record, got none"),
    )


def test_a_glance_at_no_folder_is_a_fault(tmp_path: Path) -> None:
    found = glance(tmp_path / "none", SHOWN)
    assert (found.digest, [item.rule for item in found.faults]) == (None, ["E-READ"])
