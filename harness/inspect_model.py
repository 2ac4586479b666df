"""What a model folder says about itself, before any export: from its JSON files and the headers of its weights alone.

Nothing is run and no tensor is read. A model that cannot be qualified is described all the same, as far as its files tell, with the
reason why it cannot.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness import adapter, candidate
from harness.errors import CandidateError
from harness.ladder_format import AdapterReference
from harness.records import Adapter, Candidate, Record, Value
from harness.runtimes import tokens
from harness.weights import shapes_of

TRIED = ("bert", "deberta-v2", "distilbert", "electra", "modernbert", "roberta", "xlm-roberta")
"""Model types whose export is tried in every precision with both exporters (docs/architectures.md)."""

_SIZES = {
    "layers": ("num_hidden_layers", "n_layers", "num_layers"),
    "hidden_size": ("hidden_size", "dim", "d_model"),
    "heads": ("num_attention_heads", "n_heads"),
    "intermediate_size": ("intermediate_size", "hidden_dim", "d_ff"),
    "vocabulary": ("vocab_size",),
    "positions": ("max_position_embeddings",),
}
"""What is asked for, and the keys of config.json that the families keep it under."""

HEAD_PARTS = ("classifier", "score", "pre_classifier", "pooler", "head")


class Tensor(Record, frozen=True):
    """One tensor of the checkpoint by name, with the dtype of its safetensors header."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class Inspection(Record, frozen=True):
    """All that is known of a model before it is exported; null where its files do not tell.

    ``supported`` is false with ``reason`` set when it cannot be qualified. ``activation`` is what sentence-transformers would apply to
    the logit; it is reported only, raw logits are compared. ``exports`` are the graph's inputs and output with their default dtypes.
    """

    model: str
    revision: str | None
    digest: str | None
    supported: bool
    reason: str
    notes: tuple[str, ...]
    architecture: str | None
    model_type: str | None
    task: str | None
    sizes: dict[str, int | None]
    parameters: int | None
    weight_dtypes: dict[str, int]
    weight_bytes: int | None
    head: tuple[Tensor, ...]
    activation: str | None
    labels: tuple[str, ...]
    type_vocabulary: int | None
    padding_id: int | None
    padding_side: str | None
    truncation_side: str | None
    tokenizer: str | None
    tokenizer_inputs: tuple[str, ...]
    max_length: int | None
    exports: tuple[str, ...]
    fp32_bytes: int | None
    adapter: Adapter | None


def inspect(model: str, revision: str | None, base: Path, with_adapter: AdapterReference | None = None) -> Inspection:
    """Describe a folder relative to ``base``, or a hub id at a 40-hex commit, and the adapter that is to be loaded onto it.

    Raises ``CandidateError`` when there is no such folder or the id is none, ``Unavailable`` when it could not be had.
    """
    named, folder, _ = candidate.locate(model, revision, base)
    reason, known = "", None
    try:
        resolved = candidate.resolve(model, revision, base, headless=with_adapter is not None)
        known = (resolved if with_adapter is None else adapter.add(resolved, with_adapter, base)).candidate
    except CandidateError as error:
        reason = str(error)
    config, settings, tokenizer = (
        _table(folder / name) for name in ("config.json", "tokenizer_config.json", "tokenizer.json")
    )
    tensors = _tensors(folder)
    model_type = _text(config, "model_type")
    return Inspection(
        model=named,
        revision=revision,
        digest=known.digest if known else None,
        supported=known is not None,
        reason=reason,
        notes=tuple(_notes(model_type, config, settings, known)),
        architecture=", ".join(map(str, config.get("architectures") or [])) or None,
        model_type=model_type,
        task=_task(config),
        sizes={name: _first(config, keys) for name, keys in _SIZES.items()},
        parameters=sum(_elements(item) for item in tensors) if tensors else None,
        weight_dtypes=_by_dtype(tensors),
        weight_bytes=sum(path.stat().st_size for path in folder.glob("*.safetensors")) or None,
        head=tuple(item for item in tensors if is_head(item.name)),
        activation=_activation(folder, config),
        labels=_labels(config),
        type_vocabulary=known.type_vocab_size if known else _first(config, ("type_vocab_size",)),
        padding_id=known.pad_token_id if known else _first(config, ("pad_token_id",)),
        padding_side=_text(settings, "padding_side") or "right",
        truncation_side=_text(settings, "truncation_side") or "right",
        tokenizer=_tokenizer(tokenizer, settings),
        tokenizer_inputs=tokens.inputs_of(known, folder) if known else (),
        max_length=known.max_length if known else None,
        exports=_exports(known, folder),
        fp32_bytes=4 * known.parameters if known else None,
        adapter=known.adapter if known else None,
    )


