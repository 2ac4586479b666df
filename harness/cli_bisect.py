"""The command ``qualify bisect``."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import click

from harness.cli_common import as_json, print_json, safe
from harness.errors import AskedWrongly


@click.command()
@click.argument("root", type=click.Path(path_type=Path))
@click.option("--target", required=True, metavar="NAME", help="The target whose graph is looked into.")
@click.option("--pair", type=int, metavar="N", help="The pair to run; the one with the largest gap when not given.")
@click.option(
    "--tolerance", type=float, metavar="RATIO", help="Gap of a tensor, over its largest value, that is allowed."
)
@click.option(
    "--model",
    metavar="MODEL",
    help="Compare with a new fp32 export of this folder (or ID@REVISION), which ROOT qualified.",
)
@click.option(
    "--adapter", metavar="ADAPTER", help="The adapter of that model, where it has one: a folder, or ID@REVISION."
)
@as_json
def bisect(
    root: Path,
    target: str,
    pair: int | None,
    tolerance: float | None,
    model: str | None,
    adapter: str | None,
    as_json: bool,
) -> int:
    """Find the first node of a target's graph that leaves the fp32 graph of ROOT, or whose output is not finite.

    ROOT is verified first. Exit 0: no node does. 10: one does, and it is named.
    """
    from harness import bisect as search

    if adapter is not None and model is None:
        raise AskedWrongly("--adapter: expected --model beside it, got none; name the model that it is loaded onto")

    def tell(done: int, total: int, _what: str) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{done} of {total} nodes", nl=done >= total, err=True)

    given = search.resolve(model, adapter) if model is not None else None
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance >= 0):
        raise AskedWrongly(f"--tolerance: expected a finite number of at least 0, got {tolerance:g}; write 1e-3, say")
    made = search.bisect(root, target, pair, tolerance, tell, given)
    if as_json:
        import msgspec

        print_json(msgspec.to_builtins(made) | {"exit_code": made.exit_code})
    else:
        for line in search.text(made).splitlines():
            click.echo(safe(line))
    return made.exit_code
