from __future__ import annotations

import errno
import os
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3

from evidence import tree
from evidence.manifest import Fault


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    """The test's own folder, open; it holds `a.txt` and `b/c.txt`."""
    (tmp_path / "b").mkdir()
    (tmp_path / "a.txt").write_bytes(b"one")
    (tmp_path / "b/c.txt").write_bytes(b"three")
    opened = os.open(tmp_path, os.O_RDONLY)
    yield opened
    os.close(opened)


def hexdigest(data: bytes) -> str:
    return blake3(data).hexdigest()


def test_files_are_listed_by_path_without_sizes_unless_asked(folder: int) -> None:
    assert tree.list_files(folder) == tree.Listing({"a.txt": 0, "b/c.txt": 0}, [])
    assert tree.list_files(folder, sizes=True) == tree.Listing({"a.txt": 3, "b/c.txt": 5}, [])


def test_every_file_is_hashed(folder: int) -> None:
    digests, faults = tree.hash_files(folder, {"a.txt": 0, "b/c.txt": 0})
    assert digests == {"a.txt": hexdigest(b"one"), "b/c.txt": hexdigest(b"three")}
    assert faults == []


def test_progress_counts_bytes(folder: int) -> None:
    seen: list[tuple[int, int]] = []
    tree.hash_files(folder, {"a.txt": 3, "b/c.txt": 5}, lambda done, total: seen.append((done, total)))
    assert seen == [(3, 8), (8, 8)]


def test_a_file_of_many_blocks_is_hashed_whole(tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "BLOCK_BYTES", 7)
    data = bytes(range(256)) * 3
    (tmp_path / "big.bin").write_bytes(data)
    assert tree.hash_files(folder, {"big.bin": 0})[0] == {"big.bin": hexdigest(data)}
    assert tree.read_file(folder, "big.bin", 768) == (data, hexdigest(data))


