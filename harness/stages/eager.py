"""PyTorch fp32 eager in a process of its own, asked for one call at a time, so that L1's own process never loads torch.

The two processes take turns over a socket and never work at once: the child answers a line with the milliseconds of the call that it made,
as it measured them itself, and then waits. Idle threads of its pool sleep (``OMP_WAIT_POLICY``), as those of the artifact's session do.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from harness.errors import Blocked
from harness.raw import SessionFacts, Stated
from harness.runtimes import tokens
from harness.runtimes.batching import batches
from harness.stages.timing import shapes, timed_both_ms

if TYPE_CHECKING:
    from harness.records import Value
    from harness.stages.job import Job

_SLEEPY = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}
"""GNU's, Intel's and LLVM's OpenMP: idle threads sleep at once."""


class Child:
    """The model in a fresh process; ``stated`` says how it was loaded. Everything raises ``Blocked`` when the process has no answer."""

    def __init__(self, job: Job) -> None:
        ours, theirs = socket.socketpair()
        places = (job.request.step, str(job.root), str(job.model), str(theirs.fileno()))
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "harness.worker", "eager", *places],
                stdin=subprocess.DEVNULL,
                cwd=job.scratch,
                env=os.environ | _SLEEPY,
                pass_fds=(theirs.fileno(),),
            )
        self._socket = ours
        self._lines = ours.makefile("rb")
        self.stated = msgspec.json.decode(self._line(), type=Stated)

    def call_ms(self) -> tuple[float, float]:
        """One call, in the child's own milliseconds of the clock and of the processors."""
        with suppress(OSError):  # a process that is gone has no answer either
            self._socket.sendall(b"\n")
        wall, cpu = map(float, self._line().split())
        return wall, cpu

    def close(self) -> None:
        """End the process, at once."""
        self._lines.close()
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def _line(self) -> bytes:
        found = self._lines.readline()
        if not found:
            code = self._process.wait()
            self.close()
            raise Blocked(f"PyTorch: expected an answer of its process, got exit code {code}; see stderr.log")
        return found[:-1]


def serve(job: Job, parent: socket.socket) -> None:
    """The child's side: load, state, and make a call for each line; returns when the parent closes its end."""
    from harness.runtimes.torch_eager import Reference

    request = job.request
    options = request.options.L1
    assert options is not None
    pairs = job.pairs_of_call(options.candidates)
    encoded = tokens.encode(job.model, request.candidate, pairs, options.max_length)
    begin = time.perf_counter()
    model = Reference(job.model, request.target.threads, tokens.inputs_of(request.candidate, job.model))
    load_ms = (time.perf_counter() - begin) * 1000
    layout = job.layout(model.inputs, options.batch_size, (None, None))
    call = [batch.tensors for batch in batches(encoded, layout)]
    facts = SessionFacts(load_ms=load_ms, providers=("PyTorch",), options=_stated(request.target.threads))
    lines = parent.makefile("rb")
    parent.sendall(msgspec.json.encode(Stated(facts=facts, shapes=shapes(call))) + b"\n")
    while lines.readline():
        parent.sendall(b"%r %r\n" % timed_both_ms(model, call))


def _stated(threads: int) -> dict[str, Value]:
    import torch

    return {
        "torch": str(torch.__version__),
        "intra_op_threads": threads,
        "precision": "fp32",
        "attention": "eager",
        "allow_spinning": False,
    }
