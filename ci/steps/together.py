"""Do all roots of a matrix together cover its ladders, and meet the policy?

Settings: ``QUALIFY_BIN``, ``ROOTS`` (a folder of roots), ``LADDERS`` (one a line), ``ALLOW_DEFERRED`` (true or empty), ``BASELINE``,
``POLICY``, ``PLACE``. With a policy each root is compared with the baseline, and a gate on a target counts in the roots that
climbed it.
Outputs: ``code``, ``markdown``. The step does not fail by a verdict; ``decide.py`` does.
"""

from __future__ import annotations

import fnmatch
import json
import sys
from pathlib import Path
from typing import Any

import runner

Gate = dict[str, Any]
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
    counted: list[tuple[str, Gate]] = []
    elsewhere: dict[tuple[str, str], tuple[str, Gate]] = {}
    lines, codes = [], []
    for root in roots:
        said = runner.qualify("diff", "--json", "--policy", policy, "--", runner.against(), str(root), shown=False)
        answer = json.loads(said.out) if said.out.strip() else {}
        if not answer.get("gates"):
            lines.append(f"{root.name}: not compared, qualify diff ended {said.code}")
            codes.append(said.code or runner.UNDETERMINED)
            continue
        ladder = answer["candidate"]["ladder"]
        left = {step["target"] for step in answer["steps"] if step["candidate"] == "deferred"}
        climbed = {step["target"] for step in answer["steps"]} - left
        for gate in answer["gates"]["gates"]:
            if _meets(gate, left) and not _meets(gate, climbed):
                elsewhere[ladder, gate["id"]] = (ladder, gate)
            else:
                counted.append((ladder, gate))
    counted += [item for item in elsewhere.values() if not _judged(*item, counted)]  # no root climbed its target
    for ladder, gate in counted:
        lines.append(runner.inert(f"{gate['verdict']} {ladder}: {gate['id']}: {gate['reason']}"))
        codes.append(CODES.get(gate["verdict"], runner.UNDETERMINED))
    return "\n".join(lines) or "no root was compared", runner.worst(*codes) if codes else runner.UNDETERMINED


def _meets(gate: Gate, targets: set[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, gate["target"]) for name in targets)


def _judged(ladder: str, gate: Gate, counted: list[tuple[str, Gate]]) -> bool:
    """Whether another root of the ladder gave a verdict of this rule, on a target that it stands for."""
    return any(
        (there, other["what"], other["rule"]) == (ladder, gate["what"], gate["rule"])
        and _meets(gate, {other["target"]})
        for there, other in counted
    )


if __name__ == "__main__":
    sys.exit(main())
