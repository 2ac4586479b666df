"""A model folder or hub id, pinned: every file that matters by digest, and the facts that a plan depends on.

No code of the model is run and no tensor is read. The files that matter, and that make the digest, are ``config.json``, the
safetensors weights with their index, and the tokenizer's files (``TOKENIZER_FILES``); a README, other formats of the same weights
or an optimiser state change nothing that is measured, so they are neither read nor part of the digest.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from evidence.manifest import Entry, tree_digest
from harness import hub
from harness.errors import CandidateError
from harness.files import hash_file
from harness.ladder_format import is_folder, is_hub_id
from harness.records import Candidate, FileFact, Record
from harness.weights import INDEX, LFS_FIRST_BYTES, SINGLE, read_weights, refuse_pointer

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "spiece.model",
    "spm.model",
    "tokenizer.model",
)
ADAPTER_CONFIG = "adapter_config.json"
HUB_PATTERNS = ("config.json", ADAPTER_CONFIG, SINGLE, INDEX, "model-*.safetensors", *TOKENIZER_FILES)
"""What is fetched of a hub repository: never a pickle, never code."""

POSITIONS_AFTER_PAD = {
    "camembert", "data2vec-text", "ibert", "longformer", "luke", "mpnet", "roberta", "roberta-prelayernorm",
    "xlm-roberta", "xlm-roberta-xl", "xmod",
}  # fmt: skip
"""Model types that number positions from the padding id + 1, as fairseq did: so many positions of the table hold no token."""

OTHER_HEADS = ("Model", "ForMaskedLM", "ForPreTraining")
"""Ends of the classes that encoders are pretrained in: the layers are those of the classifier, the head is not."""

DECODERS = {
    "bloom", "falcon", "gemma", "gemma2", "gemma3", "gemma3_text", "gpt2", "gpt_neox", "llama", "minicpm", "mistral", "mixtral",
    "olmo", "olmo2", "opt", "phi", "phi3", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "starcoder2",
}  # fmt: skip
"""Model types that read from left to right: as rerankers they take a prompt, and answer at its last token."""

SEGMENTS_BY_DEFAULT = {"bert": 2, "electra": 2, "roberta": 2, "xlm-roberta": 2, "camembert": 2}
"""``type_vocab_size`` where config.json leaves it out; other model types have none."""

NO_LIMIT_TOKENS = 10**9
"""A tokenizer's ``model_max_length`` from here on (transformers writes 1e30) means that it knows no limit."""


class Resolved(Record, frozen=True):
    """A candidate and the folders that it and its adapter were read from. A folder is a place on this machine and is never sealed."""

    candidate: Candidate
    folder: Path
    adapter: Path | None = None


def resolve(model: str, revision: str | None, base: Path, *, headless: bool = False) -> Resolved:
    """Pin a model: a folder relative to ``base`` (``./``, ``../``, ``/``), or a hub id at a 40-hex commit.

    ``headless`` takes an encoder whose class has another head or none as well: an adapter is to bring the classifier. Raises
    ``CandidateError`` for what cannot be qualified and ``Unavailable`` for what could not be had.
    """
    named, folder, inside = locate(model, revision, base)
    try:
        found = _read(named, revision, folder, inside, headless=headless)
    except CandidateError as error:
        raise CandidateError(f"{named}{f' at revision {revision}' if revision else ''}: {error}") from error
    return Resolved(candidate=found, folder=folder)


def locate(
    model: str, revision: str | None, base: Path, patterns: tuple[str, ...] = HUB_PATTERNS
) -> tuple[str, Path, Path]:
    """What a model is called in a record, its folder, and the folder that no link of it may leave. Raises as ``resolve`` does.

    ``patterns`` are the files that are fetched of a hub id.
    """
    if is_folder(model):
        if revision is not None:
            _refuse(model, "no revision, since a folder is pinned by digest", repr(revision), "remove it")
        folder = base / model
        if not folder.is_dir():
            got = "a file" if folder.exists() else "no such folder"
            _refuse(model, "a model folder", got, "give the folder that holds config.json")
        named = (
            (folder.resolve().name or "/") if Path(model).is_absolute() else model
        )  # no place of this machine is sealed
        return named, folder, folder.resolve()
    if not is_hub_id(model):
        _refuse(
            repr(model), "a folder (./, ../ or /) or a hub id (org/name)", "neither", f"for a folder write './{model}'"
        )
    folder = hub.fetch(model, revision, patterns)
    # The client's snapshot links to blobs two folders up, in the repository's own part of the cache.
    return model, folder, folder.parent.parent.resolve()


