"""Numbers, limits and verdicts as people read them. Pure; text that comes out is not escaped yet.

MB is 10^6 bytes; where a limit is a whole number of MiB (2^20 bytes), it and its value are given in MiB or GiB.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from harness.judge import sentence
from harness.metrics import catalogue
from harness.records import Finding, Limit, Measurement, Value, Verdict

SYMBOLS: dict[Verdict, str] = {"PASS": "✓", "FAIL": "✗", "BLOCKED": "■", "INCONCLUSIVE": "?", "NOT_RUN": "–"}
"""One sign a verdict. The word always stands beside it, and colour only repeats it."""

WORDS: dict[Verdict, str] = {
    "PASS": "PASS",
    "FAIL": "FAIL",
    "BLOCKED": "BLOCKED",
    "INCONCLUSIVE": "INCONCLUSIVE",
    "NOT_RUN": "NOT RUN",
}

MEANINGS: dict[Verdict, str] = {
    "PASS": "every limit was met",
    "FAIL": "a number broke a limit",
    "BLOCKED": "there is no number to judge",
    "INCONCLUSIVE": "the interval straddles the limit",
    "NOT_RUN": "a lower tier did not pass",
}

# Units that say nothing beside the value: the metric's name says it.
_BARE = frozenset(
    {"", "ratio", "version", "signature", "precision", "correlation", "boolean", "cosine", "nDCG", "MRR", "MAP"}
)


def sign(verdict: Verdict) -> str:
    """A verdict with its sign, e.g. ``✗ FAIL``."""
    return f"{SYMBOLS[verdict]} {WORDS[verdict]}"


def number(value: Value) -> str:
    """A value without unit: four significant digits, integers whole with thousands marked, ``3.8e-6`` for small ones."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if value == 0:
        return "0"
    if abs(value) < 1e-3 or abs(value) >= 1e9:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def size(count: float, *, binary: bool = False) -> str:
    """Bytes in kB, MB or GB (powers of 1000), or in KiB, MiB or GiB (powers of 1024)."""
    base, names = (1024, ("bytes", "KiB", "MiB", "GiB")) if binary else (1000, ("bytes", "kB", "MB", "GB"))
    power = 0
    while power < 3 and abs(count) >= base ** (power + 1):
        power += 1
    scaled = count / base**power
    digits = 0 if power == 0 or scaled == int(scaled) or scaled >= 1000 else 1 if scaled >= 10 else 2
    return f"{scaled:,.{digits}f} {names[power]}"


def quantity(value: Value, unit: str, *, binary: bool = False) -> str:
    """A value with its unit, e.g. ``6.9 MB``, ``12.3 ms``, ``3.1e-6 logit``."""
    if unit == "bytes" and isinstance(value, int | float) and not isinstance(value, bool):
        return size(value, binary=binary)
    if value is None or unit in _BARE or isinstance(value, bool | str):
        return number(value)
    word = unit.removesuffix("s") if value == 1 and unit not in {"ms", "s", "pairs/s"} else unit
    return f"{number(value)} {word}"


def unit_of(metric: str) -> str:
    """The unit the catalogue gives a metric; nothing for one it does not know."""
    known = catalogue.find(metric)
    return known.unit if known else ""


def measured(measurement: Measurement, *, interval: bool = True) -> str:
    """A measurement with unit and 95% interval; when the value is unknown, why."""
    if measurement.value is None:
        return f"unknown ({measurement.note})" if measurement.note else "unknown"
    text = quantity(measurement.value, measurement.unit)
    if interval and measurement.interval is not None and measurement.unit == "bytes":
        return text + _bytes_between(measurement.interval, binary=False)
    return text + (between(measurement.interval) if interval else "")


def compared(ratio: Measurement, words: str, ends: tuple[str, str]) -> str:
    """A ratio with its interval in four digits, since it is close to 1, and which of ``ends`` (below 1, above 1) the interval shows."""
    if not isinstance(ratio.value, float) or ratio.interval is None:
        return measured(ratio)
    low, high = ratio.interval
    shown = ends[0] if high < 1 else ends[1] if low > 1 else "no difference shown"
    return f"{ratio.value:.4g} {words} (95% {low:.4g} to {high:.4g}), {shown}"


