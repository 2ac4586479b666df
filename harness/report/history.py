"""A history on a terminal or in a log: a block a root, oldest first, then what is odd about the whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from harness.history import History, Line, State
from harness.report import escape, view, wording
from harness.report.terminal import wrapped


def history_text(found: History) -> str:
    """The whole history, 80 columns. What roots say is escaped."""
    lines: list[str] = []
    for line in found.lines:
        lines += [*_line(line), ""]
    lines += [text for note in found.notes for text in wrapped("note", note)]
    if found.leftovers:
        lines += wrapped("left", f"{', '.join(found.leftovers)}: half-written, no roots; look, then qualify rm each")
    states = [line.state for line in found.lines]
    count = {state: states.count(state) for state in get_args(State)}
    said = ", ".join(f"{number} {state}" for state, number in count.items() if number)
    lines += wrapped("checked", found.checked)
    lines += wrapped("trust", view.NOT_VOUCHED)
    lines.append(f"{len(states)} root{'' if len(states) == 1 else 's'}{': ' if said else ''}{said}")
    return "\n".join(lines) + "\n"


def _line(line: Line) -> Iterator[str]:
    name = escape.terminal(line.name)
    if line.state == "not intact":
        yield f"✗ NOT INTACT  {name}"
    elif line.verdict is None:
        yield f"? ANOTHER VERSION  {name}" + ("  superseded" if line.state == "superseded" else "")
    else:
        yield f"{wording.sign(line.verdict)}  {name}  {line.state}"
        at = f" at {line.revision}" if line.revision else ""
        yield from wrapped("", f"{line.ended_at}  {line.ladder}: {line.model}{at}")
        yield from wrapped("targets", ", ".join(f"{t} {wording.WORDS[v]}" for t, v in line.targets.items()))
        for label in dict.fromkeys(line.smoke.values()):
            yield from wrapped("smoke", label)
        for digest, reason in line.supersedes:
            yield from wrapped("replaces", f"{digest}: {reason}")
        for digest, steps in line.preserved:
            yield from wrapped("carries", f"{steps} step{'' if steps == 1 else 's'} of {digest}")
    for note in line.notes:
        yield from wrapped("note", note)
    yield from wrapped("digest", line.digest or "none")
