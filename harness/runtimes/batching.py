"""Tokenised pairs become padded micro-batches, and the logits of the batches come back in the order of the pairs.

Pairs are sorted by length, longest first, so that a batch holds little padding and the first batch shows the most memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.candidate import first_position
from harness.errors import Blocked
from harness.records import Candidate
from harness.runtimes.tokens import Encoded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Tensors = dict[str, NDArray[Any]]
    Logits = Callable[[Tensors], NDArray[np.float32]]


class Layout(NamedTuple):
    """How batches are laid out: dtype by tensor name (``int64`` or ``int32``), the padding, and what the graph's shape fixes.

    ``fixed_batch`` and ``fixed_length`` are None where the graph takes any. ``first_position`` is the number of a pair's first
    token for a graph that takes ``position_ids``.
    """

    inputs: Mapping[str, str]
    pad_id: int
    padding_side: str
    batch_size: int
    fixed_batch: int | None = None
    fixed_length: int | None = None
    first_position: int = 0


class Batch(NamedTuple):
    """``tensors`` of shape (batch, sequence) for the pairs at ``rows``; rows of the batch beyond ``len(rows)`` repeat and do not count."""

    rows: NDArray[np.int64]
    tensors: Tensors


def batches(encoded: Encoded, layout: Layout) -> Iterator[Batch]:
    """Every pair once, in batches of at most ``batch_size`` (exactly the fixed batch where there is one).

    Raises ``Blocked`` for an input that no tokenizer gives, or a pair longer than the fixed sequence.
    """
    import numpy as np

    lengths = np.array([len(ids) for ids in encoded.ids])
    order = np.argsort(-lengths, kind="stable")
    size = layout.fixed_batch or layout.batch_size
    if layout.fixed_length is not None and lengths.max(initial=0) > layout.fixed_length:
        raise Blocked(
            f"pairs: expected at most the graph's fixed {layout.fixed_length} tokens, got {lengths.max()};"
            " lower max_length in the ladder"
        )
    for begin in range(0, len(order), size):
        rows = order[begin : begin + size]
        chosen = np.resize(rows, size) if layout.fixed_batch else rows
        length = layout.fixed_length or int(lengths[rows[0]])
        yield Batch(rows=rows, tensors=pad(encoded, chosen, length, layout))


def pad(encoded: Encoded, rows: Iterable[int], length: int, layout: Layout) -> Tensors:
    """The tensors the graph takes, shape (rows, length): ids padded with ``pad_id``, mask, segments and positions with 0."""
    import numpy as np

    chosen = list(rows)
    left = layout.padding_side == "left"
    tensors: Tensors = {}
    for name, dtype in layout.inputs.items():
        tensor = np.full((len(chosen), length), layout.pad_id if name == "input_ids" else 0, dtype=dtype)
        for place, row in enumerate(chosen):
            values = _values(encoded, row, name, layout.first_position)
            tensor[place, slice(length - len(values), None) if left else slice(len(values))] = values
        tensors[name] = tensor
    return tensors


def score(logits: Logits, made: Iterable[Batch], pairs: int, seen: Callable[[int], None]) -> NDArray[np.float32]:
    """Logits of all pairs, float32 of shape (pairs,), in the order of the pairs. ``seen`` is told the pairs done so far."""
    import numpy as np

    found = np.full(pairs, np.nan, dtype=np.float32)
    done = 0
    for batch in made:
        found[batch.rows] = logits(batch.tensors)[: len(batch.rows)]
        done += len(batch.rows)
        seen(done)
    return found


def score_or_refuse(
    logits: Logits, encoded: Encoded, layout: Layout, seen: Callable[[int], None]
) -> tuple[NDArray[np.float32], dict[int, str]]:
    """As ``score``, but a batch that the scorer cannot take is scored pair by pair, so that one bad pair does not lose the rest.

    Also returns why a pair could not be scored, by index; its logit is NaN. When no pair at all can be scored, what the scorer
    raised for the first one passes through, as does every ``Blocked``.
    """
    import numpy as np

    found = np.full(len(encoded.ids), np.nan, dtype=np.float32)
    refused: dict[int, str] = {}
    done = 0
    for batch in batches(encoded, layout):
        try:
            found[batch.rows] = logits(batch.tensors)[: len(batch.rows)]
        except Blocked:
            raise
        except Exception:  # noqa: BLE001 - runtimes have no common base; each pair of the batch is tried by itself
            for row in batch.rows:
                _alone(logits, encoded, layout, int(row), found, refused)
        done += len(batch.rows)
        seen(done)
    if len(refused) == len(found):
        logits(next(iter(batches(encoded, layout))).tensors)
    return found, refused


def layout_of(
    candidate: Candidate, inputs: Mapping[str, str], batch_size: int, fixed: tuple[int | None, int | None]
) -> Layout:
    """How batches of a candidate are laid out for a scorer that takes ``inputs``."""
    first = first_position(candidate)
    return Layout(inputs, candidate.pad_token_id, candidate.padding_side, batch_size, *fixed, first_position=first)


def _alone(
    logits: Logits, encoded: Encoded, layout: Layout, row: int, found: NDArray[np.float32], refused: dict[int, str]
) -> None:
    rows = [row] * (layout.fixed_batch or 1)
    tensors = pad(encoded, rows, layout.fixed_length or len(encoded.ids[row]), layout)
    try:
        found[row] = logits(tensors)[0]
    except Exception as error:  # noqa: BLE001 - as above; the pair is refused by number
        refused[row] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _values(encoded: Encoded, row: int, name: str, first_position: int) -> NDArray[np.int64]:
    import numpy as np

    match name:
        case "input_ids":
            return encoded.ids[row]
        case "token_type_ids":
            return encoded.segments[row]
        case "attention_mask":
            return np.ones(len(encoded.ids[row]), dtype=np.int64)
        case "position_ids":
            return np.arange(first_position, first_position + len(encoded.ids[row]), dtype=np.int64)
        case _:
            raise Blocked(f"graph input {name!r}: expected one that the tokenizer gives, got no value for it")
