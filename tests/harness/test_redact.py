from __future__ import annotations

import pytest

from harness.redact import is_secret_name, parted, scrub

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
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQ\n-----END PGP PRIVATE KEY BLOCK-----\nx", "[REDACTED]\nx"),
        ("hf_oauth_eyJ0" + "aB3" * 8 + ".eyJ1.c-d_e ends", "[REDACTED] ends"),
        ("api_org_" + "aBcDe" * 6, "[REDACTED]"),
        ("glpat-" + "a1B_" * 5, "[REDACTED]"),
        ("xoxb-" + "123456789012-" * 2 + "abcdef", "[REDACTED]"),
        ("key=AIza" + "Sy_-1" * 7 + "&x=1", "key=[REDACTED]&x=1"),
        ("got ya29.c." + "b0A_-" * 8 + ", done", "got [REDACTED], done"),
        ("ASIA" + "A2B3" * 4, "[REDACTED]"),
        ("sk-proj-" + "aB3d" * 12, "[REDACTED]"),
        ("(sk-" + "aB3d" * 12 + ")", "([REDACTED])"),
        (
            "AccountName=x;AccountKey=Zm9vYmFy+/==;EndpointSuffix=y",
            "AccountName=x;AccountKey=[REDACTED];EndpointSuffix=y",
        ),
        ("https://x/c?sv=2020&sig=" + "aB3%2F" * 7 + "%3D&se=1", "https://x/c?sv=2020&sig=[REDACTED]&se=1"),
        ("SharedAccessSignature sr=x&sig=" + "aB3%2F" * 7, "SharedAccessSignature sr=x&sig=[REDACTED]"),
        ("x-api-key: abcdefgh12345678", "x-api-key: [REDACTED]"),
        ("Authorization: token abcdefghijkl", "Authorization: token [REDACTED]"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic [REDACTED]"),
        ('{"accessToken": "s3cr3tvalue"}', '{"accessToken": "[REDACTED]"}'),
        ("redis://:pa55word@example.org", "redis://:[REDACTED]@example.org"),
        # what touches a token on its left
        ("\x1b[32mhf_" + "aB3" * 8 + "\x1b[0m", "\x1b[32m[REDACTED]\x1b[0m"),
        ("\x1b[1mtoken=s3cr3tvalue", "\x1b[1mtoken=[REDACTED]"),
        ("\x1b[33msk-" + "aB3d" * 12, "\x1b[33m[REDACTED]"),
        ("x=%22hf_" + "aB3" * 8 + "%22", "x=%22[REDACTED]%22"),
        ("%7B%22token%22%3A%22s3cr3tvalue", "%7B%22token%22%3A%22[REDACTED]"),
        ("user_hf_" + "aB3" * 8, "user_[REDACTED]"),
        ("user_ghp_" + "a1B2" * 9, "user_[REDACTED]"),
        ("id_AKIA" + "A2B3" * 4, "id_[REDACTED]"),
    ],
)
def test_a_secret_of_a_known_shape_is_taken_out_and_counted(text: str, scrubbed: str) -> None:
    assert scrub(text, {}) == (scrubbed, 1)


@pytest.mark.parametrize(
    "text",
    [
        "pad_token=[PAD] sep_token=</s> mask_token=[MASK] mask_token: '<mask>'",
        "the tokenizer has 30522 tokens",
        "token: 12",
        "bearer of news",
        "half_float and hf_hub",
        "digest blake3:" + "0f" * 32,
        "http://127.0.0.1:8000/api",
        "sha256:" + "0f1e2d3c" * 8 + " sig=" + "ab12" * 16,
        "commit " + "deadbeef" * 5,
        "uuid 123e4567-e89b-12d3-a456-426614174000",
        "transformers.models.bert.modeling_bert.BertForSequenceClassification",
        "/bert/encoder/layer.11/attention/self/MatMul_output_0_QuantizeLinear",
        "task-" + "a1b2c3d4" * 4 + " disk-by-id-wwn-0x5000c500a1b2c3d4e5f6",
        "sk-learn-compatible-estimators-and-transformers",
        "basic understanding of bearer certificates",
        "max_new_tokens=32 tokenizer: BertTokenizerFast",
        "HF_HUB_DISABLE_PROGRESS_BARS=1 HF_DATASETS_OFFLINE=1",
        "\x1b[32mPASS\x1b[0m in 12.5 s",
        "-----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----",
        "token=[REDACTED]",
    ],
)
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert scrub(text, {}) == (text, 0)


def test_values_known_to_be_secret_are_taken_out_whatever_their_shape() -> None:
    assert scrub("a plainpassword and plainpassword", {}, ["plainpassword", "a"]) == ("a [REDACTED] and [REDACTED]", 2)


TOKEN = "hf_" + "aB3" * 8


@pytest.mark.parametrize("at", [1, 4, len(TOKEN) - 1])
def test_of_a_secret_at_a_border_neither_side_keeps_a_part(at: int) -> None:
    assert parted(f"a {TOKEN[:at]}", f"{TOKEN[at:]} b", ()) == ("a [REDACTED]", "[REDACTED] b")


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("a correct", " horse b", ("a [REDACTED]", "[REDACTED] b")),
        (f"a {TOKEN}", " b", (f"a {TOKEN}", " b")),
        ("a /home/al", "ice/x", ("a ", "/x")),
        ("a -----BEGIN PRIVATE KEY-----\nMII", "Eow\n-----END PRIVATE KEY-----\nb", ("a [REDACTED]", "[REDACTED]\nb")),
        ("xcorrect horse", "hf_" + "aB3" * 8, ("xcorrect horse", TOKEN)),
        (f"a {TOKEN}corr", "ect horse", ("a [REDACTED]", "[REDACTED]")),  # the one reaches into the other
    ],
    ids=["known", "beside", "path", "key", "two", "overlapping"],
)
def test_what_stands_at_a_border_is_known_by_what_is_on_both_sides(
    before: str, after: str, kept: tuple[str, str]
) -> None:
    assert parted(before, after, ["/home/alice", "/"], ["correct horse", "short"]) == kept


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
