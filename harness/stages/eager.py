"""PyTorch fp32 eager in a process of its own, asked for one call at a time, so that L1's own process never loads torch.

The two processes take turns over a socket and never work at once: the other one answers a line with the milliseconds of the call that it
made, as it measured them itself, and then waits. Idle threads of its pool sleep, as those of the artifact's session do. The model is
loaded anew for each pair of sessions.
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
    from harness.runtimes.torch_eager import Reference
    from harness.stages.job import Job

_SLEEPY = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0"}
"""GNU's, Intel's and LLVM's OpenMP: idle threads sleep at once."""
_LOAD, _CALL = b"load\n", b"call\n"


class Child:
    """The process. ``load`` and ``call_ms`` raise ``Blocked`` when it has no answer."""

    def __init__(self, job: Job) -> None:
        self._socket, theirs = socket.socketpair()
        places = (job.request.step, str(job.root), str(job.model), str(job.adapter or ""), str(theirs.fileno()))
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "harness.worker", "eager", *places],
                stdin=subprocess.DEVNULL,
                cwd=job.scratch,
                env=os.environ | _SLEEPY,
                pass_fds=(theirs.fileno(),),
            )
        self._lines = self._socket.makefile("rb")

    def load(self) -> Stated:
        """Load the model anew, in place of the one before; how it was loaded."""
        return msgspec.json.decode(self._ask(_LOAD), type=Stated)

    def call_ms(self) -> tuple[float, float]:
        """One call, in the process's own milliseconds of the clock and of the processors."""
        wall, cpu = map(float, self._ask(_CALL).split())
        return wall, cpu

    def close(self) -> None:
        """End the process, at once."""
        self._lines.close()
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def _ask(self, what: bytes) -> bytes:
        with suppress(OSError):  # a process that is gone has no answer either
            self._socket.sendall(what)
        found = self._lines.readline()
        if not found:
            code = self._process.wait()
            raise Blocked(f"PyTorch: expected an answer of its process, got exit code {code}; see stderr.log")
        return found


def serve(job: Job, parent: socket.socket) -> None:
    """The process's side: load or call as each line asks; returns when the parent closes its end."""
    request = job.request
    options = request.options.L1
    assert options is not None
    encoded = tokens.encode(job.model, request.candidate, job.pairs_of_call(options.candidates), options.max_length)
    names = tokens.inputs_of(request.candidate, job.model)
    layout = job.layout(dict.fromkeys(names, "int64"), options.batch_size, (None, None))
    call = [batch.tensors for batch in batches(encoded, layout)]
    model: Reference | None = None
    for line in parent.makefile("rb"):
        if line == _LOAD or model is None:
            model = None  # its memory is free before the next one takes its own
            begin = time.perf_counter()
            model = job.reference()
            load_ms = (time.perf_counter() - begin) * 1000
            facts = SessionFacts(load_ms=load_ms, providers=("PyTorch",), options=_stated(request.target.threads))
            parent.sendall(msgspec.json.encode(Stated(facts=facts, shapes=shapes(call))) + b"\n")
        else:
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
