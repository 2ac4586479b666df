from __future__ import annotations

import ctypes
import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evidence import seal, tree
from evidence.manifest import digest_of
from evidence.seal import SealError
from evidence.verify import verify
from harness import leftovers
from tests.evidence import sealing
from tests.evidence.conftest import MakeRoot, rules
from tests.roots.make import GOOD, LEAST, SMALL

REPO = Path(__file__).parent.parent.parent


def staged(out: Path, files: dict[str, bytes] = LEAST) -> Path:
    return sealing.staged(out, files)


# --- stage and write --------------------------------------------------------------------------------------------------


def test_staging_folder_is_new_beside_the_root_and_recognisable(tmp_path: Path) -> None:
    one, two = seal.stage(tmp_path / "runs/a"), seal.stage(tmp_path / "runs/a")
    assert one != two
    assert one.parent == tmp_path / "runs"
    assert one.name.startswith(f"a.staging-{os.getpid()}-")
    assert list(one.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_a_root_that_exists_in_any_form_is_refused(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "root"
    if kind == "file":
        out.write_bytes(b"")
    elif kind == "folder":
        out.mkdir()
    else:
        out.symlink_to("nowhere")
    with pytest.raises(SealError) as refused:
        seal.stage(out)
    assert (
        str(refused.value)
        == f"{out}: expected a path where nothing is yet, got something: choose another, or `qualify rm` it"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_a_root_under_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SealError, match="expected a folder that can be made, got"):
        seal.stage(tmp_path / "file/root")


def test_files_are_written_once_with_their_parents(tmp_path: Path) -> None:
    seal.write_new(tmp_path, "a/b/c.txt", b"one")
    seal.write_new(tmp_path, "a/d.txt", b"")
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"one"
    with pytest.raises(FileExistsError):
        seal.write_new(tmp_path, "a/b/c.txt", b"two")
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"one"


@pytest.mark.parametrize("path", ["../a.txt", "/a.txt", ".a", "a.pkl", "SEAL"])
def test_a_path_that_no_root_may_hold_is_never_written(tmp_path: Path, path: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(SealError, match="a file that no root may hold"):
        seal.write_new(inside, path, b"x")
    assert [place.name for place in tmp_path.rglob("*")] == ["inside"]


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "inside/a").symlink_to("../outside")
    (tmp_path / "inside/b.txt").symlink_to("../outside/b.txt")
    with pytest.raises(NotADirectoryError):
        seal.write_new(tmp_path / "inside", "a/b.txt", b"x")
    with pytest.raises(FileExistsError):
        seal.write_new(tmp_path / "inside", "b.txt", b"x")
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_half_written_file_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    real = os.write

    def write(file: int, data: bytes) -> int:
        if len(data) < 6:
            raise error
        return real(file, data[:2])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(type(error)):
        seal.write_new(tmp_path, "a.txt", b"12345678")
    assert list(tmp_path.iterdir()) == []


# --- seal -------------------------------------------------------------------------------------------------------------


def test_a_sealed_root_verifies_and_has_the_digest_of_its_manifest(tmp_path: Path) -> None:
    out = tmp_path / "root"
    digest = seal.seal(staged(out, GOOD), out)
    assert digest == digest_of((out / "MANIFEST.b3").read_bytes())
    assert verify(out, expect=digest).ok
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_the_same_files_give_the_same_digest_whoever_writes_them_in_whatever_order(tmp_path: Path) -> None:
    one = seal.seal(staged(tmp_path / "a", GOOD), tmp_path / "a")
    other = seal.seal(staged(tmp_path / "b", dict(reversed(GOOD.items()))), tmp_path / "b")
    assert one == other


def test_b3sum_agrees_with_the_manifest(sealed: MakeRoot) -> None:
    root = sealed(GOOD)
    done = subprocess.run(["b3sum", "--check", "MANIFEST.b3"], cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"{path}: OK" for path in sorted(GOOD)]
    names = sorted(GOOD)
    printed = subprocess.run(["b3sum", *names], cwd=root, capture_output=True, check=True).stdout
    assert printed == (root / "MANIFEST.b3").read_bytes()


def test_everything_in_a_root_is_read_only(sealed: MakeRoot) -> None:
    root = sealed(LEAST)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (root, *root.rglob("*"))}
    assert modes == {0o444, 0o555}


def test_empty_folders_that_a_killed_child_left_are_dropped(tmp_path: Path) -> None:
    out = tmp_path / "root"
    staging = staged(out)
    (staging / "x/y/z").mkdir(parents=True)
    seal.seal(staging, out)
    assert {path.name for path in out.iterdir()} == {"MANIFEST.b3", "SEAL", *(path.split("/")[0] for path in LEAST)}


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda folder: (folder / "a.lnk").symlink_to("a.txt"), ["E-LINK"]),
        (lambda folder: os.link(folder / "a.txt", folder / "d.txt"), ["E-HARDLINK"]),
        (lambda folder: os.mkfifo(folder / "pipe"), ["E-TYPE"]),
        (lambda folder: (folder / ".hidden").write_bytes(b""), ["E-DOTFILE"]),
        (lambda folder: (folder / "w.pt").write_bytes(b""), ["E-KIND"]),
        (lambda folder: (folder / "w.bin").write_bytes(b"PK\x03\x04"), ["E-KIND"]),
        (lambda folder: (folder / "A.txt").write_bytes(b""), ["E-CASE"]),
        (lambda folder: (folder / "seal").write_bytes(b""), ["E-PATH"]),
        (lambda folder: (folder / "caf\u00e9").write_bytes(b""), ["E-PATH"]),
    ],
)
def test_what_no_root_may_hold_is_not_sealed(tmp_path: Path, spoil: Callable[[Path], object], found: list[str]) -> None:
    out = tmp_path / "root"
    staging = staged(out, SMALL)
    spoil(staging)
    with pytest.raises(SealError) as refused:
        seal.seal(staging, out)
    assert rules(refused.value.faults) == found
    assert str(refused.value).startswith(
        f"{staging}: expected only what a root may hold: nothing was published\n  {found[0]} "
    )
    assert [path.name for path in tmp_path.iterdir()] == [staging.name]


