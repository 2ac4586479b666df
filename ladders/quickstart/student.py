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
LAYERS = 3
HEADS = 4
FEED_FORWARD = 512
POSITIONS = 256
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SIDE, MATCH, RARITY = 0, 1, 4
SUMMARY = (2, 3)
MEANING = WIDTH - 5


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


def new_student(piece_vectors: np.ndarray, piece_rarity: np.ndarray, seed: int) -> BertForSequenceClassification:
    """A student that starts as a soft word-match scorer (see the module's docstring); `piece_rarity` is one number a piece."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=FEED_FORWARD, max_position_embeddings=POSITIONS, num_labels=1, initializer_range=0.05,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, pad_token_id=0,
    )  # fmt: skip
    config._attn_implementation = "eager"
    model = BertForSequenceClassification(config)
    centred = piece_vectors - piece_vectors.mean(0)
    _, scale, axes = np.linalg.svd(centred, full_matrices=False)
    meaning = centred @ axes[:MEANING].T / np.sqrt(scale[:MEANING])
    meaning /= np.sqrt((meaning**2).mean(1, keepdims=True))
    tables = model.bert.embeddings
    with torch.no_grad():
        tables.word_embeddings.weight.zero_()
        tables.word_embeddings.weight[:, WIDTH - MEANING :] = torch.from_numpy(meaning)
        tables.word_embeddings.weight[:, RARITY] = torch.from_numpy(piece_rarity).float()
        tables.token_type_embeddings.weight.zero_()
        tables.token_type_embeddings.weight[:, SIDE] = torch.tensor([2.0, -2.0])
        for layer in model.bert.encoder.layer:
            layer.attention.output.dense.weight.mul_(0.3)
            layer.output.dense.weight.mul_(0.3)
        _start_matching(model.bert.encoder.layer[0].attention)
        _start_summing(model.bert.encoder.layer[1].attention)
        model.bert.pooler.dense.weight[0].zero_()
        model.bert.pooler.dense.weight[0, SUMMARY[0]] = -0.2
        model.bert.pooler.dense.weight[0, SUMMARY[1]] = 0.1
        model.classifier.weight[0, 0] = 2.0
    return model


def _start_matching(attention: torch.nn.Module) -> None:
    """A token looks for its like on the other side, and for itself; `MATCH` gets the side it found: its own means no match."""
    size = WIDTH // HEADS
    rotation = torch.linalg.qr(torch.randn(MEANING, MEANING))[0]
    query, key, value = attention.self.query.weight, attention.self.key.weight, attention.self.value.weight
    attention.output.dense.weight[[MATCH, *SUMMARY]] = 0.0
    for head in range(HEADS):
        first, rows = head * size, slice(head * size + 1, head * size + size - 1)
        part = rotation[head * (size - 2) : (head + 1) * (size - 2)]
        for weight in (query, key):
            weight[first : first + size] = 0.0
            weight[rows, WIDTH - MEANING :] = 1.4 * part
        query[first, SIDE], key[first, SIDE] = -1.5, 1.5
        value[first] = 0.0
        value[first, SIDE] = 1.0
        attention.output.dense.weight[MATCH, first] = 2.0 / HEADS


def _start_summing(attention: torch.nn.Module) -> None:
    """Two heads put into `SUMMARY` the mean of `MATCH` over the tokens of either side, rare pieces counting more."""
    size = WIDTH // HEADS
    attention.output.dense.weight[[*SUMMARY]] = 0.0
    for head, side in ((0, 1.0), (1, -1.0)):
        first = head * size
        for linear in (attention.self.query, attention.self.key, attention.self.value):
            linear.weight[first : first + size] = 0.0
        attention.self.query.bias[first] = 7.0
        attention.self.key.weight[first, SIDE] = side
        attention.self.key.weight[first, RARITY] = 0.6
        attention.self.value.weight[first, MATCH] = 1.0
        attention.output.dense.weight[SUMMARY[head], first] = 2.0
