"""The tensors that are fed, checked against paths that do not share their code.

``transformers.AutoTokenizer`` encodes the pairs again, and names the special tokens, the padding and the end at which it cuts;
the whole texts are tokenised once more, so that what was cut off is seen in the tensors and not taken from a setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.raw import TokensRaw
from harness.runtimes import tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.runtimes.tokens import Encoded

    Integers = NDArray[np.int64]

DOUBLED = "</s>"
"""The separator that RoBERTa, XLM-R and their kin put twice between two texts; every other family puts its own once."""


def says(model: Path, encoded: Encoded, pairs: Sequence[tuple[str, str]], max_length: int) -> TokensRaw:
    """What the second path says of the pairs."""
    import numpy as np
    from transformers import AutoTokenizer

    second = AutoTokenizer.from_pretrained(model, local_files_only=True, trust_remote_code=False)
    # As a list of pairs: given two texts, the library takes an empty document for no document.
    other = second(list(pairs), truncation="longest_first", max_length=max_length)
    segments = other.get("token_type_ids", encoded.segments)
    differing = tuple(
        index
        for index, ids in enumerate(encoded.ids)
        if not np.array_equal(other["input_ids"][index], ids)
        or not np.array_equal(segments[index], encoded.segments[index])
        or not all(other["attention_mask"][index])
    )
    return TokensRaw(
        format=1,
        pairs=len(encoded.ids),
        tokens=sum(map(len, encoded.ids)),
        dtype="<i4",
        tokenizer=type(second).__name__,
        truncation_side="left" if second.truncation_side == "left" else "right",
        padding_id=second.pad_token_id,
        template=_template(second),
        mismatches=differing,
    )


def columns(model: Path, encoded: Encoded, pairs: Sequence[tuple[str, str]]) -> bytes:
    """``tokens.i32``, as ``TokensRaw`` says. Raises ``Blocked`` when the tokenizer cannot be read."""
    import numpy as np

    whole = [(np.asarray(encoding.ids), tokens.texts_of(encoding)) for encoding in tokens.encodings_of(model, pairs)]
    kept = zip(encoded.ids, encoded.texts, strict=True)
    cuts = [_cut(before, after) for before, after in zip(whole, kept, strict=True)]
    parts = [
        [len(ids) for ids in encoded.ids],
        [len(ids) for ids, _ in whole],
        [start for start, _ in cuts],
        [end for _, end in cuts],
        *encoded.ids,
        *encoded.segments,
        *encoded.texts,
    ]
    return np.concatenate([np.asarray(part, dtype="<i4") for part in parts]).tobytes()


def _template(second: Any) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    if second.sep_token_id is None:
        return None
    first = () if second.cls_token_id is None else (second.cls_token_id,)
    return first, (second.sep_token_id,) * (2 if second.sep_token == DOUBLED else 1), (second.sep_token_id,)


def _cut(whole: tuple[Integers, Integers], kept: tuple[Integers, Integers]) -> tuple[int, int]:
    """Tokens cut at the start and at the end of the two texts together; -1 for both where what is left is neither end."""
    import numpy as np

    start = end = 0
    for text in (0, 1):
        before, after = whole[0][whole[1] == text], kept[0][kept[1] == text]
        gone = len(before) - len(after)
        if gone == 0 and np.array_equal(before, after):
            continue
        if gone > 0 and np.array_equal(before[: len(after)], after):
            end += gone
        elif gone > 0 and np.array_equal(before[gone:], after):
            start += gone
        else:
            return -1, -1
    return start, end
