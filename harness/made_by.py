"""Which version of qualify made a root, and what may differ because of that (docs/decisions/0007). Pure.

Defaults, fixed limits, records and metrics change from version to version, so what another version sealed may not be what this one
would. Such a difference shows neither that the root is sound nor that it was changed: the answer is undetermined, never PASS.
"""

from __future__ import annotations

from collections.abc import Collection

from evidence.preserved import PRESERVED
from harness import VERSION, records
from harness.derive_raw import Read
from harness.records import Environment, parse_json

OTHER = "Q-VERSION"
"""The rule of a difference that another version explains; of a root that this version made it is a fault by its own rule."""


def stated(read: Read, path: str = records.ENVIRONMENT) -> str | None:
    """The version that an environment record states, read without any demand on the rest of it; None for none."""
    try:
        packages = parse_json(read(path))["packages"]
        return str(packages["qualify"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def others(read: Read, paths: Collection[str]) -> tuple[str, ...]:
    """The other versions that made this root or steps that it carries, sorted."""
    carried = (path for path in paths if path.startswith(PRESERVED) and path.count("/") == 2)
    places = [records.ENVIRONMENT, *(path for path in carried if path.endswith(f"/{records.ENVIRONMENT}"))]
    found = {stated(read, path) for path in places}
    return tuple(sorted(version for version in found if version is not None and version != VERSION))


def another(environment: Environment) -> bool:
    """Whether it states another version than this. One that states none is taken for ours: nothing is excused."""
    return environment.packages.get("qualify", VERSION) != VERSION


def rule(named: str, foreign: bool) -> str:
    """The rule of a difference that another version would explain."""
    return OTHER if foreign else named


def why(versions: Collection[str]) -> str:
    """What to do about a root that differs for that reason alone."""
    return f"made by qualify {', '.join(versions)}, this is {VERSION}: verify it with that version, or run again"
