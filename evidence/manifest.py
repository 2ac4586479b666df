"""The manifest, the seal line and the names of a root, as values. Reads no files. Rules: FORMAT.md.

E-MANIFEST  one spelling: sorted lines `<64 hex>  <path>`, each path once, nothing else
E-SEAL      one spelling: `qualify-seal/1 blake3:<64 hex of MANIFEST.b3>`
E-PATH      portable ASCII names; nothing that leaves the root
E-DOTFILE   no name begins with a dot
E-KIND      no archive, pickle or program, by name or by first bytes
E-CASE      no two names differ only in case, and no file is also a folder
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from itertools import islice
from typing import NamedTuple

from blake3 import blake3

SEAL_NAME = "SEAL"
MANIFEST_NAME = "MANIFEST.b3"
MANIFEST_LIMIT_BYTES = 64 * 1024 * 1024
SEAL_LIMIT_BYTES = 256
PATH_LIMIT = 240
DEPTH_LIMIT = 16
FAULTS_LIMIT = 1000  # of lines or names of one manifest: 64 MiB have room for 64 million

DIGEST = re.compile("blake3:[0-9a-f]{64}")
_LINE = re.compile(r"^([0-9a-f]{64})  ([^\r\n]+)\n", re.MULTILINE)
_SEAL = re.compile(rb"qualify-seal/1 (blake3:[0-9a-f]{64})\n")
_RESERVED = r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:[./]|\Z)"  # by Windows, with any extension
_NAME = rf"(?!{_RESERVED})[A-Za-z0-9_][A-Za-z0-9._-]{{0,127}}(?<!\.)"
_PATH = re.compile(rf"{_NAME}(?:/{_NAME}){{0,15}}")
_DOTFILE = re.compile(r"(?:\A|/)\.[^./]")
_OWN = {SEAL_NAME.lower(), MANIFEST_NAME.lower()}
_EXTENSIONS = {
    "an archive": "zip tar gz tgz bz2 tbz2 xz txz lzma zst lz4 7z rar whl egg jar npz cab iso deb rpm apk",
    "a pickle": "pkl pickle pt pth ckpt joblib dill npy",
    "a program": "exe dll so dylib com scr msi bat cmd ps1 vbs sh bash zsh fish py pyc pyo pyd pyz js mjs wasm class o a app",
}
_KINDS = {extension: kind for kind, extensions in _EXTENSIONS.items() for extension in extensions.split()}
_FIRST_BYTES = {
    "an archive": rb"PK\x03\x04|PK\x05\x06|\x1f\x8b\x08|7z\xbc\xaf\x27\x1c|\xfd7zXZ\x00|\x28\xb5\x2f\xfd|Rar!\x1a\x07|BZh[1-9]1AY&SY",
    "a pickle": rb"\x80[\x04\x05]\x95.{4}\x00{4}|\x80\x02\x8a\x0al\xfc\x9cF\xf9",
    "a program": rb"\x7fELF|\xcf\xfa\xed\xfe|\xca\xfe\xba\xbe|\x00asm\x01",
}
_SIGNATURES = {kind: re.compile(signature, re.DOTALL) for kind, signature in _FIRST_BYTES.items()}


class Fault(NamedTuple):  # and no dataclass anywhere here: that import is a fifth of the time to start
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


class Entry(NamedTuple):
    """One sealed file: its path from the root with `/`, and the BLAKE3 of its bytes as 64 lower-case hex."""

    path: str
    digest: str


def render_digests(digests: Mapping[str, str]) -> bytes:
    """The one spelling of a manifest, from 64 hex by path: what `b3sum` prints for the same files, sorted by path bytes."""
    return "".join([f"{digests[path]}  {path}\n" for path in sorted(digests)]).encode("utf-8", "surrogatepass")


def digest_of(data: bytes) -> str:
    """`blake3:<64 hex>` of some bytes: the form of every digest in a record. That of `MANIFEST.b3` is the root digest."""
    return "blake3:" + blake3(data).hexdigest()


def tree_digest(entries: Iterable[Entry]) -> str:
    """The digest of a folder of files (an artifact, a candidate): BLAKE3 of its lines as `render_digests` writes them.

    Paths are relative to that folder. Raises FormatError for a path that comes twice, and for a path or digest that would
    not stay on its own line.
    """
    digests: dict[str, str] = {}
    for entry in entries:
        if entry.path in digests or not _LINE.fullmatch(f"{entry.digest}  {entry.path}\n"):  # E-PATH
            raise FormatError([fault("E-PATH", entry.path, "a path of one line, once, and 64 hex", repr(entry.digest))])
        digests[entry.path] = entry.digest
    return digest_of(render_digests(digests))


def parse_digests(data: bytes) -> dict[str, str]:
    """The bytes of `MANIFEST.b3` as 64 hex by path, sorted by path; raises FormatError with the faults of spelling and of names."""
    if len(data) > MANIFEST_LIMIT_BYTES:  # E-SIZE
        raise FormatError([fault("E-SIZE", MANIFEST_NAME, f"at most {MANIFEST_LIMIT_BYTES} bytes", f"{len(data)}")])
    digests = {path: digest for digest, path in _LINE.findall(data.decode("utf-8", "surrogateescape"))}
    faults = list(islice(check_paths(digests), FAULTS_LIMIT))
    if render_digests(digests) != data or not digests:  # E-MANIFEST: every byte is accounted for
        faults += islice(_misspelled(data), FAULTS_LIMIT)
    if faults:
        raise FormatError(faults)
    return digests


def _misspelled(data: bytes) -> Iterator[Fault]:
    """Where a manifest departs from its one spelling."""
    last = b""
    for number, line in enumerate(BytesIO(data) if data else [b""], 1):
        where, path = f"{MANIFEST_NAME} line {number}: expected", line[66:].removesuffix(b"\n")
        if not _LINE.fullmatch(line.decode("utf-8", "surrogateescape")):
            expected, got = "`<64 lower-case hex>  <path>` and LF", line
        elif path <= last:
            expected, got = f"a path after {_quote(last)}", path
        else:
            last = path
            continue
        yield Fault("E-MANIFEST", MANIFEST_NAME, f"{where} {expected}, got {_quote(got)}")  # E-MANIFEST


def render_seal(digest: str) -> bytes:
    """The bytes of `SEAL` for a root digest (`blake3:<64 hex>`)."""
    return f"qualify-seal/1 {digest}\n".encode()


def parse_seal(data: bytes) -> str:
    """The root digest that `SEAL` claims; raises FormatError when the line is not spelled as `render_seal` does."""
    match = _SEAL.fullmatch(data)
    if match is None:  # E-SEAL
        expected = "`qualify-seal/1 blake3:<64 lower-case hex>` and LF"
        raise FormatError([fault("E-SEAL", SEAL_NAME, expected, _quote(data))])
    return match[1].decode()


def check_path(path: str) -> Fault | None:
    """The first rule that a path in a root breaks (E-PATH, E-DOTFILE, E-KIND by name), or None."""
    if len(path) > PATH_LIMIT:  # E-PATH
        return fault("E-PATH", path[:PATH_LIMIT], f"at most {PATH_LIMIT} characters", f"{len(path)}")
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


def check_first_bytes(path: str, head: bytes | memoryview) -> Fault | None:
    """E-KIND by content: `head` is the start of the file. Only signatures that no log or tensor has by accident."""
    for kind, signature in _SIGNATURES.items():
        if signature.match(head):
            return fault("E-KIND", path, "inert data", f"the first bytes of {kind}")  # E-KIND
    return None


def check_paths(paths: Iterable[str]) -> Iterator[Fault]:
    """Every fault of a set of paths: each alone (`check_path`), and against each other (E-CASE)."""
    files = sorted(paths)
    yield from filter(None, map(check_path, files))
    files = [path for path in files if len(path) <= PATH_LIMIT]  # a longer one has no place, and too many folders
    folders: set[str] = set()
    inner = {path.rpartition("/")[0] for path in files} - {""}
    while inner:
        folders |= inner
        inner = {folder.rpartition("/")[0] for folder in inner} - {""}
    seen: dict[str, str] = {}
    for path in [*sorted(folders), *files]:
        key = path.lower()
        if key in seen:  # E-CASE
            yield fault("E-CASE", path, "names that differ in more than case", f"{path!r} beside {seen[key]!r}")
        seen[key] = path


def _quote(data: bytes) -> str:
    """Bytes as printable text, cut to 80: a message stays one readable line."""
    return repr(data[:80])[1:] + (f" and {len(data) - 80} bytes more" if len(data) > 80 else "")
