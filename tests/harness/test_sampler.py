from __future__ import annotations

import subprocess
import sys
import time

from harness.sampler import Sampler

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
        found = sampler.stop()
        child.communicate(b"\n")
    assert max(found.rss_bytes) > 140_000_000
    assert list(found.at_ms) == sorted(found.at_ms)
    assert len(found.at_ms) == len(found.rss_bytes)


def test_a_process_that_is_gone_has_no_samples() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    sampler = Sampler(child.pid)
    assert sampler.stop().rss_bytes == ()
