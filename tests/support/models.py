"""Tiny real checkpoints: BERT weights drawn from a seed, and a WordPiece tokenizer made in the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEXTS = (
    "how do I read a file line by line in python",
    "open the file and iterate over the lines of the handle",
    "a dictionary maps keys to values and keeps insertion order",
    "the quick brown fox jumps over the lazy dog near the river bank",
    "sort a list of tuples by the second element with a key function",
    "exceptions are raised and caught with try and except clauses",
    "what is the capital of france and how many people live in paris",
    "numbers such as 10 and 2024 are split into word pieces here",
)
POSITIONS = 64


def make_l4(folder: Path) -> Path:
    """Write a checkpoint of the shape whose figures were published: 4 layers, 384 wide, 12 heads, vocabulary 30,522, 512 positions."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    make_tokenizer(folder, positions=512)
    torch.manual_seed(4)
    config = BertConfig(
        vocab_size=30_522,
        hidden_size=384,
        num_hidden_layers=4,
        num_attention_heads=12,
        intermediate_size=1536,
        num_labels=1,
    )
    model = BertForSequenceClassification(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.02)
    model.save_pretrained(folder)
    return folder


def make_bert(
    folder: Path,
    *,
    seed: int = 0,
    labels: int = 1,
    layers: int = 2,
    positions: int = POSITIONS,
    vocabulary: int | None = None,
) -> Path:
    """Write a BERT sequence classifier (32 wide) with tokenizer into ``folder`` and return it.

    With ``vocabulary`` the embeddings have so many rows, whatever the tokenizer knows.
    """
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    tokenizer = make_tokenizer(folder, positions=positions)
    config = BertConfig(
        vocab_size=vocabulary or tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=positions,
        num_labels=labels,
        pad_token_id=tokenizer.token_to_id("[PAD]"),
    )
    torch.manual_seed(seed)
    model = BertForSequenceClassification(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)  # logits that spread, biases that are not zero
    model.save_pretrained(folder)
    return folder


def make_tokenizer(
    folder: Path,
    *,
    positions: int = POSITIONS,
    names: tuple[str, ...] = ("input_ids", "token_type_ids", "attention_mask"),
) -> Any:
    """Save a WordPiece tokenizer that knows the letters and most words of ``TEXTS``, as ``tokenizer.json`` with its config."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = sorted({letter for text in TEXTS for letter in text if letter != " "})
    words = sorted({word for text in TEXTS[:6] for word in text.split()} - set(letters))  # the others fall into pieces
    entries = [*special, *letters, *(f"##{letter}" for letter in letters), *words]
    vocabulary = {entry: place for place, entry in enumerate(entries)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=special[1]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", special.index("[SEP]")), ("[CLS]", special.index("[CLS]"))
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **{f"{name}_token": f"[{name.upper()}]" for name in ("unk", "pad", "cls", "sep", "mask")},
        model_max_length=positions,
        model_input_names=list(names),
    )
    fast.save_pretrained(folder)
    return tokenizer
