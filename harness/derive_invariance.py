"""L2's measurements of what must not move a logit: other rows in the batch, their order, padding, another call, other threads. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from harness.derive_raw import Read, make, raw_floats, raw_record
from harness.derive_tokens import Tensors
from harness.errors import RecordError
from harness.raw import InvarianceRaw, Variant, VariantKind
from harness.records import Measurement, ParityOptions, Request
from harness.variants import CALLS, THREADS, Shape, Side, subset, variants

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SIDES = {"reference": "PyTorch", "artifact": "the runtime"}


class Gap(NamedTuple):
    """The largest change of a logit, and where; None with the reason where there is none."""

    value: float | None
    note: str


class Tried(NamedTuple):
    """One side's variants, each with its logits: an array of shape (calls, rows of the batch) for each batch."""

    raw: InvarianceRaw
    scored: list[tuple[Variant, list[Floats]]]

    def of(self, kind: VariantKind, padding: str) -> list[tuple[Variant, list[Floats]]]:
        """The variants of a kind with that padding, those that were skipped too."""
        return [
            (variant, logits) for variant, logits in self.scored if (variant.kind, variant.padding) == (kind, padding)
        ]


def measurements(
    request: Request, read: Read, tensors: Tensors, refused: Mapping[str, Collection[int]]
) -> tuple[list[Measurement], int, str]:
    """The measurements, how many logits of the variants are not finite, and where.

    ``refused`` are the pairs that a side could not score. Raises ``RecordError`` for variants that are not those of the plan.
    """
    used = request.candidate.padding_side
    unused: Side = "right" if used == "left" else "left"
    tried = {side: _tried(request, read, tensors.lengths.tolist(), refused[side], side) for side in SIDES}
    found: list[Measurement] = []
    for side, one in tried.items():
        name = "runtime" if side == "artifact" else side
        gaps = {
            "batch_gap": _moved(one, "batch", used, f"; padded on the {used}, as the tokenizer says"),
            "order_gap": _reversed(one, used),
            "padding_gap": _moved(one, "padded", used, f"; the {used} is the tokenizer's side"),
            "unused_padding_gap": _moved(
                one, "padded", unused, f"; the tokenizer pads on the {used}: this side is not used"
            ),
            "repeat_gap": _repeated(one, used),
            "segment_gap": _segments(one, used),
        }
        found += [make(f"{metric}_{name}", gap.value, note=gap.note) for metric, gap in gaps.items()]
    found.append(_segment_faults(tried, tensors, used))
    found += _threads(tried["artifact"], request.options.L2 or ParityOptions(), used)
    bad, where = _non_finite(tried)
    return found, bad, where


def _tried(request: Request, read: Read, lengths: list[int], refused: Collection[int], side: str) -> Tried:
    path = f"{request.step}/invariance_{side}.json"
    raw = raw_record(read, path, InvarianceRaw)
    segments = any(variant.kind == "segments" and not variant.skipped for variant in raw.variants)
    chosen = subset(lengths, request.options.L2 or ParityOptions(), request.seed, refused)
    shape = Shape(*raw.shape, segments, side == "artifact")
    if raw.pairs != chosen or raw.variants != variants(chosen, request.candidate.padding_side, request.seed, shape):
        raise RecordError(f"{path}: expected the pairs and batches that plan and seed give, got others")
    count = sum(variant.calls * sum(map(len, variant.rows)) for variant in raw.variants)
    flat = raw_floats(read, f"{request.step}/invariance_{side}.f32", count).astype("float64")
    return Tried(raw, list(_split(raw.variants, flat)))


def _split(made: tuple[Variant, ...], flat: Floats) -> Iterator[tuple[Variant, list[Floats]]]:
    begin = 0
    for variant in made:
        found = []
        for row in variant.rows:
            end = begin + variant.calls * len(row)
            found.append(flat[begin:end].reshape(variant.calls, len(row)))
            begin = end
        yield variant, found


def _alone(tried: Tried) -> dict[int, float]:
    """Each pair's logit when it is scored alone."""
    (variant, logits), *_ = [item for item in tried.scored if item[0].kind == "alone"]
    return {row[0]: float(found[0, 0]) for row, found in zip(variant.rows, logits, strict=True)}


def _moved(tried: Tried, kind: VariantKind, padding: str, told: str) -> Gap:
    """The largest change from alone; zero where the shape of the graph leaves nothing to vary, and the note says so."""
    alone = _alone(tried)
    skipped = [variant.skipped for variant, _ in tried.of(kind, padding) if variant.skipped]
    worst, where = 0.0, ""
    for variant, logits in tried.of(kind, padding):
        for row, found in zip(variant.rows, logits, strict=True):
            for pair, logit in zip(row, found[0], strict=True):
                gap = abs(float(logit) - alone[pair])
                if not math.isfinite(gap):
                    return Gap(None, f"the logit of pair {pair} is not finite, alone or in a batch of {len(row)}{told}")
                if gap >= worst:
                    worst, where = gap, f"pair {pair}: {alone[pair]:.6g} alone, {logit:.6g} {_in(kind, row)}{told}"
    return Gap(worst, "; ".join(filter(None, [where, *skipped])))


