"""Notes of measurements: what raw records state beside their numbers, told with the number that it bears on. Pure.

A statement that stands in a note is derived again with the number, so nobody can change the one and keep the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from harness.raw import BuildRaw, GrowthRaw, MemoryRaw, PerfRaw, Repeat, ScoresRaw, SessionFacts, SessionPair


def session(facts: SessionFacts) -> str:
    """Providers in order, and every option that was set."""
    return f"on {', '.join(facts.providers)}; {_options(facts.options)}"


def made(raw: BuildRaw) -> str:
    """Where the export came from and which it is, how it was converted, what it was warned of, and the seconds of each phase."""
    told = [f"{name} {seconds:.6g} s" for name, seconds in sorted(raw.phases_s.items())]
    if raw.export_from:
        told.append(f"converted from the export in {raw.export_from}")
    if raw.export is not None:
        told.append(f"the export is {raw.export.digest}")
    if raw.conversion is not None:
        told.append(f"{raw.conversion.name}: {_options(raw.conversion.options)}")
    if raw.warnings:
        told.append(f"{len(raw.warnings)} warnings of the exporter, in build.json")
    return "; ".join(told)


def optimisation(raw: BuildRaw) -> str:
    """What was done to the exported graph before conversion."""
    done = raw.export.optimisation if raw.export is not None else None
    if done is None:
        return ""
    left_out = f", without {', '.join(done.left_out)}" if done.left_out else ""
    return f"{done.nodes_before} before {done.level} optimisation by {done.by}{left_out}, {done.nodes_after} after"


def repeat(found: Repeat) -> str:
    """Both digests, and what differs."""
    return "; ".join(filter(None, [f"{found.first} and {found.second}", found.difference]))


def calls(raw: PerfRaw) -> str:
    """The warm-up, and how much of the time from the first call to the end was spent in calls."""
    timed = [raw.first_call_ms, *raw.warm_up_ms, *raw.steady_ms]
    window = raw.events_ms["end"] - raw.events_ms["first_call"]
    mean = math.fsum(raw.warm_up_ms) / len(raw.warm_up_ms) if raw.warm_up_ms else math.nan
    return (
        f"after {len(raw.warm_up_ms)} warm-up calls of {mean:.6g} ms on average;"
        f" {100 * math.fsum(timed) / window:.4g}% of {window:.8g} ms were spent in calls"
    )


def paired(sessions: Sequence[SessionPair]) -> str:
    """What both sides' calls and loads took in all, in which each counts: a ratio is of medians, and one call may not move it."""
    calls, cpu, loads = (
        [math.fsum(ms for pair in sessions for ms in of(pair)) for of in sides]
        for sides in (
            (lambda pair: pair.candidate_ms, lambda pair: pair.other_ms),
            (lambda pair: pair.candidate_cpu_ms, lambda pair: pair.other_cpu_ms),
            (lambda pair: [pair.candidate.facts.load_ms], lambda pair: [pair.other.facts.load_ms]),
        )
    )
    return (
        f"its calls took {calls[0]:.6g} ms and the other's {calls[1]:.6g} ms in all, {cpu[0]:.6g} and {cpu[1]:.6g} ms of processors;"
        f" its sessions loaded in {loads[0]:.6g} ms, the other's in {loads[1]:.6g} ms"
    )


def batches(raw: PerfRaw) -> str:
    """What one call is."""
    return f"{raw.pairs_per_call} pairs a call, {raw.truncated} of them cut, in batches of {_shapes(raw.shapes)} tokens"


def cell(shapes: Sequence[tuple[int, int]]) -> str:
    """What one call of a cell of the sweep really was: its tokens are a bound, and pairs are as long as they are."""
    told = [(shape, len(list(same))) for shape, same in groupby(shapes)]
    parts = [f"{batch} x {length}" + (f" ({count} times)" if count > 1 else "") for (batch, length), count in told]
    return f"in batches of {', '.join(parts)} tokens; no pair is longer than {longest(shapes)}"


def longest(shapes: Sequence[tuple[int, int]]) -> int:
    """Tokens of the longest micro-batch, so of the longest pair."""
    return max(length for _, length in shapes)


def callers(p95_ms: Sequence[float | None]) -> str:
    """The 95th percentile of each caller's calls, in the order of the sealed times."""
    told = ", ".join("unknown" if ms is None else f"{ms:.6g}" for ms in p95_ms)
    return f"by caller {told} ms"


def growth(found: GrowthRaw) -> str:
    """What was called, and the readings' mean, in which each counts: their slope is a median, and one reading may not move it."""
    return f"calls of {_shapes(found.shapes)}, after which {_mean(found.rss_bytes)} bytes were resident on average"


def sampling(rss: MemoryRaw) -> str:
    """How often the parent meant to look, the longest that it did not, and what it saw on average."""
    gap = max((after - before for before, after in pairwise(rss.at_ms)), default=math.nan)
    return (
        f"a sample every {rss.interval_ms:g} ms was asked for, the longest gap was {gap:.6g} ms;"
        f" they are {_mean(rss.rss_bytes)} bytes on average"
    )


def lengths(raw: ScoresRaw) -> str:
    """How long the pairs were."""
    return f"{raw.truncated} cut at {raw.max_length} tokens, the longest has {raw.longest_tokens}"


def reference_speed(raw: ScoresRaw) -> str:
    """PyTorch beside it, for scale: neither was warmed up."""
    return f"PyTorch took {raw.reference_seconds:.6g} s, the artifact {raw.artifact_seconds:.6g} s"


def _options(options: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(options.items()))


def _shapes(shapes: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{batch} x {length}" for batch, length in shapes)


def _mean(rss_bytes: Sequence[int]) -> str:
    return f"{sum(rss_bytes) / len(rss_bytes) if rss_bytes else math.nan:.12g}"