def first_position(candidate: Candidate) -> int:
    """The number of a pair's first position: 0, or in fairseq's families the one after the padding id."""
    return candidate.pad_token_id + 1 if candidate.model_type in POSITIONS_AFTER_PAD else 0


def _read(named: str, revision: str | None, folder: Path, inside: Path, *, headless: bool) -> Candidate:
    for path in (folder / name for name in ("config.json", *TOKENIZER_FILES, SINGLE, INDEX)):
        check_place(path, inside)
    if (folder / ADAPTER_CONFIG).exists():  # transformers would load it, and the base that it names, in silence
        do = "name the adapter's folder as candidate.adapter.model and its base as candidate.model"
        _refuse(ADAPTER_CONFIG, "none in the folder of a whole model", "an adapter", do)
    config = json_table(folder / "config.json", "the folder that save_pretrained writes has it")
    fast = "save the tokenizer as a fast one with save_pretrained"
    tokenizer = json_table(folder / "tokenizer.json", fast)
    if not isinstance(tokenizer.get("model"), dict):
        _refuse("tokenizer.json", "a tokenizer, with its model", "none", fast)
    settings = (
        json_table(folder / "tokenizer_config.json", "save it again")
        if (folder / "tokenizer_config.json").exists()
        else {}
    )
    architecture = _architecture(config, settings, headless=headless)
    for path in folder.glob("*.safetensors"):
        check_place(path, inside)
    weights = read_weights(folder)
    side = settings.get("padding_side", "right")
    if side not in ("left", "right"):
        _refuse("tokenizer_config.json: padding_side", "left or right", repr(side), "correct it")
    pad = _pad_id(config, settings, tokenizer)
    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        _refuse("config.json: model_type", "text", repr(model_type), "save the model with save_pretrained")
    names = sorted({"config.json", *weights.files, *(name for name in TOKENIZER_FILES if (folder / name).is_file())})
    files = tuple(
        FileFact(path=name, bytes=(folder / name).stat().st_size, blake3=hash_file(folder / name)) for name in names
    )
    return Candidate(
        model=named,
        revision=revision,
        digest=tree_digest(Entry(file.path, file.blake3) for file in files),
        files=files,
        architecture=architecture,
        model_type=model_type,
        num_labels=1,
        parameters=sum(weights.elements.values()),
        weight_dtypes=weights.elements,
        max_length=_max_length(config, settings, model_type, pad),
        type_vocab_size=_integer(config, "type_vocab_size", SEGMENTS_BY_DEFAULT.get(model_type, 0)),
        pad_token_id=pad,
        padding_side=side,
    )


