"""The command line: arguments, printing, exit codes, and the one exception handler.

stdout is the answer, stderr is progress and errors. Exit codes: 0 qualified or verified, 10 no on merit, 20 evidence not
intact, 30 undetermined, 64 asked wrongly, 70 our own fault, 130 interrupted. Heavy imports stay inside the commands.
"""

from __future__ import annotations

import datetime as dt
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from harness import VERSION
from harness.cli_approve import review
from harness.cli_bisect import bisect
from harness.cli_common import as_json, compared_with, junit, print_json, safe, sarif
from harness.cli_cover import cover
from harness.cli_diff import diff
from harness.cli_export import export
from harness.cli_history import history
from harness.cli_inspect import inspect
from harness.cli_plan import plan
from harness.cli_report import report
from harness.cli_review import attest, verify
from harness.errors import AskedWrongly, QualifyError
from harness.files import check_new, refuse_existing

if TYPE_CHECKING:
    from harness.root import RootRecords
    from harness.run import Climbed

EXIT_NOT_INTACT, EXIT_UNDETERMINED, EXIT_USAGE, EXIT_OURS, EXIT_INTERRUPTED = 20, 30, 64, 70, 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="qualify")
def cli() -> None:
    """Qualify a reranker for ONNX Runtime, and seal the evidence so that somebody else can check it."""


@cli.command()
@click.argument("ladder", type=click.Path(path_type=Path))
@click.option("--model", metavar="DIR|ID", help="Another candidate: a folder, or ID@REVISION (40 hex) on a hub.")
@click.option(
    "--target", multiple=True, metavar="NAME", help="Climb only this target: coverage is partial. Repeatable."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="ROOT", help="The root to make; must not exist.")
@click.option(
    "--supersede", type=click.Path(path_type=Path), metavar="ROOT", help="The root that the new one replaces."
)
@click.option("--reason", metavar="TEXT", help="Why it is replaced.")
@click.option("--preserve", type=click.Path(path_type=Path), metavar="ROOT", help="Carry the steps of this root ...")
@click.option("--rerun", multiple=True, metavar="TIER[:TARGET]", help="... all but these, which run again. Repeatable.")
@junit
@sarif
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="ROOT",
    help="Compare L1 with the artifacts of this root, or of the one that a YAML file pins.",
)
@click.option("--baseline-digest", metavar="DIGEST", help="The root digest that the baseline must have.")
@as_json
def run(
    ladder: Path,
    model: str | None,
    target: tuple[str, ...],
    out: Path | None,
    supersede: Path | None,
    reason: str | None,
    preserve: Path | None,
    rerun: tuple[str, ...],
    junit: Path | None,
    sarif: Path | None,
    baseline: Path | None,
    baseline_digest: str | None,
    as_json: bool,
) -> int:
    """Climb LADDER and seal a root.

    Exit 0: every target that was not deferred reached the goal. 10: a number broke a limit. 30: undetermined.
    """
    from harness.judge import exit_code
    from harness.preserve import Asked, look_back
    from harness.report.live import Live
    from harness.run import climb, prepare

    if out is not None:
        refuse_existing(out)
    check_new((junit, sarif), out)
    asked = Asked(supersede, reason, preserve, rerun)
    asked.check()
    prepared = prepare(ladder, model, target, compared_with(baseline, baseline_digest))
    past = look_back(asked, prepared.plan, ladder.parent)
    for note in past.notes:
        click.echo(f"qualify: {safe(note)}", err=True)
    place = out or _default_out(prepared.plan.ladder)
    for number in (signal.SIGTERM, signal.SIGHUP):  # what CI sends: what was measured is sealed all the same
        signal.signal(number, _end_like_an_interrupt)
    with Live(prepared.plan, stream=sys.stderr, interactive=sys.stderr.isatty()) as live:
        climbed = climb(prepared, place, live, past)
    sealed = None if as_json and junit is None and sarif is None else _just_sealed(climbed.root, climbed.digest)
    if sealed is not None and (junit is not None or sarif is not None):
        from harness import account

        account.write(account.of_records(sealed, climbed.digest), junit, sarif)
    code = EXIT_INTERRUPTED if climbed.interrupted else exit_code(climbed.claim.verdict)
    if as_json:
        import msgspec

        answer = {"root": str(climbed.root), "digest": climbed.digest, "exit_code": code}
        print_json(answer | {"claim": msgspec.to_builtins(climbed.claim)})
    elif sealed is not None:
        _show(sealed, climbed)
    return code


def _show(sealed: RootRecords, climbed: Climbed) -> None:
    from harness.report.terminal import print_root

    print_root(found=sealed, digest=climbed.digest, path=str(climbed.root))


def _end_like_an_interrupt(*_signal: object) -> NoReturn:
    raise KeyboardInterrupt


def _default_out(name: str) -> Path:
    """A new folder under ``runs/``: ladder, UTC time to the second, and a number where that is taken."""
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    place = Path("runs") / f"{name}-{stamp}"
    number = 2
    while place.exists():
        place, number = Path("runs") / f"{name}-{stamp}-{number}", number + 1
    return place


