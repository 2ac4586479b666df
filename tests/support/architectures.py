"""A tiny checkpoint of every architecture that rerankers come in, each with a real fast tokenizer of its family, made from a seed.

Weights are drawn wide enough that logits spread; positions, padding, segments and the head are laid out as the family lays them out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harness.records import BuildOptions
from harness.runtimes import RUNTIMES, tokens
from harness.runtimes.batching import Layout, batches, score
from harness.runtimes.torch_eager import Reference
from tests.support.models import POSITIONS, TEXTS, make_tokenizer
from tests.support.steps import OPTIONS, PAIRS, Bench, Ran

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}


class Architecture(NamedTuple):
    """One family: its config's and classifier's class in transformers, its tokenizer, and the keys of its config that differ."""

    name: str
    config: str
    model: str
    tokenizer: Callable[[Path, int], Any]
    differs: dict[str, Any]
    positions: int = POSITIONS


def byte_bpe(folder: Path, positions: int) -> Any:
    """Byte-level BPE as RoBERTa has it: ``<s> A </s></s> B </s>``, padding id 1, no segments."""
    from tokenizers import decoders, models, pre_tokenizers, processors, trainers

    made = _empty(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        TEXTS, trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    )
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    names = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "unk": "<unk>", "pad": "<pad>", "mask": "<mask>"}
    return _save(made, folder, names, ["input_ids", "attention_mask"], positions)


def bracket_bpe(folder: Path, positions: int) -> Any:
    """Byte-level BPE as ModernBERT has it: ``[CLS] A [SEP] B [SEP]``, no segments."""
    from tokenizers import decoders, models, pre_tokenizers, trainers

    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    made = _empty(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        TEXTS, trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    )
    made.post_processor = _template("[CLS]:0 $A:0 [SEP]:0 $B:0 [SEP]:0", {"[CLS]": 1, "[SEP]": 2})
    return _save(made, folder, _brackets(), ["input_ids", "attention_mask"], positions)


def xlm_unigram(folder: Path, positions: int) -> Any:
    """Unigram as XLM-RoBERTa has it: ``<s> A </s></s> B </s>``, padding id 1, no segments."""
    made = _unigram(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], "<unk>")
    made.post_processor = _template("<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0", {"<s>": 0, "</s>": 2})
    names = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "unk": "<unk>", "pad": "<pad>", "mask": "<mask>"}
    return _save(made, folder, names, ["input_ids", "attention_mask"], positions)


def deberta_unigram(folder: Path, positions: int) -> Any:
    """Unigram as DeBERTa-v2 and v3 have it: ``[CLS] A [SEP] B [SEP]`` with segments that the model may not take."""
    made = _unigram(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"], "[UNK]")
    made.post_processor = _template("[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", {"[CLS]": 1, "[SEP]": 2})
    return _save(made, folder, _brackets(), ["input_ids", "token_type_ids", "attention_mask"], positions)


def word_pieces(folder: Path, positions: int) -> Any:
    """WordPiece as BERT and ELECTRA have it."""
    return make_tokenizer(folder, positions=positions)


def word_pieces_without_segments(folder: Path, positions: int) -> Any:
    """WordPiece as DistilBERT has it: the tokenizer knows segments, the model takes none."""
    return make_tokenizer(folder, positions=positions, names=("input_ids", "attention_mask"))


def _deberta(**more: Any) -> dict[str, Any]:
    shared = {
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
    }
    return shared | {"max_relative_positions": -1, "norm_rel_ebd": "layer_norm", "share_att_key": True} | more


ARCHITECTURES: dict[str, Architecture] = {
    made.name: made
    for made in (
        Architecture("bert", "BertConfig", "BertForSequenceClassification", word_pieces, {}),
        Architecture("electra", "ElectraConfig", "ElectraForSequenceClassification", word_pieces, {"embedding_size": 24}),
        Architecture("distilbert", "DistilBertConfig", "DistilBertForSequenceClassification", word_pieces_without_segments,
                     {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}),
        Architecture("roberta", "RobertaConfig", "RobertaForSequenceClassification", byte_bpe, {"type_vocab_size": 1}),
        Architecture("xlm-roberta", "XLMRobertaConfig", "XLMRobertaForSequenceClassification", xlm_unigram, {"type_vocab_size": 1}),
        Architecture("deberta-v2", "DebertaV2Config", "DebertaV2ForSequenceClassification", deberta_unigram,
                     _deberta(conv_kernel_size=3, conv_act="gelu", type_vocab_size=2, share_att_key=False)),
        Architecture("deberta-v3", "DebertaV2Config", "DebertaV2ForSequenceClassification", deberta_unigram,
                     _deberta(position_buckets=16)),
        Architecture("modernbert", "ModernBertConfig", "ModernBertForSequenceClassification", bracket_bpe,
                     {"num_hidden_layers": 4, "global_attn_every_n_layers": 3, "local_attention": 16}),
        # What the GTE rerankers without code of their own are: the pooled row is a mean over the mask, not the first token's.
        Architecture("gte", "ModernBertConfig", "ModernBertForSequenceClassification", bracket_bpe,
                     {"num_hidden_layers": 3, "global_attn_every_n_layers": 3, "local_attention": 16,
                      "classifier_pooling": "mean"}),
    )
}  # fmt: skip
"""By the name that docs/architectures.md gives them."""


def make(name: str, folder: Path, *, seed: int = 0) -> Path:
    """Write a checkpoint of the architecture ``name`` with its tokenizer into ``folder`` and return it."""
    import torch
    import transformers

    chosen = ARCHITECTURES[name]
    tokenizer = chosen.tokenizer(folder, chosen.positions)
    pad = next(tokenizer.token_to_id(token) for token in ("[PAD]", "<pad>") if tokenizer.token_to_id(token) is not None)
    after_pad = name in {"roberta", "xlm-roberta"}
    shared = {
        "vocab_size": tokenizer.get_vocab_size(),
        "max_position_embeddings": chosen.positions + (pad + 1 if after_pad else 0),
        "num_labels": 1,
        "pad_token_id": pad,
    }
    sizes = {} if name == "distilbert" else SIZES
    config = getattr(transformers, chosen.config)(**(shared | sizes | _special(tokenizer) | chosen.differs))
    torch.manual_seed(seed)
    model = getattr(transformers, chosen.model)(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder)
    return folder


def _special(tokenizer: Any) -> dict[str, int]:
    """Ids of begin and end that some configs refer to by number; only where the vocabulary has them."""
    named = {
        "bos_token_id": ("<s>", "[CLS]"),
        "eos_token_id": ("</s>", "[SEP]"),
        "cls_token_id": ("[CLS]",),
        "sep_token_id": ("[SEP]",),
    }
    found = {
        key: next((tokenizer.token_to_id(t) for t in tokens if tokenizer.token_to_id(t) is not None), None)
        for key, tokens in named.items()
    }
    return {key: place for key, place in found.items() if place is not None}


def _empty(model: Any) -> Any:
    from tokenizers import Tokenizer

    return Tokenizer(model)


def _unigram(special: list[str], unknown: str) -> Any:
    from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

    made = _empty(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=160, special_tokens=special, unk_token=unknown, show_progress=False)
    made.train_from_iterator(TEXTS, trainer)
    return made


def _template(pair: str, special: dict[str, int]) -> Any:
    from tokenizers import processors

    single = pair[: pair.index(" $B")]
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=list(special.items()))


def _brackets() -> dict[str, str]:
    return {name: f"[{name.upper()}]" for name in ("unk", "cls", "sep", "pad", "mask")}


def _save(made: Any, folder: Path, names: dict[str, str], inputs: list[str], positions: int) -> Any:
    from transformers import PreTrainedTokenizerFast

    tokens = {f"{name}_token": token for name, token in names.items()}
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made, **tokens, model_max_length=positions, model_input_names=inputs
    )
    fast.save_pretrained(folder)
    return made


def exported(where: Bench, exporter: str, precision: str) -> Ran:
    """L0 of one precision with one exporter; a later precision in the same bench converts the export of fp32."""
    opset = 17 if exporter == "torchscript" else 20
    options = msgspec.structs.replace(OPTIONS, L0=msgspec.convert({"exporter": exporter, "opset": opset}, BuildOptions))
    return where.run(where.request("L0", f"cpu-{precision}", options=options, time_limit_s=600.0))


def largest_gap(ran: Ran, model: Path) -> tuple[float, float]:
    """The largest absolute gap of logits to PyTorch, each pair alone on its side and in padded batches on the other, and the spread.

    The spread is the standard deviation of PyTorch's logits.
    """
    candidate, length = ran.request.candidate, 48
    encoded = tokens.encode(model, candidate, PAIRS, length)
    reference = Reference(model, 1, tokens.inputs_of(candidate, model))
    session = RUNTIMES["cpu"].load(ran.root / ran.request.artifact / "model.onnx", 1)
    found = []
    for side, size in ((reference, 1), (session, 4)):
        layout = Layout(side.inputs, candidate.pad_token_id, candidate.padding_side, size)
        found.append(score(side.logits, batches(encoded, layout), len(PAIRS), lambda _done: None))
    return float(abs(found[0] - found[1]).max()), float(found[0].std())
