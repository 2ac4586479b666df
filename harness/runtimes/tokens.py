"""Pairs become token ids once, by the candidate's own ``tokenizer.json``, and every runtime is given the same ids.

Only the ``tokenizers`` library is used, so that L1 needs neither torch nor transformers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.errors import Blocked
from harness.records import Candidate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Encoded(NamedTuple):
    """Tokenised pairs, unpadded: one int64 array of shape (tokens,) a pair in ``ids`` and ``segments``, and how many pairs were cut.

    ``texts`` says of each token which text it is of: 0 query, 1 document, -1 neither.
    """

    ids: tuple[NDArray[np.int64], ...]
    segments: tuple[NDArray[np.int64], ...]
    truncated: int
    texts: tuple[NDArray[np.int64], ...] = ()

    @property
    def longest(self) -> int:
        """Tokens of the longest pair."""
        return max(len(ids) for ids in self.ids)


def inputs_of(candidate: Candidate, model: Path) -> tuple[str, ...]:
    """The tensors that the model takes of its tokenizer: segments only where it has two and the tokenizer's config does not drop them."""
    two_segments = candidate.type_vocab_size > 1
    config = model / "tokenizer_config.json"
    if two_segments and config.is_file():
        names = json.loads(config.read_bytes()).get("model_input_names")
        two_segments = names is None or "token_type_ids" in names
    return MODEL_INPUTS if two_segments else MODEL_INPUTS[:2]


def encode(model: Path, candidate: Candidate, pairs: Iterable[tuple[str, str]], max_length: int) -> Encoded:
    """Tokenise (query, document) pairs, cut at ``max_length`` tokens from the longer text first.

    The cut is made here and not by the library: of a pair of two long texts that makes an encoding of each piece of the one with each
    piece of the other, which nobody reads (56,393 of 64 tokens for two texts of 10,000 letters). ``stages.second_path`` holds these
    tensors against those that the library cuts.

    Raises ``Blocked`` when the candidate takes no so long sequence, or the tokenizer cannot be read or makes no room for it.
    """
    if max_length > candidate.max_length:
        raise Blocked(
            f"max_length: expected at most the candidate's {candidate.max_length} tokens, got {max_length};"
            " lower it in the ladder"
        )
    tokenizer_of(model, max_length)  # refuses a length that it makes no room for
    whole = encoded(encodings_of(model, pairs))
    side = _cut_side(model)
    kept = [kept_of(texts, max_length, side) for texts in whole.texts]
    return Encoded(
        ids=tuple(ids[places] for ids, places in zip(whole.ids, kept, strict=True)),
        segments=tuple(segments[places] for segments, places in zip(whole.segments, kept, strict=True)),
        truncated=sum(not places.all() for places in kept),
        texts=tuple(texts[places] for texts, places in zip(whole.texts, kept, strict=True)),
    )


def kept_of(texts: NDArray[np.int64], max_length: int, side: str) -> NDArray[np.bool_]:
    """Which tokens of a whole pair are left when it is cut at ``max_length``; ``texts`` as in ``Encoded``, ``side`` where texts are cut.

    As ``tokenizers`` has it (``truncate_encodings``, longest first): the longer text gives first; where that is not enough, each gets
    half of the room, and an odd token goes to the longer, or to the second of two that are as long.
    """
    import numpy as np

    places = [np.flatnonzero(texts == text) for text in (0, 1)]
    sizes = [len(place) for place in places]
    room = max_length - (len(texts) - sum(sizes))
    kept = np.ones(len(texts), dtype=np.bool_)
    if sum(sizes) <= room:
        return kept
    shorter, longer = (0, 1) if sizes[0] <= sizes[1] else (1, 0)
    left = [0, 0]
    left[shorter] = min(sizes[shorter], room // 2)
    left[longer] = room - left[shorter]
    for place, size, count in zip(places, sizes, left, strict=True):
        kept[place[: size - count] if side == "left" else place[count:]] = False
    return kept


def encoded(encodings: Sequence[Any]) -> Encoded:
    """``tokenizers.Encoding`` as arrays."""
    import numpy as np

    return Encoded(
        ids=tuple(np.asarray(encoding.ids, dtype=np.int64) for encoding in encodings),
        segments=tuple(np.asarray(encoding.type_ids, dtype=np.int64) for encoding in encodings),
        truncated=sum(bool(encoding.overflowing) for encoding in encodings),
        texts=tuple(texts_of(encoding) for encoding in encodings),
    )


def texts_of(encoding: Any) -> NDArray[np.int64]:
    """The text that each token of a ``tokenizers.Encoding`` is of, as in ``Encoded``."""
    import numpy as np

    return np.asarray([-1 if text is None else text for text in encoding.sequence_ids], dtype=np.int64)


def encodings_of(model: Path, pairs: Iterable[tuple[str, str]]) -> list[Any]:
    """The pairs as ``tokenizers.Encoding``, whole and unpadded. Raises ``Blocked``."""
    try:
        found: list[Any] = tokenizer_of(model, None).encode_batch(list(pairs))
    except Blocked:
        raise
    except Exception as error:  # the library raises bare Exception
        raise _no_tokenizer(error) from error
    return found


def tokenizer_of(model: Path, max_length: int | None) -> Any:
    """The candidate's tokenizer, without padding, cutting at ``max_length`` tokens or, where it is None, not at all. Raises ``Blocked``."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        tokenizer.no_padding()
        if max_length is None:
            tokenizer.no_truncation()
        else:
            tokenizer.enable_truncation(max_length, strategy="longest_first", direction=_cut_side(model))
    except Exception as error:  # as above
        raise _no_tokenizer(error) from error
    return tokenizer


def _no_tokenizer(error: Exception) -> Blocked:
    return Blocked(f"tokenizer.json: expected a tokenizer that encodes the pairs, got {error}")


def _cut_side(model: Path) -> str:
    """Where the tokenizer's config says that long texts are cut; the right by default."""
    config = model / "tokenizer_config.json"
    side = json.loads(config.read_bytes()).get("truncation_side") if config.is_file() else None
    return "left" if side == "left" else "right"
