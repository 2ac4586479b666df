"""Comment on a pull request, once: the comment of an earlier run is edited.

Settings: ``GITHUB_TOKEN``, ``GITHUB_API_URL``, ``GITHUB_REPOSITORY``, ``PULL_REQUEST`` (a number), ``MARKDOWN`` (a file),
``NAME`` (one comment a name), ``AUTHOR`` (whose comment may be edited).

The comment is known by a mark in its first line and by its author: anybody can write the mark. Output: ``url``.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import runner

LIMIT = 65_000
"""Characters of a comment; GitHub takes 65,536."""
PAGES = 30
TIMEOUT_S = 30


def main() -> int:
    """Run the step."""
    number, repository = runner.needed("PULL_REQUEST"), runner.needed("GITHUB_REPOSITORY")
    name = runner.setting("NAME") or "qualify"
    if not re.fullmatch(r"[0-9]{1,10}", number) or not re.fullmatch(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+", repository):
        runner.refuse(
            f"PULL_REQUEST and GITHUB_REPOSITORY: expected a number and owner/name, got {number!r}, {repository!r}"
        )
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", name):
        runner.refuse(f"NAME: expected at most 100 of A-Z a-z 0-9 . _ -, got {name!r}")
    mark = f"<!-- qualify:{name} -->"
    text = Path(runner.needed("MARKDOWN")).read_text(encoding="utf-8")
    body = {"body": f"{mark}\n{shortened(text, LIMIT - len(mark))}"}
    base = f"/repos/{repository}/issues"
    try:
        found = _own(f"{base}/{number}/comments", mark, runner.setting("AUTHOR") or "github-actions[bot]")
        done = (
            _call("PATCH", f"{base}/comments/{found}", body)
            if found
            else _call("POST", f"{base}/{number}/comments", body)
        )
    except urllib.error.HTTPError as error:
        print(
            f"comment: expected the API to take it, got {error.code}; the token needs pull-requests: write",
            file=sys.stderr,
        )
        return runner.UNDETERMINED
    except (urllib.error.URLError, TimeoutError) as error:
        print(f"comment: expected an answer of the API, got {error!r}; try again", file=sys.stderr)
        return runner.UNDETERMINED
    runner.output(url=str(done.get("html_url", "")))
    return 0


def shortened(text: str, limit: int) -> str:
    """The text, cut at the end of a line where it is too long, so that no table row or code element is cut in two."""
    if len(text) <= limit:
        return text
    note = "\n\n(The rest does not fit a comment; see the job summary.)\n"
    return text[: limit - len(note)].rpartition("\n")[0] + note


def _own(path: str, mark: str, author: str) -> int | None:
    """The number of the first comment that this job may edit: the mark is its first line, and it is the author's own."""
    for page in range(1, PAGES + 1):
        comments = _call("GET", f"{path}?per_page=100&page={page}")
        for comment in comments:
            first = str(comment.get("body") or "").partition("\n")[0].strip()
            if first == mark and (comment.get("user") or {}).get("login") == author:
                return int(comment["id"])
        if len(comments) < 100:
            return None
    return None


def _call(method: str, path: str, body: dict[str, str] | None = None) -> Any:
    base = (runner.setting("GITHUB_API_URL") or "https://api.github.com").rstrip("/")
    if not base.startswith(("https://", "http://127.0.0.1:")):
        runner.refuse(f"GITHUB_API_URL: expected https, got {base!r}")
    request = urllib.request.Request(  # noqa: S310 - the scheme was looked at
        base + path,
        method=method,
        data=json.dumps(body).encode() if body is not None else None,
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {os.environ.get('GITHUB_TOKEN', '')}",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
        return json.load(answer)


if __name__ == "__main__":
    sys.exit(main())
