"""Real keys, made by openssl as the how-to says, and envelopes around any payload."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from harness import dsse
from harness.attest import PAYLOAD_TYPE

ED25519 = ("-algorithm", "ed25519")
P256 = ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
RSA = ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")


class KeyPair(NamedTuple):
    """Two PEM files."""

    private: Path
    public: Path

    def sign(self, payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bytes:
        """An envelope around ``payload``."""
        return dsse.sign(payload, payload_type, dsse.private_key(self.private))


def make_keys(folder: Path, name: str, kind: tuple[str, ...] = ED25519) -> KeyPair:
    """A new key pair, ``NAME.pem`` and ``NAME.pub.pem``."""
    pair = KeyPair(folder / f"{name}.pem", folder / f"{name}.pub.pem")
    _openssl("genpkey", *kind, "-out", str(pair.private))
    _openssl("pkey", "-in", str(pair.private), "-pubout", "-out", str(pair.public))
    return pair


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
