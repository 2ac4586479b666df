"""The teacher: all-MiniLM-L6-v2 as a bi-encoder. A text's vector is the mean of the last hidden states, at unit length."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from transformers import AutoModel

LONGEST = 128
TOKENS_A_BATCH = 6144

Floats = NDArray[np.float32]


class Teacher:
    """The encoder in ``folder``. With ``fast`` it multiplies in bfloat16: about twice the speed, cosines within some thousandths."""

    def __init__(self, folder: Path, *, fast: bool) -> None:
        self._model = AutoModel.from_pretrained(folder).eval()
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(LONGEST)
        self._tokenizer.no_padding()
        self._fast = fast

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row of 384 a text; texts are cut at ``LONGEST`` tokens."""
        rows = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        result = np.zeros((len(rows), self._model.config.hidden_size), dtype=np.float32)
        batch: list[int] = []
        order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
        for number in order:
            if batch and (len(batch) + 1) * len(rows[number]) > TOKENS_A_BATCH:
                result[batch] = self._pooled([rows[each] for each in batch])
                batch = []
            batch.append(number)
        if batch:
            result[batch] = self._pooled([rows[each] for each in batch])
        return result

    def embed_pieces(self, pieces: Sequence[int]) -> Floats:
        """One row of 384 for each word piece (by the teacher's id), seen alone between [CLS] and [SEP]."""
        first, last = self._tokenizer.encode("").ids
        rows = [[first, piece, last] for piece in pieces]
        return np.concatenate([self._pooled(rows[start : start + 1024]) for start in range(0, len(rows), 1024)])

    def _pooled(self, rows: Sequence[Sequence[int]]) -> Floats:
        longest = max(map(len, rows))
        ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self._fast):
            hidden = self._model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        vectors = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        pooled: Floats = torch.nn.functional.normalize(vectors, dim=1).numpy()
        return pooled
