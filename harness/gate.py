"""A policy laid over a comparison: a verdict for each rule on each target. Pure.

    REGRESSION    the rule is broken: the whole interval lies beyond what is allowed, or the value where there is no interval
    OK            the rule is met by the whole interval
    INCONCLUSIVE  the interval straddles what is allowed, there is no number to judge, or the ranked set is too small for a claim
    INCOMPARABLE  the two sides do not mean the same, or one has no such figure or target

Nothing is OK by default: a metric that is missing on a side, a target that nobody has, and per cent of nothing are never OK.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Sequence
from typing import Literal

from harness import policy
from harness.diff_values import ABSENT, Compared, Diff, StepDiff
from harness.judge import show_value
from harness.metrics import catalogue
from harness.policy import Gate, Policy
from harness.records import Record, Value

GateVerdict = Literal["REGRESSION", "INCOMPARABLE", "INCONCLUSIVE", "OK"]
WORST_FIRST: tuple[GateVerdict, ...] = ("REGRESSION", "INCOMPARABLE", "INCONCLUSIVE", "OK")
_BY_TARGET = frozenset({"artifact", "limits", "options"})
EXIT: dict[GateVerdict, int] = {"REGRESSION": 10, "INCOMPARABLE": 30, "INCONCLUSIVE": 30, "OK": 0}


class Gated(Record, frozen=True):
    """One rule judged on one target. ``id`` is the same in every comparison under the same policy; ``reason`` is one sentence."""

    id: str
    what: str
    target: str
    rule: str
    verdict: GateVerdict
    reason: str
    baseline: Value = None
    candidate: Value = None


class Gates(Record, frozen=True):
    """All rules of a policy, worst first, otherwise in the order of the policy.

    ``left_out`` are targets that a pattern of the policy matches and that this root need not have: its climb was asked for others alone, or
    the policy accepts that they are deferred. A gate that names one is judged all the same.
    """

    policy: str
    digest: str
    verdict: GateVerdict
    exit_code: int
    gates: tuple[Gated, ...]
    left_out: tuple[str, ...] = ()


def judge(asked: Policy, digest: str, found: Diff) -> Gates:
    """Judge every gate. ``digest`` is that of the policy's bytes."""
    elsewhere = _elsewhere(asked, found)
    gated = [item for gate in asked.gates for item in _gate(gate, found, elsewhere)]
    gated.sort(key=lambda item: WORST_FIRST.index(item.verdict))
    verdict = gated[0].verdict if gated else "INCONCLUSIVE"
    left_out = tuple(name for name in elsewhere if any(_meets(gate, name) for gate in asked.gates))
    return Gates(
        policy=asked.name,
        digest=digest,
        verdict=verdict,
        exit_code=EXIT[verdict],
        gates=tuple(gated),
        left_out=left_out,
    )


def _elsewhere(asked: Policy, found: Diff) -> tuple[str, ...]:
    """Targets that the candidate defers, and that it need not have: coverage is what asks for them."""
    side = found.candidate
    return tuple(name for name in side.deferred if name in side.left_out or name in asked.accept_deferred)


def _meets(gate: Gate, name: str) -> bool:
    """Whether a pattern, not a name, matches."""
    return name != gate.target and fnmatch.fnmatchcase(name, gate.target)


def _gate(gate: Gate, found: Diff, elsewhere: Sequence[str]) -> Iterator[Gated]:
    what = gate.metric or str(gate.identity)
    names = list(dict.fromkeys(step.target for step in found.steps))
    matching = [name for name in names if fnmatch.fnmatchcase(name, gate.target)]
    matching = [name for name in matching if name not in elsewhere or not _meets(gate, name)]
    for rule, value in gate.rules().items():
        shown = rule if value is True else f"{rule} {_amount(value)}"
        if not matching:
            climbed = " that this climb was asked for" if any(_meets(gate, name) for name in elsewhere) else ""
            yield _gated(what, gate.target, shown, "INCOMPARABLE", f"no target{climbed} matches {gate.target!r}")
        elif gate.identity is not None:
            yield from _identity(gate, shown, matching, found)
        else:
            for target in matching:
                verdict, reason, one = _metric(gate, rule, value, target, found)
                yield _gated(what, target, shown, verdict, reason, one)


def _amount(value: float | str) -> str:
    """An allowance or bound as the policy writes it: whole numbers without a point."""
    if isinstance(value, str):
        return value
    return show_value(int(value) if float(value).is_integer() else value)


def _gated(
    what: str, target: str, rule: str, verdict: GateVerdict, reason: str, found: Compared | None = None
) -> Gated:
    return Gated(
        id=f"gate {what} {target} {rule}",
        what=what,
        target=target,
        rule=rule,
        verdict=verdict,
        reason=reason,
        baseline=found.baseline if found is not None else None,
        candidate=found.candidate if found is not None else None,
    )


def _identity(gate: Gate, rule: str, matching: Sequence[str], found: Diff) -> Iterator[Gated]:
    """One verdict for what is of the whole root, one a target for what is not."""
    what = str(gate.identity)
    changed = [change for change in found.identity if change.part == gate.identity]
    for target in matching if what in {"artifact", "limits"} else ["*"]:
        ours = [
            change
            for change in changed
            if change.target in {"", target} or (target == "*" and change.target in matching)
        ]
        if not ours:
            why = _untold(what, matching if target == "*" else [target], found)
            yield _gated(what, target, rule, "INCOMPARABLE" if why else "OK", why or "the same on both sides")
            continue
        first, more = ours[0], f" (and {len(ours) - 1} more)" if len(ours) > 1 else ""
        place = f"{first.target} " if first.target and target == "*" else ""
        said = f"{place}{first.name}: {show_value(first.baseline)}, now {show_value(first.candidate)}{more}"
        yield _gated(what, target, rule, "REGRESSION", said)


