"""The student: a narrow BERT cross-encoder whose vocabulary and word vectors come from the teacher, all-MiniLM-L6-v2.

The start is not random in two places. The word vectors are the teacher's own output for each single word piece, brought
down to the student's width by principal components. The first layer's queries and keys are the same random rotation, so
its attention starts as a soft match between equal and similar words of the two texts. Both are then trained like the rest.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerFast

VOCABULARY = 8000
WIDTH = 128
LAYERS = 4
HEADS = 4
FEED_FORWARD = 512
POSITIONS = 256
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
TYPE_STRENGTH = 2.0
MATCH_STRENGTH = 1.1


def prune_tokenizer(source: Path, texts: Iterable[str], folder: Path) -> list[int]:
    """Write to `folder` the teacher's tokenizer with only the `VOCABULARY` most used pieces of `texts`.

    Returns the teacher's id of every kept piece, in the order of the new ids. Every printable ASCII character is kept,
    alone and as a continuation, so a rare word is spelled out and not lost.
    """
    spec = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = spec["model"]["vocab"]
    names = {number: piece for piece, number in vocabulary.items()}
    teacher = PreTrainedTokenizerFast(tokenizer_file=str(source / "tokenizer.json"))
    teacher.backend_tokenizer.no_truncation()
    teacher.backend_tokenizer.no_padding()
    used: Counter[str] = Counter()
    for encoding in teacher.backend_tokenizer.encode_batch(list(texts), add_special_tokens=False):
        used.update(names[number] for number in encoding.ids)
    letters = [mark + chr(code) for code in range(33, 127) for mark in ("", "##")]
    kept = list(SPECIAL) + [piece for piece in letters if piece in vocabulary]
    ranked = sorted(used, key=lambda piece: (-used[piece], vocabulary[piece]))
    kept += [piece for piece in ranked if piece not in set(kept)][: VOCABULARY - len(kept)]
    ids = {piece: number for number, piece in enumerate(kept)}
    spec["model"]["vocab"] = ids
    spec["truncation"] = spec["padding"] = None
    for token in spec["added_tokens"]:
        token["id"] = ids[token["content"]]
    for token in spec["post_processor"]["special_tokens"].values():
        token["ids"] = [ids[name] for name in token["tokens"]]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(spec, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), model_max_length=POSITIONS,
        pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
    ).save_pretrained(folder)  # fmt: skip
    return [vocabulary[piece] for piece in kept]


class Teacher:
    """all-MiniLM-L6-v2 as a bi-encoder: mean of the last hidden states over real tokens, unit length."""

    def __init__(self, folder: Path, threads: int) -> None:
        torch.set_num_threads(threads)
        self.model: BertModel = AutoModel.from_pretrained(folder).eval()
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json")).backend_tokenizer
        self.tokenizer.enable_truncation(128)
        self.tokenizer.no_padding()

    def embed(self, texts: list[str], tokens_a_batch: int = 6144) -> np.ndarray:
        """One row of 384 float32 a text."""
        rows = [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]
        result = np.zeros((len(texts), 384), dtype=np.float32)
        for batch in batches_of(sorted(range(len(rows)), key=lambda i: len(rows[i])), rows, tokens_a_batch):
            ids, mask = padded([rows[i] for i in batch])
            result[batch] = self._pooled(ids, mask)
        return result

    def embed_pieces(self, pieces: list[int]) -> np.ndarray:
        """One row of 384 float32 for each word piece of the teacher, seen alone between [CLS] and [SEP]."""
        cls, sep = (self.tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]"))
        ids = torch.tensor([[cls, piece, sep] for piece in pieces])
        return np.concatenate([self._pooled(part, torch.ones_like(part)) for part in ids.split(1024)])

    def _pooled(self, ids: torch.Tensor, mask: torch.Tensor) -> np.ndarray:
        with torch.inference_mode():
            hidden = self.model(input_ids=ids, attention_mask=mask).last_hidden_state * mask[:, :, None]
        vectors = hidden.sum(1) / mask.sum(1, keepdim=True)
        return torch.nn.functional.normalize(vectors, dim=1).numpy()


def batches_of(order: list[int], rows: list[list[int]], tokens: int) -> list[list[int]]:
    """`order` (by rising length) cut into runs of at most `tokens` tokens after padding."""
    result: list[list[int]] = [[]]
    for i in order:
        if result[-1] and (len(result[-1]) + 1) * len(rows[i]) > tokens:
            result.append([])
        result[-1].append(i)
    return result


def padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows as one int64 tensor filled with 0 on the right, and its mask."""
    ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
        mask[number, : len(row)] = 1
    return ids, mask


def new_student(piece_vectors: np.ndarray, seed: int) -> BertForSequenceClassification:
    """A student whose word vectors and first attention layer start as the module's docstring says."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=FEED_FORWARD, max_position_embeddings=POSITIONS, num_labels=1, initializer_range=0.05,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, pad_token_id=0,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    centred = piece_vectors - piece_vectors.mean(0)
    _, scale, axes = np.linalg.svd(centred, full_matrices=False)
    narrow = centred @ axes[: WIDTH - 1].T / np.sqrt(scale[: WIDTH - 1])
    narrow /= np.sqrt((narrow**2).mean(1, keepdims=True))
    with torch.no_grad():
        tables = model.bert.embeddings
        tables.word_embeddings.weight[:, 0] = 0.0
        tables.word_embeddings.weight[:, 1:] = torch.from_numpy(narrow)
        tables.token_type_embeddings.weight.zero_()
        tables.token_type_embeddings.weight[:, 0] = torch.tensor([TYPE_STRENGTH, -TYPE_STRENGTH])
        _start_as_match(model.bert.encoder.layer[0].attention.self)
    return model


def _start_as_match(attention: torch.nn.Module) -> None:
    """Queries and keys become one rotation, cut into heads; in each head's first place the text's side is opposed."""
    size = WIDTH // HEADS
    rotation = torch.linalg.qr(torch.randn(WIDTH - 1, WIDTH - 1))[0]
    weight = torch.zeros(WIDTH, WIDTH)
    for head in range(HEADS):
        rows = slice(head * size + 1, (head + 1) * size)
        weight[rows, 1:] = MATCH_STRENGTH * rotation[head * (size - 1) : (head + 1) * (size - 1)]
    attention.key.weight.copy_(weight)
    attention.query.weight.copy_(weight)
    for head in range(HEADS):
        attention.key.weight[head * size, 0] = MATCH_STRENGTH
        attention.query.weight[head * size, 0] = -MATCH_STRENGTH
