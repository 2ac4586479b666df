"""What ``qualify diff`` does: find both roots, verify and judge both again, compare, and say it. ``diff`` compares; this reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from evidence.verify import VerifiedRoot
from harness import diff, halves, sides
from harness.answer import Checked, check, judged, opened
from harness.beside import both
from harness.diff_values import Diff
from harness.errors import QualifyError
from harness.gate import Gates
from harness.metrics import rerank_names
from harness.records import GROUPS, PLAN, Plan, from_json
from harness.report import diff_view, parts
from harness.sealed_files import too_large
from harness.sides import Named, Progress

LARGE_BYTES = 4 << 20
"""A ranked set of this size takes longer to judge again than a copy of this process takes to start."""


def compare(
    baseline: Path,
    candidate: Path,
    pairs: Sequence[tuple[str, str]] = (),
    ladder_file: str = "LADDER",
    progress: Progress | None = None,
) -> Diff:
    """Compare what two arguments name. Raises ``NotIntact`` for the first root that does not verify, ``AskedWrongly``.

    A folder means the current root of the other side's ladder and model, the other side itself left out.
    """
    both = _find_and_check(baseline, candidate, progress)
    one, other = map(sides.side, both)
    found = diff.compare(one, other, pairs, ladder_file)
    known = ["pinned" if checked.opened.report.authenticity == "pinned" else "none" for checked in both]
    before, after = (
        replace(side, authenticity=word) for side, word in zip((found.baseline, found.candidate), known, strict=True)
    )
    return replace(found, baseline=before, candidate=after)


def with_baseline(checked: Checked, baseline: Path) -> Diff:
    """Compare a root that was checked with what an argument names. Raises as ``compare``."""
    plan, named = checked.records.plan, sides.find(baseline)
    if not isinstance(named, Named):
        named = sides.like(named, checked.opened.digest, plan.ladder, plan.candidate.model)
    return diff.compare(sides.side(check(named.root, named.expect)), sides.side(checked))


def _find_and_check(baseline: Path, candidate: Path, progress: Progress | None) -> list[Checked]:
    """Both roots, each judged again once, also where it says which root of a folder is meant."""
    one, other = sides.find(baseline), sides.find(candidate)
    if isinstance(one, Path) and isinstance(other, Path):
        line = sides.single(other)
        other = Named(other / line.name)
        one = sides.like(one, line.digest, line.ladder, line.model)
    if isinstance(one, Named) and isinstance(other, Named):
        return check_all((one, other), progress)
    if isinstance(one, Named):
        assert isinstance(other, Path)
        return list(_check_beside(one, other, progress))
    assert isinstance(other, Named)
    return list(reversed(_check_beside(other, one, progress)))


def _check_beside(named: Named, folder: Path, progress: Progress | None) -> tuple[Checked, Checked]:
    """A root, and the one of a folder that it is compared with. Raises ``NotIntact``, ``AskedWrongly``."""
    known = check(named.root, named.expect, progress)
    plan = known.records.plan
    there = sides.like(folder, known.opened.digest, plan.ladder, plan.candidate.model)
    return known, check(there.root, there.expect, progress)


def check_all(named: Sequence[Named], progress: Progress | None = None) -> list[Checked]:
    """Verify roots and judge them again; two with large ranked sets at once, and of one set what it alone gives is derived once."""
    if len(named) != 2 or not all(_large(item.root) for item in named):
        return [check(item.root, item.expect, progress) for item in named]
    roots = [opened(item.root, item.expect, progress) for item in named]
    sets = {root.digests.get(GROUPS) for root in roots}
    if len(sets) == 1 and None not in sets and not any(too_large(root.sizes) for root in roots):
        halves.derive(roots[0].read(GROUPS), _cuts(roots[0]))
    return [*both(*(partial(judged, item.root, root) for item, root in zip(named, roots, strict=True)))]


def _cuts(root: VerifiedRoot) -> set[tuple[int, ...]]:
    """The cut-offs at which its plan looks at rankings; none where the plan cannot be read, which is for the judge to say."""
    try:
        plan = from_json(root.read(PLAN), Plan, PLAN)
    except QualifyError:
        return set()
    steps = (step for target in plan.targets for step in target.steps if step.tier == "L3")
    return {rerank_names.cuts(step.limits) for step in steps}


def _large(root: Path) -> bool:
    try:
        return (root / GROUPS).stat().st_size >= LARGE_BYTES
    except OSError:
        return False


def answer(found: Diff, gates: Gates | None) -> dict[str, Any]:
    """The answer of ``qualify diff --json``; docs/reference/diff.md says what each field is. Identical figures are counted only."""
    plain: dict[str, Any] = msgspec.to_builtins(found)
    for step, shown in zip(found.steps, plain["steps"], strict=True):
        shown["compared"] = [msgspec.to_builtins(item) for item in step.compared if not item.same]
        shown["identical"] = sum(item.same for item in step.compared)
    return plain | {
        "gates": msgspec.to_builtins(gates) if gates is not None else None,
        "exit_code": gates.exit_code if gates is not None else 0,
    }


def text(found: Diff, gates: Gates | None) -> str:
    """The answer in 80 columns, worst first."""
    return parts.text(diff_view.headline(found, gates), diff_view.parts(found, gates))


def markdown(found: Diff, gates: Gates | None) -> str:
    """The answer for a pull request."""
    return parts.markdown(diff_view.headline(found, gates), diff_view.parts(found, gates))


def delta(found: Diff) -> str:
    """The differences as a section of a report in Markdown: the same parts, a heading lower."""
    return parts.markdown(f"Against the baseline {diff_view.headline(found, None)}", diff_view.parts(found, None), 3)


def html(found: Diff, gates: Gates | None) -> str:
    """The answer as one page."""
    return parts.page("Comparison of two roots", diff_view.headline(found, gates), list(diff_view.parts(found, gates)))
