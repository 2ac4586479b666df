"""Verify a root, compare it with a baseline or review it under a policy, and tell the runner.

Settings: ``QUALIFY_BIN`` (an environment without torch), ``ROOT``, ``EXPECT`` (a digest), ``LADDER`` (judge under it),
``AUTHENTICITY`` (none, pinned or attested: what it must be), ``ATTESTATION`` (a file) and ``TRUST`` (a public key), ``BASELINE``,
``POLICY`` (which may pin the baseline), ``REVIEW`` (true: with a policy, `qualify review` answers in place of the comparison),
``PLACE`` (a folder for what is written). Writes ``PLACE/report.md``, also the job summary, and prints annotations.
Outputs: ``digest``, ``verdict``, ``code``, ``markdown``, ``vouched`` (false: the authenticity asked for was not reached), and ``review``,
the folder of a review's files. The step does not fail by a verdict; ``decide.py`` does.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import runner


def main() -> int:
    """Run the step."""
    root, place = runner.needed("ROOT"), Path(runner.needed("PLACE"))
    place.mkdir(parents=True, exist_ok=True)
    options = [
        word
        for name in ("EXPECT", "LADDER")
        if (value := runner.setting(name))
        for word in (f"--{name.lower()}", value)
    ]
    options += _vouching()
    said = runner.qualify("verify", *options, "--", root)
    answer = _json(runner.qualify("verify", "--json", *options, "--", root, shown=False).out)
    parts, codes = [], [said.code]
    if answer.get("intact"):
        parts.append(runner.qualify("report", "--markdown", "--", root, shown=False).out)
        runner.qualify("report", "--annotations", "--", root)
    if said.code != 0:
        parts.append(f"### Verification ended {said.code}\n\n{runner.fenced(said.out)}")
        if not answer.get("intact"):
            print(
                "::error title=qualify%3A the evidence is not intact::See the job summary; rely on nothing in this root."
            )
    review = ""
    if runner.setting("REVIEW") == "true" and runner.setting("POLICY"):
        review = tempfile.mkdtemp(prefix="review-", dir=place)
        part, code = _review(root, Path(review))
        parts.append(part)
        codes.append(code)
    elif baseline := runner.against():
        part, code = _compare(baseline, root)
        parts.append(part)
        codes.append(code)
    markdown = place / "report.md"
    markdown.write_text("\n".join(parts), encoding="utf-8")
    runner.summary(markdown.read_text(encoding="utf-8"))
    runner.output(
        digest=str(answer.get("digest") or ""),
        verdict=str(answer.get("verdict") or "NONE"),
        code=runner.worst(*codes),
        markdown=markdown,
        review=review,
        vouched=str(_vouched(answer)).lower(),
    )
    return 0


def _vouching() -> list[str]:
    """What must vouch for the root; ``none``, and nothing, ask for nothing."""
    asked = runner.setting("AUTHENTICITY")
    words = ["--require", asked] if asked not in {"", "none"} else []
    for name in ("ATTESTATION", "TRUST"):
        if value := runner.setting(name):
            words += [f"--{name.lower()}", value]
    return words


def _vouched(answer: dict[str, object]) -> bool:
    """Whether the authenticity that was asked for was reached."""
    asked, reached = runner.setting("AUTHENTICITY"), answer.get("reached")
    return asked in {"", "none"} or (isinstance(reached, list) and asked in reached)


def _json(text: str) -> dict[str, object]:
    """The answer; nothing where the command ended without one."""
    found = json.loads(text) if text.strip() else {}
    return found if isinstance(found, dict) else {}


def _review(root: str, folder: Path) -> tuple[str, int]:
    """The review as Markdown, and its exit code; its files are left in ``folder``."""
    options = ["--policy", runner.setting("POLICY"), "--out", str(folder)]
    for name in ("BASELINE", "EXPECT"):
        if value := runner.setting(name):
            options += [f"--{name.lower()}", value]
    said = runner.qualify("review", *options, "--", root)
    written = list(folder.glob("*.review.md"))
    if not written:
        return f"### Review\n\nThere is no review: `qualify review` ended {said.code}; see the log.\n", said.code
    return written[0].read_text(encoding="utf-8"), said.code


def _compare(baseline: str, root: str) -> tuple[str, int]:
    """The difference as Markdown, and the exit code of the gate: 0 without a policy, where nothing is demanded."""
    policy = runner.setting("POLICY")
    options = ["--policy", policy] if policy else []
    said = runner.qualify("diff", "--markdown", *options, "--", baseline, root, shown=False)
    if not said.out.strip():
        return f"### Baseline\n\nThe roots could not be compared: `qualify diff` ended {said.code}.\n", said.code
    return said.out, said.code


if __name__ == "__main__":
    sys.exit(main())
