"""The docs name every command and option, and nothing that is not there; their examples are real."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from harness import ladder, policy
from harness.cli import cli
from tests.support.ladders import qualify

REPO = Path(__file__).parent.parent
PAGES = sorted([REPO / "README.md", *(REPO / "docs").rglob("*.md"), *(REPO / "ladders").rglob("*.md")])
TEXTS = {page.relative_to(REPO).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
WORDS = re.compile(r"\bqualify ([a-z]+)((?:[^`\n|]|\\\|)*)")


def options(command: click.Command) -> set[str]:
    return {name for item in command.params if isinstance(item, click.Option) for name in item.opts}


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_and_option_is_in_the_docs(name: str) -> None:
    everything = "\n".join(TEXTS.values())
    assert f"qualify {name}" in everything
    missing = {option for option in options(cli.commands[name]) if option not in everything}
    assert missing == set()


@pytest.mark.parametrize("page", sorted(TEXTS))
def test_the_docs_name_no_command_or_option_that_is_not_there(page: str) -> None:
    code = re.findall(r"`([^`\n]+)`", TEXTS[page]) + re.findall(r"```(?:sh|text)\n(.*?)```", TEXTS[page], re.DOTALL)
    for text in code:
        for command, rest in WORDS.findall(text):
            assert command in cli.commands, f"{page}: qualify {command}"
            known = options(cli.commands[command]) | {"--help"}
            assert set(re.findall(r"(?<!\S)\[?(--[a-z-]+)", rest)) <= known, f"{page}: qualify {command}{rest}"


@pytest.mark.parametrize("page", sorted(TEXTS))
def test_links_between_the_docs_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", TEXTS[page]):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert ((REPO / page).parent / target).exists(), f"{page}: {target}"


@pytest.mark.parametrize("page", sorted(TEXTS))
def test_ladders_and_policies_in_the_docs_are_that(page: str) -> None:
    for text in re.findall(r"```yaml\n(format: 1\n.*?)```", TEXTS[page], re.DOTALL):
        whole = text.replace("<40 hex>", "0" * 40).replace("<64 hex>", "0" * 64).encode()
        assert (ladder.parse(whole) if "\ntiers:" in text else policy.parse(whole)).name


def test_what_the_page_on_inspect_shows_is_what_the_command_prints() -> None:
    command, shown = re.findall(
        r"```sh\nqualify (.*?)\n```\n\n```text\n(.*?)```", TEXTS["docs/how-to-inspect.md"], re.DOTALL
    )[0]
    said = qualify(*command.split(), folder=REPO)
    assert (said.code, said.out) == (0, shown)
