"""What every command of the command line shares: the option ``--json``, and printing that obeys nothing it prints."""

from __future__ import annotations

import json

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON on stdout.")


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
