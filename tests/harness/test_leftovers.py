from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from evidence import seal
from evidence.seal import SealError
from harness import doctor, leftovers
from harness.held import held
from tests.evidence import sealing
from tests.roots.make import GOOD, LEAST

REPO = Path(__file__).parent.parent.parent
MakeRoot = Callable[[dict[str, bytes]], Path]


@pytest.fixture
def sealed(tmp_path: Path) -> MakeRoot:
    """Seals files as a root under the test's own folder."""

    def sealed_root(files: dict[str, bytes]) -> Path:
        return sealing.sealed(tmp_path / "root", files)

    return sealed_root


def test_a_link_with_the_name_of_a_staging_folder_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o700)
    link = tmp_path / "root.staging-1-0000aaaa"
    link.symlink_to("mine")
    with pytest.raises(SealError, match="expected a root or a staging folder, got something else"):
        leftovers.remove(link)
    assert link.is_symlink()
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o700


@pytest.fixture
def dead() -> int:
    """The number of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_only_staging_folders_of_processes_that_are_gone_are_leftovers(tmp_path: Path, dead: int) -> None:
    alive = seal.stage(tmp_path / "root")
    (tmp_path / "other").mkdir()
    (tmp_path / f"file.staging-{dead}-00000000").write_bytes(b"")
    left = tmp_path / f"root.staging-{dead}-0123abcd"
    left.mkdir()
    assert leftovers.leftovers(tmp_path) == [left]
    assert alive.exists()
    assert leftovers.leftovers(tmp_path / "none") == []


def test_a_killed_process_that_nobody_has_reaped_is_gone(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        left = tmp_path / f"root.staging-{child.pid}-0123abcd"
        left.mkdir()
        assert leftovers.leftovers(tmp_path) == []
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays as it is: unreaped
        os.kill(child.pid, 0)
        assert leftovers.leftovers(tmp_path) == [left]
    finally:
        child.kill()
        child.wait()


def test_what_a_climb_elsewhere_may_still_fill_is_not_moved(tmp_path: Path, dead: int) -> None:
    """A process number of another container says nothing here; the lock on the root's name does."""
    left = tmp_path / f"root.staging-{dead}-0123abcd"
    left.mkdir()
    with held(tmp_path / "root"):
        why = f"{tmp_path}/root: expected a name that no other climb is making, got one that a running climb holds;"
        assert leftovers.set_aside(tmp_path) == [(left, f"{why} wait for it or choose another")]
        assert left.is_dir()
        said = doctor.examine(tmp_path, move=True)
        assert said["not_moved"] == [{"from": str(left), "why": f"{why} wait for it or choose another"}]
        assert f"stays   {left}: {why} wait" in doctor.text(said)
    assert leftovers.set_aside(tmp_path) == [(left, tmp_path / "quarantine" / left.name)]
    assert leftovers.set_aside(tmp_path) == []  # what is there already stays


def test_a_process_of_another_user_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(_process: int, _signal: int) -> None:
        raise PermissionError

    staging = seal.stage(tmp_path / "root")
    monkeypatch.setattr(os, "kill", kill)
    assert leftovers.leftovers(tmp_path) == []
    assert staging.exists()


def test_a_quarantined_leftover_is_kept_and_still_named(tmp_path: Path, dead: int) -> None:
    left = tmp_path / f"root.staging-{dead}-0123abcd"
    left.mkdir()
    (left / "a.txt").write_bytes(b"one")
    left.chmod(0o555)
    place = leftovers.quarantine(left)
    assert place == tmp_path / "quarantine" / left.name
    assert (place / "a.txt").read_bytes() == b"one"
    assert leftovers.leftovers(tmp_path) == [place]
    leftovers.remove(place)
    assert leftovers.leftovers(tmp_path) == []


def test_only_staging_folders_are_quarantined(sealed: MakeRoot) -> None:
    root = sealed(LEAST)
    with pytest.raises(SealError, match="expected a staging folder, got another name"):
        leftovers.quarantine(root)
    assert root.exists()


def test_a_read_only_root_is_removed(sealed: MakeRoot) -> None:
    root = sealed(GOOD)
    leftovers.remove(root)
    assert list(root.parent.iterdir()) == []


