"""The matrix of a workflow.

Settings: ``QUALIFY_BIN``, ``NAME`` (of this call of the workflow, for the names of its artifacts), ``LADDERS`` (one a line), ``BY``
(provider, target or ladder), ``RUNNERS`` (JSON: a label, or a list of labels, by group). Output: ``matrix``, one line of JSON; each job
of it also names its ``runner``.
"""

from __future__ import annotations

import json
import re
import sys

import runner

RUNNER = "ubuntu-24.04"
NAME = "[a-z0-9-]{1,40}"
"""No full stop, which ends it in ``qualify-root-NAME.JOB``: the artifacts of one call are never taken for those of another."""


def main() -> int:
    """Run the step."""
    if not re.fullmatch(NAME, name := runner.setting("NAME") or "all"):
        runner.refuse(f"NAME: expected at most 40 of a-z 0-9 and -, got {name!r}; name the call otherwise")
    ladders = [line.strip() for line in runner.needed("LADDERS").splitlines() if line.strip()]
    try:
        runners = json.loads(runner.setting("RUNNERS") or "{}")
    except ValueError as error:
        runner.refuse(f"RUNNERS: expected JSON, got {error}; write a table of runners by group")
    if not isinstance(runners, dict):
        runner.refuse(f"RUNNERS: expected a table of runners by group, got {type(runners).__name__}")
    said = runner.qualify("plan", "--matrix", "--by", runner.setting("BY") or "provider", "--", *ladders, shown=False)
    if said.code != 0:
        return said.code
    jobs = [job | {"runner": runners.get(job["group"], RUNNER)} for job in json.loads(said.out)["include"]]
    runner.output(matrix=json.dumps({"include": jobs}, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
