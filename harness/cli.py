"""The command line: arguments, printing, exit codes, and the one exception handler.

stdout is the answer, stderr is progress and errors. Exit codes: 0 qualified or verified, 10 no on merit, 20 evidence not
intact, 30 undetermined, 64 asked wrongly, 70 our own fault, 130 interrupted. Heavy imports stay inside the commands.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import click

from harness.errors import AskedWrongly, QualifyError

EXIT_UNDETERMINED, EXIT_USAGE, EXIT_OURS, EXIT_INTERRUPTED = 30, 64, 70, 130

as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON on stdout.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="qualify")
def cli() -> None:
    """Qualify a reranker for ONNX Runtime, and seal the evidence so that somebody else can check it."""


@cli.command()
@click.argument("ladder", type=click.Path(path_type=Path))
@click.option("--model", metavar="DIR|ID", help="Another candidate: a folder, or ID@REVISION (40 hex) on a hub.")
@click.option("--out", type=click.Path(path_type=Path), metavar="ROOT", help="The root to make; must not exist.")
@as_json
def run(ladder: Path, model: str | None, out: Path | None, as_json: bool) -> int:
    """Climb LADDER and seal a root.

    Exit 0: every target that was not deferred reached the goal. 10: a number broke a limit. 30: undetermined.
    """
    from harness.report.live import Live
    from harness.run import climb, exit_code, prepare

    _refuse_existing(out)
    prepared = prepare(ladder, model)
    place = out or _default_out(prepared.plan.ladder)
    with Live(prepared.plan, stream=sys.stderr, interactive=sys.stderr.isatty()) as live:
        climbed = climb(prepared, place, live)
    code = EXIT_INTERRUPTED if climbed.interrupted else exit_code(climbed.claim.verdict)
    if as_json:
        import msgspec

        answer = {"root": str(climbed.root), "digest": climbed.digest, "exit_code": code}
        _print_json(answer | {"claim": msgspec.to_builtins(climbed.claim)})
    else:
        _show(climbed.root, climbed.digest)
    return code


def _refuse_existing(out: Path | None) -> None:
    if out is not None and (out.exists() or out.is_symlink()):
        raise AskedWrongly(
            f"{out}: expected a path that does not exist, got an existing one; name another or remove it"
        )


def _default_out(name: str) -> Path:
    """A new folder under ``runs/``: ladder, UTC time to the second, and a number where that is taken."""
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    place = Path("runs") / f"{name}-{stamp}"
    number = 2
    while place.exists():
        place, number = Path("runs") / f"{name}-{stamp}-{number}", number + 1
    return place


@cli.command()
@click.argument("ladder", type=click.Path(path_type=Path))
@click.option("--model", metavar="DIR|ID", help="Another candidate: a folder, or ID@REVISION (40 hex) on a hub.")
@as_json
def plan(ladder: Path, model: str | None, as_json: bool) -> int:
    """Print the fully materialised plan of LADDER, and which values were defaults. Nothing is measured."""
    from harness.records import to_json
    from harness.run import prepare

    made = prepare(ladder, model).plan
    if as_json:
        click.echo(to_json(made).decode(), nl=False)
    else:
        from harness.report.terminal import plan_text

        click.echo(plan_text(made), nl=False)
    return 0


@cli.command()
@click.argument("root", type=click.Path(path_type=Path))
@click.option("--expect", metavar="DIGEST", help="The root digest, kept elsewhere, that the root must have.")
@as_json
def verify(root: Path, expect: str | None, as_json: bool) -> int:
    """Rehash ROOT and judge it again from the raw samples, trusting nothing it claims.

    Exit 0: intact, the claim holds, and it is PASS. 10: intact, but the candidate failed. 20: not intact, or the claim is
    not what the samples give. 30: undetermined.
    """
    from harness.answer import check, verify_answer

    checked = check(root, expect)
    if as_json:
        _print_json(verify_answer(checked))
    else:
        from harness.report.terminal import verify_text

        click.echo(verify_text(verify_answer(checked)), nl=False)
    return checked.exit_code


@cli.command()
@click.argument("root", type=click.Path(path_type=Path))
@as_json
def show(root: Path, as_json: bool) -> int:
    """Show what ROOT says, worst first. It is verified first; nothing is shown of a root that is not intact."""
    from harness.answer import check, show_answer

    checked = check(root)
    if as_json:
        _print_json(show_answer(checked))
    else:
        from harness.report.terminal import print_root

        print_root(found=checked.records, digest=str(checked.opened.report.digest), path=str(root))
    return 0


@cli.command()
@click.argument("root", type=click.Path(path_type=Path))
@click.option("--html", "html", type=click.Path(path_type=Path), metavar="FILE", help="Write one self-contained page.")
@click.option("--markdown", "markdown", is_flag=True, help="Print the form that a pull request or job summary takes.")
def report(root: Path, html: Path | None, markdown: bool) -> int:
    """Report ROOT as HTML or Markdown. It is verified first; nothing is reported of a root that is not intact."""
    if (html is None) == (not markdown):
        raise AskedWrongly("report: expected --html FILE or --markdown, got both or neither; choose one")
    from harness.answer import check

    checked = check(root)
    records, digest = checked.records, str(checked.opened.report.digest)
    if html is None:
        from harness.report.markdown import render as markdown_text

        click.echo(markdown_text(records, digest), nl=False)
        return 0
    from harness.report.html import render as html_text

    page = html_text(records, checked.opened.read, checked.opened.paths, digest)
    try:
        html.write_text(page, encoding="utf-8")
    except OSError as error:
        raise AskedWrongly(
            f"{html}: expected a file that can be written, got {error.strerror}; name another"
        ) from error
    click.echo(html)
    return 0


def _show(root: Path, digest: str) -> None:
    """The terminal form of a root that was sealed a moment ago (the sealer verified it)."""
    from evidence.verify import open_root
    from harness.report.terminal import print_root
    from harness.root import load

    opened = open_root(root, digest)
    print_root(found=load(opened.read, opened.paths), digest=digest, path=str(root))


@cli.command()
def schema() -> int:
    """Print the JSON Schema of a ladder, so that an editor completes and checks it."""
    from harness import ladder

    _print_json(ladder.schema())
    return 0


@cli.command()
@as_json
def doctor(as_json: bool) -> int:
    """Say what this machine can run, what is missing, and how to get it."""
    from harness.doctor import examine, text

    found = examine(Path("runs"))
    if as_json:
        _print_json(found)
    else:
        click.echo(text(found), nl=False)
    return 0 if found["can_run"] else EXIT_UNDETERMINED


@cli.command()
@click.argument("root", type=click.Path(path_type=Path))
def rm(root: Path) -> int:
    """Remove ROOT, which is read-only. Refuses a folder that is not a root."""
    from evidence import seal

    try:
        seal.remove(root)
    except (seal.SealError, OSError) as error:
        raise AskedWrongly(str(error)) from error
    return 0


def _print_json(answer: object) -> None:
    click.echo(json.dumps(answer, indent=2, sort_keys=True, allow_nan=False))


def _safe(text: str) -> str:
    from harness.report.escape import terminal

    return terminal(text)


def main() -> None:
    """The console entry point: run the command and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a console that has no sign for PASS shows its escape
    sys.exit(guarded(lambda: cli.main(standalone_mode=False)))


def guarded(command: Callable[[], int | None]) -> int:
    """The one exception handler: a code for every way a command can end."""
    try:
        return command() or 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return EXIT_USAGE
    except QualifyError as error:
        click.echo(f"qualify: {_safe(str(error))}", err=True)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("qualify: interrupted", err=True)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter's last flush complains
        return EXIT_OURS
    except Exception:  # noqa: BLE001 - the edge of the program: whatever it was, it is our fault and gets our code
        traceback.print_exc()
        click.echo("qualify: that was a fault of qualify itself; please report the lines above", err=True)
        return EXIT_OURS


if __name__ == "__main__":
    main()
