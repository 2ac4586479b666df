"""Climb a ladder and say where the root is.

Settings: ``QUALIFY_BIN``, ``LADDER``, ``MODEL``, ``TARGETS`` (words), ``PLACE``, a folder that the step makes: the root is ``root`` in it,
beside it ``junit.xml`` and ``findings.sarif``. ``PAIRED`` (true: L1 times the baseline's artifacts in turn with the new ones), and then
``BASELINE``, or ``POLICY``, which pins it. Outputs: ``root``, ``digest``, ``verdict``, ``code``, ``junit``, ``sarif``.
The step fails only when there is no root: what a verdict is worth, ``decide.py`` says.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import runner


def main() -> int:
    """Run the step."""
    place = Path(runner.needed("PLACE"))
    place.mkdir(parents=True)
    root, junit, sarif = (place / name for name in ("root", "junit.xml", "findings.sarif"))
    options = ["--out", str(root), "--junit", str(junit), "--sarif", str(sarif), "--json"]
    if model := runner.setting("MODEL"):
        options += ["--model", model]
    for target in runner.setting("TARGETS").split():
        options += ["--target", target]
    if runner.setting("PAIRED") == "true":
        if not (baseline := runner.against()):
            runner.refuse("PAIRED: expected a BASELINE, or a POLICY that pins one, got neither; name the baseline")
        options += ["--baseline", baseline]
    said = runner.qualify("run", *options, "--", runner.needed("LADDER"), shown=False)
    if not root.is_dir():
        return said.code or runner.UNDETERMINED
    answer = json.loads(said.out)
    runner.output(
        root=root, digest=answer["digest"], verdict=answer["claim"]["verdict"], code=said.code, junit=junit, sarif=sarif
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
