"""The reviewer's half of the command line: ``verify``, and ``attest`` for whoever made the root."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from harness.cli_common import as_json, junit, print_json, safe, sarif
from harness.errors import AskedWrongly
from harness.files import check_new

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner

    from harness.review import Reviewed

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("root", type=_FILE)
@click.option("--expect", metavar="DIGEST", help="The root digest, kept elsewhere, that the root must have.")
@click.option(
    "--ladder", type=_FILE, metavar="FILE", help="Judge under the limits of this ladder, and list what differs."
)
@click.option(
    "--attestation", type=_FILE, multiple=True, metavar="FILE", help="A signed statement about the root. Repeatable."
)
@click.option(
    "--trust", type=_FILE, multiple=True, metavar="PUBLIC.pem", help="A key whose signature counts. Repeatable."
)
@click.option(
    "--require",
    type=click.Choice(["pinned", "attested"]),
    multiple=True,
    help="End 30 unless the root is shown to be that. Repeatable.",
)
@click.option(
    "--attest-as", metavar="NAME", help="Write the verdict as a statement of NAME, a word or a URI; needs --out."
)
@click.option("--out", type=_FILE, metavar="FILE", help="Where that statement goes; must not exist.")
@click.option("--key", type=_FILE, metavar="PRIVATE.pem", help="Sign that statement.")
@junit
@sarif
@as_json
def verify(
    root: Path,
    expect: str | None,
    ladder: Path | None,
    attestation: tuple[Path, ...],
    trust: tuple[Path, ...],
    require: tuple[Literal["pinned", "attested"], ...],
    attest_as: str | None,
    out: Path | None,
    key: Path | None,
    junit: Path | None,
    sarif: Path | None,
    as_json: bool,
) -> int:
    """Rehash ROOT and judge it again from the raw samples, trusting nothing it claims.

    Exit 0: intact, the claim holds, and it is PASS. 10: intact, but the candidate failed. 20: not intact, the claim is not
    what the samples give, or an attestation does not hold. 30: undetermined, or not shown to be whose it was required to be.
    """
    from harness import attest, dsse, review
    from harness.report.hashing import Hashing

    if (attest_as is None) != (out is None) or (key is not None and out is None):
        raise AskedWrongly(
            "verify: expected --attest-as NAME and --out FILE together, got one or --key alone; give both"
        )
    if attest_as is not None and out is not None:
        attest.verifier_id(attest_as)
        attest.check_place(out, root)
    check_new((out, junit, sarif))
    signer = dsse.private_key(key) if key is not None else None
    asked = review.ask(root, expect, ladder, attestation, trust, require)
    with Hashing(sys.stderr, interactive=sys.stderr.isatty()) as progress:
        reviewed = review.review(asked, progress)
    answer = review.answer(reviewed)
    if attest_as is not None and out is not None:
        answer["summary"] = _summarised(reviewed, attest_as, out, signer)
    if junit is not None or sarif is not None:
        from harness import account

        account.write(review.account(reviewed, answer), junit, sarif)
    if as_json:
        print_json(answer)
    else:
        from harness.report.verification import verify_text

        click.echo(verify_text(answer), nl=False)
    return reviewed.exit_code


def _summarised(reviewed: Reviewed, name: str, out: Path, signer: CryptoSigner | None) -> str | None:
    """Write the reviewer's verdict; where it went, or None where nothing can be vouched for, which is said."""
    from harness import attest, files, review

    said = review.summarise(reviewed, name)
    if isinstance(said, str):
        click.echo(f"qualify: {safe(str(out))}: not written: {said}", err=True)
        return None
    files.write_new(out, attest.encode(said, signer))
    return str(out)


@click.command()
@click.argument("root", type=_FILE)
@click.option("--out", type=_FILE, metavar="FILE", help="Where the statement goes; by default ROOT.intoto.json.")
@click.option("--key", type=_FILE, metavar="PRIVATE.pem", help="Sign it: unencrypted PEM, Ed25519, ECDSA or RSA.")
@as_json
def attest(root: Path, out: Path | None, key: Path | None, as_json: bool) -> int:
    """Say what came of ROOT in an in-toto statement beside it. It is verified first; of a root that is not intact nothing is said.

    Exit 0: written, whatever the result in it. 20, 30: the root is not intact, or that could not be told.
    """
    from harness import attest as statements
    from harness import dsse, files, review
    from harness.report.hashing import Hashing

    place = out or statements.place_beside(root)
    statements.check_place(place, root)
    signer = dsse.private_key(key) if key is not None else None
    with Hashing(sys.stderr, interactive=sys.stderr.isatty()) as progress:
        statement = review.produce(root, progress)
    files.write_new(place, statements.encode(statement, signer))
    result, subject = statement["predicate"]["result"], statement["subject"][0]["digest"]["sha256"]
    signed_by = signer.public_key.keyid if signer is not None else None
    smoke = statement["predicate"][statements.VERDICT]["smoke"]
    if as_json:
        answer = {"attestation": str(place), "result": result, "subject": f"sha256:{subject}", "key": signed_by}
        print_json(answer | {"smoke": smoke})
    else:
        click.echo(f"{result}: {safe(str(place))}")
        for label in smoke:
            click.echo(safe(label))
        click.echo(f"subject sha256 {subject} of SEAL")
        click.echo(f"key     {'sha256 ' + signed_by if signed_by else 'none: unsigned, so it vouches for nothing yet'}")
    return 0
