"""What `verify` found, as a value, as text and as JSON, with nothing in it that a terminal or a CI runner would obey."""

import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

from evidence.manifest import Fault

INTACT, NOT_INTACT, UNDETERMINED = 0, 20, 30
AUTHENTICITY = {
    "none": "the root agrees with itself; nothing here shows who made it or that it is the one you were told of",
    "pinned": "the root is the one whose digest you gave; it is as trustworthy as the place you had the digest from",
}
_VERDICT = {
    INTACT: "intact: every check ran and found nothing (what the numbers mean is judged by `qualify verify`)",
    NOT_INTACT: "not intact: do not rely on anything in this root",
    UNDETERMINED: "undetermined: no fault was found, but not every check could run",
}

CHECKS = (  # in the order in which they run
    ("seal", ("E-SEAL",)),
    ("manifest", ("E-MANIFEST", "E-PATH", "E-DOTFILE", "E-KIND", "E-CASE", "E-SIZE")),
    ("tree", ("E-EXTRA", "E-MISSING", "E-TYPE", "E-LINK", "E-EMPTY", "E-PATH")),
    ("hashes", ("E-HASH", "E-HARDLINK", "E-KIND", "E-CHANGED", "E-READ")),
    ("records", ("E-RECORD", "E-JSON", "E-SIZE")),
    ("origins", ("E-ORIGIN",)),
    ("plan", ("E-PLAN", "E-LADDER")),
    ("candidate", ("E-CANDIDATE",)),
    ("inputs", ("E-INPUT",)),
    ("gates", ("E-GATE",)),
    ("steps", ("E-STEP",)),
    ("artifacts", ("E-ARTIFACT",)),
    ("times", ("E-TIME",)),
    ("claim", ("E-CLAIM",)),
    ("lineage", ("E-LINEAGE",)),
)


class Check(NamedTuple):
    """One thing that was looked at, with the codes of its rules. `note` says why it did not run."""

    name: str
    rules: tuple[str, ...]
    ran: bool = True
    note: str = ""

    @property
    def state(self) -> str:
        """`ran` or `not possible`."""
        return "ran" if self.ran else "not possible"


class Report(NamedTuple):
    """What was found: `digest` of the manifest that is there (None without one), faults sorted, every check, authenticity."""

    digest: str | None
    faults: tuple[Fault, ...]
    checks: tuple[Check, ...]
    authenticity: str

    @property
    def exit_code(self) -> int:
        """20 when a rule is broken, 30 when a check could not run, else 0."""
        if self.faults:
            return NOT_INTACT
        return INTACT if self.checks and all(check.ran for check in self.checks) else UNDETERMINED

    @property
    def ok(self) -> bool:
        """Whether every check ran and found nothing."""
        return self.exit_code == INTACT

    def as_dict(self) -> dict[str, object]:
        """The report as plain values, for JSON."""
        return {
            "format": 1,
            "digest": self.digest,
            "authenticity": self.authenticity,
            "ok": self.ok,
            "exit_code": self.exit_code,
            "faults": [{"rule": f.rule, "path": f.path, "message": f.message} for f in self.faults],
            "checks": [{"name": c.name, "rules": list(c.rules), "state": c.state, "note": c.note} for c in self.checks],
        }


def checks_until(last: str, why: str) -> tuple[Check, ...]:
    """Every check of `CHECKS`: those up to `last` ran, those after it were not possible because of `why`."""
    ran = [name for name, _ in CHECKS].index(last) + 1 if last else 0
    return tuple(Check(*check, n < ran, "" if n < ran else why) for n, check in enumerate(CHECKS))


def escape(text: str) -> str:
    """Text from a root as printable ASCII on one line; `::` and `##[`, which begin a command to a CI runner, are broken up."""
    plain = text.encode("ascii", "backslashreplace").decode()
    plain = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in plain)
    return plain.replace("::", ":\\x3a").replace("##[", "#\\x23[")


def as_text(folder: Path, report: Report) -> str:
    """The report for a reader: one line a fact, faults last but one, the verdict last."""
    lines = [
        f"root          {folder}",
        f"digest        {report.digest or 'none'}",
        f"authenticity  {report.authenticity}: {AUTHENTICITY[report.authenticity]}",
        *(
            f"{check.state:<12}  {' '.join([check.name, *check.rules])}{check.note and ': '}{check.note}"
            for check in report.checks
        ),
        *(f"{fault.rule:<12}  {fault.message}" for fault in report.faults),
        _VERDICT[report.exit_code],
    ]
    return "".join(escape(line) + "\n" for line in lines)


def as_json(report: Report) -> str:
    """The report for a program, in the same ASCII. `::` and `##[` can stand in strings alone, where an escape is free."""
    text = json.dumps(report.as_dict(), indent=2, sort_keys=True)
    return text.replace("::", ":\\u003a").replace("##[", "#\\u0023[").replace("\x7f", "\\u007f") + "\n"


class Bar:
    """A progress line on stderr, at most ten a second, the first after one second; `clear` takes it away."""

    def __init__(self) -> None:
        self.started = self.shown = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Say how many bytes are done, if it is time to."""
        now = time.monotonic()
        if now - self.started > 1 and now - self.shown > 0.1:
            self.shown = now
            sys.stderr.write(f"\rhashed {done / 1e6:,.0f} of {total / 1e6:,.0f} MB")
            sys.stderr.flush()

    def clear(self) -> None:
        """Blank the line, if there is one."""
        if self.shown != self.started:
            sys.stderr.write("\r\x1b[K")
