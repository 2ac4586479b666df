"""What a sealed log must not carry: secrets of known shapes, and paths that name this machine's user. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

REDACTED = "[REDACTED]"

_SHAPES = re.compile(
    r"""
      -----BEGIN\ [A-Z ]*PRIVATE\ KEY(?:\ BLOCK)?-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY(?:\ BLOCK)?-----|\Z)
    | (?-i:
        hf_(?:[A-Za-z0-9]{16,} | (?:oauth|jwt)_[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]+)*)
      | api_org_[A-Za-z]{30,}
      | gh[pousr]_[A-Za-z0-9]{20,}
      | github_pat_[A-Za-z0-9_]{20,}
      | gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat)-[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]+)*
      | (?:AKIA|ASIA)[A-Z0-9]{16,}
      | AIza[A-Za-z0-9_-]{35,}
      | ya29\.[A-Za-z0-9_.-]{20,}[A-Za-z0-9_-]
      | xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}
      | (?:(?<![A-Za-z0-9-])|(?<=[0-9;\[]m)|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))
        sk-(?=[A-Za-z0-9_-]{0,200}[0-9])[A-Za-z0-9_-]{0,200}?[A-Za-z0-9]{16,}[A-Za-z0-9_-]*
      )
    | (?P<kept>
        authorization(?:["']|%22)?\s*(?:[:=]|%3[AD])\s*(?:["']|%22)?(?:bearer|basic|token)(?:\s|%20)+
        (?=[A-Za-z0-9+/=._~-]{8})
      | (?:bearer|basic)\s+(?=[A-Za-z0-9+/=._~-]{8})(?=[A-Za-z0-9+/=._~-]*(?-i:[A-Z0-9]))
      | (?:token|password|passwd|secret|api[_-]?key|access_?key|account_?key)
        (?:["']|%22)?\s*(?:[:=]|%3[AD])\s*(?:["']|%22)?
        (?!\[[A-Z]+\]|<[^\s<>]+>)(?=[^\s"'&,;]{6})
      | (?:[?&;]|%26|SharedAccessSignature[\s=])sig(?:=|%3D)(?=[A-Za-z0-9%+/]{30})
      | ://[^\s/:@]*:(?=[^\s/@]+@)
      )
      [^\s"'&,;@]+
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""Private key blocks; tokens and keys by the prefix that their issuer gives them; values after ``Bearer``, ``token=``, ``sig=`` and
the like or in a URL, names kept.

An issuer's prefix needs nothing before it: in a coloured log, in a percent-encoded URL and behind a name, letters and digits touch it.
``sk-`` alone also ends common words (``task-``, ``disk-``), so it needs a border, an escape that is over, and a digit in what follows.
A value in ``[...]`` or ``<...>`` is a special token of a tokenizer, or was taken out already. Shapes: the token formats that Hugging
Face, GitHub, GitLab, AWS, Google, Azure, Slack and OpenAI document.
"""

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
    for secret in _known(secrets):
        count += text.count(secret)
        text = text.replace(secret, REDACTED)
    text, found = _SHAPES.subn(_keep_name, text)
    for place in sorted((path for path in places if len(path) > 1), key=len, reverse=True):
        text = re.sub(rf"(?<![\w.~-]){re.escape(place)}(?![\w-])", places[place].replace("\\", r"\\"), text)
    return text, count + found


def parted(before: str, after: str, places: Iterable[str], secrets: Iterable[str] = ()) -> tuple[str, str]:
    """Two texts that stand one after the other, as each may be kept without the other: no half secret or path at the border.

    A secret across the border is ``REDACTED`` in both; a path across it is taken from both.
    """
    text, low, high = before + after, len(before), len(before)
    shapes = [match.span() for match in _SHAPES.finditer(text)]
    shapes += [match.span() for secret in _known(secrets) for match in re.finditer(re.escape(secret), text)]
    paths = [match.span() for place in places if len(place) > 1 for match in re.finditer(re.escape(place), text)]
    word = ""
    while across := [span for span in shapes + paths if span[0] < low < span[1] or span[0] < high < span[1]]:
        word = REDACTED if word or any(span in shapes for span in across) else ""
        low, high = min(low, *(start for start, _ in across)), max(high, *(end for _, end in across))
    return text[:low] + word, word + text[high:]


def _known(secrets: Iterable[str]) -> list[str]:
    """Known secrets that are no common word, longest first."""
    return sorted({value for value in secrets if len(value) >= 8}, key=len, reverse=True)


def _keep_name(match: re.Match[str]) -> str:
    return (match["kept"] or "") + REDACTED
