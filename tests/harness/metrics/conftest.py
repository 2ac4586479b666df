"""A tiny BERT exported once, in the forms that a runtime is given."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from hypothesis import settings

# Two shared cores make any deadline a matter of luck, and a suite that gates must say the same twice.
settings.register_profile("gate", deadline=None, derandomize=True)
settings.load_profile("gate")


@pytest.fixture(scope="session")
def bert_exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with fp32.onnx, fp16.onnx, int8.onnx and external.onnx (its weights in external.data)."""
    import onnx
    import torch
    from onnxruntime.quantization import quantize_dynamic
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from transformers import BertConfig, BertForSequenceClassification

    folder = tmp_path_factory.mktemp("exports")
    torch.manual_seed(0)
    sizes = {"vocab_size": 200, "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 64}
    config = BertConfig(**sizes, num_hidden_layers=2, num_attention_heads=2, num_labels=1)
    model = BertForSequenceClassification(config).eval()
    ids = torch.ones(2, 8, dtype=torch.long)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {name: {0: "batch", 1: "sequence"} for name in names} | {"logits": {0: "batch"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (ids, ids, ids),
            str(folder / "fp32.onnx"),
            input_names=names,
            output_names=["logits"],
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,
        )
        half = convert_float_to_float16(onnx.load(folder / "fp32.onnx"), keep_io_types=True)
        onnx.save(half, folder / "fp16.onnx")
        quantize_dynamic(str(folder / "fp32.onnx"), str(folder / "int8.onnx"))
        onnx.save(
            onnx.load(folder / "fp32.onnx"),
            folder / "external.onnx",
            save_as_external_data=True,
            location="external.data",
            size_threshold=256,
        )
    return folder
