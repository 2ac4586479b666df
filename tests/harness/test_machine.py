from __future__ import annotations

import os
import subprocess
import sys
import time

from harness.machine import Machine, high_water_bytes


def test_readings_rise_and_a_busy_neighbour_is_counted() -> None:
    spin = "import sys\nprint('ready', flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE) as neighbour:
        assert neighbour.stdout is not None
        neighbour.stdout.readline()
        machine = Machine(None)
        machine.read([os.getpid()])
        spent = time.process_time()
        while time.process_time() - spent < 0.05:
            pass
        time.sleep(0.3)
        machine.read([os.getpid()])
        found = machine.end([os.getpid()])
        neighbour.kill()
    assert found.busy_processes is not None
    assert found.busy_processes >= 1
    assert found.own_ms is not None
    assert found.own_ms[1] - found.own_ms[0] >= 30
    assert found.busy_ms is not None
    assert found.busy_ms[1] > found.busy_ms[0]
    assert found.cpus == tuple(sorted(os.sched_getaffinity(0)))


def test_the_high_water_mark_holds_what_was_freed_again() -> None:
    script = "block = bytearray(90_000_000); del block; print('ready', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        most = high_water_bytes(child.pid)
        child.communicate(b"\n")
    assert most is not None
    assert most > 90_000_000


def test_a_process_that_is_gone_makes_a_series_null() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    machine = Machine(None)
    machine.read([child.pid])
    found = machine.end([child.pid])
    assert found.own_ms is None
    assert high_water_bytes(child.pid) is None
