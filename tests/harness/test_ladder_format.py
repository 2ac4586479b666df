"""Every key has one sentence, and the reference page is made from the code."""

from __future__ import annotations

import pytest

from harness.ladder_format import is_folder, is_hub_id
from tests.support.reference import KEYS, PAGES, STRUCTS, blocks, replaced


@pytest.mark.parametrize("name", STRUCTS)
def test_every_key_of_a_ladder_or_policy_has_a_sentence(name: str) -> None:
    assert set(KEYS[name]) == set(STRUCTS[name].__struct_fields__)
    assert all(text[0].isupper() or text[0] == "`" for text in KEYS[name].values())
    assert all(text.endswith(".") for text in KEYS[name].values())


def test_the_reference_pages_show_every_table_as_the_code_has_it() -> None:
    pages = [page.read_text("utf-8") for page in PAGES]
    assert [replaced(page) for page in pages] == pages, "run: python -m tests.support.reference"
    for table in blocks().values():
        assert table in "".join(pages)


@pytest.mark.parametrize(
    ("model", "folder", "hub"),
    [
        (".", True, False),
        ("..", True, False),
        ("./a", True, False),
        ("../a", True, False),
        ("/a", True, False),
        (".a", False, False),
        ("model", False, True),
        ("org/model", False, True),
        ("org/model-v1.5_x", False, True),
        ("org/sub/model", False, False),
        ("org/..", False, False),
        ("org/a--b", False, False),
        ("org/", False, False),
        ("C:\\model", False, False),
        ("a" * 97, False, False),
    ],
)
def test_a_model_is_a_folder_or_a_hub_id_by_its_spelling_alone(model: str, folder: bool, hub: bool) -> None:
    assert (is_folder(model), is_hub_id(model)) == (folder, hub)
