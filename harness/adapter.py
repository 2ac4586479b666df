"""A LoRA adapter beside its base: its files by digest, and every reason why the two do not fit, before a tensor is read.

The layout is that of peft: ``adapter_config.json``, and ``adapter_model.safetensors`` with two factors for each adapted layer
(``base_model.model.<layer>.lora_A.weight`` of shape (rank, in), ``lora_B`` of shape (out, rank)) and whole the modules that were
trained beside them (``modules_to_save``), the classifier first of all. The tokenizer is that of the base.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from evidence.manifest import Entry, tree_digest
from harness import candidate
from harness.candidate import ADAPTER_CONFIG, Resolved, check_place, json_table
from harness.errors import CandidateError
from harness.files import hash_file
from harness.ladder_format import AdapterReference, is_folder, is_hub_id
from harness.records import Adapter, FileFact
from harness.weights import read_shapes, shapes_of

WEIGHTS = "adapter_model.safetensors"
FOLDER = "adapter"
"""The folder under which a candidate lists the adapter's files."""
PREFIX = "base_model.model."
HEAD = re.compile(r"(^|\.)(classifier|score)(\.|$)")
"""The modules that end in the logit, in the model classes of transformers."""

_FACTOR = re.compile(r"(.+)\.lora_(A|B)\.weight")

Shapes = dict[str, tuple[str, tuple[int, ...]]]


def reference(word: str) -> AdapterReference:
    """What ``DIR`` or ``ID@REVISION`` on a command line names; a folder is relative to where the user stands."""
    if Path(word).is_dir() or is_folder(word):
        return AdapterReference(model=word if is_folder(word) else f"./{word}")
    name, _, revision = word.partition("@")
    return AdapterReference(model=name, revision=revision or None)


def add(resolved: Resolved, asked: AdapterReference, base: Path) -> Resolved:
    """The candidate, resolved as ``headless``, with an adapter: a folder relative to ``base`` or a hub id.

    Raises ``CandidateError`` and ``Unavailable``.
    """
    named, folder, inside = candidate.locate(asked.model, asked.revision, base, (ADAPTER_CONFIG, WEIGHTS))
    try:
        found = _read(resolved, named, asked.revision, folder, inside)
    except CandidateError as error:
        at = f" at revision {asked.revision}" if asked.revision else ""
        raise CandidateError(f"adapter {named}{at}: {error}") from error
    return found


def _read(resolved: Resolved, named: str, revision: str | None, folder: Path, inside: Path) -> Resolved:
    for name in (ADAPTER_CONFIG, WEIGHTS):
        check_place(folder / name, inside)
    config = json_table(folder / ADAPTER_CONFIG, "give the folder that peft's save_pretrained writes")
    _check_kind(config, resolved)
    held = _held(folder)
    below = shapes_of(resolved.folder)
    layers = _layers(held, below)
    whole = {name.removeprefix(PREFIX): entry for name, entry in held.items() if ".lora_" not in name}
    head = _head(whole, below, _names(config, "modules_to_save"))
    added = [entry for name, entry in whole.items() if name not in below]
    own = tuple(
        FileFact(path=name, bytes=(folder / name).stat().st_size, blake3=hash_file(folder / name))
        for name in (ADAPTER_CONFIG, WEIGHTS)
    )
    facts = Adapter(
        model=named,
        revision=revision,
        digest=tree_digest(Entry(file.path, file.blake3) for file in own),
        rank=_rank(config),
        alpha=_alpha(config),
        target_modules=_names(config, "target_modules"),
        modules_to_save=_names(config, "modules_to_save"),
        layers=layers,
        head=head,
        parameters=_elements(held),
        weight_dtypes=_by_dtype(held),
    )
    beside = (msgspec.structs.replace(file, path=f"{FOLDER}/{file.path}") for file in own)
    files = tuple(sorted((*resolved.candidate.files, *beside), key=lambda file: file.path))
    changed = msgspec.structs.replace(
        resolved.candidate,
        adapter=facts,
        files=files,
        digest=tree_digest(Entry(file.path, file.blake3) for file in files),
        parameters=resolved.candidate.parameters + sum(math.prod(shape) for _, shape in added),
    )
    return Resolved(candidate=changed, folder=resolved.folder, adapter=folder)


def _check_kind(config: dict[str, Any], resolved: Resolved) -> None:
    """LoRA alone, and of this base where both say by hub id which that is."""
    where, kind = f"{ADAPTER_CONFIG}: peft_type", config.get("peft_type")
    if kind != "LORA":
        do = "merge it into its base with peft's merge_and_unload and name the merged folder as candidate.model"
        _refuse(where, "LORA", f"{kind!r:.80}", do)
    said, model = config.get("base_model_name_or_path"), resolved.candidate.model
    hub = resolved.candidate.revision is not None
    if hub and isinstance(said, str) and is_hub_id(said) and "/" in said and said != model:
        do = "take the base that the adapter was trained on"
        _refuse(f"{ADAPTER_CONFIG}: base_model_name_or_path", model, f"{said!r:.120}", do)


