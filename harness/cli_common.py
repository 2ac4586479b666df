"""What every command of the command line shares: the option ``--json``, and printing that obeys nothing it prints."""

from __future__ import annotations

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


def print_json(answer: object) -> None:
    """Print plain values as ASCII that no CI runner takes for a command."""
    from harness.report.escape import json_text

    click.echo(json_text(answer))


def safe(text: str) -> str:
    """A line of text that may hold words of a root, a ladder or a path, for a terminal or a log."""
    from harness.report.escape import terminal

    return terminal(text)


def compared_with(root: Path | None, digest: str | None) -> Baseline | None:
    """The root that L1 is compared with, or that a file pins, looked at before anything else."""
    if root is None:
        if digest is not None:
            raise AskedWrongly("--baseline-digest: expected it with --baseline ROOT, got it alone; name the root")
        return None
    from harness import baseline

    if root.is_file():
        from harness import sides

        pinned = sides.pinned(root)
        if digest not in {None, pinned.expect}:
            raise AskedWrongly(
                f"--baseline-digest: expected {pinned.expect}, which {root} pins, got {digest}; leave it out"
            )
        root, digest = pinned
    return baseline.look(root, digest)
