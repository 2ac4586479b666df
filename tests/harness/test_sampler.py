from __future__ import annotations

import subprocess
import sys
import time

import pytest

from harness import sampler as sampler_module
from harness.machine import Machine
from harness.sampler import Sampler, descendants

GROW = """
import subprocess, sys
block = bytearray(60_000_000)
child = subprocess.Popen([sys.executable, "-c",
    "block = bytearray(80_000_000); print('ready', flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print("ready", flush=True)
input()
child.communicate(b"\\n")
"""


def test_the_memory_of_children_counts() -> None:
    with subprocess.Popen([sys.executable, "-c", GROW], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        sampler = Sampler(child.pid)
        time.sleep(0.1)  # the first sample is enough, more show that times rise
        found = sampler.memory()
        sampler.machine()
        child.communicate(b"\n")
    assert max(found.rss_bytes) > 140_000_000
    assert list(found.at_ms) == sorted(found.at_ms)
    assert len(found.at_ms) == len(found.rss_bytes)


def test_a_process_that_is_gone_has_no_samples() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    sampler = Sampler(child.pid)
    assert sampler.memory().rss_bytes == ()
    sampler.machine()


def test_a_child_that_the_system_does_not_tell_of_makes_the_sum_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", GROW], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        opened = sampler_module._opened

        def refused(pid: int) -> int:
            if pid != child.pid:
                raise PermissionError(f"/proc/{pid}/statm")
            return opened(pid)

        monkeypatch.setattr(sampler_module, "_opened", refused)
        sampler = Sampler(child.pid)
        time.sleep(0.05)
        found = sampler.memory()
        sampler.machine()
        child.communicate(b"\n")
    assert (found.at_ms, found.rss_bytes) == ((), ())


def test_the_machine_is_read_on_when_memory_is_no_longer_sampled() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        sampler = Sampler(child.pid)
        time.sleep(0.1)
        memory = sampler.memory()
        time.sleep(0.45)
        assert sampler.memory().at_ms == memory.at_ms
        machine = sampler.machine()
        child.communicate(b"\n")
    assert sum(at > memory.at_ms[-1] for at in machine.at_ms) >= 3
    assert machine.at_ms[-1] >= memory.at_ms[-1] + 450


def test_what_a_child_of_the_step_spent_stays_its_own_when_it_has_ended() -> None:
    spin = "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'while True: pass']); time.sleep(0.5)"
    script = f"{spin}; p.kill(); p.wait(); print('ended', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        machine = Machine(None)
        while not (below := descendants(child.pid)):
            time.sleep(0.01)
        own = [child.pid, *below]
        time.sleep(0.2)
        machine.read(own)
        child.stdout.readline()
        machine.read(own)
        found = machine.end(own).own_ms
        child.communicate(b"\n")
    assert found is not None
    assert found[1] >= found[0] > 0
