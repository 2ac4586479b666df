"""Signed envelopes (DSSE 1.0): make one with a private key, open one that a trusted key signed.

Signatures and the encoding that is signed are ``securesystemslib``'s (the extra ``attest``), imported only where they are needed. The
envelope is read here, because what may be anything must end in a refusal: a duplicate key, base64 that is not, an empty list.
As the protocol says, a payload is only looked at once a trusted key has signed it and its type, and the key id in an envelope is a
hint that decides nothing.

    A-ENVELOPE   the bytes are no DSSE envelope
    A-UNSIGNED   there is no signature at all
    A-SIGNATURE  no signature is one of a trusted key over this payload and this payload type
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidence.manifest import Fault
from harness.errors import AskedWrongly, Unavailable
from harness.records import parse_json, to_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
    from securesystemslib.signer import CryptoSigner, SSlibKey

ENVELOPE_LIMIT_BYTES = 4 * 1024 * 1024
_STATEMENT_KEYS = {"_type", "subject", "predicateType"}


class AttestationError(Exception):
    """An attestation that vouches for nothing; ``fault`` names the rule."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class _Signature(msgspec.Struct, frozen=True):
    sig: str
    keyid: str = ""


class _Envelope(msgspec.Struct, frozen=True, rename="camel"):
    """As it stands in the file. Unknown fields are ignored, as the specification asks of a reader."""

    payload: str
    payload_type: str
    signatures: tuple[_Signature, ...]


class Opened(NamedTuple):
    """What a trusted key signed: the bytes, what they are said to be, and the key by its digest (SHA-256 of its DER form)."""

    payload: bytes
    payload_type: str
    key: str


def refuse(rule: str, where: str, expected: str, got: str) -> AttestationError:
    """An error whose fault reads ``where: expected X, got Y``."""
    return AttestationError(Fault(rule, where, f"{where}: expected {expected}, got {got}"))


def sign(payload: bytes, payload_type: str, key: CryptoSigner) -> bytes:
    """An envelope around ``payload`` with one signature, as JSON."""
    from securesystemslib.dsse import Envelope

    envelope = Envelope(payload, payload_type, {})
    envelope.sign(key)
    return to_json(envelope.to_dict())


def open_signed(data: bytes, where: str, trusted: tuple[SSlibKey, ...]) -> Opened:
    """The payload of an envelope that one of the ``trusted`` keys signed. Raises ``AttestationError`` for anything else."""
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import UnverifiedSignatureError
    from securesystemslib.signer import Signature

    envelope = _parse(data, where)
    payload = _base64(envelope.payload, f"{where}#/payload")
    if not envelope.signatures:  # A-UNSIGNED
        raise refuse("A-UNSIGNED", where, "at least one signature", "an empty list; sign it: qualify attest --key")
    try:
        signed = Envelope(payload, envelope.payload_type, {}).pae()
    except UnicodeEncodeError as error:  # A-ENVELOPE: JSON can spell half a surrogate pair, UTF-8 cannot
        raise refuse("A-ENVELOPE", f"{where}#/payloadType", "text", "half of a surrogate pair") from error
    for number, item in enumerate(envelope.signatures):
        signature = _base64(item.sig, f"{where}#/signatures/{number}/sig").hex()
        for key in trusted:
            try:
                key.verify_signature(Signature(key.keyid, signature), signed)
            except UnverifiedSignatureError:
                continue
            return Opened(payload, envelope.payload_type, key.keyid)
    keys = ", ".join(key.keyid[:16] for key in trusted)  # A-SIGNATURE
    expected = f"a signature by a trusted key (sha256 {keys}) over this payload and type"
    raise refuse("A-SIGNATURE", where, expected, f"{len(envelope.signatures)} that no trusted key made")


def _parse(data: bytes, where: str) -> _Envelope:
    """A-ENVELOPE, A-UNSIGNED: the bytes as an envelope."""
    if len(data) > ENVELOPE_LIMIT_BYTES:
        raise refuse("A-ENVELOPE", where, f"at most {ENVELOPE_LIMIT_BYTES} bytes", f"{len(data)}")
    try:
        plain = parse_json(data)
        if isinstance(plain, dict) and plain.keys() >= _STATEMENT_KEYS:
            raise refuse("A-UNSIGNED", where, "a signed envelope", "a bare statement; sign it: qualify attest --key")
        return msgspec.convert(plain, _Envelope, strict=True)
    except (ValueError, RecursionError) as error:  # msgspec.ValidationError is a ValueError
        raise refuse("A-ENVELOPE", where, "a DSSE envelope", str(error)) from error


def _base64(text: str, where: str) -> bytes:
    """A-ENVELOPE: base64 of either alphabet, as the protocol asks of a reader, but nothing beside it."""
    try:
        return base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
    except ValueError as error:
        raise refuse("A-ENVELOPE", where, "base64", str(error)) from error


def require_library() -> None:
    """Raise ``Unavailable`` where the extra is not installed: what was asked for cannot be carried out, so nothing is said."""
    missing = [name for name in ("securesystemslib", "cryptography") if importlib.util.find_spec(name) is None]
    if missing:
        raise Unavailable(
            f"attestation: expected the package {missing[0]}, which signs and checks signatures, got none;"
            " pip install 'qualify[attest]'"
        )


def private_key(path: Path) -> CryptoSigner:
    """The signer of an unencrypted PEM key (Ed25519, ECDSA on P-256, P-384 or P-521, RSA). Raises ``AskedWrongly``, ``Unavailable``."""
    require_library()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from securesystemslib.signer import CryptoSigner

    try:
        key = load_pem_private_key(_read(path), None)
        return CryptoSigner(key, _named(key.public_key()))
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:  # TypeError: it is encrypted
        raise AskedWrongly(
            f"{path}: expected a private key in unencrypted PEM (Ed25519, ECDSA or RSA), got: {error}; make one: openssl genpkey"
            f" -algorithm ed25519 -out {path.name}"
        ) from error


def public_key(path: Path) -> SSlibKey:
    """A trusted key in PEM. Its ``keyid`` is the SHA-256 of its DER form, in hex. Raises ``AskedWrongly``, ``Unavailable``."""
    require_library()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        return _named(load_pem_public_key(_read(path)))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise AskedWrongly(
            f"{path}: expected a public key in PEM (Ed25519, ECDSA or RSA), got: {error}; from a private one: openssl pkey"
            " -in PRIVATE.pem -pubout"
        ) from error


def _named(key: PublicKeyTypes) -> SSlibKey:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from securesystemslib.signer import SSlibKey

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return SSlibKey.from_crypto(key, hashlib.sha256(der).hexdigest())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AskedWrongly(f"{path}: expected a key file, got {error.strerror}; correct the path") from error
