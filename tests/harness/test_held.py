"""The name of a root-to-be is held while it is climbed; what a kill leaves is taken over, and named by the doctor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness import doctor
from harness.errors import AskedWrongly
from harness.held import held, left_in
from tests.support.ladders import REPO

HOLD = """
import sys, time
from pathlib import Path
from harness.held import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_name_is_held_by_one_and_free_afterwards(tmp_path: Path) -> None:
    out = tmp_path / "deep/root"
    with held(out):
        assert [path.name for path in out.parent.iterdir()] == ["root.lock"]
        assert left_in(out.parent) == []
        with pytest.raises(AskedWrongly) as refused, held(out):
            pass
        assert str(refused.value) == (
            f"{out}: expected a name that no other climb is making, got one that a running climb holds;"
            " wait for it or choose another"
        )
    assert list(out.parent.iterdir()) == []
    with held(out):
        pass


def test_what_a_killed_climb_held_is_named_by_the_doctor_and_taken_over(tmp_path: Path) -> None:
    out = tmp_path / "root"
    child = subprocess.Popen([sys.executable, "-c", HOLD, out], cwd=REPO, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    with pytest.raises(AskedWrongly), held(out):
        pass
    child.kill()
    child.communicate()
    marker = tmp_path / "root.lock"
    assert left_in(tmp_path) == [marker]
    said = next(
        item for item in doctor.examine(tmp_path)["checks"] if item["check"] == f"half-written roots in {tmp_path}"
    )
    assert said == {
        "check": f"half-written roots in {tmp_path}",
        "ok": False,
        "found": str(marker),
        "fix": "delete each .lock file",
    }
    with held(out):
        pass
    assert left_in(tmp_path) == []
