"""Do all roots of a matrix together cover its ladders, and meet the policy?

Settings: ``QUALIFY_BIN``, ``ROOTS`` (a folder of roots), ``LADDERS`` (one a line), ``ALLOW_DEFERRED`` (true or empty), ``BASELINE``,
``POLICY``, ``PLACE``. With a policy each root is compared with the baseline, and a gate on a target counts in the roots that
climbed it.
Outputs: ``code``, ``markdown``. The step does not fail by a verdict; ``decide.py`` does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import runner

CODES = {"OK": 0, "REGRESSION": runner.NO}
"""Any other verdict of a gate is undetermined."""


def main() -> int:
    """Run the step."""
    place, roots = Path(runner.needed("PLACE")), runner.needed("ROOTS")
    place.mkdir(parents=True, exist_ok=True)
    options = ["--allow-deferred"] if runner.setting("ALLOW_DEFERRED") == "true" else []
    for line in runner.needed("LADDERS").splitlines():
        if line.strip():
            options += ["--ladder", line.strip()]
    said = runner.qualify("cover", *options, "--", roots)
    parts, codes = [f"## Coverage\n\n{runner.fenced(said.out)}"], [said.code]
    if policy := runner.setting("POLICY"):
        part, code = _gates(sorted(path for path in Path(roots).iterdir() if path.is_dir()), policy)
        print(part)
        parts.append(f"## Gates\n\n{runner.fenced(part)}")
        codes.append(code)
    markdown = place / "cover.md"
    markdown.write_text("\n".join(parts), encoding="utf-8")
    runner.summary(markdown.read_text(encoding="utf-8"))
    runner.output(code=runner.worst(*codes), markdown=markdown)
    return 0


def _gates(roots: list[Path], policy: str) -> tuple[str, int]:
    """Every gate that counts, a line each, and the exit code that they come to: undetermined where none does."""
    counted: dict[tuple[str, str], list[dict[str, Any]]] = {}
    elsewhere: dict[tuple[str, str], dict[str, Any]] = {}
    lines, codes = [], []
    for root in roots:
        said = runner.qualify("diff", "--json", "--policy", policy, "--", runner.against(), str(root), shown=False)
        answer = json.loads(said.out) if said.out.strip() else {}
        if not answer.get("gates"):
            lines.append(f"{root.name}: not compared, qualify diff ended {said.code}")
            codes.append(said.code or runner.UNDETERMINED)
            continue
        left = {step["target"] for step in answer["steps"] if step["candidate"] == "deferred"}
        for gate in answer["gates"]["gates"]:
            key = (answer["candidate"]["ladder"], gate["id"])
            if gate["target"] in left:
                elsewhere[key] = gate
            else:
                counted.setdefault(key, []).append(gate)
    found = [(key, gate) for key, gates in counted.items() for gate in gates]
    found += [(key, gate) for key, gate in elsewhere.items() if key not in counted]  # no root climbed it
    for (ladder, name), gate in found:
        lines.append(runner.inert(f"{gate['verdict']} {ladder}: {name}: {gate['reason']}"))
        codes.append(CODES.get(gate["verdict"], runner.UNDETERMINED))
    return "\n".join(lines) or "no root was compared", runner.worst(*codes) if codes else runner.UNDETERMINED


if __name__ == "__main__":
    sys.exit(main())