def _architecture(config: dict[str, Any], settings: dict[str, Any], *, headless: bool) -> str:
    """The one class named in config.json, after refusing every kind of model that this harness cannot qualify."""
    for name, table in (("config.json", config), ("tokenizer_config.json", settings)):
        if "auto_map" in table:
            _refuse(
                f"{name}: auto_map",
                "no code of the model's own",
                "auto_map",
                "trust_remote_code is off; use a built-in class",
            )
    if "quantization_config" in config:
        do = "the reference is PyTorch fp32; take the checkpoint it was made from"
        _refuse("config.json", "plain weights", "quantization_config", do)
    listed = config.get("architectures")
    if not (isinstance(listed, list) and len(listed) == 1 and isinstance(listed[0], str)):
        _refuse(
            "config.json: architectures",
            "a list of one class name",
            f"{listed!r:.80}",
            "save the model with save_pretrained",
        )
    architecture: str = listed[0]
    if architecture.endswith("ForCausalLM"):
        do = "a decoder that answers yes or no is scored by other means, which are not supported yet"
        _refuse(
            "config.json: architectures",
            "a class ending in ForSequenceClassification",
            f"the decoder {architecture}",
            do,
        )
    if config.get("model_type") in DECODERS:
        do = "a decoder scores a prompt at its last token, which is laid out by other rules that are not supported yet"
        _refuse("config.json: model_type", "an encoder", f"the decoder {config['model_type']} ({architecture})", do)
    if headless and architecture.endswith(OTHER_HEADS):
        return architecture
    if not architecture.endswith("ForSequenceClassification"):
        do = "without that head there is no relevance logit"
        _refuse("config.json: architectures", "a class ending in ForSequenceClassification", architecture, do)
    names = config.get("id2label")
    listed_labels = len(names) if isinstance(names, dict) else None
    said_labels = _integer(config, "num_labels", 2 if listed_labels is None else listed_labels)  # silent means 2
    if said_labels != 1 or listed_labels not in {None, 1}:
        got = str(max(said_labels, listed_labels or 0))
        do = "this is a classifier, not a reranker"
        _refuse("config.json: id2label", "one label, the relevance logit", got, do)
    return architecture


def _max_length(config: dict[str, Any], settings: dict[str, Any], model_type: str, pad: int) -> int:
    """Longest input in tokens: what the position table holds, and no more than the tokenizer says."""
    found = []
    positions = _integer(config, "max_position_embeddings", 0)
    if positions > 0:
        found.append(positions - (pad + 1 if model_type in POSITIONS_AFTER_PAD else 0))
    said = settings.get("model_max_length")
    if isinstance(said, int | float) and not isinstance(said, bool) and 0 < said < NO_LIMIT_TOKENS:
        found.append(int(said))
    if not found or min(found) < 1:
        expected = "max_position_embeddings, or model_max_length in tokenizer_config.json"
        _refuse("config.json", expected, f"{positions} positions", "the longest input must be known")
    return min(found)


def _pad_id(config: dict[str, Any], settings: dict[str, Any], tokenizer: dict[str, Any]) -> int:
    """The padding id of config.json, or the id that the tokenizer gives its padding token."""
    if config.get("pad_token_id") is not None:
        return _integer(config, "pad_token_id", 0)
    token = settings.get("pad_token")
    content = token.get("content") if isinstance(token, dict) else token
    added = tokenizer.get("added_tokens")
    entries = [entry for entry in added if isinstance(entry, dict)] if isinstance(added, list) else []
    found = [entry["id"] for entry in entries if entry.get("content") == content and type(entry.get("id")) is int]
    if content is None or not found:
        do = "add it; batches of unequal pairs need it"
        _refuse("config.json: pad_token_id", "the id of the padding token", "nothing", do)
    return int(found[0])


def _integer(table: dict[str, Any], key: str, default: int) -> int:
    value = table.get(key, default)
    if type(value) is not int or value < 0:
        _refuse(f"config.json: {key}", "an integer of at least 0", f"{value!r:.80}", "correct it")
    return value


def json_table(path: Path, do: str) -> dict[str, Any]:
    """A JSON file that holds an object. Raises ``CandidateError``."""
    if not path.is_file():
        _refuse(path.name, "a file", "something else" if path.exists() else "none", do)
    data = path.read_bytes()
    refuse_pointer(path.name, data[: len(LFS_FIRST_BYTES)])
    try:
        table = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        _refuse(path.name, "JSON", " ".join(str(error).split())[:120], "fetch or save it again")
    if not isinstance(table, dict):
        _refuse(path.name, "a JSON object", f"a {type(table).__name__}", "fetch or save it again")
    return table


def check_place(path: Path, inside: Path) -> None:
    """A link must not lead out of the folder: what is digested must be what the folder holds when it is moved or sent."""
    if path.is_symlink() and not path.resolve().is_relative_to(inside):
        _refuse(path.name, "a file of the model folder", "a link that leads out of it", "copy the file into the folder")


def _refuse(where: str, expected: str, got: str, do: str) -> NoReturn:
    raise CandidateError(f"{where}: expected {expected}, got {got}; {do}")