def _untold(what: str, targets: Sequence[str], found: Diff) -> str:
    """Why nobody can say that a part of the identity is the same; empty where it can be said."""
    if what in found.unknown:
        return "it is not known on both sides"
    if what not in _BY_TARGET:
        return ""
    for target in targets:
        steps = [step for step in found.steps if step.target == target]
        sides = [[step.baseline for step in steps], [step.candidate for step in steps]]
        if any(set(side) == {ABSENT} for side in sides):
            return f"{target} is not there on both sides"
        if what == "artifact" and any(step.why_not for step in steps if step.tier == "L0"):
            return f"{target} has no artifact on both sides"
    return ""


def _metric(
    gate: Gate, rule: str, value: float | str | bool, target: str, found: Diff
) -> tuple[GateVerdict, str, Compared | None]:
    assert gate.metric is not None
    metric = catalogue.find(gate.metric)
    assert metric is not None
    step = next((step for step in found.steps if step.target == target and step.tier == metric.tier), None)
    alone = rule in {"at_most", "at_least"}  # about the candidate, whatever it is compared with
    if step is None:
        return (
            "INCOMPARABLE",
            f"{'the candidate did not climb' if alone else 'neither side climbed'} {metric.tier}",
            None,
        )
    one = next((item for item in step.compared if item.metric == gate.metric), None)
    if alone:
        assert not isinstance(value, str)
        return (*_bound(step, one, rule, float(value)), one)
    if one is None:
        return "INCOMPARABLE", step.why_not or "neither side has such a figure", None
    if one.why_not or one.smoke:
        return ("INCOMPARABLE", one.why_not, one) if one.why_not else ("INCONCLUSIVE", one.smoke, one)
    if rule == "must_be_comparable":
        return "OK", "both sides mean the same", one
    if rule == "must_not_change":
        verdict: GateVerdict = "OK" if one.same else "REGRESSION"
        return verdict, "the same on both sides" if one.same else _between(one), one
    assert not isinstance(value, bool)
    return (*_change(one, rule, value), one)


def _between(one: Compared) -> str:
    return f"{show_value(one.baseline)}, now {show_value(one.candidate)}"


def _bound(step: StepDiff, one: Compared | None, rule: str, bound: float) -> tuple[GateVerdict, str]:
    """The candidate's own value, whatever the baseline's is."""
    if one is None:
        state = "" if step.candidate == "PASS" else f": its {step.tier} is {step.candidate}"
        return "INCOMPARABLE", f"the candidate has no such figure{state}"
    if isinstance(one.candidate, bool | str) or one.candidate is None:
        return "INCONCLUSIVE", one.smoke or one.why_not or "the candidate has no number"
    low, high = one.candidate_interval or (one.candidate, one.candidate)
    if not all(map(math.isfinite, (low, high))):
        return "INCONCLUSIVE", "the candidate's value is not finite"
    if rule == "at_least":
        verdict: GateVerdict = "OK" if low >= bound else "REGRESSION" if high < bound else "INCONCLUSIVE"
    else:
        verdict = "OK" if high <= bound else "REGRESSION" if low > bound else "INCONCLUSIVE"
    between = f" (95% {show_value(low)} to {show_value(high)})" if one.candidate_interval is not None else ""
    return verdict, f"{show_value(one.candidate)}{between} {one.unit}"


def _change(one: Compared, rule: str, value: float | str) -> tuple[GateVerdict, str]:
    """How much worse (``max_degradation``) or better (``min_improvement``) the candidate is, by the whole of its interval."""
    if one.difference is None or isinstance(one.baseline, bool | str) or one.baseline is None:
        return "INCOMPARABLE", "there are not two finite numbers"
    allowed = policy.amount(value, one.baseline)
    if allowed is None:
        return (
            "INCOMPARABLE",
            f"{value} of a baseline of {show_value(one.baseline)} means nothing; write an absolute amount",
        )
    low, high = one.interval or (one.difference, one.difference)
    if one.better == "more":
        low, high = -high, -low  # now how much worse it is
    if rule == "max_degradation":
        verdict: GateVerdict = "OK" if high <= allowed else "REGRESSION" if low > allowed else "INCONCLUSIVE"
    else:
        verdict = "OK" if -high >= allowed else "REGRESSION" if -low < allowed else "INCONCLUSIVE"
    return verdict, f"{_between(one)} {one.unit}: {_shift(one)}"


def _shift(one: Compared) -> str:
    """The change in words: as a ratio where latencies were resampled, else as a difference."""
    if one.ratio is not None and one.ratio_interval is not None:
        low, high = one.ratio_interval
        return f"ratio {one.ratio:.4g} (95% {low:.4g} to {high:.4g})"
    assert one.difference is not None
    if one.difference == 0 and one.interval in {None, (0.0, 0.0)}:
        return "no change"
    base = one.baseline
    share = "" if isinstance(base, bool | str) or not base else f", {one.difference / abs(base):+.2%}"
    between = f" (95% {_signed(one.interval[0])} to {_signed(one.interval[1])})" if one.interval is not None else ""
    return f"change {_signed(one.difference)}{between}{share}"


def _signed(value: float) -> str:
    if value == 0:
        return "0"
    return f"{int(value):+,}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:+.4g}"
