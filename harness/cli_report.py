"""``qualify report``: a root as a page, for a pull request, or as annotations of a CI job."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli_common import safe
from harness.errors import AskedWrongly
from harness.files import check_new, write_new

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("root", type=_FILE)
@click.option("--html", type=_FILE, metavar="FILE", help="Write one self-contained page.")
@click.option("--markdown", is_flag=True, help="Print the form that a pull request or job summary takes.")
@click.option(
    "--baseline",
    type=_FILE,
    metavar="ROOT",
    help="With --markdown: what differs from this root, from the current one of a folder, or from the one that a file pins.",
)
@click.option("--annotations", is_flag=True, help="Print what is not PASS as workflow commands of GitHub Actions.")
def report(root: Path, html: Path | None, markdown: bool, baseline: Path | None, annotations: bool) -> int:
    """Report ROOT as HTML, Markdown or annotations. It is verified first; nothing is reported of a root that is not intact."""
    if baseline is not None and not markdown:
        raise AskedWrongly(
            "report: expected --baseline with --markdown, got it without; see qualify diff for other forms"
        )
    if (html is not None) + markdown + annotations != 1:
        raise AskedWrongly("report: expected one of --html FILE, --markdown and --annotations; choose one")
    from harness.answer import check

    check_new((html,))
    checked = check(root)
    records, digest = checked.records, str(checked.opened.report.digest)
    if annotations:
        from harness import account
        from harness.report.annotations import render as lines

        click.echo(lines(account.of_records(records, digest)), nl=False)
        return 0
    if html is None:
        from harness import comparison
        from harness.report.markdown import render as markdown_text

        delta = comparison.delta(comparison.with_baseline(checked, baseline)) if baseline is not None else ""
        click.echo(markdown_text(records, digest, delta), nl=False)
        return 0
    from harness.report.html import render as html_text

    page = html_text(records, checked.opened.read, checked.opened.paths, digest)
    write_new(html, page.encode())
    click.echo(safe(str(html)))
    return 0
