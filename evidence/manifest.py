"""The manifest, the seal line and the names of a root, as values. Reads no files. Rules: FORMAT.md.

E-MANIFEST  one spelling: sorted lines `<64 hex>  <path>`, each path once, nothing else
E-SEAL      one spelling: `qualify-seal/1 blake3:<64 hex of MANIFEST.b3>`
E-PATH      portable ASCII names; nothing that leaves the root
E-DOTFILE   no name begins with a dot
E-KIND      no archive, pickle or program, by name or by first bytes
E-CASE      no two names differ only in case, and no file is also a folder
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from blake3 import blake3

SEAL_NAME = "SEAL"
MANIFEST_NAME = "MANIFEST.b3"
MANIFEST_LIMIT_BYTES = 64 * 1024 * 1024
SEAL_LIMIT_BYTES = 256
PATH_LIMIT = 240
DEPTH_LIMIT = 16

DIGEST = re.compile("blake3:[0-9a-f]{64}")
_LINE = re.compile(r"^([0-9a-f]{64})  ([^\r\n]+)\n", re.MULTILINE)
_SEAL = re.compile(rb"qualify-seal/1 (blake3:[0-9a-f]{64})\n")
_RESERVED = r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:[./]|\Z)"  # by Windows, with any extension
_NAME = rf"(?!{_RESERVED})[A-Za-z0-9_][A-Za-z0-9._-]{{0,127}}(?<!\.)"
_PATH = re.compile(rf"{_NAME}(?:/{_NAME}){{0,15}}")
_DOTFILE = re.compile(r"(?:\A|/)\.[^./]")
_OWN = {SEAL_NAME.lower(), MANIFEST_NAME.lower()}
_ARCHIVES = "zip tar gz tgz bz2 tbz2 xz txz lzma zst lz4 7z rar whl egg jar npz cab iso deb rpm apk"
_PICKLES = "pkl pickle pt pth ckpt joblib dill npy"
_PROGRAMS = "exe dll so dylib com scr msi bat cmd ps1 vbs sh bash zsh fish py pyc pyo pyd pyz js mjs wasm class o a app"
_KINDS = {
    extension: kind
    for kind, extensions in (("an archive", _ARCHIVES), ("a pickle", _PICKLES), ("a program", _PROGRAMS))
    for extension in extensions.split()
}
_FIRST_BYTES = re.compile(
    rb"(?P<archive>PK\x03\x04|PK\x05\x06|\x1f\x8b\x08|7z\xbc\xaf\x27\x1c|\xfd7zXZ\x00|\x28\xb5\x2f\xfd|Rar!\x1a\x07"
    rb"|BZh[1-9]1AY&SY)"
    rb"|(?P<pickle>\x80[\x04\x05]\x95.{4}\x00{4}|\x80\x02\x8a\x0al\xfc\x9cF\xf9)"
    rb"|(?P<program>\x7fELF|\xcf\xfa\xed\xfe|\xca\xfe\xba\xbe|\x00asm\x01)",
    re.DOTALL,
)


@dataclass(frozen=True, order=True, slots=True)
class Fault:
    """One broken rule: its code, the path it is about (`""` = the root itself) and the whole message.

    `message` reads `where: expected X, got Y`. It may hold text from the root: escape it before showing it.
    """

    rule: str
    path: str
    message: str


def fault(rule: str, path: str, expected: str, got: str) -> Fault:
    """A fault whose message is `path: expected X, got Y`."""
    return Fault(rule, path, f"{path or 'root'}: expected {expected}, got {got}")


class FormatError(ValueError):
    """Bytes that do not keep the format; `faults` names every rule broken."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(item.message for item in self.faults[:5]))


