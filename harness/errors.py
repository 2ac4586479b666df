"""Every error class of the harness, by whose fault it is.

A message reads ``where: expected X, got Y`` and then says what to do. Only ``cli.py`` turns one into an exit code.
"""

from __future__ import annotations


class QualifyError(Exception):
    """Base of all errors that have a sentence for the user. ``exit_code`` follows DESIGN section 6."""

    exit_code = 70


class AskedWrongly(QualifyError):
    """The request itself cannot be carried out: bad ladder, bad model folder, existing output folder."""

    exit_code = 64


class LadderError(AskedWrongly):
    """A ladder (or a data file it names) is not what the format demands."""


class PolicyError(AskedWrongly):
    """A policy, or a file that pins a baseline, is not what the format demands."""


class CandidateError(AskedWrongly):
    """A model folder or hub id is not a candidate that can be qualified."""


class RecordError(AskedWrongly):
    """Bytes are not the JSON record that was expected."""


class Unavailable(QualifyError):
    """Something outside could not be had: a hub, a revision, a dataset. No number, so no verdict."""

    exit_code = 30


class Blocked(QualifyError):
    """A stage cannot give a number: unsupported here, or broken by a dependency. Becomes BLOCKED, never FAIL."""

    exit_code = 30


class NotIntact(QualifyError):
    """A root did not verify, so nothing may be read from it. ``exit_code`` is what ``verify`` would end with."""

    def __init__(self, message: str, exit_code: int = 20) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class NotSealed(QualifyError):
    """A climb whose root could not be written or published (full disk, I/O error). What was measured is in the staging folder."""

    exit_code = 30