cli.add_command(plan)
cli.add_command(cover)
cli.add_command(verify)
cli.add_command(inspect)
cli.add_command(bisect)
cli.add_command(attest)
cli.add_command(history)
cli.add_command(report)
cli.add_command(export)
cli.add_command(diff)
cli.add_command(review)


@cli.command()
@click.argument("root", type=click.Path(path_type=Path))
@as_json
def show(root: Path, as_json: bool) -> int:
    """Show what ROOT says, worst first. It is verified first; nothing is shown of a root that is not intact."""
    from harness.answer import check, show_answer

    checked = check(root)
    if as_json:
        print_json(show_answer(checked))
    else:
        from harness.report.terminal import print_root

        print_root(found=checked.records, digest=str(checked.opened.report.digest), path=str(root))
    return 0


def _just_sealed(root: Path, digest: str) -> RootRecords:
    """The records of a root that was sealed a moment ago (the sealer verified it)."""
    from evidence.verify import open_root
    from harness.root import load

    opened = open_root(root, digest)
    return load(opened.read, opened.paths)


@cli.command()
@click.option("--policy", is_flag=True, help="Print that of a policy instead.")
def schema(policy: bool) -> int:
    """Print the JSON Schema of a ladder, so that an editor completes and checks it."""
    from harness import ladder
    from harness import policy as policies

    print_json(policies.schema() if policy else ladder.schema())
    return 0


@cli.command()
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@as_json
def doctor(folder: Path | None, as_json: bool) -> int:
    """Say what this machine can run, what is missing, and how to get it; and move what a crash left in FOLDER to FOLDER/quarantine.

    Without FOLDER it looks in runs/ and in the folder where you stand, and moves nothing.
    """
    from harness.doctor import examine, text

    if folder is not None and not folder.is_dir():
        raise AskedWrongly(f"{folder}: expected a folder to look in, got none; check the path")
    found = examine(Path("runs"), Path()) if folder is None else examine(folder, move=True)
    if as_json:
        print_json(found)
    else:
        click.echo(text(found), nl=False)
    return 0 if found["can_run"] else EXIT_UNDETERMINED


@cli.command()
@click.argument("root", type=click.Path(path_type=Path))
def rm(root: Path) -> int:
    """Remove ROOT, which is read-only. Refuses a folder that is not a root."""
    from evidence.seal import SealError
    from harness import leftovers

    try:
        leftovers.remove(root)
    except (SealError, OSError) as error:
        raise AskedWrongly(str(error)) from error
    return 0


def main() -> None:
    """The console entry point: run the command and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a console that has no sign for PASS shows its escape
    sys.exit(guarded(lambda: cli.main(standalone_mode=False), wants_json="--json" in sys.argv[1:]))


_NAMES = {errno.ENAMETOOLONG, errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EINVAL}
"""What a path of the user's can be wrong by; anything else, a full disk say, is nobody's verdict."""


def guarded(command: Callable[[], int | None], *, wants_json: bool = False) -> int:
    """The one exception handler: a code for every way a command can end, and a line on stderr for every bad one.

    With ``wants_json`` that line stands on stdout too, as ``{"error": {"message", "exit_code"}}``.
    """
    try:
        return command() or 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter's last flush complains
        return EXIT_OURS
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the edge of the program: whatever is not named below is our fault
        code, message = _worded(error)
        if wants_json:
            with suppress(OSError):  # a stdout that takes nothing does not take this either
                print_json({"error": {"message": message, "exit_code": code}})
        return code


def _worded(error: BaseException) -> tuple[int, str]:
    """The exit code and the sentence of what ended a command; the sentence is said on stderr."""
    from evidence.verify import NotVerifiedError  # here, so that the command line starts fast

    message, code = str(error), EXIT_OURS
    if isinstance(error, click.ClickException):
        error.show()
        return EXIT_USAGE, error.format_message()
    if isinstance(error, QualifyError):
        code = error.exit_code
    elif isinstance(error, KeyboardInterrupt | click.Abort):
        code, message = EXIT_INTERRUPTED, "interrupted"
    elif isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        message = f"{place}{error.strerror or error}; mend the cause and try again"
        code = EXIT_USAGE if error.errno in _NAMES else EXIT_UNDETERMINED
    elif isinstance(error, NotVerifiedError):  # somebody wrote to the root between two looks at it
        code, message = EXIT_NOT_INTACT, f"{error}; verify it again when nothing writes to it"
    elif isinstance(error, MemoryError):  # what a root may hold is bounded, but so is a machine
        code, message = (
            EXIT_UNDETERMINED,
            "expected memory for what has to be read, got no more: not possible here; use a larger machine",
        )
    else:
        for line in "".join(traceback.format_exception(error)).splitlines():  # its message may hold words of a root
            click.echo(safe(line), err=True)
        message = "that was a fault of qualify itself; please report the lines above"
    click.echo(f"qualify: {safe(message)}", err=True)
    return code, message


if __name__ == "__main__":
    main()
