"""Verify a root, compare it with a baseline, and tell the runner.

Settings: ``QUALIFY_BIN`` (an environment without torch), ``ROOT``, ``EXPECT`` (a digest), ``LADDER`` (judge under it), ``BASELINE``,
``POLICY``, ``PLACE`` (a folder for what is written). Writes ``PLACE/report.md``, also the job summary, and prints annotations.
Outputs: ``digest``, ``verdict``, ``code``, ``markdown``. The step does not fail by a verdict; ``decide.py`` does.
"""

from __future__ import annotations

import json
import sys
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
    if baseline := runner.setting("BASELINE"):
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
    )
    return 0


def _json(text: str) -> dict[str, object]:
    """The answer; nothing where the command ended without one."""
    found = json.loads(text) if text.strip() else {}
    return found if isinstance(found, dict) else {}


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
