"""The student: a narrow BERT cross-encoder whose vocabulary and word vectors come from the teacher.

It does not start at random. The word vectors are the teacher's own output for each word piece alone, brought down to
the student's width by principal components. Five of the 128 channels have a meaning at the start: ``SIDE`` tells query
from document, ``RARITY`` how seldom a piece is. The first layer's attention is a soft match (equal and similar pieces
of the two sides find each other) and notes in ``MATCH`` whether it found one; the second layer sums that over either
side into ``SUMMARY``, rare pieces counting more; the head reads the sums. So before the first step the student is
already a word-match scorer that knows synonyms. Everything is then trained like any other weight.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from transformers import BertConfig, BertForSequenceClassification

VOCABULARY = 8000
WIDTH = 128
LAYERS = 3
HEADS = 4
HEAD_WIDTH = WIDTH // HEADS
FEED_FORWARD = 512
POSITIONS = 256
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

SIDE, MATCH, QUERY_SUM, DOCUMENT_SUM, RARITY = range(5)
SUMMARY = [QUERY_SUM, DOCUMENT_SUM]
MEANING = WIDTH - 5

Floats = NDArray[np.float32]


def prune_tokenizer(teacher: Path, texts: Sequence[str], folder: Path) -> tuple[list[int], Floats]:
    """Write to ``folder`` the teacher's tokenizer with only the ``VOCABULARY`` most used pieces of ``texts``.

    Every printable ASCII character is kept, alone and as a continuation, so that a rare word is spelled out and not
    lost. Returns, in the order of the new ids, the teacher's ids and the rarity of each piece: minus the logarithm of
    the number of texts it stands in, centred and scaled by how often the pieces are used, within -2.5 and 2.5.
    """
    spec: dict[str, Any] = json.loads((teacher / "tokenizer.json").read_text(encoding="utf-8"))
    spec["truncation"] = spec["padding"] = None
    vocabulary: dict[str, int] = spec["model"]["vocab"]
    kept = _most_used(Tokenizer.from_str(json.dumps(spec)), vocabulary, texts)
    ids = {piece: number for number, piece in enumerate(kept)}
    spec["model"]["vocab"] = ids
    for token in spec["added_tokens"]:
        token["id"] = ids[token["content"]]
    for token in spec["post_processor"]["special_tokens"].values():
        token["ids"] = [ids[name] for name in token["tokens"]]
    folder.mkdir(parents=True, exist_ok=True)
    names = {f"{name[1:-1].lower()}_token": name for name in SPECIAL}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": POSITIONS, **names}
    config["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    for name, value in (("tokenizer", spec), ("tokenizer_config", config), ("special_tokens_map", names)):
        text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return [vocabulary[piece] for piece in kept], _rarity(Tokenizer.from_str(json.dumps(spec)), texts)


def _most_used(tokenizer: Tokenizer, vocabulary: dict[str, int], texts: Sequence[str]) -> list[str]:
    used: Counter[str] = Counter()
    for encoding in tokenizer.encode_batch(list(texts), add_special_tokens=False):
        used.update(encoding.tokens)
    letters = [mark + chr(code) for code in range(33, 127) for mark in ("", "##")]
    kept = dict.fromkeys([*SPECIAL, *(piece for piece in letters if piece in vocabulary)])
    kept |= dict.fromkeys(sorted(used, key=lambda piece: (-used[piece], vocabulary[piece])))
    assert len(kept) >= VOCABULARY, f"the texts use {len(kept)} pieces, fewer than {VOCABULARY}"
    return list(kept)[:VOCABULARY]


def _rarity(tokenizer: Tokenizer, texts: Sequence[str]) -> Floats:
    counts = np.ones(VOCABULARY)
    for encoding in tokenizer.encode_batch(list(texts), add_special_tokens=False):
        counts[list(set(encoding.ids))] += 1
    rarity = -np.log(counts)
    centre = np.average(rarity, weights=counts)
    scaled = (rarity - centre) / np.sqrt(np.average((rarity - centre) ** 2, weights=counts))
    scaled[: len(SPECIAL)] = -np.inf
    bounded: Floats = scaled.clip(-2.5, 2.5).astype(np.float32)
    return bounded


def new_student(piece_vectors: Floats, rarity: Floats, seed: int) -> BertForSequenceClassification:
    """The student before training; ``piece_vectors`` is (VOCABULARY, 384), ``rarity`` (VOCABULARY,).

    The constants were set by hand so that, after layer normalisation, an exact match takes most of the attention, and
    a token without a like one on the other side attends to itself.
    """
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=FEED_FORWARD,
        max_position_embeddings=POSITIONS,
        num_labels=1,
        initializer_range=0.05,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=0,
    )
    model = BertForSequenceClassification(config)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        words = model.bert.embeddings.word_embeddings.weight
        words.zero_()
        words[:, RARITY] = torch.from_numpy(rarity)
        words[:, WIDTH - MEANING :] = torch.from_numpy(_meaning(piece_vectors))
        sides = model.bert.embeddings.token_type_embeddings.weight
        sides.zero_()
        sides[:, SIDE] = torch.tensor([2.0, -2.0])
        for layer in model.bert.encoder.layer:
            layer.attention.output.dense.weight.mul_(0.3)
            layer.output.dense.weight.mul_(0.3)
        _start_matching(model.bert.encoder.layer[0].attention)
        _start_summing(model.bert.encoder.layer[1].attention)
        head = model.bert.pooler.dense.weight
        head[0] = 0.0
        head[0, SUMMARY] = torch.tensor([-0.2, 0.1])
        model.classifier.weight[0, 0] = 2.0
    return model


def _meaning(piece_vectors: Floats) -> Floats:
    """Principal components, each divided by the square root of its scale (half whitened), rows of mean square 1."""
    centred = piece_vectors - piece_vectors.mean(0)
    _, scale, axes = np.linalg.svd(centred, full_matrices=False)
    narrow = centred @ axes[:MEANING].T / np.sqrt(scale[:MEANING])
    unit: Floats = narrow / np.sqrt((narrow**2).mean(1, keepdims=True))
    return unit


def _start_matching(attention: Any) -> None:
    """Layer 1: queries and keys are one rotation cut into heads, the other side is favoured, and ``MATCH`` gets the side that was found."""
    rotation = torch.linalg.qr(torch.randn(MEANING, MEANING))[0]
    query, key, value = attention.self.query.weight, attention.self.key.weight, attention.self.value.weight
    attention.output.dense.weight[[MATCH, *SUMMARY]] = 0.0
    rows = HEAD_WIDTH - 2
    for head in range(HEADS):
        first = head * HEAD_WIDTH
        part = rotation[head * rows : (head + 1) * rows]
        for weight in (query, key):
            weight[first : first + HEAD_WIDTH] = 0.0
            weight[first + 1 : first + 1 + rows, WIDTH - MEANING :] = 1.4 * part
        query[first, SIDE], key[first, SIDE] = -1.5, 1.5
        value[first] = 0.0
        value[first, SIDE] = 1.0
        attention.output.dense.weight[MATCH, first] = 2.0 / HEADS


def _start_summing(attention: Any) -> None:
    """Layer 2: two heads put into ``SUMMARY`` the mean of ``MATCH`` over the query and over the document."""
    attention.output.dense.weight[SUMMARY] = 0.0
    for head, side in enumerate((1.0, -1.0)):
        first = head * HEAD_WIDTH
        for linear in (attention.self.query, attention.self.key, attention.self.value):
            linear.weight[first : first + HEAD_WIDTH] = 0.0
        attention.self.query.bias[first] = 7.0
        attention.self.key.weight[first, SIDE] = side
        attention.self.key.weight[first, RARITY] = 0.6
        attention.self.value.weight[first, MATCH] = 1.0
        attention.output.dense.weight[SUMMARY[head], first] = 2.0
