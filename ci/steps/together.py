"""Do all roots of a matrix together cover its ladders?

Settings: ``QUALIFY_BIN``, ``ROOTS`` (a folder of roots), ``LADDERS`` (one a line), ``ALLOW_DEFERRED`` (true or empty), ``PLACE``.
Outputs: ``code``, ``markdown``. The step does not fail by a verdict; ``decide.py`` does.
"""

from __future__ import annotations

import sys
from pathlib import Path

import runner


def main() -> int:
    """Run the step."""
    place = Path(runner.needed("PLACE"))
    place.mkdir(parents=True, exist_ok=True)
    options = ["--allow-deferred"] if runner.setting("ALLOW_DEFERRED") == "true" else []
    for line in runner.needed("LADDERS").splitlines():
        if line.strip():
            options += ["--ladder", line.strip()]
    said = runner.qualify("cover", *options, "--", runner.needed("ROOTS"))
    markdown = place / "cover.md"
    markdown.write_text(f"## Coverage\n\n{runner.fenced(said.out)}", encoding="utf-8")
    runner.summary(markdown.read_text(encoding="utf-8"))
    runner.output(code=said.code, markdown=markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
