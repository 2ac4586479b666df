"""Mutation testing of ``evidence/``: take every check away, one after another, and see whether a test breaks.

A mutant negates a condition (``if``, ``elif``, ``while``, conditional expression, comprehension), drops one side of ``and`` or
``or``, negates a comparison inside a larger expression, moves the bound of ``<``, ``<=``, ``>``, ``>=`` by one, or removes a statement
that reports a fault (a yield, a returned fault, ``faults +=``, ``append``, ``raise``). It is run in a copy of the project, never
here. A mutant that takes longer than the time limit is an endless loop, and counts as killed. Survivors are listed.

    python -m benchmarks.mutate_evidence [--jobs N] [--seconds LIMIT] [--minutes N] [--skip N] [--module NAME]... [--line N]... [--list]
"""

from __future__ import annotations

import argparse
import ast
import importlib
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

REPO = Path(__file__).parent.parent
MEMORY_LIMIT_BYTES = 4 * 2**30
MOVED: dict[type[ast.cmpop], str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
FAST = ("roots", "meaning", "preserved", "manifest", "tree")
USUAL = (FAST, ("verify",))
ROUNDS = {  # which test modules, in turn, until one breaks: first those that break most often
    "seal": (("seal",),),
    "report": (("verify",), FAST),
    "verify": (("verify",), FAST),
    "tree": (("tree",), ("roots", "verify"), ("seal",)),
    "manifest": (("manifest",), *USUAL),
    "preserved": (("preserved",), ("roots", "meaning"), ("verify",)),
    "meaning": (("roots",), ("meaning", "preserved"), ("verify",)),
    "records": (("meaning",), FAST, ("verify",)),
}
SLOW = (  # that fixtures are stored as made and codes are cited says nothing of a check; two of four fault injections are enough
    "not test_fixtures_are_what_the_generator_makes and not test_rules_of_the_format"
    " and not test_every_rule_of_the_format and not False-28 and not True-5"
)


@dataclass(frozen=True)
class Mutant:
    """One change: bytes `start` to `end` of a module become `text`."""

    module: str
    line: int
    what: str
    start: int
    end: int
    text: str

    def told(self) -> str:
        """Where it is and what it does, on one line."""
        return f"evidence/{self.module}.py:{self.line}: {self.what}"


class Source:
    """A module as bytes and tree, for cutting."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.data = (REPO / f"evidence/{module}.py").read_bytes()
        self.tree = ast.parse(self.data)
        self.lines = [0]
        for line in self.data.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """First byte of a node, and the one after it."""
        last = node.end_lineno or node.lineno
        return self.lines[node.lineno - 1] + node.col_offset, self.lines[last - 1] + (node.end_col_offset or 0)

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The source of a node."""
        start, end = self.span(node)
        return self.data[start:end].decode()

    def mutant(self, node: ast.expr | ast.stmt, text: str, what: str) -> Mutant:
        """`node` replaced by `text`."""
        shown = " ".join(self.text(node).split())
        start, end = self.span(node)
        return Mutant(self.module, node.lineno, f"{what} `{shown[:110]}`", start, end, text)


def mutants(source: Source) -> Iterator[Mutant]:
    """Every mutant of a module, in the order of `ast.walk`."""
    whole: set[ast.expr] = set()  # conditions that are negated as a whole: not negated again as a comparison
    for node in ast.walk(source.tree):
        for test in _conditions(node):
            whole.add(test)
            yield source.mutant(test, f"(not ({source.text(test)}))", "negated")
        if isinstance(node, ast.BoolOp):
            word = " and " if isinstance(node.op, ast.And) else " or "
            for gone in node.values:
                kept = word.join(f"({source.text(value)})" for value in node.values if value is not gone)
                yield source.mutant(node, f"({kept})", f"without `{' '.join(source.text(gone).split())[:60]}`:")
        if isinstance(node, ast.Compare):
            yield from _comparisons(source, node, negate=node not in whole)
        if isinstance(node, ast.stmt) and (text := _without(source, node)) is not None:
            yield source.mutant(node, text, "removed")


def _conditions(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        return [node.test]
    return node.ifs if isinstance(node, ast.comprehension) else []


def _comparisons(source: Source, node: ast.Compare, *, negate: bool) -> Iterator[Mutant]:
    if negate:
        yield source.mutant(node, f"(not ({source.text(node)}))", "negated")
    for place, (left, right) in enumerate(pairwise([node.left, *node.comparators])):
        moved = MOVED.get(type(node.ops[place]))
        if moved is not None and len(node.ops) == 1:
            text = f"({source.text(left)}) {moved} ({source.text(right)})"
            yield source.mutant(node, text, f"`{moved}` in")


def _without(source: Source, node: ast.stmt) -> str | None:
    """What stands for a statement that reports a fault, once it is gone; None for any other statement."""
    if isinstance(node, ast.Raise):
        return "pass"
    if isinstance(node, ast.Return) and node.value is not None and source.text(node.value).startswith("fault("):
        return "return None"
    if isinstance(node, ast.AugAssign) and source.text(node.target) == "faults":
        return "pass"
    if not isinstance(node, ast.Expr):
        return None
    if isinstance(node.value, ast.Yield | ast.YieldFrom):
        return "yield from ()"
    return "pass" if source.text(node.value).startswith(("faults.append(", "found.faults.append(")) else None


# --- running ------------------------------------------------------------------------------------------------------------


class Ran(NamedTuple):
    """What became of a mutant: `killed`, `endless` or `survived`."""

    mutant: Mutant
    end: str
    seconds: float


def copied(place: Path) -> None:
    """The part of the project that the tests of `evidence` need, at `place`."""
    for name in ("evidence", "harness", "tests/evidence", "tests/roots"):
        shutil.copytree(
            REPO / name, place / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".hypothesis")
        )
    shutil.copy(REPO / "pyproject.toml", place)


def broken(place: Path, tests: tuple[str, ...], seconds: float) -> str:
    """Run test modules in a child of this process: `passed`, `failed`, or `endless` when it had to be stopped."""
    child = os.fork()
    if child == 0:
        try:
            _child(place, tests)
        finally:
            os._exit(70)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return "passed" if os.waitstatus_to_exitcode(status) == 0 else "failed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "endless"


def _child(place: Path, tests: tuple[str, ...]) -> None:
    """Never returns. It is a group of its own, so that it can be stopped with what it started."""
    import pytest

    os.setpgid(0, 0)
    os.chdir(place)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # each would be looked for and imported again, for every mutant
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    sys.path[:] = [str(place), *(path for path in sys.path if path and Path(path) != REPO)]
    silent = os.open(f"{place}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    paths = [f"tests/evidence/test_{name}.py" for name in tests]
    options = [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "_hypothesis_pytestplugin",
        "-W",
        "ignore:Module already",
        "--hypothesis-seed=0",
    ]
    options += ["-k", SLOW, f"--basetemp={place}.pytest"]
    sys.stdout.flush()
    os._exit(int(pytest.main([*paths, *options])))


def outcome(mutant: Mutant | None, place: Path, seconds: float) -> Ran:
    """Put the mutant (None: nothing changed) into the copy, run, and take it out again."""
    begin = time.monotonic()
    file = place / f"evidence/{mutant.module}.py" if mutant else place / "evidence/__init__.py"
    original = file.read_bytes()
    if mutant:
        file.write_bytes(original[: mutant.start] + mutant.text.encode() + original[mutant.end :])
    try:
        for tests in ROUNDS.get(mutant.module, USUAL) if mutant else (FAST, ("verify", "seal")):
            end = broken(place, tests, seconds)
            if end != "passed":
                break
    finally:
        file.write_bytes(original)
    told = {"passed": "survived", "failed": "killed", "endless": "endless"}[end]
    return Ran(mutant or Mutant("", 0, "nothing", 0, 0, ""), told, time.monotonic() - begin)


_PLACE: Path
_SECONDS: float


def ready(place: Path, seconds: float) -> None:
    """A copy whose tests are compiled and pass before anything is changed."""
    copied(place)
    end = outcome(None, place, seconds).end
    if end != "survived":
        raise SystemExit(place.with_suffix(".log").read_text() + "\nexpected tests that pass before a change")
    shutil.rmtree(
        place / "evidence/__pycache__", ignore_errors=True
    )  # a mutant may be as long and as old as its original


def _start(places: multiprocessing.SimpleQueue[Path], seconds: float) -> None:
    global _PLACE, _SECONDS
    _PLACE, _SECONDS = places.get(), seconds
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def _run(mutant: Mutant) -> Ran:
    return outcome(mutant, _PLACE, _SECONDS)


def main() -> int:
    """Run the mutants and print what became of them; 1 when one survived."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=60, help="time limit of one run of the tests")
    parser.add_argument("--module", action="append", help="only this module of evidence/, e.g. meaning")
    parser.add_argument("--line", action="append", type=int, help="only mutants of this line")
    parser.add_argument(
        "--minutes", type=float, default=60, help="stop then, and say how many were run (in random order)"
    )
    parser.add_argument("--skip", type=int, default=0, help="go on after so many of the random order")
    parser.add_argument("--list", action="store_true", help="print the mutants, run none")
    asked = parser.parse_args()
    names = asked.module or sorted(path.stem for path in (REPO / "evidence").glob("[a-z]*.py"))
    found = [mutant for name in names for mutant in mutants(Source(name))]
    found = [mutant for mutant in found if not asked.line or mutant.line in asked.line]
    if asked.list:
        print("\n".join(mutant.told() for mutant in found))
        return 0
    for library in ("pytest", "hypothesis", "hypothesis.strategies", "blake3", "_hypothesis_pytestplugin"):
        importlib.import_module(library)  # once, here: the children are forks
    random.Random(0).shuffle(found)
    found = found[asked.skip :]
    until = time.monotonic() + 60 * asked.minutes
    ends: Counter[tuple[str, str]] = Counter()
    survivors: list[Mutant] = []
    context = multiprocessing.get_context("fork")
    places = context.SimpleQueue()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        for number in range(asked.jobs):
            ready(Path(scratch) / str(number), asked.seconds)
            places.put(Path(scratch) / str(number))
        with context.Pool(asked.jobs, _start, (places, asked.seconds)) as pool:
            for ran in pool.imap_unordered(_run, found):
                ends[ran.mutant.module, ran.end] += 1
                if ran.end == "survived":
                    survivors.append(ran.mutant)
                    print("survived", ran.mutant.told(), flush=True)
                if time.monotonic() > until:
                    break
    for name in names:
        counts = {end: ends[name, end] for end in ("killed", "endless", "survived")}
        print(f"{name}: {sum(counts.values())} mutants, " + ", ".join(f"{n} {end}" for end, n in counts.items()))
    print(f"all: {len(found)} mutants, {ends.total()} run, {len(survivors)} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