def test_an_empty_folder_is_not_sealed(tmp_path: Path) -> None:
    staging = seal.stage(tmp_path / "root")
    with pytest.raises(SealError):
        seal.seal(staging, tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_records_that_do_not_belong_together_are_not_published(tmp_path: Path) -> None:
    out = tmp_path / "root"
    staging = staged(out, GOOD | {"ladder.yaml": b"other\n"})
    with pytest.raises(SealError) as refused:
        seal.seal(staging, out)
    assert rules(refused.value.faults) == ["E-LADDER"]
    assert not out.exists()


def test_what_no_reader_could_tell_is_not_published(tmp_path: Path) -> None:
    """Without a plan no rule is known to be broken, but not every check can run."""
    out = tmp_path / "root"
    staging = staged(out, SMALL)
    with pytest.raises(SealError) as refused:
        seal.seal(staging, out)
    assert str(refused.value) == (
        f"{staging}: expected a root that verifies, got there is no plan.json, so nothing says what was to be done: "
        "it was not published"
    )
    assert [path.name for path in tmp_path.iterdir()] == [staging.name]


def test_a_child_that_still_writes_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that changes after it was hashed: the verifier, which hashes again, refuses the staging folder."""
    out = tmp_path / "root"
    staging = staged(out, SMALL)
    settle = seal._settle

    def meddle(folder: Path) -> None:
        (staging / "a.txt").write_bytes(b"new\n")
        settle(folder)

    monkeypatch.setattr(seal, "_settle", meddle)
    with pytest.raises(SealError) as refused:
        seal.seal(staging, out)
    assert rules(refused.value.faults) == ["E-HASH"]
    assert not out.exists()


@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize("kind", ["file", "empty folder", "root", "dangling link"])
def test_publishing_never_replaces_what_came_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, *, fallback: bool
) -> None:
    if fallback:
        monkeypatch.setattr(seal, "_rename_noreplace", no_renameat2)
    out = tmp_path / "root"
    staging = staged(out)
    if kind == "file":
        out.write_bytes(b"precious")
    elif kind == "dangling link":
        out.symlink_to("nowhere")
    else:
        out.mkdir()
    if kind == "root":
        (out / "SEAL").write_bytes(b"x")
    before = out.lstat().st_ino
    with pytest.raises(SealError, match=r"expected to publish it as .*File exists.*nothing was published"):
        seal.seal(staging, out)
    assert out.lstat().st_ino == before
    assert verify(staging).faults == ()


def no_renameat2(_source: Path, _target: Path) -> None:
    raise OSError(errno.EINVAL, "Invalid argument")


def test_publishing_works_where_the_file_system_has_no_exclusive_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal, "_rename_noreplace", no_renameat2)
    out = tmp_path / "root"
    assert verify(out, seal.seal(staged(out, GOOD), out)).ok
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


@pytest.mark.parametrize("emptied", [True, False])
def test_a_fallback_rename_that_fails_leaves_no_empty_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, emptied: bool
) -> None:
    monkeypatch.setattr(seal, "_rename_noreplace", no_renameat2)
    out = tmp_path / "root"
    staging = staged(out)

    def rename(_self: Path, target: Path) -> Path:
        if not emptied:
            (target / "file").write_bytes(b"somebody else's")
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(SealError, match="Input/output error"):
        seal.seal(staging, out)
    assert out.exists() is not emptied


def test_a_system_without_renameat2_takes_the_fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_args, **_options: object())
    with pytest.raises(OSError, match="Function not implemented"):
        seal._rename_noreplace(tmp_path / "a", tmp_path / "b")
    (tmp_path / "a").mkdir()
    seal.rename_new(tmp_path / "a", tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_an_error_of_the_exclusive_rename_is_no_reason_to_try_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_source: Path, _target: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(seal, "_rename_noreplace", broken)
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="Input/output error"):
        seal.rename_new(tmp_path / "a", tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


# --- crashes ----------------------------------------------------------------------------------------------------------

CALLS = {
    os: (
        *("open", "close", "read", "readv", "write", "fsync", "fchmod", "unlink", "rename"),
        *("mkdir", "rmdir", "scandir", "listdir", "stat", "lstat", "fstat"),
    ),
    seal: ("_rename_noreplace",),
}
PURE = {"fspath", "getcwd", "getpid", "strerror", "urandom"}  # of `posix`, but no call to a file system


def staged_and_left(out: Path) -> Path:
    """A staging folder in which a child left an empty folder."""
    staging = staged(out)
    (staging / "empty").mkdir()
    return staging


class Failing:
    """Lets the first `after` file-system calls through and fails the next one; `calls` counts them all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int, number: int) -> None:
        self.after, self.number, self.calls, self.failed = after, number, 0, ""
        monkeypatch.setattr(tree, "BIG_BYTES", 300)  # so that one file is read ahead by a thread
        for module, names in CALLS.items():
            for name in names:
                monkeypatch.setattr(module, name, self.wrap(name, getattr(module, name)))

    def wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls != self.after + 1:
                return real(*args, **kwargs)
            self.failed = name
            if name == "close":  # close(2) frees the descriptor even when it fails
                real(*args, **kwargs)
            raise OSError(self.number, os.strerror(self.number))

        return call


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("fallback", [False, True])
def test_an_error_at_any_file_system_call_leaves_no_root_or_one_that_verifies(
    tmp_path: Path, number: int, *, fallback: bool
) -> None:
    """Fails every call of staging, writing and sealing, one after another, until a seal gets through."""
    failed: list[str] = []
    outcomes: set[tuple[bool, bool]] = set()
    while True:
        place = tmp_path / str(len(failed))
        place.mkdir()
        out = place / "root"
        with pytest.MonkeyPatch.context() as monkeypatch:
            if fallback:
                monkeypatch.setattr(seal, "_rename_noreplace", no_renameat2)
            failing = Failing(monkeypatch, len(failed), number)
            try:
                seal.seal(staged_and_left(out), out)
                said = True
            except (SealError, OSError):
                said = False
        if not failing.failed:
            break
        failed.append(failing.failed)
        there = out.exists()
        outcomes.add((said, there))
        assert there or not said
        assert not there or verify(out).faults == ()
        left = [path for path in place.iterdir() if path != out]
        assert all(leftovers.is_aside(path) for path in left)
        for path in left:
            leftovers.remove(path)
    assert said
    assert verify(out).faults == ()
    assert len(failed) > 100
    assert set(failed) == {*CALLS[os], "_rename_noreplace"} - {"unlink", *(() if fallback else ("rename",))}
    assert (False, False) in outcomes
    assert (False, True) in outcomes  # published, but the parent could not be flushed: said, and the root verifies


