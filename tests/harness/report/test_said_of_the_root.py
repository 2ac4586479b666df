"""What every output says of a root beside its verdict: secrets taken out of its logs, and who vouches for it."""

from __future__ import annotations

import io
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace
from rich.console import Console

from evidence.report import AUTHENTICITY
from harness.history import History
from harness.report import html, markdown, terminal
from harness.report.history import history_text
from harness.root import RootRecords
from tests.support.roots import DIGEST, Example

ONE = "1 secret was taken out of the logs of L2 cpu-int8"
TWO = "3 secrets were taken out of the logs of L1 cpu-fp32, L2 cpu-int8"
NONE = f"none: {AUTHENTICITY['none']}"


class Text(HTMLParser):
    """The text of a page, with single spaces."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.feed(page)
        self.text = " ".join(" ".join(self.parts).split())

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def with_redactions(root: Example, counts: dict[tuple[str, str], int]) -> RootRecords:
    steps = {
        key: replace(step, outcome=replace(step.outcome, redactions=counts.get(key, 0)))
        for key, step in root.records.steps.items()
    }
    return replace(root.records, steps=steps)


def outputs(root: Example, records: RootRecords) -> list[str]:
    """Terminal, Markdown and HTML, with single spaces."""
    stream = io.StringIO()
    Console(file=stream, width=80, highlight=False).print(terminal.render(records, digest=DIGEST, path="runs/x"))
    page = html.render(records, root.read, root.files, DIGEST)
    return [" ".join(stream.getvalue().split()), markdown.render(records, DIGEST).replace("`", ""), Text(page).text]


@pytest.mark.parametrize(
    ("counts", "said"),
    [({("cpu-int8", "L2"): 1}, ONE), ({("cpu-int8", "L2"): 1, ("cpu-fp32", "L1"): 2}, TWO)],
    ids=["one", "two"],
)
def test_secrets_taken_out_of_logs_are_said_in_every_output(
    root: Example, counts: dict[tuple[str, str], int], said: str
) -> None:
    for text in outputs(root, with_redactions(root, counts)):
        assert said in text
        assert text.count("taken out of the logs") == 1


def test_a_root_whose_logs_held_none_says_nothing_of_secrets(root: Example) -> None:
    assert all("taken out of the logs" not in text for text in outputs(root, root.records))


def test_every_output_says_that_nothing_vouches_for_the_root(root: Example) -> None:
    assert all(text.count(NONE) == 1 for text in outputs(root, root.records))


def test_a_history_says_so_once() -> None:
    text = " ".join(history_text(History(lines=(), notes=(), leftovers=())).split())
    assert text.count(f"trust {NONE}") == 1
