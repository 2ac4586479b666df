"""The texts that the quickstart reranker is trained and tried on, as plain values.

Two sources, both free to redistribute: CPython's documentation (the HTML that Debian's `python3.11-doc` installs)
and WordNet 3.0 (the dictionary files that Debian's `wordnet-base` installs). Nothing here is random.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

PASSAGE_WORDS = 90
SHORTEST_PASSAGE_WORDS = 8
_SKIPPED_CLASSES = {
    "versionadded", "versionchanged", "deprecated", "deprecated-removed", "admonition-title", "headerlink", "contents",
    "audit-hook", "availability", "footnote", "highlight", "sphinxsidebar", "seealso", "toctree-wrapper",
}  # fmt: skip
_SKIPPED_TAGS = {"pre", "table", "script", "style", "nav", "aside"}
_VOID_TAGS = {"br", "img", "hr", "input", "meta", "link", "col", "wbr", "source", "area", "embed", "path"}
_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "…": "...", "–": "-", "—": "-", "\u00a0": " "})


@dataclass
class Entry:
    """One section, or one described function, class or term, of one page, with its own paragraphs (not its children's)."""

    page: str
    kind: str
    """`section` (it has a heading) or `term` (it stands in a definition list)."""
    title: str
    paragraphs: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Synset:
    """One WordNet synset: `key` is its part of speech and file offset, `parents` and `children` are keys of hypernyms and hyponyms."""

    key: str
    lemmas: tuple[str, ...]
    definition: str
    examples: tuple[str, ...]
    parents: tuple[str, ...]
    children: tuple[str, ...]


def clean(text: str) -> str:
    """One line of text with plain quotes and single spaces."""
    return re.sub(r"\s+", " ", text.translate(_QUOTES)).strip()


class _PageReader(HTMLParser):
    """Collects the entries of one Sphinx page; text outside of paragraphs, headings and `dt` is left out."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.page = page
        self.entries: list[Entry] = []
        self._open: list[tuple[str, bool]] = []
        self._owners: list[Entry] = []
        self._skip_depth = 0
        self._main_depth = 0
        self._buffer: list[str] | None = None
        self._term = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID_TAGS:
            return
        values = {name: value or "" for name, value in attrs}
        skipped = tag in _SKIPPED_TAGS or bool(_SKIPPED_CLASSES & set(values.get("class", "").split()))
        self._open.append((tag, skipped))
        self._skip_depth += skipped
        if values.get("role") == "main":
            self._main_depth = len(self._open)
        if not self._main_depth or self._skip_depth:
            return
        if tag == "section":
            self._push(Entry(self.page, "section", ""))
        elif tag == "dt":
            self._term = values.get("id", "") if "sig" in values.get("class", "").split() else ""
            self._buffer = []
        elif tag == "dd":
            self._push(Entry(self.page, "term", self._term))
        elif tag == "p" or re.fullmatch("h[1-6]", tag):
            self._buffer = []

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID_TAGS or not any(name == tag for name, _ in self._open):
            return
        while self._open:
            name, skipped = self._open.pop()
            self._skip_depth -= skipped
            if self._main_depth > len(self._open):
                self._main_depth = 0
            if not skipped:
                self._close(name)
            if name == tag:
                return

    def handle_data(self, data: str) -> None:
        if self._buffer is not None and not self._skip_depth:
            self._buffer.append(data)

    def _push(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._owners.append(entry)

    def _close(self, tag: str) -> None:
        if self._skip_depth or not self._main_depth:
            return
        if tag in {"section", "dd"} and self._owners:
            self._owners.pop()
        elif self._buffer is not None and (tag in {"p", "dt"} or re.fullmatch("h[1-6]", tag)):
            text, self._buffer = clean("".join(self._buffer)), None
            if tag == "dt":
                self._term = self._term or text
            elif tag == "p" and text and self._owners and not text.startswith("Source code:"):
                self._owners[-1].paragraphs.append(text)
            elif self._owners and not self._owners[-1].title:
                self._owners[-1].title = re.sub(r"^[\d.]+ ", "", text)


def read_pages(folder: Path) -> list[Entry]:
    """All entries of the documentation below `folder` (its `html` folder), in the order of page names."""
    entries: list[Entry] = []
    for path in sorted(folder.glob("*/*.html")):
        reader = _PageReader(path.relative_to(folder).with_suffix("").as_posix())
        reader.feed(path.read_text(encoding="utf-8"))
        entries += [entry for entry in reader.entries if entry.title and entry.paragraphs]
    return entries


def passages(paragraphs: list[str]) -> list[str]:
    """Paragraphs joined in order to passages of at most about `PASSAGE_WORDS` words; a longer paragraph is cut at sentence ends."""
    pieces = [piece for paragraph in paragraphs for piece in _cut(paragraph) if piece]
    joined: list[str] = []
    for piece in pieces:
        if joined and len((joined[-1] + " " + piece).split()) <= PASSAGE_WORDS:
            joined[-1] += " " + piece
        else:
            joined.append(piece)
    return [text for text in joined if len(text.split()) >= SHORTEST_PASSAGE_WORDS]


def sentences(text: str) -> list[str]:
    """A rough cut into sentences: after `.`, `?` or `!` that a space and a capital letter follow."""
    return re.split(r"(?<=[.?!]) (?=[A-Z])", text)


def _cut(paragraph: str) -> list[str]:
    if len(paragraph.split()) <= PASSAGE_WORDS:
        return [paragraph]
    parts: list[str] = []
    for sentence in sentences(paragraph):
        if parts and len((parts[-1] + " " + sentence).split()) <= PASSAGE_WORDS:
            parts[-1] += " " + sentence
        else:
            parts.append(sentence)
    return parts


def read_wordnet(folder: Path) -> dict[str, Synset]:
    """All noun and verb synsets below `folder`, by key."""
    synsets = {}
    for name, letter in (("noun", "n"), ("verb", "v")):
        for line in (folder / f"data.{name}").read_text(encoding="utf-8").splitlines():
            if not line.startswith(" "):
                synset = _synset(line, letter)
                synsets[synset.key] = synset
    return synsets


def _synset(line: str, letter: str) -> Synset:
    """One line of a WordNet data file, laid out as in wndb(5WN)."""
    data, _, gloss = line.partition(" | ")
    words = data.split()
    count = int(words[3], 16)
    lemmas = tuple(words[4 + 2 * i].replace("_", " ") for i in range(count))
    start = 5 + 2 * count
    pointers = [words[start + 4 * i : start + 4 * i + 3] for i in range(int(words[start - 1]))]
    examples = tuple(clean(text) for text in re.findall(r'"([^"]+)"', gloss))
    definition = clean(re.sub(r'[;:]?\s*"[^"]*"[^;]*', "", gloss)).strip("; ")
    return Synset(
        key=letter + words[0],
        lemmas=lemmas,
        definition=definition,
        examples=examples,
        parents=tuple(kind_pos[2] + kind_pos[1] for kind_pos in pointers if kind_pos[0] in {"@", "@i"}),
        children=tuple(kind_pos[2] + kind_pos[1] for kind_pos in pointers if kind_pos[0] in {"~", "~i"}),
    )
