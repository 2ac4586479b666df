"""L2's measurements of the tensors themselves: what was cut and where, how two texts are joined, what a second path says. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.derive_raw import Read, make, raw_bytes, raw_record
from harness.errors import RecordError
from harness.raw import TokensRaw
from harness.records import Measurement, ParityOptions, Request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int32]


class Tensors(NamedTuple):
    """``tokens.i32`` by column; ``ids``, ``segments`` and ``texts`` are one array a pair."""

    lengths: Integers
    whole: Integers
    cut_start: Integers
    cut_end: Integers
    ids: list[Integers]
    segments: list[Integers]
    texts: list[Integers]


def read_tensors(request: Request, read: Read) -> tuple[TokensRaw, Tensors]:
    """The record and columns of ``tokens.i32``. Raises ``RecordError`` unless sizes, plan and columns agree."""
    import numpy as np

    said = raw_record(read, f"{request.step}/tokens.json", TokensRaw)
    path = f"{request.step}/tokens.i32"
    data = raw_bytes(read, path)
    planned = request.inputs.pairs.rows if request.inputs.pairs is not None else 0
    size = 4 * (4 * said.pairs + 3 * said.tokens)
    if said.pairs != planned or len(data) != size or not planned:
        raise RecordError(f"{path}: expected {planned} pairs in {size} bytes, got {said.pairs} in {len(data)}")
    flat = np.frombuffer(data, dtype="<i4")
    head, body = flat[: 4 * said.pairs].reshape(4, -1), flat[4 * said.pairs :].reshape(3, -1)
    if head[0].min() < 1 or int(head[0].sum()) != said.tokens:
        raise RecordError(f"{path}: expected lengths that add up to {said.tokens} tokens, got {int(head[0].sum())}")
    ends = np.cumsum(head[0])[:-1]
    ids, segments, texts = (np.split(row, ends) for row in body)
    return said, Tensors(head[0], head[1], head[2], head[3], ids, segments, texts)


def measurements(request: Request, said: TokensRaw, tensors: Tensors) -> list[Measurement]:
    """Length, truncation, separators, padding and the second path."""
    options = request.options.L2 or ParityOptions()
    longest = int(tensors.lengths.max())
    cut = tensors.whole > tensors.lengths
    at_start, at_end = int((tensors.cut_start > 0).sum()), int((tensors.cut_end > 0).sum())
    wrong = tensors.cut_start if said.truncation_side == "right" else tensors.cut_end
    faulty = (tensors.lengths > options.max_length) | (wrong != 0) | (tensors.cut_end < 0)
    faulty |= cut & (tensors.lengths != options.max_length)
    side = "end" if said.truncation_side == "right" else "start"
    told = f"planned: at {options.max_length} tokens, at the {side} of the texts"
    seen = f"seen: {at_start} pairs cut at the start, {at_end} at the end; longest tensor {longest} tokens"
    agrees = None if said.padding_id is None else said.padding_id == request.candidate.pad_token_id
    padded = f"padded with {request.candidate.pad_token_id}, the tokenizer's own padding token is {said.padding_id}"
    return [
        make("effective_length", longest, note=told),
        make("truncated_pairs", int(cut.sum()), samples=said.pairs, note=seen),
        make("truncation_faults", int(faulty.sum()), note=_listed(faulty.nonzero()[0].tolist(), f"{told}; {seen}")),
        make("token_mismatches", len(said.mismatches), note=_listed(said.mismatches, f"second path: {said.tokenizer}")),
        _separators(said, tensors),
        make("padding_id_agrees", agrees, note=padded),
    ]


def _separators(said: TokensRaw, tensors: Tensors) -> Measurement:
    import numpy as np

    if said.template is None:
        return make("separator_faults", None, note="the tokenizer names no separator")
    first, between, last = (np.asarray(part, dtype=np.int64) for part in said.template)
    wrong = [
        pair
        for pair, (ids, texts) in enumerate(zip(tensors.ids, tensors.texts, strict=True))
        if not np.array_equal(np.concatenate([first, ids[texts == 0], between, ids[texts == 1], last]), ids)
    ]
    shown = f"expected ids {first.tolist()} query {between.tolist()} document {last.tolist()}"
    if wrong:
        ids, texts = tensors.ids[wrong[0]], tensors.texts[wrong[0]]
        shown += f", got {ids[texts == -1].tolist()} around the texts of pair {wrong[0]}"
    return make("separator_faults", len(wrong), note=_listed(wrong, shown))


def _listed(pairs: Sequence[int], why: str) -> str:
    if not pairs:
        return why
    more = f" and {len(pairs) - 10} more" if len(pairs) > 10 else ""
    return f"pairs {', '.join(map(str, pairs[:10]))}{more}; {why}"
