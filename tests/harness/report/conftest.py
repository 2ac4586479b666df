from __future__ import annotations

import pytest

from harness.report import html
from tests.support.hostile import hostile
from tests.support.roots import Example, example


@pytest.fixture(scope="session")
def root() -> Example:
    return example()


@pytest.fixture(scope="session")
def hostile_root() -> Example:
    return hostile()


@pytest.fixture(scope="session")
def page(root: Example) -> str:
    return html.render(root.records, root.read, root.files, root.digest)


@pytest.fixture(scope="session")
def hostile_page(hostile_root: Example) -> str:
    return html.render(hostile_root.records, hostile_root.read, hostile_root.files, hostile_root.digest)
