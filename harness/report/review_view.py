"""What a review says: blockers first, each with its evidence and what would close it. Text that comes out is not escaped yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.approval import Review
from harness.report import diff_view, parts
from harness.report.parts import Part

if TYPE_CHECKING:
    from harness.reviewing import Reviewed

SIGNS = {"APPROVE": "✓", "REQUEST_CHANGES": "✗", "REJECT": "✗"}


def headline(review: Review) -> str:
    """One sentence."""
    count = len(review.blockers)
    said = "nothing stands in the way" if not count else f"{count} blocker{'' if count == 1 else 's'}"
    return f"{SIGNS[review.verdict]} {review.verdict}: {said}, under policy {review.policy}"


def sections(reviewed: Reviewed) -> Iterator[Part]:
    """The whole answer in order."""
    review = reviewed.review
    for number, blocker in enumerate(review.blockers, 1):
        yield Part(
            f"{number}. {blocker.kind}",
            (blocker.text, f"evidence: {blocker.evidence}", f"closes: {blocker.closes}"),
        )
    earlier = review.earlier
    if earlier is not None:
        lines = [f"{word}: {name}" for word in ("closed", "open", "unasked") for name in getattr(earlier, word)]
        new = [blocker.id for blocker in review.blockers if blocker.id not in (*earlier.open, *earlier.unasked)]
        lines += [f"new: {name}" for name in new]
        yield Part("Since the earlier review", tuple(lines) or ("it had no blocker, and there is none now",))
    if review.notes:
        yield Part("Notes", review.notes)
    yield Part("Holds", (f"{len(review.met)} questions, which the JSON lists",) if review.met else ("nothing",))
    rows = (
        ("root", review.root),
        ("digest", review.digest or "none"),
        ("baseline", review.baseline or "none"),
        ("policy", review.policy_digest),
    )
    yield Part("Reviewed", head=("What", "Which"), rows=rows)


def text(reviewed: Reviewed) -> str:
    """The answer in 80 columns."""
    return parts.text(headline(reviewed.review), sections(reviewed))


def markdown(reviewed: Reviewed) -> str:
    """The answer as it is written beside the root: the blockers, then the comparison."""
    said = parts.markdown(headline(reviewed.review), sections(reviewed))
    if reviewed.found is None:
        return said
    compared = parts.markdown(
        diff_view.headline(reviewed.found, reviewed.gates), diff_view.parts(reviewed.found, reviewed.gates)
    )
    return f"{said}\n{compared}"
