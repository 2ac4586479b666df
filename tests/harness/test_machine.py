from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from msgspec.structs import replace

from harness import derive_perf
from harness.machine import Machine, high_water_bytes
from harness.raw import MachineRaw, PerfRaw
from harness.records import from_json


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


def test_every_reading_around_the_steady_calls_is_measured(tiny_root: Path) -> None:
    step = tiny_root / "steps/L1-perf.cpu-fp16"
    raw = from_json((step / "samples.json").read_bytes(), PerfRaw, "samples.json")
    machine = from_json((step / "machine.json").read_bytes(), MachineRaw, "machine.json")
    gained = {"busy_ms": 50.0, "idle_ms": 40.0, "stolen_ms": 10.0, "own_ms": 20.0, "pressure_ms": 0.5}
    rising = {name: tuple(each * turn for turn in range(len(machine.at_ms))) for name, each in gained.items()}
    level = {name: (value,) * len(machine.at_ms) for name, value in {"load_1min": 1.0, "mhz": 2000.0}.items()}
    told = replace(machine, **rising, **level)
    last = next(index for index, at in enumerate(told.at_ms) if at >= raw.events_ms["end"])
    before = [*derive_perf._machine(raw, told)]
    for name, series in (rising | level).items():
        other = (*series[:last], series[last] * 1.5, *series[last + 1 :])
        assert [*derive_perf._machine(raw, replace(told, **{name: other}))] != before, name
