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
@click.option("--verify", "verified", is_flag=True, help="Rehash every file of every root, which takes longer.")
@as_json
def history(folder: Path, verified: bool, as_json: bool) -> int:
    """List the roots in DIR: what each claims, what replaces what, what is preserved from where, which is current.

    A listing is no verification: of each root the seal, the manifest and the records shown are checked, no other file. Exit 0: no
    fault was found. 20: at least one root is not intact.
    """
    import msgspec

    from harness.survey import survey

    found = survey(folder, _Told("verified" if verified else "read"), verified=verified)
    code = EXIT_NOT_INTACT if any(line.state == "not intact" for line in found.lines) else 0
    if as_json:
        print_json(msgspec.to_builtins(found) | {"exit_code": code})
    else:
        from harness.report.history import history_text

        click.echo(history_text(found), nl=False)
    return code


class _Told:
    """Says on stderr, at most once a second, how many roots are done."""

    def __init__(self, word: str) -> None:
        self._word = word
        self._next = time.monotonic() + BETWEEN_S

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._next and done < total:
            self._next = now + BETWEEN_S
            click.echo(f"{self._word} {done} of {total} roots", err=True)