def _held(folder: Path) -> Shapes:
    """Every tensor of the adapter: name to dtype and shape."""
    if not (folder / WEIGHTS).is_file():
        if (folder / "adapter_model.bin").exists():
            do = "a pickle can run code when it is loaded; save the adapter again with safe_serialization=True"
            _refuse("weights", WEIGHTS, "only the pickle adapter_model.bin", do)
        _refuse("weights", WEIGHTS, "no such file", "save the adapter with save_pretrained")
    held = read_shapes(folder / WEIGHTS)
    for name in held:
        if not name.startswith(PREFIX):
            _refuse(WEIGHTS, f"tensors named {PREFIX}...", f"{name!r:.120}", "save the adapter with save_pretrained")
    return held


def _layers(held: Shapes, below: Shapes) -> int:
    """How many layers have both factors. Refused: one alone, a layer that the base does not have, other sizes, the head."""
    factors: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, (_, shape) in held.items():
        match = _FACTOR.fullmatch(name.removeprefix(PREFIX))
        if match is not None:
            factors.setdefault(match[1], {})[match[2]] = shape
    if not factors:
        _refuse(WEIGHTS, "lora_A and lora_B of some layer", "none", "save the adapter with save_pretrained")
    for layer, pair in sorted(factors.items()):
        if len(pair) == 1:
            _refuse(WEIGHTS, f"lora_A and lora_B of {layer}", f"lora_{next(iter(pair))} alone", "save it again")
        if HEAD.search(layer):
            do = "train the head whole: list it in modules_to_save and not in target_modules"
            _refuse(WEIGHTS, "factors of layers below the head", layer, do)
        do = "take the base that the adapter was trained on"
        # A checkpoint of the bare encoder names its layers without the prefix that the classifier's class gives them.
        known = [name for name in (f"{layer}.weight", f"{layer.partition('.')[2]}.weight") if name in below]
        if not known:
            _refuse(WEIGHTS, "layers that the base has", layer, do)
        shape, made = below[known[0]][1], (pair["B"][0], pair["A"][-1])
        if shape != made:
            _refuse(f"{WEIGHTS}: {layer}", f"factors of a weight of shape {list(shape)}", f"of {list(made)}", do)
    return len(factors)


def _head(whole: Shapes, below: Shapes, saved: tuple[str, ...]) -> tuple[str, ...]:
    """The classifier's tensors in the adapter. Refused: none there nor in the base, one promised and not held, two labels."""
    own = sorted(name for name in whole if HEAD.search(name))
    named = sorted(name for name in saved if HEAD.search(name))
    if named and not own:
        do = "it was trained and not saved, so nothing else can stand for it; save the adapter again"
        _refuse(WEIGHTS, f"the head, which modules_to_save names ({', '.join(named)})", "no tensor of it", do)
    labels = [whole[name][1][0] for name in own if name.endswith(".weight") and len(whole[name][1]) == 2]
    if own and 1 not in labels:
        got = f"{own[-1]} of {labels[-1] if labels else 'no'} rows"
        _refuse(WEIGHTS, "a classifier weight of shape (1, width)", got, "this is a classifier, not a reranker")
    if not own and not any(_ends_in_logit(name, shape) for name, (_, shape) in below.items()):
        do = "a head would be drawn at random; train it with modules_to_save, or take a base that has it"
        _refuse(WEIGHTS, "a classifier weight in the adapter or in the base", "none in either", do)
    return tuple(own)


def _ends_in_logit(name: str, shape: tuple[int, ...]) -> bool:
    return HEAD.search(name) is not None and name.endswith(".weight") and shape[:1] == (1,)


def _names(config: dict[str, Any], key: str) -> tuple[str, ...]:
    """A list of module names, or the one pattern that stands for it."""
    value = config.get(key)
    if value is None:
        return ()
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        _refuse(f"{ADAPTER_CONFIG}: {key}", "names of modules", f"{value!r:.80}", "save the adapter again")
    return tuple(sorted(listed))


def _rank(config: dict[str, Any]) -> int:
    value = config.get("r")
    if type(value) is not int or value < 1:
        _refuse(f"{ADAPTER_CONFIG}: r", "a rank of at least 1", f"{value!r:.80}", "save the adapter again")
    return value


def _alpha(config: dict[str, Any]) -> float:
    value = config.get("lora_alpha")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        _refuse(f"{ADAPTER_CONFIG}: lora_alpha", "a number", f"{value!r:.80}", "save the adapter again")
    return float(value)


def _elements(held: Shapes) -> int:
    return sum(math.prod(shape) for _, shape in held.values())


def _by_dtype(held: Shapes) -> dict[str, int]:
    found: dict[str, int] = {}
    for dtype, shape in held.values():
        found[dtype] = found.get(dtype, 0) + math.prod(shape)
    return dict(sorted(found.items()))


def _refuse(where: str, expected: str, got: str, do: str) -> NoReturn:
    raise CandidateError(f"{where}: expected {expected}, got {got}; {do}")
