"""The command ``qualify diff``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.cli_common import as_json, junit, print_json, sarif
from harness.errors import AskedWrongly
from harness.files import check_new, read_small, write_new

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("baseline", type=_FILE)
@click.argument("candidate", type=_FILE)
@click.option("--policy", type=_FILE, metavar="FILE", help="Judge the differences by the gates of this policy.")
@click.option(
    "--pair",
    "pairs",
    multiple=True,
    metavar="OLD=NEW",
    help="Compare the baseline's target OLD with the candidate's NEW, instead of those of one name. Repeatable.",
)
@click.option(
    "--ladder", default="LADDER", metavar="FILE", help="The ladder's file, as the command that refreshes names it."
)
@click.option("--markdown", "markdown", is_flag=True, help="Print the form that a pull request or job summary takes.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write one self-contained page as well.")
@junit
@sarif
@as_json
def diff(
    baseline: Path,
    candidate: Path,
    policy: Path | None,
    pairs: tuple[str, ...],
    ladder: str,
    markdown: bool,
    html: Path | None,
    junit: Path | None,
    sarif: Path | None,
    as_json: bool,
) -> int:
    """Compare CANDIDATE with BASELINE: roots, folders of roots, or a YAML file that pins a root. Both are verified first.

    Exit 0: every gate of the policy is OK, or there is no policy. 10: a gate found a regression. 20: a root is not intact.
    30: undetermined (inconclusive or incomparable).
    """
    from evidence.manifest import digest_of
    from harness import comparison, gate
    from harness import policy as policies
    from harness.report.hashing import Hashing

    if as_json and markdown:
        raise AskedWrongly("diff: expected --json or --markdown, got both; choose one")
    if policy is None and (junit or sarif):
        raise AskedWrongly("diff: expected --policy with --junit and --sarif, got none, so nothing is judged; give one")
    check_new((html, junit, sarif))
    wanted = tuple(_pair(word) for word in pairs)
    data = read_small(policy) if policy is not None else None
    asked = policies.parse(data, policy.name) if policy is not None and data is not None else None
    with Hashing(sys.stderr, interactive=sys.stderr.isatty()) as progress:
        found = comparison.compare(baseline, candidate, wanted, ladder, progress)
    gates = gate.judge(asked, digest_of(data), found) if asked is not None and data is not None else None
    if html is not None:
        write_new(html, comparison.html(found, gates).encode())
    if gates is not None and (junit or sarif):
        from harness import account, judgements

        account.write(judgements.of_gates(found, gates), junit, sarif)
    if as_json:
        print_json(comparison.answer(found, gates))
    else:
        click.echo(comparison.markdown(found, gates) if markdown else comparison.text(found, gates), nl=False)
    return gates.exit_code if gates is not None else 0


def _pair(word: str) -> tuple[str, str]:
    before, sign, after = word.partition("=")
    if not (before and sign and after):
        raise AskedWrongly(
            f"--pair {word}: expected OLD=NEW, two names of targets, got {word!r}; write cpu-fp32=cpu-int8"
        )
    return before, after
