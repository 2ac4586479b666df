"""End as the job must end. Settings: ``CODES`` (exit codes of the steps before, words), ``REQUIRE``.

``pass`` (what is taken when nothing is said): every code must be 0. ``no-fail``: what is undetermined (30) is let through with a warning.
``intact``: only the evidence must be sound, and the verdict is for a later job. Evidence that is not intact always ends 20.
"""

from __future__ import annotations

import sys

import runner

LET_THROUGH = {"pass": {0}, "no-fail": {0, runner.UNDETERMINED}, "intact": {0, runner.UNDETERMINED, runner.NO}}


def main() -> int:
    """Run the step."""
    require = runner.setting("REQUIRE") or "pass"
    if require not in LET_THROUGH:
        runner.refuse(f"REQUIRE: expected {', '.join(LET_THROUGH)}, got {require!r}; correct the input")
    words = runner.needed("CODES").split()
    if not all(word.isascii() and word.isdigit() for word in words):
        runner.refuse(f"CODES: expected exit codes, got {' '.join(words)!r}; a step before this one did not end")
    code = runner.worst(*map(int, words))
    if code in LET_THROUGH[require]:
        if code:
            print(
                f"::warning title=qualify::The verdict is not PASS (exit code {code}); require is {require}, so the job goes on."
            )
        return 0
    print(f"::error title=qualify::The job ends with exit code {code}; require is {require}. See the job summary.")
    return code


if __name__ == "__main__":
    sys.exit(main())
