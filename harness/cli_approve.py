"""The command ``qualify review``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.cli_common import as_json, junit, print_json, safe, sarif

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("root", type=_FILE)
@click.option(
    "--policy", type=_FILE, metavar="FILE", required=True, help="What the root must meet; it may pin the baseline."
)
@click.option(
    "--baseline", type=_FILE, metavar="ROOT", help="The root, folder or pin to compare with, instead of the policy's."
)
@click.option("--expect", metavar="DIGEST", help="The root digest, kept elsewhere, that the root must have.")
@click.option(
    "--earlier", type=_FILE, metavar="REVIEW.json", help="An earlier review: say which of its blockers are closed."
)
@click.option("--out", type=_FILE, metavar="FOLDER", help="Where the review goes; by default beside the root.")
@click.option(
    "--attest-as", default="reviewer", metavar="NAME", help="Who reviews, a word or a URI; reviewer by default."
)
@click.option("--key", type=_FILE, metavar="PRIVATE.pem", help="Sign the attestation.")
@junit
@sarif
@as_json
def review(
    root: Path,
    policy: Path,
    baseline: Path | None,
    expect: str | None,
    earlier: Path | None,
    out: Path | None,
    attest_as: str,
    key: Path | None,
    junit: Path | None,
    sarif: Path | None,
    as_json: bool,
) -> int:
    """Review ROOT under a policy, and write the answer beside it: verify, judge again, coverage, diff, freshness, lineage.

    Exit 0: APPROVE. 10: REQUEST_CHANGES on merit. 20: REJECT, not intact or not what its samples give. 30: REQUEST_CHANGES,
    something could not be told.
    """
    import msgspec

    from harness import attest, dsse, files, review_files, reviewing
    from harness.report import review_view
    from harness.report.hashing import Hashing

    attest.verifier_id(attest_as)
    places = review_files.places(root, out)
    files.check_new((junit, sarif), root)
    signer = dsse.private_key(key) if key is not None else None
    with Hashing(sys.stderr, interactive=sys.stderr.isatty()) as progress:
        reviewed = reviewing.review(root, policy, baseline, earlier, expect, progress)
    said = review_files.statement(reviewed, attest_as)
    answer = {places.markdown: review_view.markdown(reviewed).encode(), places.json: review_files.encode(reviewed)}
    if isinstance(said, str):
        click.echo(f"qualify: {safe(str(places.attestation))}: not written: {said}", err=True)
    else:
        answer[places.attestation] = attest.encode(said, signer)
    files.write_all(answer)
    if junit or sarif:
        from harness import account, judgements

        account.write(judgements.of_review(reviewed.review), junit, sarif)
    written = list(answer)
    if as_json:
        print_json(msgspec.to_builtins(reviewed.review) | {"written": [str(path) for path in written]})
    else:
        click.echo(review_view.text(reviewed), nl=False)
        for path in written:
            click.echo(f"written {safe(str(path))}")
    return reviewed.review.exit_code
