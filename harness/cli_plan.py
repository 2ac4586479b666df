"""``qualify plan``: what one ladder would do, or which jobs a CI matrix starts for several."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli_common import as_json, compared_with
from harness.errors import AskedWrongly

if TYPE_CHECKING:
    from harness.matrix import By

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("ladder", type=_FILE, nargs=-1, required=True)
@click.option("--model", metavar="DIR|ID", help="Another candidate: a folder, or ID@REVISION (40 hex) on a hub.")
@click.option("--target", multiple=True, metavar="NAME", help="Only this target; the others are deferred. Repeatable.")
@click.option("--baseline", type=_FILE, metavar="ROOT", help="Compare L1 with this root's artifacts.")
@click.option("--matrix", is_flag=True, help="Print the matrix of a CI workflow instead: one job a group of targets.")
@click.option(
    "--by",
    type=click.Choice(["provider", "target", "ladder"]),
    default="provider",
    show_default=True,
    help="What a job of the matrix climbs.",
)
@as_json
def plan(
    ladder: tuple[Path, ...],
    model: str | None,
    target: tuple[str, ...],
    baseline: Path | None,
    matrix: bool,
    by: By,
    as_json: bool,
) -> int:
    """Print the fully materialised plan of LADDER, and which values were defaults. Nothing is measured.

    With --matrix, several ladders may be given, and only they are read: no model and no data.
    """
    if matrix:
        if model is not None or target:
            raise AskedWrongly(
                "plan --matrix: expected ladders alone, got --model or --target; leave them to qualify run"
            )
        click.echo(_matrix(ladder, by))
        return 0
    if len(ladder) > 1:
        raise AskedWrongly(f"plan: expected one ladder, got {len(ladder)}; add --matrix, or plan each alone")
    from harness.records import to_json
    from harness.run import prepare

    made = prepare(ladder[0], model, target, compared_with(baseline, None)).plan
    if as_json:
        click.echo(to_json(made).decode(), nl=False)
    else:
        from harness.report.terminal import plan_text

        click.echo(plan_text(made), nl=False)
    return 0


def _matrix(ladders: tuple[Path, ...], by: By) -> str:
    """One line of ASCII JSON, as ``fromJSON`` of a workflow takes it from a line of ``GITHUB_OUTPUT``."""
    import msgspec

    from harness import matrix
    from harness.ladder import parse
    from harness.run import read_ladder

    read = [(str(path), parse(read_ladder(path), path.name)) for path in ladders]
    include = [msgspec.to_builtins(job) for job in matrix.jobs(read, by)]
    return json.dumps({"include": include}, sort_keys=True)
