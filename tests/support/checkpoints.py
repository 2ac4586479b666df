"""A model folder made of plain bytes, without any ML library: right in every part, so that a test breaks one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

CONFIG: dict[str, Any] = {
    "architectures": ["BertForSequenceClassification"],
    "id2label": {"0": "LABEL_0"},
    "max_position_embeddings": 64,
    "model_type": "bert",
    "pad_token_id": 0,
    "type_vocab_size": 2,
    "vocab_size": 8,
}
TOKENIZER: dict[str, Any] = {
    "added_tokens": [{"id": 3, "content": "<pad>"}],
    "model": {"type": "WordPiece", "vocab": {}},
}
SETTINGS: dict[str, Any] = {"model_max_length": 48, "pad_token": "[PAD]", "tokenizer_class": "BertTokenizer"}
SHAPES = {"bert.embeddings.weight": [8, 4], "classifier.weight": [1, 4], "classifier.bias": [1]}
BYTES = {"F32": 4, "F16": 2, "I64": 8}


def files(**changes: Any) -> dict[str, bytes]:
    """The files of a good checkpoint; ``config`` and ``settings`` are keys to change (None takes one out)."""
    return {
        "config.json": as_json(_changed(CONFIG, changes.get("config", {}))),
        "tokenizer.json": as_json(TOKENIZER),
        "tokenizer_config.json": as_json(_changed(SETTINGS, changes.get("settings", {}))),
        "model.safetensors": safetensors(SHAPES),
    }


def write(folder: Path, content: dict[str, bytes]) -> Path:
    """Write files into a new folder and return it."""
    folder.mkdir()
    for name, data in content.items():
        (folder / name).write_bytes(data)
    return folder


def safetensors(shapes: dict[str, list[int]], dtype: str = "F32") -> bytes:
    """A safetensors file of zeros."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + math.prod(shape) * BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    return with_header(header, bytes(end))


def with_header(header: Any, tensors: bytes) -> bytes:
    """A safetensors file with any header, also one that lies."""
    data = header if isinstance(header, bytes) else as_json(header)
    return len(data).to_bytes(8, "little") + data + tensors


def as_json(value: Any) -> bytes:
    """JSON as UTF-8."""
    return json.dumps(value).encode()


def _changed(table: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in (table | changes).items() if value is not None}