@pytest.mark.parametrize("fallback", [False, True])
def test_every_file_system_call_of_a_seal_is_among_those_that_are_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, fallback: bool
) -> None:
    """Counts each call into `posix` that a seal makes, in its threads too."""
    made: Counter[str] = Counter()

    def seen(_frame: object, event: str, called: object) -> None:
        if event == "c_call" and getattr(called, "__module__", None) == os.open.__module__:
            made[called.__name__] += 1  # type: ignore[attr-defined]

    if fallback:
        monkeypatch.setattr(seal, "_rename_noreplace", no_renameat2)
    monkeypatch.setattr(tree, "BIG_BYTES", 300)
    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        seal.seal(staged_and_left(tmp_path / "root"), tmp_path / "root")
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert set(made) - PURE == set(CALLS[os]) - {"unlink", *(() if fallback else ("rename",))}  # that is to tidy up
    assert made.total() > 100


WRITER = """
import sys
from pathlib import Path
from evidence import seal
from tests.roots.make import Climb
weights = {f"{name}.bin": bytes([name]) * 50_000 for name in range(8)}
files = Climb(artifacts={"cpu-fp32": weights}).build()
out = Path(sys.argv[1])
for number in range(1000):
    place = out.with_name(f"root{number}")
    staging = seal.stage(place)
    for path, data in files.items():
        seal.write_new(staging, path, data)
    print(seal.seal(staging, place), flush=True)
"""


