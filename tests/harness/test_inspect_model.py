"""What is said of a model before any export: of one that can be qualified, and of one that cannot, with the reason."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import inspect_model
from harness.errors import CandidateError
from harness.inspect_model import Inspection, Tensor
from harness.report.inspection import text
from tests.support.checkpoints import files, write


def described(base: Path, **changes: Any) -> Inspection:
    """The inspection of a plain checkpoint with some keys of its config or tokenizer config changed."""
    write(base / "m", files(**changes))
    return inspect_model.inspect("./m", None, base)


def test_a_model_that_can_be_qualified_is_described_from_its_files_alone(tmp_path: Path) -> None:
    found = described(tmp_path, config={"num_hidden_layers": 2, "hidden_size": 4})
    assert (found.supported, found.reason, found.notes) == (True, "", ())
    assert (found.architecture, found.model_type, found.task) == (
        "BertForSequenceClassification",
        "bert",
        "text-classification",
    )
    assert (found.parameters, found.weight_dtypes, found.fp32_bytes) == (37, {"F32": 37}, 148)
    assert found.head == (
        Tensor(name="classifier.bias", dtype="F32", shape=(1,)),
        Tensor(name="classifier.weight", dtype="F32", shape=(1, 4)),
    )
    sizes = {name: found.sizes[name] for name in ("layers", "hidden_size", "heads", "positions")}
    assert sizes == {"layers": 2, "hidden_size": 4, "heads": None, "positions": 64}
    assert (found.labels, found.type_vocabulary, found.padding_id, found.padding_side) == (("LABEL_0",), 2, 0, "right")
    assert found.tokenizer_inputs == ("input_ids", "attention_mask", "token_type_ids")
    assert (found.tokenizer, found.truncation_side, found.max_length) == ("WordPiece (BertTokenizer)", "right", 48)
    assert found.exports[0] == "input_ids: int64 [batch, sequence]"
    assert found.exports[-1] == "-> logits: float32 [batch, 1]"


@pytest.mark.parametrize(
    "config",
    [
        {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid", "version": "4.1.0"}},
        {"sbert_ce_default_activation_function": "torch.nn.modules.activation.Sigmoid"},
    ],
    ids=["new", "old"],
)
def test_a_configured_activation_is_reported_and_said_not_to_be_applied(tmp_path: Path, config: dict[str, Any]) -> None:
    found = described(tmp_path, config=config)
    assert found.activation == "torch.nn.modules.activation.Sigmoid"
    assert "Sigmoid, which is not applied:" in text(found)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (
            {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"},
            (
                "config.json: architectures: expected a class ending in ForSequenceClassification, got the decoder Qwen3ForCausalLM;"
                " a decoder that answers yes or no is scored by other means, which are not supported yet"
            ),
        ),
        (
            {"architectures": ["Qwen3ForSequenceClassification"], "model_type": "qwen3"},
            (
                "config.json: model_type: expected an encoder, got the decoder qwen3 (Qwen3ForSequenceClassification);"
                " a decoder scores a prompt at its last token, which is laid out by other rules that are not supported yet"
            ),
        ),
        (
            {"auto_map": {"AutoModel": "modeling.NewModel"}, "model_type": "new"},
            (
                "config.json: auto_map: expected no code of the model's own, got auto_map;"
                " trust_remote_code is off; use a built-in class"
            ),
        ),
        (
            {"architectures": ["BertForMaskedLM"]},
            (
                "config.json: architectures: expected a class ending in ForSequenceClassification, got BertForMaskedLM;"
                " without that head there is no relevance logit"
            ),
        ),
        (
            {"id2label": {"0": "no", "1": "yes"}},
            "config.json: id2label: expected one label, the relevance logit, got 2; this is a classifier, not a reranker",
        ),
    ],
    ids=["decoder", "decoder-with-head", "gte-with-code", "no-head", "two-labels"],
)
def test_what_cannot_be_qualified_is_refused_by_name_and_described_all_the_same(
    tmp_path: Path, config: dict[str, Any], reason: str
) -> None:
    found = described(tmp_path, config=config)
    assert (found.supported, found.reason) == (False, f"./m: {reason}")
    assert (found.parameters, found.sizes["positions"]) == (37, 64)
    assert text(found).startswith("./m: cannot be qualified\nwhy not           ./m: config.json: ")


def test_weights_that_are_not_there_leave_the_rest_described(tmp_path: Path) -> None:
    content = files()
    del content["model.safetensors"]
    write(tmp_path / "m", content | {"pytorch_model.bin": b"\x80\x04."})
    found = inspect_model.inspect("./m", None, tmp_path)
    assert (found.supported, found.parameters, found.head) == (False, None, ())
    assert "got only the pickle pytorch_model.bin" in found.reason
    assert "parameters        unknown" in text(found)


def test_notes_say_what_a_family_does_otherwise(tmp_path: Path) -> None:
    config = {
        "architectures": ["XLMRobertaForSequenceClassification"],
        "model_type": "xlm-roberta",
        "pad_token_id": 1,
        "type_vocab_size": 1,
    }
    settings = {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
    found = described(tmp_path, config=config, settings=settings)
    assert found.notes == (
        "positions are numbered from 2, after the padding id, so that many hold no token",
        "the tokenizer gives token_type_ids, which the model does not tell apart: they are not fed",
    )
    assert found.tokenizer_inputs == ("input_ids", "attention_mask")


def test_an_architecture_that_is_not_tried_is_said_to_be_so(tmp_path: Path) -> None:
    config = {"architectures": ["MPNetForSequenceClassification"], "model_type": "mpnet", "type_vocab_size": None}
    assert described(tmp_path, config=config).notes[0].startswith("mpnet is not among the architectures that are tried")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CandidateError, match=r"\./m: expected a model folder, got no such folder"):
        inspect_model.inspect("./m", None, tmp_path)


def test_every_line_fits_the_terminal_and_obeys_no_escape_of_the_model(tmp_path: Path) -> None:
    found = described(tmp_path, config={"sbert_ce_default_activation_function": "\x1b[31mSigmoid" + " x" * 90})
    shown = text(found)
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness.cli", "inspect", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_gives_json_and_an_exit_code_that_says_whether_it_can_be_qualified(tmp_path: Path) -> None:
    write(tmp_path / "good", files())
    write(tmp_path / "bad", files(config={"architectures": ["Qwen3ForCausalLM"]}))
    good, bad = (run(str(tmp_path / name), "--json") for name in ("good", "bad"))
    assert (good.returncode, bad.returncode) == (0, 30)
    assert json.loads(good.stdout)["supported"] is True
    assert "the decoder Qwen3ForCausalLM" in json.loads(bad.stdout)["reason"]
    assert run(str(tmp_path / "good")).stdout.startswith("good: can be qualified\n")


def test_the_tree_shows_modules_with_the_shapes_of_their_parameters(tiny_model: Path) -> None:
    shown = run("--tree", str(tiny_model)).stdout.splitlines()
    assert shown[0] == "BertForSequenceClassification"
    assert "  classifier: Linear (weight [1, 32], bias [1])" in shown
    assert "        0: BertLayer" in shown


def test_a_tree_of_a_class_that_transformers_does_not_know_is_undetermined(tmp_path: Path) -> None:
    write(
        tmp_path / "m",
        files(config={"model_type": "nothing-known", "architectures": ["NothingForSequenceClassification"]}),
    )
    done = run("--tree", str(tmp_path / "m"))
    assert done.returncode == 30
    assert done.stderr.startswith("qualify: module tree: expected a class that transformers builds, got ")
