"""Two pieces of work at once: both answers, one failure, no process left behind."""

from __future__ import annotations

import os
import signal
import time
from typing import NoReturn

import psutil
import pytest

from harness.beside import both


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def test_the_second_works_in_another_process_and_both_answer() -> None:
    there = "x" * 1_000_000  # more than a pipe holds
    assert both(os.getpid, lambda: there) == (os.getpid(), there)
    assert both(os.getpid, os.getpid)[1] != os.getpid()
    assert children() == []


def test_on_one_processor_both_work_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0})
    assert both(os.getpid, os.getpid) == (os.getpid(), os.getpid())


def test_what_the_second_raises_is_raised_here() -> None:
    def fail() -> NoReturn:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match=r"^no such thing$"):
        both(os.getpid, fail)
    assert children() == []


def test_work_whose_process_was_killed_is_done_here() -> None:
    parent = os.getpid()

    def die_there() -> int:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid()

    assert both(os.getpid, die_there) == (parent, parent)


def test_an_interrupt_here_leaves_no_process_behind() -> None:
    def interrupt() -> NoReturn:
        assert len(children()) == 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        both(interrupt, lambda: time.sleep(600))
    assert children() == []
