"""The command ``qualify inspect``."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli_common import as_json, print_json, safe

EXIT_UNDETERMINED = 30


@click.command(name="inspect")
@click.argument("model")
@click.option("--revision", metavar="COMMIT", help="The commit of a hub id, 40 hex digits.")
@click.option("--adapter", metavar="ADAPTER", help="The LoRA adapter to load onto it: a folder, or ID@REVISION.")
@click.option("--tree", is_flag=True, help="Print the tree of modules instead; needs torch, reads no weight.")
@as_json
def inspect(model: str, revision: str | None, adapter: str | None, tree: bool, as_json: bool) -> int:
    """Say what MODEL (a folder, or a hub id with --revision) is, what would be exported, and what is unsupported and why.

    Exit 0: it can be qualified. 30: it cannot.
    """
    from harness import inspect_model
    from harness.adapter import reference

    base = Path()
    name = f"./{model}" if Path(model).is_dir() and not model.startswith((".", "/")) else model
    found = inspect_model.inspect(name, revision, base, reference(adapter) if adapter is not None else None)
    if tree and found.supported:
        return _tree(name, revision, base, as_json=as_json)
    if as_json:
        import msgspec

        print_json(msgspec.to_builtins(found))
    else:
        from harness.report.inspection import text

        click.echo(text(found), nl=False)
    return 0 if found.supported else EXIT_UNDETERMINED


def _tree(model: str, revision: str | None, base: Path, *, as_json: bool) -> int:
    from harness import candidate, launch

    lines = launch.module_tree(candidate.locate(model, revision, base)[1]).splitlines()
    if as_json:
        print_json({"tree": lines})
    else:
        for line in lines:
            click.echo(safe(line))
    return 0
