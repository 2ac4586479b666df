from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from harness import dsse
from harness.dsse import AttestationError, Opened, open_signed
from harness.errors import AskedWrongly, Unavailable
from tests.support.keys import ED25519, P256, RSA, KeyPair, make_keys

TYPE = "application/vnd.in-toto+json"
BODY = b'{"hello": "world"}\n'


def refusal(data: bytes | dict[str, Any], trusted: tuple[SSlibKey, ...]) -> str:
    """The rule and message with which an envelope is refused."""
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    with pytest.raises(AttestationError) as caught:
        open_signed(raw, "a.json", trusted)
    return f"{caught.value.fault.rule} {caught.value.fault.message}"


def envelope(keys: KeyPair) -> Any:
    return json.loads(keys.sign(BODY))


@pytest.mark.parametrize("kind", [ED25519, P256, RSA], ids=["ed25519", "ecdsa", "rsa"])
def test_what_a_key_signed_opens_with_its_public_half(tmp_path: Path, kind: tuple[str, ...]) -> None:
    pair = make_keys(tmp_path, "k", kind)
    public = dsse.public_key(pair.public)
    assert open_signed(pair.sign(BODY), "a.json", (public,)) == Opened(BODY, TYPE, public.keyid)


def test_a_key_is_known_by_the_sha256_that_openssl_gives_of_its_der_form(keys: KeyPair) -> None:
    der = subprocess.run(
        ["openssl", "pkey", "-pubin", "-in", keys.public, "-outform", "DER"], check=True, capture_output=True
    ).stdout
    assert dsse.public_key(keys.public).keyid == hashlib.sha256(der).hexdigest()


def test_the_signed_bytes_are_those_of_the_specification_and_openssl_agrees(keys: KeyPair, tmp_path: Path) -> None:
    assert Envelope(b"hello world", "http://example.com/HelloWorld", {}).pae() == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    (tmp_path / "signed").write_bytes(b"DSSEv1 %d %s %d %s" % (len(TYPE), TYPE.encode(), len(BODY), BODY))
    (tmp_path / "sig").write_bytes(base64.b64decode(envelope(keys)["signatures"][0]["sig"]))
    command = ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", str(keys.public)]
    files = ["-in", str(tmp_path / "signed"), "-sigfile", str(tmp_path / "sig")]
    assert subprocess.run([*command, *files], check=False, capture_output=True).returncode == 0


def test_unknown_fields_an_empty_key_id_and_url_safe_base64_are_read(
    keys: KeyPair, trusted: tuple[SSlibKey, ...]
) -> None:
    found = envelope(keys)
    found["later"] = 1
    found["signatures"] = [
        {"sig": base64.urlsafe_b64encode(base64.b64decode(item["sig"])).decode(), "cert": ""}
        for item in found["signatures"]
    ]
    assert open_signed(json.dumps(found).encode(), "a.json", trusted).payload == BODY


def test_one_trusted_signature_among_others_is_enough(
    keys: KeyPair, stranger: KeyPair, trusted: tuple[SSlibKey, ...]
) -> None:
    found = envelope(stranger)
    found["signatures"] += envelope(keys)["signatures"]
    assert open_signed(json.dumps(found).encode(), "a.json", trusted).key == trusted[0].keyid


def test_a_key_id_makes_nobody_trusted(keys: KeyPair, stranger: KeyPair, trusted: tuple[SSlibKey, ...]) -> None:
    found = envelope(stranger)
    found["signatures"][0]["keyid"] = trusted[0].keyid
    assert refusal(found, trusted).startswith("A-SIGNATURE ")


def test_a_signature_by_another_key_is_refused(stranger: KeyPair, trusted: tuple[SSlibKey, ...]) -> None:
    expected = f"a signature by a trusted key (sha256 {trusted[0].keyid[:16]}) over this payload and type"
    assert refusal(envelope(stranger), trusted) == (
        f"A-SIGNATURE a.json: expected {expected}, got 1 that no trusted key made"
    )


@pytest.mark.parametrize("field", ["payload", "payloadType"])
def test_a_signature_holds_only_for_the_payload_and_type_that_were_signed(
    keys: KeyPair, trusted: tuple[SSlibKey, ...], field: str
) -> None:
    found = envelope(keys)
    found[field] = base64.b64encode(b"{}").decode()
    assert refusal(found, trusted).startswith("A-SIGNATURE ")


@pytest.mark.parametrize("sig", ["", "AAAA", base64.b64encode(bytes(64)).decode()], ids=["empty", "short", "zeros"])
def test_a_signature_that_is_no_signature_is_refused(keys: KeyPair, trusted: tuple[SSlibKey, ...], sig: str) -> None:
    assert refusal({**envelope(keys), "signatures": [{"sig": sig}]}, trusted).startswith("A-SIGNATURE ")


def test_an_empty_list_of_signatures_is_unsigned(keys: KeyPair, trusted: tuple[SSlibKey, ...]) -> None:
    assert refusal({**envelope(keys), "signatures": []}, trusted) == (
        "A-UNSIGNED a.json: expected at least one signature, got an empty list; sign it: qualify attest --key"
    )


def test_a_bare_statement_is_unsigned(trusted: tuple[SSlibKey, ...]) -> None:
    statement = {"_type": "https://in-toto.io/Statement/v1", "subject": [], "predicateType": "x", "predicate": {}}
    assert refusal(statement, trusted) == (
        "A-UNSIGNED a.json: expected a signed envelope, got a bare statement; sign it: qualify attest --key"
    )