def _in(kind: VariantKind, row: tuple[int, ...]) -> str:
    match kind:
        case "batch":
            return f"in a batch of {len(row)}"
        case "segments":
            return "with segment ids zeroed"
        case _:
            return "padded"


def _reversed(tried: Tried, padding: str) -> Gap:
    import numpy as np

    straight = {
        row: found[0]
        for variant, logits in tried.of("batch", padding)
        for row, found in zip(variant.rows, logits, strict=True)
    }
    worst, where = 0.0, ""
    for variant, logits in tried.of("order", padding):
        if variant.skipped:
            return Gap(0.0, variant.skipped)
        for row, found in zip(variant.rows, logits, strict=True):
            gaps = np.abs(found[0][::-1] - straight[row[::-1]])
            if not np.isfinite(gaps).all():
                return Gap(None, f"a logit of a batch of {len(row)} is not finite")
            worst, where = max((worst, where), (float(gaps.max()), f"a batch of {len(row)}, reversed"))
    return Gap(worst, where)


def _repeated(tried: Tried, padding: str) -> Gap:
    import numpy as np

    ((variant, (found,)),) = tried.of("repeat", padding)
    if not np.isfinite(found).all():
        return Gap(None, f"a logit of a batch of {found.shape[1]} is not finite")
    moved = int((found != found[0]).sum())
    same = f"bitwise equal over {variant.calls} calls"
    return Gap(
        float(np.abs(found - found[0]).max()),
        f"{moved} of {found.size - found.shape[1]} logits differ from the first of {variant.calls} calls"
        if moved
        else same,
    )


def _segments(tried: Tried, padding: str) -> Gap:
    ((variant, _),) = tried.of("segments", padding)
    return Gap(None, variant.skipped) if variant.skipped else _moved(tried, "segments", padding, "")


def _segment_faults(tried: Mapping[str, Tried], tensors: Tensors, padding: str) -> Measurement:
    """Sides that do not feel the segments. A runtime that takes none although PyTorch does is one of them."""
    gaps = {side: _segments(one, padding) for side, one in tried.items()}
    taken = {side: not one.of("segments", padding)[0][0].skipped for side, one in tried.items()}
    if not any(taken.values()):
        return make("segment_faults", 0, note="the model takes no segment ids")
    deaf = []
    for side, one in tried.items():
        gap, noise = gaps[side].value, _repeated(one, padding).value
        if taken[side] and (gap is None or noise is None):
            return make("segment_faults", None, note=f"{SIDES[side]}: {gaps[side].note}")
        if not taken[side] or (gap is not None and noise is not None and gap <= noise):
            deaf.append(SIDES[side])
    note = f"zeroed segment ids leave the logits of {' and '.join(deaf)} as they are" if deaf else ""
    if deaf and not any(segments.any() for segments in tensors.segments):
        note += "; the tokenizer gives segment 0 to every token"
    return make("segment_faults", len(deaf), note=note)


def _threads(tried: Tried, options: ParityOptions, padding: str) -> Iterator[Measurement]:
    import numpy as np

    single = {
        row: found[0]
        for kind in ("alone", "batch")
        for variant, logits in tried.of(kind, padding)
        for row, found in zip(variant.rows, logits, strict=True)
    }
    ((variant, logits),) = tried.of("threads", padding)
    lost = tried.raw.unfinished
    asked = f"{THREADS} threads, {CALLS} calls each"
    expected = np.stack(
        [np.broadcast_to(single[row], found.shape) for row, found in zip(variant.rows, logits, strict=True)]
    )
    gaps = np.abs(np.stack(logits) - expected)
    if lost or not np.isfinite(gaps).all():
        yield make("threads_gap", None, note=f"{lost} calls did not come back" if lost else "a logit is not finite")
    else:
        moved = int((gaps > 0).sum())
        told = (
            f"{moved} of {gaps.size} logits differ from a single thread's"
            if moved
            else "bitwise equal to a single thread"
        )
        yield make("threads_gap", float(gaps.max()), samples=int(gaps.size), note=f"{asked}: {told}")
    error = f"; {tried.raw.error}" if tried.raw.error else ""
    yield make("threads_deadlocked", lost, note=f"{asked}, {options.deadlock_s:g} s{error}" if lost else "")


def _non_finite(tried: Mapping[str, Tried]) -> tuple[int, str]:
    """Logits of variants that are not finite, those of calls that never came back apart; and the first place."""
    import numpy as np

    total, where = 0, ""
    for side, one in tried.items():
        for variant, logits in one.scored:
            if variant.kind == "threads" and one.raw.unfinished:
                continue
            for row, found in zip(variant.rows, logits, strict=True):
                bad = np.flatnonzero(~np.isfinite(found[0]))
                total += int(np.count_nonzero(~np.isfinite(found)))
                if bad.size and not where:
                    what = f"{variant.kind}, batch of {len(row)}, padded on the {variant.padding}"
                    where = f"pair {row[int(bad[0])]} in {SIDES[side]} ({what})"
    return total, where