def test_kill_at_any_moment_leaves_whole_roots_and_named_leftovers(tmp_path: Path) -> None:
    """Real kills, at moments spread over a little more than one seal."""
    found = 0
    for turn in range(12):
        place = tmp_path / str(turn)
        place.mkdir()
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(place / "root")],
            cwd=REPO,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.003 * turn)
        os.kill(child.pid, signal.SIGKILL)
        said = child.stdout.read().splitlines()
        child.wait()
        child.stdout.close()
        left = leftovers.leftovers(place)
        roots = [path for path in place.iterdir() if path not in left]
        assert len(roots) > len(said)
        assert all(verify(root).faults == () for root in roots)
        found += len(left)
        for path in left:
            assert leftovers.quarantine(path) in leftovers.leftovers(place)
    assert found > 0


def test_hashing_is_done_by_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable file ends a seal: it is never left out of the manifest."""
    out = tmp_path / "root"
    staging = staged(out, SMALL)
    listing = tree.list_files

    def list_and_lose(root: int, **options: bool) -> tree.Listing:
        found = listing(root, **options)
        (staging / "a.txt").unlink()
        return found

    monkeypatch.setattr(tree, "list_files", list_and_lose)
    with pytest.raises(SealError) as refused:
        seal.seal(staging, out)
    assert [(item.rule, item.path) for item in refused.value.faults] == [("E-READ", "a.txt")]