UNPRIVILEGED = """
import os, sys
from pathlib import Path
from evidence import seal
from harness import leftovers
from tests.roots.make import LEAST
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
out = Path(sys.argv[1], "root")
staging = seal.stage(out)
for path, data in LEAST.items():
    seal.write_new(staging, path, data)
seal.seal(staging, out)
try:
    (out / "inputs/c.txt").write_bytes(b"")
except PermissionError:
    print("read-only")
leftovers.remove(out)
staging = seal.stage(out)
seal.write_new(staging, "a/b.txt", b"x")
seal._settle(staging)
leftovers.remove(leftovers.quarantine(staging))
print(os.listdir(sys.argv[1]))
"""


def test_a_user_without_privileges_can_seal_move_and_remove() -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-c", UNPRIVILEGED, place], cwd=REPO, capture_output=True, text=True, check=False
        )
    assert (done.stdout, done.stderr) == ("read-only\n['quarantine']\n", "")


READ_ONLY = """
import os, sys
from pathlib import Path
from harness import leftovers
place = Path(sys.argv[1])
place.chmod(0o555)
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(leftovers.leftovers(place) == [left for left, why in leftovers.set_aside(place) if why == "Permission denied"])
"""


def test_without_the_right_to_write_a_leftover_is_named_and_why_it_stays_is_said(dead: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        left = Path(place, f"root.staging-{dead}-0123abcd")
        left.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, place], cwd=REPO, capture_output=True, text=True, check=False
        )
        Path(place).chmod(0o755)
        assert left.is_dir()
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize("kind", ["folder", "file", "link to a root", "nothing", "false seal", "seal is a folder"])
def test_anything_else_is_not_removed(tmp_path: Path, sealed: MakeRoot, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "file":
        place.write_bytes(b"")
    elif kind == "link to a root":
        place.symlink_to(sealed(LEAST))
    elif kind != "nothing":
        place.mkdir()
        (place / "a.txt").write_bytes(b"one")
    if kind == "false seal":
        (place / "SEAL").write_bytes(b"of approval\n")
    elif kind == "seal is a folder":
        (place / "SEAL").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SealError, match="expected a root or a staging folder, got something else"):
        leftovers.remove(place)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_removal_cut_short_leaves_a_leftover_and_no_half_root(
    sealed: MakeRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = sealed(GOOD)

    def killed(_path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        leftovers.remove(root)
    (left,) = root.parent.iterdir()
    assert left.name.startswith(f"{root.name}.removing-")
    monkeypatch.undo()
    leftovers.remove(left)
    assert list(root.parent.iterdir()) == []


def test_links_in_a_root_are_removed_and_not_followed(tmp_path: Path, sealed: MakeRoot) -> None:
    (tmp_path / "outside").mkdir(mode=0o500)
    (tmp_path / "outside/kept.txt").write_bytes(b"kept")
    root = sealed(LEAST)
    root.chmod(0o755)
    (root / "way").symlink_to("../outside")
    leftovers.remove(root)
    assert (tmp_path / "outside/kept.txt").read_bytes() == b"kept"
    assert stat.S_IMODE((tmp_path / "outside").stat().st_mode) == 0o500


@pytest.mark.parametrize(
    ("name", "aside"),
    [
        ("r.staging-12-0123abcd", True),
        ("r.removing-12-0123abcd", True),
        ("quarantine", True),
        ("r", False),
        ("staging-12-0123abcd", False),
        ("r.staging-x-0123abcd", False),
    ],
)
def test_what_stands_aside_is_known_by_its_name(name: str, aside: bool) -> None:
    assert leftovers.is_aside(Path("runs") / name) is aside


def test_the_staging_folder_of_a_process_that_runs_is_not_removed(tmp_path: Path) -> None:
    live = tmp_path / f"root.staging-{os.getppid()}-0123abcd"
    live.mkdir()
    with pytest.raises(SealError) as caught:
        leftovers.remove(live)
    assert str(caught.value) == (
        f"{live}: expected a staging folder whose process ended, got one that process {os.getppid()} fills"
    )
    assert live.is_dir()
