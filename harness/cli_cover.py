"""``qualify cover``: several roots against the ladders that they should cover together."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli_common import as_json, junit, print_json, sarif
from harness.errors import AskedWrongly
from harness.files import check_new

if TYPE_CHECKING:
    from harness.cover import Seen

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("root", type=_FILE, nargs=-1, required=True)
@click.option(
    "--ladder", type=_FILE, multiple=True, required=True, metavar="FILE", help="A ladder to cover. Repeatable."
)
@click.option("--allow-deferred", is_flag=True, help="Take targets that a ladder itself defers for settled.")
@junit
@sarif
@as_json
def cover(
    root: tuple[Path, ...],
    ladder: tuple[Path, ...],
    allow_deferred: bool,
    junit: Path | None,
    sarif: Path | None,
    as_json: bool,
) -> int:
    """Say whether the ROOTs together bring every target of every ladder to its goal. A folder of roots may be given as ROOT.

    Each is verified and judged again. Exit 0: all is covered. 10: a target failed. 20: a root is not intact. 30: a target is
    missing, blocked or deferred, or a root does not belong to a ladder given here or was not measured on the same candidate and data.
    """
    import msgspec

    from harness.cover import cover as lay_beside
    from harness.ladder import parse
    from harness.report.cover import cover_text
    from harness.run import read_ladder

    check_new((junit, sarif))
    ladders = [(parse(data, path.name), data) for path, data in ((path, read_ladder(path)) for path in ladder)]
    found = lay_beside(ladders, _look(_roots(root)), allow_deferred=allow_deferred)
    if junit or sarif:
        from harness import account, judgements

        account.write(judgements.of_cover(found), junit, sarif)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        click.echo(cover_text(found), nl=False)
    return found.exit_code


def _roots(given: tuple[Path, ...]) -> list[Path]:
    """The roots: each folder given that has a seal, and each folder in any other. What lacks a seal there is looked at too."""
    found: list[Path] = []
    for path in given:
        if not path.is_dir():
            got = "something else" if path.exists() else "nothing"
            raise AskedWrongly(f"{path}: expected a root or a folder of roots, got {got}; check the path")
        inside = [] if (path / "SEAL").exists() else sorted(entry for entry in path.iterdir() if entry.is_dir())
        found += inside or [path]
    return found


def _look(roots: list[Path]) -> list[Seen]:
    from harness.answer import check
    from harness.cover import Seen
    from harness.errors import NotIntact
    from harness.report.hashing import Hashing

    seen: list[Seen] = []
    for path in roots:
        with Hashing(sys.stderr, interactive=sys.stderr.isatty()) as progress:
            checked = check(path, None, progress)
        digest = checked.opened.report.digest
        try:
            records, judged = checked.records, checked.judged
            assert judged is not None
            seen.append(Seen(str(path), digest, checked.exit_code, records.plan, judged.claim))
        except NotIntact as error:
            seen.append(Seen(str(path), digest, error.exit_code, why=str(error)))
    return seen
