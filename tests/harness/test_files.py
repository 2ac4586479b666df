from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from blake3 import blake3

from harness import files
from harness.errors import AskedWrongly, NotSealed
from tests.support.ladders import qualify


def _refused(paths: list[Path | None], root: Path | None = None) -> str:
    with pytest.raises(AskedWrongly) as caught:
        files.check_new(paths, root)
    return str(caught.value)


def test_a_file_that_could_not_be_written_after_the_work_is_refused_before_it(tmp_path: Path) -> None:
    files.check_new([tmp_path / "a.xml", None, tmp_path / "b.sarif"], tmp_path / "root")
    lost = tmp_path / "no" / "a.xml"
    assert _refused([lost]) == f"{lost}: expected a path in a folder that exists, got none; make the folder first"
    one = tmp_path / "a.xml"
    assert _refused([one, one]) == f"{one}: expected a file for each option, got one path twice; name another"
    other = tmp_path / "." / ".." / tmp_path.name / "a.xml"
    assert "got one path twice" in _refused([one, other])


def test_a_file_in_the_root_that_is_to_be_made_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / "root" / "junit.xml"
    said = f"{inside}: expected a path outside the root to make, got one in root; name another"
    assert _refused([inside], tmp_path / "root") == said
    assert "got one in root" in _refused([tmp_path / "root"], tmp_path / "root")


@pytest.mark.parametrize("option", ["--junit", "--sarif"])
def test_run_refuses_a_report_it_could_not_write_before_it_reads_the_ladder(option: str, tmp_path: Path) -> None:
    said = qualify("run", tmp_path / "none.yaml", "--out", tmp_path / "root", option, tmp_path / "root" / "x")
    assert said.code == 64
    assert "expected a path outside the root to make, got one in root" in said.err
    assert not (tmp_path / "root").exists()


def test_of_several_files_all_are_written_or_none(tmp_path: Path) -> None:
    one, lost = tmp_path / "one", tmp_path / "no" / "two"
    with pytest.raises(NotSealed):
        files.write_all({one: b"1", lost: b"2"})
    assert list(tmp_path.iterdir()) == []
    files.write_all({one: b"1"})
    with pytest.raises(AskedWrongly):
        files.write_all({tmp_path / "new": b"2", one: b"3"})
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("one", b"1")]


@pytest.mark.parametrize("size", [0, 4, 2**20 - 1, 2**20, 2**20 + 1])
def test_a_file_outside_any_root_is_hashed_whole_through_a_link_and_whatever_it_is(tmp_path: Path, size: int) -> None:
    data = (b"PK\x03\x04" * (size // 4 + 1))[:size]
    (tmp_path / "blob").write_bytes(data)
    (tmp_path / "model.zip").symlink_to("blob")
    assert files.hash_file(tmp_path / "model.zip") == blake3(data).hexdigest()


def test_a_file_that_changes_while_it_is_hashed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "f"
    place.write_bytes(b"one")
    time.sleep(0.02)  # the clock of file times may tick as slowly as 100 times a second

    class Meddler:
        def update(self, _block: bytes) -> None:
            os.utime(place, ns=(1, 1))

    monkeypatch.setattr(files, "blake3", Meddler)
    with pytest.raises(OSError, match=r"f: expected a file that nobody writes, got a change while it was read$"):
        files.hash_file(place)