def _table(path: Path) -> dict[str, Any]:
    """A JSON object, empty where the file is not there or is none: the refusal says so already."""
    try:
        found = json.loads(path.read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(table: dict[str, Any], key: str) -> str | None:
    value = table.get(key)
    return value if isinstance(value, str) else None


def _first(config: dict[str, Any], keys: tuple[str, ...]) -> int | None:
    return next((config[key] for key in keys if type(config.get(key)) is int), None)


def _tensors(folder: Path) -> list[Tensor]:
    try:
        return [
            Tensor(name=name, dtype=dtype, shape=shape) for name, (dtype, shape) in sorted(shapes_of(folder).items())
        ]
    except (CandidateError, OSError):
        return []


def _elements(tensor: Tensor) -> int:
    count = 1
    for size in tensor.shape:
        count *= size
    return count


def _by_dtype(tensors: list[Tensor]) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in tensors:
        found[item.dtype] = found.get(item.dtype, 0) + _elements(item)
    return dict(sorted(found.items()))


def is_head(name: str) -> bool:
    """Whether a tensor stands after the encoder: ``classifier.weight``, ``bert.pooler.dense.bias``, ``head.norm.weight``."""
    first, second = (*name.split("."), "", "")[:2]
    return first in HEAD_PARTS or second == "pooler"


def _task(config: dict[str, Any]) -> str | None:
    """The task in the words of the hub, from the end of the class's name."""
    tasks = {
        "ForSequenceClassification": "text-classification",
        "ForCausalLM": "text-generation",
        "ForMaskedLM": "fill-mask",
        "ForConditionalGeneration": "text2text-generation",
        "ForTokenClassification": "token-classification",
        "Model": "feature-extraction",
    }
    listed = config.get("architectures")
    named = str(listed[0]) if isinstance(listed, list) and listed else ""
    return next((task for end, task in tasks.items() if named.endswith(end)), None)


def _activation(folder: Path, config: dict[str, Any]) -> str | None:
    """What sentence-transformers applies to the logit, from the three places where its versions keep it."""
    own = config.get("sentence_transformers")
    places: list[Value] = [
        own.get("activation_fn") if isinstance(own, dict) else None,
        config.get("sbert_ce_default_activation_function"),
        _table(folder / "config_sentence_transformers.json").get("activation_fn"),
    ]
    return next((value for value in places if isinstance(value, str)), None)


def _labels(config: dict[str, Any]) -> tuple[str, ...]:
    names = config.get("id2label")
    return tuple(map(str, names.values())) if isinstance(names, dict) else ()


def _tokenizer(tokenizer: dict[str, Any], settings: dict[str, Any]) -> str | None:
    """The kind of subword model, and the class that saved it."""
    table = tokenizer.get("model")
    kind = _text(table, "type") if isinstance(table, dict) else None
    saved = _text(settings, "tokenizer_class")
    return f"{kind} ({saved})" if kind and saved else kind or saved


def _exports(known: Candidate | None, folder: Path) -> tuple[str, ...]:
    if known is None:
        return ()
    names = tokens.inputs_of(known, folder)
    return (*(f"{name}: int64 [batch, sequence]" for name in names), "-> logits: float32 [batch, 1]")


def _notes(
    model_type: str | None, config: dict[str, Any], settings: dict[str, Any], known: Candidate | None
) -> list[str]:
    found = []
    if known is not None and model_type not in TRIED:
        found.append(
            f"{model_type} is not among the architectures that are tried with every release: {', '.join(TRIED)}"
        )
    if known is not None and model_type in candidate.POSITIONS_AFTER_PAD:
        found.append(
            f"positions are numbered from {known.pad_token_id + 1}, after the padding id, so that many hold no token"
        )
    names = settings.get("model_input_names")
    if known is not None and known.type_vocab_size <= 1 and isinstance(names, list) and "token_type_ids" in names:
        found.append("the tokenizer gives token_type_ids, which the model does not tell apart: they are not fed")
    if known is not None and set(known.weight_dtypes) - {"F32", "I64"}:
        found.append("weights are not in fp32: the reference and the export widen them")
    if config.get("classifier_pooling"):
        found.append(f"classifier_pooling is {config['classifier_pooling']}")
    return found
