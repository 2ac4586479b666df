"""What the steps of the actions share: calling ``qualify``, and the files through which a runner takes outputs and summary.

Every step reads its settings from the environment and nothing else, so that no text of anybody's stands in a command line of YAML.
The same variables, set by hand, run a step on a laptop; without ``GITHUB_OUTPUT`` the outputs are printed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, NoReturn

NOT_INTACT, NO, UNDETERMINED, ASKED_WRONGLY = 20, 10, 30, 64
SUMMARY_LIMIT = 900_000
"""Bytes of a job summary; GitHub drops one above 1 MiB whole."""


class Said(NamedTuple):
    """How a command ended, and what it printed on stdout. Its stderr went to the log."""

    code: int
    out: str


def setting(name: str) -> str:
    """A setting without white space around it; empty where it is not given."""
    return os.environ.get(name, "").strip()


def needed(name: str) -> str:
    """A setting that must be given."""
    value = setting(name)
    if not value:
        refuse(f"{name}: expected a value, got none; set it in the environment")
    return value


def against() -> str:
    """What the root is compared with: ``BASELINE``, else what ``POLICY`` pins (``qualify`` refuses one that pins nothing); or empty."""
    return setting("BASELINE") or setting("POLICY")


def refuse(message: str) -> NoReturn:
    """End the step: it was asked wrongly."""
    print(message, file=sys.stderr)
    sys.exit(ASKED_WRONGLY)


def qualify(*arguments: str, shown: bool = True) -> Said:
    """Run ``qualify`` of the environment ``QUALIFY_BIN``. What it prints is fit for a log; ``shown`` repeats it there."""
    command = str(Path(needed("QUALIFY_BIN")) / "qualify")
    done = subprocess.run([command, *arguments], stdout=subprocess.PIPE, check=False)
    out = done.stdout.decode("utf-8", "backslashreplace")
    if shown:
        print(out, end="", flush=True)
    return Said(done.returncode, out)


def output(**values: str | int | Path) -> None:
    """Outputs of the step. A value is one line by construction; one that is not is refused."""
    lines = []
    for name, value in values.items():
        text = str(value)
        if not text.isprintable():
            refuse(f"output {name}: expected one printable line, got {text!r}")
        lines.append(f"{name.replace('_', '-')}={text}\n")
    _append("GITHUB_OUTPUT", "".join(lines))


def summary(markdown: str) -> None:
    """Add to the job summary, as much as it takes."""
    data = markdown.encode()
    if len(data) > SUMMARY_LIMIT:
        markdown = data[:SUMMARY_LIMIT].decode("utf-8", "ignore") + "\n\n(The rest does not fit a job summary.)\n"
    _append("GITHUB_STEP_SUMMARY", markdown)


def fenced(text: str) -> str:
    """Text as a Markdown code block that nothing in it can end."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text.rstrip()}\n{fence}\n"


def inert(text: str) -> str:
    """Text of a root as one line of ASCII that no runner takes for a command, where the line does not begin with it."""
    return json.dumps(text)[1:-1].replace("##[", "#\\u0023[")


def worst(*codes: int) -> int:
    """The exit code that counts of several: evidence that is not intact before all, then our own faults, no, undetermined, yes."""
    for code in (NOT_INTACT, *sorted(set(codes) - {0, NO, NOT_INTACT, UNDETERMINED}), NO, UNDETERMINED):
        if code in codes:
            return code
    return 0


def _append(name: str, text: str) -> None:
    path = os.environ.get(name)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text, end="")
