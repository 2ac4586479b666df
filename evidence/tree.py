"""The only walker and hasher of files. Follows no link, trusts no name, holds no large file in memory.

Every component of a path is opened by name in an open folder with O_NOFOLLOW, so nothing outside the root can be reached,
also not while somebody renames folders. It needs a POSIX system (`dir_fd`). Mode bits carry no meaning: what an upload from CI
resets cannot be a rule, so a program is refused by its name and first bytes, never by its executable bit. Rules: FORMAT.md.

    E-LINK      no symbolic links                    E-TYPE     nothing but files and folders
    E-HARDLINK  no second name for a file            E-EMPTY    no empty folders
    E-CHANGED   no file changes while it is read     E-READ     everything can be read
    E-KIND      nothing but inert data, by first bytes
    E-SIZE      what is read whole has a limit       E-PATH, E-EXTRA  folders and files in bounds
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from blake3 import blake3

from evidence.manifest import DEPTH_LIMIT, Fault, check_first_bytes, fault

BLOCK_BYTES = 1024 * 1024
BIG_BYTES = 16 * BLOCK_BYTES  # a bigger file is worth a thread
FILES_LIMIT = 1_000_000  # more than a manifest of 64 MiB can name
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # NONBLOCK: never wait for a pipe's writer

_state = attrgetter("st_size", "st_ctime_ns")  # the system sets the second at every write, and nobody else can

Block = bytes | memoryview  # good until the next is asked for
Seen = Callable[[Block], None]
Progress = Callable[[int, int], None]  # bytes done, bytes in all


class UnsafeFileError(OSError):
    """A file that breaks a rule, so nothing is said about its bytes; `fault` names the rule."""

    def __init__(self, found: Fault) -> None:
        self.fault = found
        super().__init__(found.message)


class Listing(NamedTuple):
    """What stands in a folder, found without opening a file: size in bytes by path (0 when not asked for), and faults."""

    files: dict[str, int]
    faults: list[Fault]


def list_files(root: int, *, sizes: bool = False) -> Listing:
    """List every file under an open folder. Never raises: what cannot be listed is a fault."""
    found = Listing({}, [])
    _list_folder(found, ".", root, "", sizes=sizes)
    if len(found.files) > FILES_LIMIT:  # E-EXTRA
        found.faults.append(fault("E-EXTRA", "", f"at most {FILES_LIMIT} files", "more"))
    return found


def _list_folder(found: Listing, name: str, parent: int, prefix: str, *, sizes: bool) -> None:
    try:
        with opened(name, FOLDER, parent) as folder:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
            if not entries and prefix:  # E-EMPTY
                found.faults.append(fault("E-EMPTY", prefix[:-1], "a folder that holds a file", "an empty folder"))
            for entry in entries:
                _list_entry(found, entry, folder, prefix + entry.name, sizes=sizes)
    except OSError as error:
        found.faults.append(fault_of(error, prefix[:-1]))


def _list_entry(found: Listing, entry: os.DirEntry[str], folder: int, path: str, *, sizes: bool) -> None:
    if entry.is_dir(follow_symlinks=False):
        if path.count("/") < DEPTH_LIMIT - 1:
            _list_folder(found, entry.name, folder, path + "/", sizes=sizes)
        else:  # E-PATH: also what keeps this recursion, and the open folders, few
            found.faults.append(fault("E-PATH", path, f"at most {DEPTH_LIMIT} names", "a deeper folder"))
    elif entry.is_file(follow_symlinks=False):
        if len(found.files) <= FILES_LIMIT:
            found.files[path] = entry.stat(follow_symlinks=False).st_size if sizes else 0
    elif entry.is_symlink():  # E-LINK
        found.faults.append(_link(path))
    else:  # E-TYPE
        found.faults.append(_special(path))


def hash_files(root: int, files: dict[str, int], tell: Progress | None = None) -> tuple[dict[str, str], list[Fault]]:
    """BLAKE3 (64 hex) by path of each file under an open folder, and the faults of those it cannot vouch for.

    `files` is what `list_files` gave: its sizes feed `tell`, and become those of the bytes hashed. Each file is read once; its
    folder is opened once for all that follow each other.
    """
    digests: dict[str, str] = {}
    faults: list[Fault] = []
    seen = _counter(tell, sum(files.values())) if tell is not None else None
    for folder, inside in groupby(files, key=lambda path: path[: path.rfind("/") + 1]):
        paths = list(inside)
        try:
            with opened_folder(root, folder) as at:
                for path in paths:
                    try:
                        digests[path], files[path] = _hash(at, path[len(folder) :], path, seen)
                    except OSError as error:
                        faults.append(fault_of(error, path))
        except OSError as error:
            faults += [fault_of(error, path) for path in paths]
    return digests, faults


def _counter(tell: Progress, total: int) -> Seen:
    done = 0

    def count(block: Block) -> None:
        nonlocal done
        done += len(block)
        tell(done, total)

    return count


def read_file(root: int, path: str, limit_bytes: int) -> tuple[bytes, str]:
    """The bytes of one file under an open folder, and their BLAKE3 (64 hex). Raises OSError; UnsafeFileError for a rule."""
    blocks: list[Block] = []
    folder, _, name = path.rpartition("/")
    with opened_folder(root, folder) as at:
        digest, _ = _hash(at, name, path, blocks.append, limit_bytes)
    return b"".join(blocks), digest  # of the one block that a file nearly always is, this makes no second copy


@contextmanager
def opened(path: str | Path, flags: int, folder: int | None = None, mode: int = 0o777) -> Iterator[int]:
    """A descriptor of `path` (in an open folder, if one is given), closed in the end. Raises OSError."""
    descriptor = os.open(path, flags, mode, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_folder(root: int, path: str, *, create: bool = False) -> Iterator[int]:
    """A descriptor of the folder `path` under an open folder, no component of which is a link. Raises OSError."""
    with ExitStack() as stack:
        at = root
        for name in filter(None, path.split("/")):
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=at)
            at = stack.enter_context(opened(name, FOLDER, at))
        yield at


def _hash(at: int, name: str, path: str, seen: Seen | None, limit_bytes: int | None = None) -> tuple[str, int]:
    """Read one file of the open folder `at` once, in blocks, hash it, and show every block to `seen`: its BLAKE3 and its bytes."""
    file = os.open(name, _FILE, dir_fd=at)
    try:
        before = os.fstat(file)
        size = before.st_size
        if not stat.S_ISREG(before.st_mode):  # E-TYPE: it was a file when it was listed
            raise UnsafeFileError(_special(path))
        if before.st_nlink > 1:  # E-HARDLINK
            raise UnsafeFileError(fault("E-HARDLINK", path, "one name for a file", f"{before.st_nlink}: copy the root"))
        if limit_bytes is not None and size > limit_bytes:  # E-SIZE
            raise UnsafeFileError(fault("E-SIZE", path, f"at most {limit_bytes} bytes", f"{size}"))
        hasher, done = blake3(), 0
        for block in _blocks(file, size, whole=limit_bytes is not None):
            if done == 0 and (found := check_first_bytes(path, block)) is not None:  # E-KIND
                raise UnsafeFileError(found)
            hasher.update(block)
            if seen is not None:
                seen(block)
            done += len(block)
        if done != size or _state(before) != _state(os.fstat(file)):  # E-CHANGED
            raise UnsafeFileError(fault("E-CHANGED", path, "a file that nobody writes", "a change while it was read"))
        return hasher.hexdigest(), size
    finally:
        os.close(file)


def _blocks(file: int, size: int, *, whole: bool) -> Iterator[Block]:
    """The first `size` bytes of an open file, or what there is of them; in one read where they are held as a `whole` anyway.

    Of any other big file a thread reads what comes next while this is hashed.
    """
    if whole or size <= BIG_BYTES:
        most = size if whole else BLOCK_BYTES
        while data := os.read(file, min(most, size)):
            size -= len(data)
            yield data
        return
    from queue import SimpleQueue  # here: a small root need not wait for these imports
    from threading import Thread

    free, full = SimpleQueue[memoryview | None](), SimpleQueue[tuple[memoryview, int | Exception]]()

    def read() -> None:
        while (block := free.get()) is not None:
            try:
                full.put((block, os.readv(file, [block])))
            except Exception as error:  # noqa: BLE001 - raised again where blocks are taken, which would wait for ever otherwise
                full.put((block, error))
                return

    for _ in range(3):  # one is hashed, two are read meanwhile
        free.put(memoryview(bytearray(BLOCK_BYTES)))
    reader = Thread(target=read)
    reader.start()
    try:
        while size:
            block, found = full.get()
            if isinstance(found, Exception):
                raise found
            if (count := min(found, size)) == 0:
                return
            yield block[:count]
            size -= count
            free.put(block)
    finally:
        free.put(None)
        reader.join()


def _link(path: str) -> Fault:
    return fault("E-LINK", path, "a file", "a symbolic link")  # E-LINK


def _special(path: str) -> Fault:
    return fault("E-TYPE", path, "a file", "a device, socket, pipe or folder")  # E-TYPE


def fault_of(error: OSError, path: str, missing: str = "E-READ") -> Fault:
    """The fault that an error of reading `path` is; `missing` is the rule for a file that is not there."""
    if isinstance(error, UnsafeFileError):
        return error.fault
    if error.errno == errno.ELOOP:  # E-LINK: what O_NOFOLLOW says of one
        return _link(path)
    if error.errno == errno.ENOENT:  # E-READ, or E-SEAL and E-MANIFEST for those two files
        return fault(missing, path, "this file", "none")
    return fault("E-READ", path, "something that can be read", error.strerror or type(error).__name__)  # E-READ