@dataclass(frozen=True, order=True, slots=True)
class Entry:
    """One sealed file: its path from the root with `/`, and the BLAKE3 of its bytes as 64 lower-case hex."""

    path: str
    digest: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Every sealed file of a root, sorted by path; the root digest commits to these lines."""

    entries: tuple[Entry, ...]


def render(manifest: Manifest) -> bytes:
    """The one spelling of a manifest: what `b3sum` prints for the same files, sorted by path bytes."""
    return render_digests({entry.path: entry.digest for entry in manifest.entries})


def render_digests(digests: Mapping[str, str]) -> bytes:
    """As `render`, from 64 hex by path."""
    return "".join([f"{digests[path]}  {path}\n" for path in sorted(digests)]).encode("utf-8", "surrogatepass")


def digest_of(data: bytes) -> str:
    """`blake3:<64 hex>` of some bytes: the form of every digest in a record."""
    return "blake3:" + blake3(data).hexdigest()


def root_digest(manifest_bytes: bytes) -> str:
    """The digest a root is known by: BLAKE3 of the bytes of `MANIFEST.b3`. It commits to names and contents."""
    return digest_of(manifest_bytes)


def tree_digest(entries: Iterable[Entry]) -> str:
    """The digest of a folder of files (an artifact, a candidate): BLAKE3 of its lines as `render` writes them.

    Paths are relative to that folder. Raises FormatError for a path that comes twice, and for a path or digest that would
    not stay on its own line.
    """
    digests: dict[str, str] = {}
    for entry in entries:
        if entry.path in digests or not _LINE.fullmatch(f"{entry.digest}  {entry.path}\n"):
            raise FormatError([fault("E-PATH", entry.path, "a path of one line, once, and 64 hex", repr(entry.digest))])
        digests[entry.path] = entry.digest
    return digest_of(render_digests(digests))


def parse(data: bytes) -> Manifest:
    """Read the bytes of `MANIFEST.b3`; raises FormatError with every fault of spelling and of names."""
    return Manifest(tuple(Entry(path, digest) for path, digest in parse_digests(data).items()))


def parse_digests(data: bytes) -> dict[str, str]:
    """As `parse`, to 64 hex by path, sorted by path."""
    if len(data) > MANIFEST_LIMIT_BYTES:  # E-SIZE
        expected = f"at most {MANIFEST_LIMIT_BYTES} bytes"
        raise FormatError([fault("E-SIZE", MANIFEST_NAME, expected, f"{len(data)}")])
    digests = {path: digest for digest, path in _LINE.findall(data.decode("utf-8", "surrogateescape"))}
    faults = check_paths(digests)
    if render_digests(digests) != data or not digests:  # E-MANIFEST: every byte is accounted for
        faults += _misspelled(data)
    if faults:
        raise FormatError(faults)
    return digests


def _misspelled(data: bytes) -> list[Fault]:
    """Where a manifest departs from its one spelling."""
    faults: list[Fault] = []
    last = b""
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), 1):
        where, path = f"{MANIFEST_NAME} line {number}: expected", line[66:]
        if not _LINE.fullmatch(line.decode("utf-8", "surrogateescape") + "\n"):
            got = f"{where} `<64 lower-case hex>  <path>` and LF, got {_quote(line)}"
            faults.append(Fault("E-MANIFEST", MANIFEST_NAME, got))
        elif path <= last:
            faults.append(
                Fault("E-MANIFEST", MANIFEST_NAME, f"{where} a path after {_quote(last)}, got {_quote(path)}")
            )
        last = max(last, path)
    if not data.endswith(b"\n"):
        faults.append(fault("E-MANIFEST", MANIFEST_NAME, "LF at the end of the last line", "the end of the file"))
    return faults


def render_seal(digest: str) -> bytes:
    """The bytes of `SEAL` for a root digest (`blake3:<64 hex>`)."""
    return f"qualify-seal/1 {digest}\n".encode()


def parse_seal(data: bytes) -> str:
    """The root digest that `SEAL` claims; raises FormatError when the line is not spelled as `render_seal` does."""
    match = _SEAL.fullmatch(data)
    if match is None:
        raise FormatError(
            [fault("E-SEAL", SEAL_NAME, "`qualify-seal/1 blake3:<64 lower-case hex>` and LF", _quote(data))]
        )
    return match[1].decode()


def check_path(path: str) -> Fault | None:
    """The first rule that a path in a root breaks (E-PATH, E-DOTFILE, E-KIND by name), or None."""
    if len(path) > PATH_LIMIT:  # E-PATH
        return fault("E-PATH", path, f"at most {PATH_LIMIT} characters", f"{len(path)}")
    if not _PATH.fullmatch(path):
        if _DOTFILE.search(path):  # E-DOTFILE
            return fault("E-DOTFILE", path, "no name that begins with a dot", repr(path))
        expected = "1 to 16 names of 1 to 128 of A-Z a-z 0-9 . _ - (none of . - first, no . last, no device of Windows)"
        return fault("E-PATH", path, expected, repr(path))  # E-PATH
    if path.lower() in _OWN:  # E-PATH
        return fault("E-PATH", path, f"no sealed file with the name of {SEAL_NAME} or {MANIFEST_NAME}", repr(path))
    _, dot, extension = path.rpartition(".")
    kind = _KINDS.get(extension.lower()) if dot else None
    if kind is not None:  # E-KIND
        return fault("E-KIND", path, "inert data", f"{kind} by its name")
    return None


def check_first_bytes(path: str, head: bytes) -> Fault | None:
    """E-KIND by content: `head` is the start of the file. Only signatures that no log or tensor has by accident."""
    match = _FIRST_BYTES.match(head)
    if match is None:
        return None
    return fault("E-KIND", path, "inert data", f"the first bytes of {_article(str(match.lastgroup))}")


def check_paths(paths: Iterable[str]) -> list[Fault]:
    """Every fault of a set of paths: each alone (`check_path`), and against each other (E-CASE)."""
    files = sorted(paths)
    faults = [found for path in files if (found := check_path(path)) is not None]
    folders: set[str] = set()
    for folder in {path.rpartition("/")[0] for path in files}:
        inner = folder
        while inner and inner not in folders:
            folders.add(inner)
            inner = inner.rpartition("/")[0]
    seen: dict[str, str] = {}
    for path in [*sorted(folders), *files]:
        key = path.lower()
        if key in seen:  # E-CASE
            faults.append(
                fault("E-CASE", path, "names that differ in more than case", f"{path!r} beside {seen[key]!r}")
            )
        seen[key] = path
    return faults


def _article(kind: str) -> str:
    return ("an " if kind[0] == "a" else "a ") + kind


def _quote(data: bytes) -> str:
    """Bytes as printable text, cut to 80: a message stays one readable line."""
    return repr(data[:80])[1:] + (f" and {len(data) - 80} bytes more" if len(data) > 80 else "")
