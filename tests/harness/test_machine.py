from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness import derive_machine
from harness.machine import Machine, high_water_bytes
from harness.raw import MachineRaw, MemoryRaw, PerfRaw
from harness.records import from_json, measured


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
    memory = from_json((step / "memory.json").read_bytes(), MemoryRaw, "memory.json")
    gained = {"busy_ms": 50.0, "idle_ms": 40.0, "stolen_ms": 10.0, "own_ms": 20.0, "pressure_ms": 0.5}
    rising = {name: tuple(each * turn for turn in range(len(machine.at_ms))) for name, each in gained.items()}
    level = {name: (value,) * len(machine.at_ms) for name, value in {"load_1min": 1.0, "mhz": 2000.0}.items()}
    told = replace(machine, **rising, **level)
    last = next(index for index, at in enumerate(told.at_ms) if at >= raw.events_ms["end"])
    before = derive_machine.found(raw, memory, told).measurements
    for name, series in (rising | level).items():
        other = (*series[:last], series[last] * 1.5, *series[last + 1 :])
        assert derive_machine.found(raw, memory, replace(told, **{name: other})).measurements != before, name


def readings(busy: dict[int, float], seconds: int = 40) -> MachineRaw:
    """Ten readings a second of two processors from 0 on; ``busy`` is the share that others take from a second on."""
    at = tuple(100.0 * turn for turn in range(10 * seconds + 1))
    others, total = [0.0], [0.0]
    for time_ms in at[:-1]:
        share = max((s, share) for s, share in {0: 0.0, **busy}.items() if 1000 * s <= time_ms)[1]
        others.append(others[-1] + 200 * share)
        total.append(total[-1] + 200)
    level = (0.0,) * len(at)
    return MachineRaw(
        format=1,
        interval_ms=100.0,
        cpus=(0, 1),
        at_ms=at,
        busy_ms=tuple(others),
        idle_ms=tuple(whole - other for whole, other in zip(total, others, strict=True)),
        stolen_ms=level,
        own_ms=level,
        load_1min=level,
        mhz=None,
        pressure_ms=None,
        busy_processes=0,
    )


@pytest.mark.parametrize(
    ("busy", "share", "where"),
    [
        ({0: 0.5, 4: 0.0}, 0.0, "before the steady calls"),
        ({5: 0.5, 10: 0.0}, 0.5, "in the steady calls"),
        ({10: 0.5, 20: 0.0}, 0.5, "in the calls after them"),
        ({20: 0.5}, 0.5, "in the comparison"),
        ({25: 0.5, 35: 0.0}, 0.25, "in the comparison"),
    ],
)
def test_a_machine_that_is_busy_in_one_part_of_l1_is_busy_and_the_part_is_named(
    tiny_root: Path, busy: dict[int, float], share: float, where: str
) -> None:
    """Steady calls from 5 s to 10 s, other calls to 20 s, and a comparison to 40 s."""
    step = tiny_root / "steps/L1-perf.cpu-fp16"
    raw = from_json((step / "samples.json").read_bytes(), PerfRaw, "samples.json")
    timed = replace(raw, events_ms={"steady": 5000.0, "end": 10000.0})
    memory = MemoryRaw(format=1, interval_ms=10.0, at_ms=(10.0, 20_000.0), rss_bytes=(1, 1))
    found = derive_machine.found(timed, memory, readings(busy))
    by_name = {one.metric: one for one in found.measurements}
    assert by_name["busy_share"].value == pytest.approx(share)
    told = [one.note for one in found.measurements if one.note.startswith(derive_machine.BUSY)]
    assert told == [f"a busy machine {where}"]
    parts = [part for part, said in found.busy.items() if said]
    assert parts == [part for part in found.busy if where == f"in {part}"]


def test_a_part_of_less_than_half_a_second_is_not_judged(tiny_root: Path) -> None:
    raw = from_json((tiny_root / "steps/L1-perf.cpu-fp16/samples.json").read_bytes(), PerfRaw, "samples.json")
    timed = replace(raw, events_ms={"steady": 5000.0, "end": 39_700.0})
    memory = MemoryRaw(format=1, interval_ms=10.0, at_ms=(39_700.0,), rss_bytes=(1,))
    found = derive_machine.found(timed, memory, readings({39: 0.0, 40: 0.0}))
    assert [*found.busy] == [derive_machine.STEADY]


def test_what_is_said_of_the_machine_stands_beside_figures_made_of_times() -> None:
    given = [
        measured("ratio_p50", 1.2, "ratio"),
        measured("load_p50_ms.2", 3.0, "ms", note="of 4"),
        measured("sweep_peak_rss_bytes.c1-l1-b1-t1", 5, "bytes"),
        measured("arrival_p50_ms", None, "ms", note="none"),
    ]
    told = [one.note for one in derive_machine.beside(given, "on a busy machine")]
    assert told == ["on a busy machine", "of 4; on a busy machine", "", "none"]
