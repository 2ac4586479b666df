"""What ``qualify cover`` found, on a terminal or in a log: the answer first, then each ladder and target, then roots that do not count."""

from __future__ import annotations

from collections.abc import Iterator

from harness.cover import EXIT_NO, EXIT_NOT_INTACT, EXIT_OK, Covered, LadderCover
from harness.report import escape
from harness.report.terminal import wrapped

_HEADS = {
    EXIT_OK: "✓ COVERED: every target of every ladder reached its goal",
    EXIT_NO: "✗ FAIL: a target broke a limit",
    EXIT_NOT_INTACT: "✗ NOT INTACT: a root does not verify; rely on nothing in it",
}


def cover_text(found: Covered) -> str:
    """The whole answer, 80 columns. What roots and ladders say is escaped."""
    lines = [_HEADS.get(found.exit_code, "? NOT COVERED: something is missing, or could not be decided"), ""]
    for ladder in found.ladders:
        lines += [*_ladder(ladder), ""]
    for root in found.refused:
        lines += [*wrapped("unused", f"{root.root}: {root.reason}"), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _ladder(ladder: LadderCover) -> Iterator[str]:
    passed = sum(target.state == "PASS" for target in ladder.targets)
    yield f"{escape.terminal(ladder.name)}: {passed} of {len(ladder.targets)} targets reached {ladder.goal}"
    yield from wrapped("ladder", ladder.digest)
    if ladder.candidate is not None:
        yield from wrapped("model", ladder.candidate)
    for target in ladder.targets:
        why = f": {target.reason}" if target.reason else ""
        yield from wrapped("", f"{target.name} {target.state}{why}")
        for digest in target.roots:
            yield from wrapped("", f"  in {digest}")
