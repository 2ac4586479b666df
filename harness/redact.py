"""What a sealed log must not carry: secrets of known shapes, and paths that name this machine's user. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

REDACTED = "[REDACTED]"

_SHAPES = re.compile(
    r"""
      -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | \bhf_[A-Za-z0-9]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{20,}
    | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | (?P<kept>
        \b(?:authorization["']?\s*[:=]\s*["']?)?(?:bearer|basic)\s+(?=[A-Za-z0-9+/=._~-]{8})
      | \b(?:[a-z0-9]+[_-])*(?:token|password|passwd|secret|api_?key|secret_?access_?key)["']?\s*[:=]\s*["']?
        (?=[^\s"'&,;]{6})
      | ://[^\s/:@]+:(?=[^\s/@]+@)
      )
      [^\s"'&,;@]+
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""Private key blocks; hub, GitHub and AWS tokens; values after ``Bearer``, ``token=`` and ``password=`` or in a URL, names kept."""

_SECRET_NAME = re.compile(
    r"TOKEN$|TOKEN_|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_KEY|PRIVATE_KEY", re.IGNORECASE
)


def is_secret_name(name: str) -> bool:
    """Whether an environment variable of this name is taken to hold a secret."""
    return _SECRET_NAME.search(name) is not None


def scrub(text: str, places: Mapping[str, str], secrets: Iterable[str] = ()) -> tuple[str, int]:
    """``text`` without secrets and machine paths, and the number of secrets taken out.

    ``places`` maps an absolute path to the word that stands for it; the longest path is tried first. ``secrets`` are
    values known to be secret (of environment variables); those shorter than 8 characters are left, they would hit words.
    """
    count = 0
    for secret in sorted({value for value in secrets if len(value) >= 8}, key=len, reverse=True):
        count += text.count(secret)
        text = text.replace(secret, REDACTED)
    text, found = _SHAPES.subn(_keep_name, text)
    for place in sorted((path for path in places if len(path) > 1), key=len, reverse=True):
        text = re.sub(rf"(?<![\w.~-]){re.escape(place)}(?![\w-])", places[place].replace("\\", r"\\"), text)
    return text, count + found


def _keep_name(match: re.Match[str]) -> str:
    return (match["kept"] or "") + REDACTED
