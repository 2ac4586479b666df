"""The command ``qualify export``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.cli_common import as_json, print_json, safe
from harness.files import check_new, write_new


@click.command(name="export")
@click.argument("root", type=click.Path(path_type=Path))
@click.option("--target", metavar="NAME", required=True, help="The target whose figures are wanted.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", required=True, help="The file to make.")
@as_json
def export(root: Path, target: str, out: Path, as_json: bool) -> int:
    """Write the L3 figures of one target of ROOT in mteb's own result format. The root is verified first."""
    from harness.answer import check
    from harness.mteb_result import result

    check_new((out,))
    found = result(check(root).records, target)
    write_new(out, (json.dumps(found, indent=2, sort_keys=True, allow_nan=False) + "\n").encode())
    if as_json:
        print_json({"file": str(out), "result": found})
    else:
        click.echo(safe(str(out)))
    return 0
