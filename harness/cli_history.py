"""``qualify history``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from harness.cli_common import as_json, print_json

EXIT_NOT_INTACT = 20
BETWEEN_S = 1.0


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@as_json
def history(folder: Path, as_json: bool) -> int:
    """List the roots in DIR: what each claims, what replaces what, what is preserved from where, which is current.

    Every root is rehashed, so nothing is read from one that is not intact. Exit 0: all are intact. 20: at least one is not.
    """
    import msgspec

    from harness.survey import survey

    found = survey(folder, _Told())
    code = EXIT_NOT_INTACT if any(line.state == "not intact" for line in found.lines) else 0
    if as_json:
        print_json(msgspec.to_builtins(found) | {"exit_code": code})
    else:
        from harness.report.history import history_text

        click.echo(history_text(found), nl=False)
    return code


class _Told:
    """Says on stderr, at most once a second, how many roots are verified."""

    def __init__(self) -> None:
        self._next = time.monotonic() + BETWEEN_S

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._next and done < total:
            self._next = now + BETWEEN_S
            click.echo(f"verified {done} of {total} roots", err=True)
