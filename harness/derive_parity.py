"""The measurements of L2 from its raw samples: the gap to PyTorch, the order, the build step that moved it. Pure; needs no ML library."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from harness import derive_notes
from harness.derive_raw import Read, make, raw_floats, raw_record
from harness.derive_session import fallback
from harness.errors import RecordError
from harness.metrics.catalogue import BUILD_STEPS
from harness.raw import ParityRaw, SessionFacts, StagesRaw
from harness.records import Measurement, Request, Value, step_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


def measurements(request: Request, read: Read) -> list[Measurement]:
    """All metrics of L2. Raises ``RecordError`` for raw files that do not fit the plan or each other."""
    from harness import derive_adapter, derive_invariance, derive_tokens

    raw = raw_record(read, f"{request.step}/logits.json", ParityRaw)
    count = raw.shape[0]
    planned = request.inputs.pairs.rows if request.inputs.pairs is not None else 0
    if count != planned:
        raise RecordError(f"{request.step}/logits.json: expected {planned} pairs, as planned, got {count}")
    reference = raw_floats(read, f"{request.step}/reference.f32", count)
    artifact = raw_floats(read, f"{request.step}/artifact.f32", count)
    by_side = {
        "reference": _numbered("PyTorch", raw.refused_reference, count),
        "artifact": _numbered("the runtime", raw.refused_artifact, count),
    }
    refused = {**by_side["artifact"], **by_side["reference"]}
    said, tensors = derive_tokens.read_tensors(request, read)
    again, not_finite, lost = derive_invariance.measurements(request, read, tensors, by_side)
    kept = _without(count, refused)
    steps, moved_by = _steps(request, read, reference, artifact, refused)
    return [
        make("pairs", count, note=derive_notes.session(raw.session) + f"; loaded in {raw.session.load_ms:.6g} ms"),
        _refused(refused),
        _non_finite(reference, artifact, kept, not_finite, lost),
        *_compared(request, reference, artifact, moved_by),
        *steps,
        *derive_tokens.measurements(request, said, tensors),
        *again,
        *derive_adapter.measurements(request, read, (reference, artifact), tensors.lengths.tolist(), by_side),
        _fallback(raw.session),
    ]


def _compared(request: Request, reference: Floats, artifact: Floats, moved_by: str) -> list[Measurement]:
    """Everything that compares the two lists of logits; null where a logit is not finite."""
    from harness.metrics import logits

    noise = request.options.L2.noise if request.options.L2 is not None else 0.0
    bad = logits.non_finite_count(reference, artifact)
    undefined = f"{bad} logits are not finite" if bad else "not defined for these logits"
    sides = reference, artifact
    beyond = _joined(f"beyond {noise:g} logit of the reference", moved_by)
    values: dict[str, tuple[Value, str]] = {
        "max_abs_gap": (logits.max_abs_gap(*sides), _worst(*sides, moved_by)),
        "mean_abs_gap": (logits.mean_abs_gap(*sides), ""),
        "p99_abs_gap": (logits.p99_abs_gap(*sides), moved_by),
        "gap_over_spread": (logits.gap_over_spread(*sides), moved_by),
        "pearson": (logits.pearson(*sides), moved_by),
        "spearman": (logits.spearman(*sides), moved_by),
        "kendall_tau_b": (logits.kendall_tau_b(*sides), _joined(_ties(*sides), moved_by)),
        "top_1_agreement": (logits.top_k_agreement(*sides, 1), ""),
        "top_10_agreement": (logits.top_k_agreement(*sides, 10), ""),
        "discordant_pairs": (logits.discordant_pairs(*sides, noise), beyond),
        "order_kept": (logits.order_kept(*sides, noise), beyond),
        "cosine": (logits.cosine(*sides), ""),
        "sqnr_db": (logits.sqnr_db(*sides), ""),
        "distinct_logits": (logits.distinct_scores(artifact), _constant(artifact)),
    }
    return [
        make(name, value, samples=len(reference), note=note if value is not None else undefined)
        for name, (value, note) in values.items()
    ]


def _worst(reference: Floats, artifact: Floats, moved_by: str) -> str:
    import numpy as np

    gaps = np.abs(artifact.astype(np.float64) - reference.astype(np.float64))
    if not gaps.size or not np.isfinite(gaps).all():
        return ""
    pair = int(gaps.argmax())
    where = f"pair {pair}: {reference[pair]:.6g} in PyTorch, {artifact[pair]:.6g} in the runtime"
    return _joined(where, moved_by)


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def _ties(reference: Floats, artifact: Floats) -> str:
    """How many pairs of pairs are tied on either side, since tau-b corrects for them."""
    import numpy as np

    def tied(side: Floats) -> int:
        counts = np.unique(side, return_counts=True)[1]
        return int((counts * (counts - 1) // 2).sum())

    return f"tied pairs of pairs: {tied(reference)} in PyTorch, {tied(artifact)} in the runtime"


def _constant(artifact: Floats) -> str:
    import numpy as np

    return f"a constant output: every pair gets {artifact[0]:.6g}" if len(np.unique(artifact)) == 1 else ""


# --- pairs without a logit --------------------------------------------------------------------------------------------


def _numbered(side: str, refused: Mapping[str, str], count: int) -> dict[int, str]:
    found = {int(index): f"{side}: {error}" for index, error in refused.items() if index.isdecimal()}
    if len(found) != len(refused) or any(index >= count for index in found):
        raise RecordError(f"logits.json: expected refused pairs by index below {count}, got {', '.join(refused)}")
    return found


def _refused(refused: Mapping[int, str]) -> Measurement:
    listed = "; ".join(f"pair {index}: {refused[index]}" for index in sorted(refused)[:3])
    more = f"; and {len(refused) - 3} more" if len(refused) > 3 else ""
    return make("refused_pairs", len(refused), note=listed + more)


def _without(count: int, refused: Collection[int]) -> list[int]:
    return [index for index in range(count) if index not in refused]


def _non_finite(reference: Floats, artifact: Floats, kept: list[int], again: int, lost: str) -> Measurement:
    """NaN and infinite logits of all pairs that were scored, the mixed batches too, with the first pairs by number."""
    import numpy as np

    sides = {"PyTorch": reference, "the runtime": artifact}
    bad = {name: [index for index in kept if not np.isfinite(side[index])] for name, side in sides.items()}
    told = [f"pairs {', '.join(map(str, found[:5]))} in {name}" for name, found in bad.items() if found]
    if again:
        told.append(lost)
    return make("non_finite_count", sum(map(len, bad.values())) + again, note="; ".join(told))


# --- the build step that moved the logits -----------------------------------------------------------------------------


def _steps(
    request: Request, read: Read, reference: Floats, artifact: Floats, refused: Collection[int]
) -> tuple[list[Measurement], str]:
    """``gap_after`` of every step and ``gap_step``, and a sentence on them for the largest gap."""
    import numpy as np

    from harness.metrics import logits

    missing = "no logits were kept after this step"
    folder = step_folder("L0", request.target.name)
    try:
        raw = raw_record(read, f"{folder}/stages.json", StagesRaw)
    except RecordError as error:
        if isinstance(error.__cause__, OSError | LookupError):
            return _no_steps("L0 kept no logits of the steps of the build"), ""
        raise
    taken = raw_floats(read, f"{folder}/stages.f32", len(raw.steps) * len(raw.pairs)).reshape(len(raw.steps), -1)
    places = [place for place, pair in enumerate(raw.pairs) if pair < len(reference) and pair not in refused]
    rows = [raw.pairs[place] for place in places]
    gaps: dict[str, float | None] = {
        step: logits.max_abs_gap(reference[rows], taken[n][places]) for n, step in enumerate(raw.steps)
    }
    unsaid = {"convert": "the artifact is the fp32 export itself"} if request.target.precision == "fp32" else {}
    found = [
        make(
            f"gap_after.{step}",
            gaps.get(step),
            samples=len(rows),
            note=""
            if gaps.get(step) is not None
            else "a logit is not finite"
            if step in gaps
            else unsaid.get(step, missing),
        )
        for step in BUILD_STEPS
    ]
    chain = {**gaps, "runtime": logits.max_abs_gap(reference[rows], artifact[rows])}
    step = _culprit(chain)
    shown = ", ".join(
        f"{'not finite' if gap is None else format(gap, '.3g')} after {name}" for name, gap in chain.items()
    )
    at = f"the step that adds most is {step}: {shown}, over {len(np.unique(rows))} pairs" if step is not None else ""
    found.append(make("gap_step", step, note=at if step is not None else "no logits to tell it from"))
    return found, at


def _culprit(chain: Mapping[str, float | None]) -> str | None:
    """The first step that is not finite, else the one whose gap is most above that of the step before it."""
    before = 0.0
    added: dict[str, float] = {}
    for name, gap in chain.items():
        if gap is None:
            return name
        added[name], before = gap - before, gap
    return max(added, key=lambda name: added[name]) if len(added) > 1 else None


def _no_steps(note: str) -> list[Measurement]:
    return [*(make(f"gap_after.{step}", None, note=note) for step in BUILD_STEPS), make("gap_step", None, note=note)]


# --- placement --------------------------------------------------------------------------------------------------------


def _fallback(session: SessionFacts) -> Measurement:
    """Nodes on another provider than the session's first, shape arithmetic apart."""
    if session.placement is None:
        return make("fallback_nodes", None, note="this version of the runtime does not tell which provider took a node")
    own = session.providers[0] if session.providers else ""
    total, told = fallback(session)
    if not session.placement.get(own):
        return make("fallback_nodes", max(total, 1), note="; ".join([f"{own} took no node", *told]))
    return make("fallback_nodes", total, note="; ".join(told))
