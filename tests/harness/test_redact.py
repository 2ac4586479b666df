from __future__ import annotations

import pytest

from harness.redact import is_secret_name, scrub

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("using hf_" + "aB3" * 8 + " now", "using [REDACTED] now"),
        ("ghp_" + "a1B2" * 9, "[REDACTED]"),
        ("github_pat_" + "1A_b" * 10, "[REDACTED]"),
        ("key AKIA" + "A2B3" * 4 + ".", "key [REDACTED]."),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = [REDACTED]"),
        ("Authorization: Bearer abcdef012345.x-y_z", "Authorization: Bearer [REDACTED]"),
        ("GET /x?token=s3cr3tvalue&page=2", "GET /x?token=[REDACTED]&page=2"),
        ('{"password": "hunter22"}', '{"password": "[REDACTED]"}'),
        ("HF_TOKEN=abcdefgh", "HF_TOKEN=[REDACTED]"),
        ("https://user:pa55word@example.org/x", "https://user:[REDACTED]@example.org/x"),
        (f"before\n{KEY}\nafter", "before\n[REDACTED]\nafter"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", "[REDACTED]"),
    ],
)
def test_a_secret_of_a_known_shape_is_taken_out_and_counted(text: str, scrubbed: str) -> None:
    assert scrub(text, {}) == (scrubbed, 1)


@pytest.mark.parametrize(
    "text",
    [
        "pad_token=[PAD] sep_token=</s>",
        "the tokenizer has 30522 tokens",
        "token: 12",
        "bearer of news",
        "half_float and hf_hub",
        "digest blake3:" + "0f" * 32,
        "http://127.0.0.1:8000/api",
    ],
)
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert scrub(text, {}) == (text, 0)


def test_values_known_to_be_secret_are_taken_out_whatever_their_shape() -> None:
    assert scrub("a plainpassword and plainpassword", {}, ["plainpassword", "a"]) == ("a [REDACTED] and [REDACTED]", 2)


def test_paths_of_this_machine_become_words_and_the_longest_path_wins() -> None:
    places = {"/home/alice": "~", "/home/alice/runs/one": "ROOT"}
    text = "/home/alice/runs/one/model.onnx /home/alice/x /home/alice2/x /mnt/home/alice"
    assert scrub(text, places) == ("ROOT/model.onnx ~/x /home/alice2/x /mnt/home/alice", 0)


def test_the_file_system_root_is_never_a_place_to_replace() -> None:
    assert scrub("/a/b", {"/": "~"}) == ("/a/b", 0)


@pytest.mark.parametrize("name", ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "my_password", "OPENAI_API_KEY", "TOKEN_FILE"])
def test_environment_variables_that_hold_secrets_are_known_by_name(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "PATH", "KEYBOARD", "HF_HOME"])
def test_other_environment_variables_are_not(name: str) -> None:
    assert not is_secret_name(name)
