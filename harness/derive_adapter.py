"""The measurements of an adapter from raw samples: is it there, is it all of what differs, and did merging keep it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from harness.derive_raw import Read, make, raw_floats, raw_record
from harness.errors import RecordError
from harness.raw_adapter import AdapterRaw, MergeRaw
from harness.records import Adapter, Measurement, ParityOptions, Request
from harness.variants import subset

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.floating]

WAYS = ("base", "off", "merged")


def merged(request: Request, read: Read) -> list[Measurement]:
    """What L0 says of the merge; nothing without an adapter. Raises ``RecordError`` for one that did not take all layers or heads."""
    adapter = request.candidate.adapter
    if adapter is None:
        return []
    path = f"{request.step}/adapter.json"
    raw = raw_record(read, path, MergeRaw)
    if raw.layers < adapter.layers:
        raise RecordError(f"{path}: expected {adapter.layers} layers with the adapter, as planned, got {raw.layers}")
    _check_heads(path, adapter, raw)
    changed = [head.tensor for head in raw.heads if head.expected != head.merged]
    source = ", ".join(f"{head.tensor} of the {head.source}" for head in raw.heads[:4])
    note = f"{', '.join(changed)} differs from the file it was trained into" if changed else source
    return [make("adapter_head_equal", bool(raw.heads) and not changed, note=note)]


def keys(request: Request, read: Read, *, exported: bool) -> list[Measurement]:
    """Tensors that are missing or not taken: zero after an export, since any other checkpoint is refused before it, with their names.

    A base of another class, for an adapter that brings the classifier, leaves its own head out. Unknown where nothing was exported.
    """
    if not exported:
        note = "the artifact was given, so the model class was not asked"
        return [make(name, None, note=note) for name in ("missing_keys", "unexpected_keys")]
    left_out: tuple[str, ...] = ()
    if request.candidate.adapter is not None:
        left_out = raw_record(read, f"{request.step}/adapter.json", MergeRaw).left_out
    named = ", ".join(left_out[:5]) + (f" and {len(left_out) - 5} more" if len(left_out) > 5 else "")
    return [make("missing_keys", 0), make("unexpected_keys", len(left_out), note=named)]


def _check_heads(path: str, adapter: Adapter, raw: MergeRaw) -> None:
    looked_at = {head.tensor for head in raw.heads if head.source == "adapter"}
    if missing := sorted(set(adapter.head) - looked_at):
        raise RecordError(f"{path}: expected the adapter's {', '.join(missing)} among the heads, got none")


def measurements(
    request: Request,
    read: Read,
    sides: tuple[Floats, Floats],
    lengths: list[int],
    refused: Mapping[str, Collection[int]],
) -> list[Measurement]:
    """What L2 says of the adapter; nothing without one. ``sides`` are the logits of reference and artifact.

    ``refused`` are the pairs that a side could not score. Raises ``RecordError`` for other pairs or ways than those of the plan.
    """
    from harness.metrics import logits

    if request.candidate.adapter is None:
        return []
    path = f"{request.step}/adapter.json"
    raw = raw_record(read, path, AdapterRaw)
    chosen = subset(lengths, request.options.L2 or ParityOptions(), request.seed, refused["reference"])
    if raw.pairs != chosen or raw.ways != WAYS:
        raise RecordError(f"{path}: expected the pairs that plan and seed give, and base, off and merged, got others")
    base, off, merged_ = raw_floats(read, f"{request.step}/adapter.f32", 3 * len(chosen)).reshape(3, -1)
    on = sides[0][list(chosen)]
    gaps = {
        "adapter_effect": logits.max_abs_gap(on, base),
        "adapter_off_gap": logits.max_abs_gap(off, base),
        "adapter_merged_gap": logits.max_abs_gap(merged_, on),
    }
    made = [
        make(name, gap, samples=len(chosen), note="a logit is not finite" if gap is None else "")
        for name, gap in gaps.items()
    ]
    places = [place for place, pair in enumerate(chosen) if pair not in refused["artifact"]]
    artifact = sides[1][list(chosen)]
    return [*made, _likeness(on[places], base[places], artifact[places])]


def _likeness(on: Floats, base: Floats, artifact: Floats) -> Measurement:
    """Root mean square distance to the adapter's logits, over the sum of that and the distance to the base's."""
    import numpy as np

    sides = [side.astype(np.float64) for side in (on, base, artifact)]
    if not len(on) or not all(np.isfinite(side).all() for side in sides):
        return make("base_likeness", None, note="a logit is not finite" if len(on) else "no pair was scored")
    to_adapter, to_base = (float(np.sqrt(np.mean((sides[2] - side) ** 2))) for side in sides[:2])
    if to_adapter + to_base == 0:
        return make("base_likeness", None, samples=len(on), note="base and adapter give the same logits")
    note = f"{to_adapter:.3g} logit from PyTorch with the adapter, {to_base:.3g} from the base"
    return make("base_likeness", to_adapter / (to_adapter + to_base), samples=len(on), note=note)