@pytest.mark.parametrize("size", [20, 21, 22, 27, 28, 29, 300])
def test_a_big_file_is_read_ahead_and_hashed_whole(
    tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(tree, "BLOCK_BYTES", 7)
    monkeypatch.setattr(tree, "BIG_BYTES", 20)
    readers: set[str] = set()
    read = os.readv

    def told(file: int, buffers: list[memoryview]) -> int:
        readers.add(threading.current_thread().name)
        return read(file, buffers)

    monkeypatch.setattr(os, "readv", told)
    data = (bytes(range(256)) * 2)[:size]
    (tmp_path / "big.bin").write_bytes(data)
    seen: list[tuple[int, int]] = []
    digests = tree.hash_files(folder, {"big.bin": size}, lambda done, total: seen.append((done, total)))
    assert digests == ({"big.bin": hexdigest(data)}, [])
    assert seen == [(min(done, size), size) for done in range(7, size + 7, 7)]
    assert "MainThread" not in readers
    assert bool(readers) == (size > 20)
    readers.clear()
    assert tree.read_file(folder, "big.bin", size) == (data, hexdigest(data))
    assert readers == set()  # what is held whole is read whole


def test_a_big_file_of_another_kind_is_refused_by_its_first_block_and_closed(
    tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "BLOCK_BYTES", 7)
    monkeypatch.setattr(tree, "BIG_BYTES", 20)
    (tmp_path / "big.bin").write_bytes(b"\x7fELF" + bytes(90))
    before, threads = len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
    read: list[tree.Block] = []
    with pytest.raises(tree.UnsafeFileError, match=r"^big.bin: expected inert data, got the first bytes of a program$"):
        tree._hash(folder, "big.bin", "big.bin", read.append)
    assert read == []
    assert (len(list(Path("/proc/self/fd").iterdir())), threading.active_count()) == (before, threads)


def test_an_error_of_reading_ahead_is_the_error_of_that_file(
    tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "BLOCK_BYTES", 7)
    monkeypatch.setattr(tree, "BIG_BYTES", 20)
    (tmp_path / "big.bin").write_bytes(bytes(90))
    read, left = os.readv, iter((1, 1, 0))

    def broken(file: int, buffers: list[memoryview]) -> int:
        if not next(left):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(file, buffers)

    monkeypatch.setattr(os, "readv", broken)
    assert tree.hash_files(folder, {"big.bin": 90}) == (
        {},
        [Fault("E-READ", "big.bin", "big.bin: expected something that can be read, got Input/output error")],
    )


def test_a_big_file_that_ends_early_has_changed(tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "BLOCK_BYTES", 7)
    monkeypatch.setattr(tree, "BIG_BYTES", 20)
    place = tmp_path / "big.bin"
    place.write_bytes(bytes(90))
    read, left = os.readv, iter((90, 90, 14, *[14] * 20))  # bytes of the file at each read

    def cut(file: int, buffers: list[memoryview]) -> int:
        os.truncate(place, next(left))
        return read(file, buffers)

    monkeypatch.setattr(os, "readv", cut)
    digests, faults = tree.hash_files(folder, {"big.bin": 90})
    assert (digests, [item.rule for item in faults]) == ({}, ["E-CHANGED"])


@pytest.mark.parametrize("size", [0, 1, 2**20 - 1, 2**20, 2**20 + 1])
def test_sizes_around_a_block_are_hashed_whole(tmp_path: Path, folder: int, size: int) -> None:
    data = b"x" * size
    (tmp_path / "f.bin").write_bytes(data)
    assert tree.hash_files(folder, {"f.bin": 0}) == ({"f.bin": hexdigest(data)}, [])


def test_empty_folders_are_named(tmp_path: Path, folder: int) -> None:
    (tmp_path / "b/d/e").mkdir(parents=True)
    assert tree.list_files(folder).faults == [
        Fault("E-EMPTY", "b/d/e", "b/d/e: expected a folder that holds a file, got an empty folder")
    ]


def test_an_empty_root_has_no_files_and_no_fault_here(tmp_path: Path) -> None:
    opened = os.open(tmp_path, os.O_RDONLY)
    assert tree.list_files(opened) == tree.Listing({}, [])
    os.close(opened)


def test_links_to_files_folders_and_nothing_are_named(tmp_path: Path, folder: int) -> None:
    (tmp_path / "file").symlink_to("a.txt")
    (tmp_path / "folder").symlink_to("b")
    (tmp_path / "nothing").symlink_to("nowhere")
    found = tree.list_files(folder)
    assert sorted(found.files) == ["a.txt", "b/c.txt"]
    assert [(item.rule, item.path) for item in found.faults] == [
        ("E-LINK", name) for name in ("file", "folder", "nothing")
    ]


def test_pipes_and_sockets_are_named(tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        found = tree.list_files(folder).faults
    assert [(item.rule, item.path) for item in found] == [("E-TYPE", "pipe"), ("E-TYPE", "socket")]


def test_folders_deeper_than_a_path_may_be_are_not_entered(tmp_path: Path, folder: int) -> None:
    (tmp_path / "/".join("d" * 15)).mkdir(parents=True)
    (tmp_path / "/".join("d" * 15) / "f").write_bytes(b"")
    assert tree.list_files(folder).faults == []
    (tmp_path / "/".join("e" * 40)).mkdir(parents=True)
    assert [(item.rule, item.path) for item in tree.list_files(folder).faults] == [("E-PATH", "/".join("e" * 16))]


def test_more_files_than_a_manifest_can_name_are_refused(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "FILES_LIMIT", 2)
    assert tree.list_files(folder).faults == []
    monkeypatch.setattr(tree, "FILES_LIMIT", 1)
    assert tree.list_files(folder).faults == [Fault("E-EXTRA", "", "root: expected at most 1 files, got more")]
    monkeypatch.setattr(tree, "FILES_LIMIT", 0)
    assert len(tree.list_files(folder).files) == 1


def test_a_folder_that_is_gone_when_it_is_entered_is_named(
    tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_entry = tree._list_entry

    def gone(found: tree.Listing, entry: os.DirEntry[str], parent: int, path: str, *, sizes: bool) -> None:
        if path == "b":
            (tmp_path / "b").rename(tmp_path / "z")
        list_entry(found, entry, parent, path, sizes=sizes)

    monkeypatch.setattr(tree, "_list_entry", gone)
    assert tree.list_files(folder).faults == [Fault("E-READ", "b", "b: expected this file, got none")]


def test_a_folder_that_became_a_link_is_not_followed(tmp_path: Path, folder: int) -> None:
    listed = tree.list_files(folder).files
    (tmp_path / "b").rename(tmp_path / "z")
    (tmp_path / "b").symlink_to("z")
    digests, faults = tree.hash_files(folder, listed)
    assert list(digests) == ["a.txt"]
    assert [(item.rule, item.path) for item in faults] == [("E-READ", "b/c.txt")]


def test_a_file_that_became_a_link_is_not_followed(tmp_path: Path, folder: int) -> None:
    (tmp_path / "b/c.txt").unlink()
    (tmp_path / "b/c.txt").symlink_to("../a.txt")
    digests, faults = tree.hash_files(folder, {"a.txt": 0, "b/c.txt": 0})
    assert list(digests) == ["a.txt"]
    assert [(item.rule, item.path) for item in faults] == [("E-LINK", "b/c.txt")]


def test_a_file_that_is_gone_does_not_end_the_hashing(tmp_path: Path, folder: int) -> None:
    digests, faults = tree.hash_files(folder, {"a.gone": 0, "a.txt": 0, "b/c.txt": 0})
    assert list(digests) == ["a.txt", "b/c.txt"]
    assert [(item.rule, item.path) for item in faults] == [("E-READ", "a.gone")]


def test_a_file_that_became_a_pipe_is_refused_without_waiting(tmp_path: Path, folder: int) -> None:
    (tmp_path / "a.txt").unlink()
    os.mkfifo(tmp_path / "a.txt")
    assert tree.hash_files(folder, {"a.txt": 3})[1] == [
        Fault("E-TYPE", "a.txt", "a.txt: expected a file, got a device, socket, pipe or folder")
    ]


def test_a_file_with_a_second_name_is_refused(tmp_path: Path, folder: int) -> None:
    os.link(tmp_path / "a.txt", tmp_path / "b/d.txt")
    assert [(item.rule, item.path) for item in tree.hash_files(folder, {"a.txt": 0, "b/d.txt": 0})[1]] == [
        ("E-HARDLINK", "a.txt"),
        ("E-HARDLINK", "b/d.txt"),
    ]


@pytest.mark.parametrize("ahead", [5, 100])
@pytest.mark.parametrize("change", ["written", "grown", "cut", "replaced in time"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch, change: str, ahead: int
) -> None:
    monkeypatch.setattr(tree, "BLOCK_BYTES", 4)
    monkeypatch.setattr(tree, "BIG_BYTES", ahead)
    place = tmp_path / "f.bin"
    place.write_bytes(b"0123456789")
    time.sleep(0.02)  # the clock of file times may tick as slowly as 100 times a second

    def meddle(_done: int, _total: int) -> None:
        with place.open("r+b") as file:
            if change == "written":
                file.write(b"x")
            elif change == "grown":
                file.seek(0, os.SEEK_END)
                file.write(b"x")
            elif change == "cut":
                file.truncate(5)
        if change == "replaced in time":
            os.utime(place, ns=(1, 1))

    assert tree.hash_files(folder, {"f.bin": 10}, meddle) == (
        {},
        [Fault("E-CHANGED", "f.bin", "f.bin: expected a file that nobody writes, got a change while it was read")],
    )


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"PK\x03\x04", "an archive"),
        (b"PK\x05\x06", "an archive"),
        (b"\x1f\x8b\x08", "an archive"),
        (b"7z\xbc\xaf\x27\x1c", "an archive"),
        (b"\xfd7zXZ\x00", "an archive"),
        (b"\x28\xb5\x2f\xfd", "an archive"),
        (b"Rar!\x1a\x07", "an archive"),
        (b"BZh91AY&SY", "an archive"),
        (b"\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00", "a pickle"),
        (b"\x80\x05\x95\n\x01\x02\x03\x00\x00\x00\x00", "a pickle"),
        (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9", "a pickle"),
        (b"\x7fELF", "a program"),
        (b"\xcf\xfa\xed\xfe", "a program"),
        (b"\xca\xfe\xba\xbe", "a program"),
        (b"\x00asm\x01", "a program"),
    ],
)
def test_first_bytes_of_other_kinds_are_refused_in_files_of_any_name(
    tmp_path: Path, folder: int, head: bytes, kind: str
) -> None:
    (tmp_path / "raw.f32").write_bytes(head + b"more")
    assert tree.hash_files(folder, {"raw.f32": 0})[1] == [
        Fault("E-KIND", "raw.f32", f"raw.f32: expected inert data, got the first bytes of {kind}")
    ]
    (tmp_path / "raw.f32").write_bytes(head[:-1])
    assert tree.hash_files(folder, {"raw.f32": 0})[1] == []
    (tmp_path / "raw.f32").write_bytes(b" " + head)
    assert tree.hash_files(folder, {"raw.f32": 0})[1] == []


def test_bytes_that_are_not_the_first_may_be_any(tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "BLOCK_BYTES", 4)
    (tmp_path / "raw.f32").write_bytes(b"raw PK\x03\x04")
    assert tree.hash_files(folder, {"raw.f32": 0}) == ({"raw.f32": hexdigest(b"raw PK\x03\x04")}, [])


def test_mode_bits_carry_no_meaning(tmp_path: Path, folder: int) -> None:
    (tmp_path / "a.txt").chmod(0o4777)
    assert tree.hash_files(folder, {"a.txt": 0}) == ({"a.txt": hexdigest(b"one")}, [])


def test_a_file_that_is_read_whole_is_held_once(tmp_path: Path, folder: int) -> None:
    size = 1 << 22
    (tmp_path / "f.bin").write_bytes(bytes(size))
    tracemalloc.start()
    try:
        assert len(tree.read_file(folder, "f.bin", size)[0]) == size
        assert tracemalloc.get_traced_memory()[1] < 1.5 * size
    finally:
        tracemalloc.stop()


def test_a_file_over_the_limit_is_not_read(folder: int) -> None:
    assert tree.read_file(folder, "b/c.txt", 5) == (b"three", hexdigest(b"three"))
    with pytest.raises(tree.UnsafeFileError, match=r"^b/c.txt: expected at most 4 bytes, got 5$") as refused:
        tree.read_file(folder, "b/c.txt", 4)
    assert refused.value.fault.rule == "E-SIZE"


def test_an_error_without_words_is_named_by_its_kind() -> None:
    assert tree.fault_of(OSError(), "a").message == "a: expected something that can be read, got OSError"


def test_no_descriptor_is_left_open(tmp_path: Path, folder: int) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    (tmp_path / "c").symlink_to("a.txt")
    for path in ("a.txt", "c", "none", "b/none", "none/none"):
        tree.hash_files(folder, {path: 0})
        with pytest.raises(OSError, match=r"."):
            tree.read_file(folder, f"none/{path}", 9)
    tree.list_files(folder)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_that_ends_early_is_refused_though_its_size_says_nothing(
    folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that gives fewer bytes than it promised, and no error."""
    path = next(iter(tree.list_files(folder).files))
    monkeypatch.setattr(os, "read", lambda _file, _size: b"")
    digests, faults = tree.hash_files(folder, {path: 0})
    assert (digests, [item.rule for item in faults]) == ({}, ["E-CHANGED"])