def between(interval: tuple[float, float] | None) -> str:
    """A 95% interval to stand behind its value, or nothing."""
    if interval is None:
        return ""
    low, high = (number(float(f"{end:.3g}")) for end in interval)
    return f" (95% {low} to {high})"


def _bytes_between(interval: tuple[float, float], *, binary: bool) -> str:
    low, high = (size(end, binary=binary) for end in interval)
    return f" (95% {low} to {high})"


def limit(bound: Limit, unit: str) -> str:
    """A limit in signs, e.g. ``≤ 3 GiB``, ``≥ 0.5 and ≤ 0.6``, ``= fp32``."""
    binary = _in_mebibytes(bound, unit)
    signs = (("≥", bound.at_least), ("≤", bound.at_most), ("=", bound.exactly))
    return " and ".join(f"{sign} {quantity(side, unit, binary=binary)}" for sign, side in signs if side is not None)


def found(finding: Finding) -> str:
    """The value that was judged, in the unit of its limit, with its interval."""
    unit = unit_of(finding.metric)
    binary = _in_mebibytes(finding.limit, unit)
    interval = finding.interval
    text = quantity(finding.value, unit, binary=binary)
    if interval is not None and unit == "bytes":
        return text + _bytes_between(interval, binary=binary)
    return text + between(interval)


def why(finding: Finding) -> str:
    """What a finding says beside its numbers: how many groups would decide, which scorer would pass; empty where there is nothing."""
    unit = unit_of(finding.metric)
    plain = sentence(finding.metric, finding.limit, finding.value, finding.interval, unit, "")
    start, _, rest = finding.text.partition(f"{plain}: ")
    return rest if not start else ""


def share_used(finding: Finding) -> float | None:
    """How much of an upper limit the value, or the upper end of its interval, takes: 1 is the limit. None where that has no sense."""
    ends = _ends(finding)
    top = finding.limit.at_most
    if ends is None or top is None or top <= 0 or ends[1] < 0:
        return None
    return ends[1] / top


def margin(finding: Finding) -> str:
    """How far the judged end of the value is from its limit, in words."""
    ends = _ends(finding)
    if ends is None:
        return "no number" if finding.value is None else "met" if finding.verdict == "PASS" else "missed"
    sides = []
    if finding.limit.at_most is not None:
        sides.append(_distance(finding.limit.at_most - ends[1], finding.limit.at_most, "over"))
    if finding.limit.at_least is not None:
        sides.append(_distance(ends[0] - finding.limit.at_least, finding.limit.at_least, "short"))
    return ", ".join(sides) or ("met" if finding.verdict == "PASS" else "missed")


def _ends(finding: Finding) -> tuple[float, float] | None:
    value = finding.value
    if value is None or isinstance(value, bool | str):
        return None
    return finding.interval or (float(value), float(value))


def _distance(room: float, bound: float, beyond: str) -> str:
    if room == 0:
        return "just at the limit"
    word = "to spare" if room > 0 else beyond
    if bound <= 0 or not math.isfinite(room / bound):
        return f"{number(abs(room))} {word}"
    share = abs(room) / bound
    if share >= 10:
        far = f"{share + 1:,.0f} times the limit" if beyond == "over" else f"{number(abs(room))} {word}"
        return f"{number(abs(room))} {word}" if room > 0 else far
    return f"{share:.0%} {word}" if share >= 0.01 else f"{share:.1%} {word}"


def _in_mebibytes(bound: Limit, unit: str) -> bool:
    sides = [side for side in (bound.at_least, bound.at_most, bound.exactly) if isinstance(side, int | float)]
    return unit == "bytes" and bool(sides) and all(side > 0 and side % 2**20 == 0 for side in sides)


def bounds(stated: Mapping[str, Value]) -> str:
    """The bounds of data, as a record states them, e.g. ``at most 10 candidates a group, at most 2 groups``; ``no bound`` without any."""
    words = {"candidates": "candidates a group", "groups": "groups", "pairs": "pairs"}
    most = [f"at most {number(stated[name])} {word}" for name, word in words.items() if name in stated]
    rest = {
        "select": "a {} sample",
        "negatives": "{} negatives",
        "unjudged": "groups that cannot be judged: {}",
        "seed": "seed {}",
    }
    return ", ".join(most + [word.format(stated[name]) for name, word in rest.items() if name in stated]) or "no bound"