def test_what_is_no_envelope_is_refused_with_the_place(keys: KeyPair, trusted: tuple[SSlibKey, ...]) -> None:
    found = envelope(keys)
    text = json.dumps(found).encode()
    cases: list[tuple[bytes | dict[str, Any], str]] = [
        (b"", "a DSSE envelope, got Expecting value: line 1 column 1 (char 0)"),
        (b"[]", "a DSSE envelope, got Expected `object`, got `array`"),
        (b"\xff", "a DSSE envelope, got 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (text.replace(b'{"payload":', b'{"payload": "", "payload":'), "a DSSE envelope, got duplicate key 'payload'"),
        (text.replace(b'"sig":', b'"sig": "", "sig":'), "a DSSE envelope, got duplicate key 'sig'"),
        ({"payload": ""}, "a DSSE envelope, got Object missing required field `payloadType`"),
        ({**found, "signatures": "x"}, "a DSSE envelope, got Expected `array`, got `str` - at `$.signatures`"),
        (
            {**found, "signatures": [{}]},
            "a DSSE envelope, got Object missing required field `sig` - at `$.signatures[0]`",
        ),
        (b'{"payload": NaN}', "a DSSE envelope, got NaN, which JSON does not have"),
    ]
    for data, message in cases:
        assert refusal(data, trusted) == f"A-ENVELOPE a.json: expected {message}"
    assert refusal({**found, "payload": "%%%"}, trusted).startswith("A-ENVELOPE a.json#/payload: expected base64, got ")
    bad = {**found, "signatures": [{"sig": "é"}]}
    assert refusal(bad, trusted).startswith("A-ENVELOPE a.json#/signatures/0/sig: expected base64, got ")
    half = {**found, "payloadType": "\ud800"}
    assert refusal(half, trusted) == "A-ENVELOPE a.json#/payloadType: expected text, got half of a surrogate pair"
    assert refusal(b"[" * 200_000, trusted).startswith("A-ENVELOPE a.json: expected a DSSE envelope, got ")
    assert refusal(b" " * (dsse.ENVELOPE_LIMIT_BYTES + 1), trusted) == (
        "A-ENVELOPE a.json: expected at most 4194304 bytes, got 4194305"
    )


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
BASE64 = st.binary(max_size=90).map(lambda data: base64.b64encode(data).decode()) | st.text(max_size=9)
ENVELOPES = st.fixed_dictionaries(
    {"payload": BASE64 | PLAIN, "payloadType": st.just(TYPE) | PLAIN},
    optional={
        "signatures": st.lists(st.fixed_dictionaries({"sig": BASE64 | PLAIN}, optional={"keyid": PLAIN})) | PLAIN,
        "_type": PLAIN,
        "subject": PLAIN,
        "predicateType": PLAIN,
    },
)


@given(st.binary(max_size=300) | (ENVELOPES | PLAIN).map(lambda value: json.dumps(value).encode()))
@settings(max_examples=300, deadline=None)
def test_anything_at_all_is_refused_by_a_rule_and_never_by_another_exception(data: bytes) -> None:
    assert refusal(data, TRUSTED).startswith(("A-ENVELOPE ", "A-UNSIGNED ", "A-SIGNATURE "))


def _some_key() -> SSlibKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return SSlibKey.from_crypto(Ed25519PrivateKey.generate().public_key())


TRUSTED = (_some_key(),)


def test_files_that_are_no_such_key_are_refused_in_one_line(keys: KeyPair, tmp_path: Path) -> None:
    for read, path in ((dsse.private_key, keys.public), (dsse.public_key, keys.private)):
        with pytest.raises(AskedWrongly) as caught:
            read(path)
        half = "private key in unencrypted" if read is dsse.private_key else "public key in"
        assert str(caught.value).startswith(f"{path}: expected a {half} PEM (Ed25519, ECDSA or RSA), got: ")
    with pytest.raises(AskedWrongly, match=r": expected a key file, got No such file or directory; correct the path$"):
        dsse.public_key(tmp_path / "none.pem")


def test_an_encrypted_private_key_and_a_key_that_cannot_sign_are_refused(tmp_path: Path) -> None:
    locked, agreeing = tmp_path / "locked.pem", make_keys(tmp_path, "x", ("-algorithm", "X25519"))
    command = ["openssl", "genpkey", *ED25519, "-aes256", "-pass", "pass:secret", "-out", str(locked)]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(AskedWrongly, match="expected a private key in unencrypted PEM"):
        dsse.private_key(locked)
    with pytest.raises(AskedWrongly, match="expected a private key in unencrypted PEM"):
        dsse.private_key(agreeing.private)
    with pytest.raises(AskedWrongly, match="expected a public key in PEM"):
        dsse.public_key(agreeing.public)


def test_without_the_library_signing_and_checking_are_refused_with_how_to_get_it(
    keys: KeyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    for read, path in ((dsse.private_key, keys.private), (dsse.public_key, keys.public)):
        with pytest.raises(Unavailable) as caught:
            read(path)
        assert str(caught.value) == (
            "attestation: expected the package securesystemslib, which signs and checks signatures, got none;"
            " pip install 'qualify[attest]'"
        )
        assert caught.value.exit_code == 30
