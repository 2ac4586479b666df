"""What every command of the command line shares: the option ``--json``, and printing that obeys nothing it prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.errors import AskedWrongly

if TYPE_CHECKING:
    from harness.baseline import Baseline

as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON on stdout.")

junit = click.option(
    "--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write every finding as JUnit XML; must not exist."
)
sarif = click.option(
    "--sarif", type=click.Path(path_type=Path), metavar="FILE", help="Write what is not PASS as SARIF; must not exist."
)


def refuse_existing(out: Path | None) -> None:
    """A file or folder to make: it must not exist, and not stand in a root, which is never changed."""
    if out is None:
        return
    if out.exists() or out.is_symlink():
        raise AskedWrongly(
            f"{out}: expected a path that does not exist, got an existing one; name another or remove it"
        )
    for folder in out.absolute().resolve().parents:
        if (folder / "SEAL").exists() and (folder / "MANIFEST.b3").exists():
            raise AskedWrongly(f"{out}: expected a path outside any root, got one in {folder.name}; name another")


def print_json(answer: object) -> None:
    """Print plain values as ASCII that no CI runner takes for a command.

    ``::`` and ``##[`` can stand inside strings alone, where writing a character out is free.
    """
    text = json.dumps(answer, indent=2, sort_keys=True, allow_nan=False)
    click.echo(text.replace("::", ":\\u003a").replace("##[", "#\\u0023[").replace("\x7f", "\\u007f"))


def safe(text: str) -> str:
    """A line of text that may hold words of a root, a ladder or a path, for a terminal or a log."""
    from harness.report.escape import terminal

    return terminal(text)


def write_new(path: Path, content: str) -> None:
    """Write a new file. Raises ``AskedWrongly`` where it cannot be."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise AskedWrongly(
            f"{path}: expected a new file that can be written, got {error.strerror}; name another or remove it"
        ) from error


def compared_with(root: Path | None, digest: str | None) -> Baseline | None:
    """The root that L1 is compared with, looked at before anything else."""
    if root is None:
        if digest is not None:
            raise AskedWrongly("--baseline-digest: expected it with --baseline ROOT, got it alone; name the root")
        return None
    from harness import baseline

    return baseline.look(root, digest)
