"""Seal a staging folder once and publish it, so that a crash at any moment leaves no new root or one that verifies.

    stage      a new folder beside the root-to-be, on the same file system: `NAME.staging-PID-RANDOM`
    write_new  every file is created exclusively, none is written twice
    seal       hash, MANIFEST.b3, SEAL, read-only, fsync, verify as a stranger would, publish by a rename that replaces nothing

Children that write into the staging folder must have ended before `seal`: a file that changes meanwhile is refused (E-CHANGED,
E-HASH), but a writer that still holds a file open afterwards is not stopped by read-only modes. They are a seatbelt.
"""

import ctypes
import errno
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from evidence import manifest, tree
from evidence.manifest import MANIFEST_NAME, SEAL_NAME, Fault, digest_of
from evidence.verify import verify

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1


class SealError(Exception):
    """A folder that was not staged, sealed, moved or removed; `faults` names the rules when they are why."""

    def __init__(self, message: str, faults: Iterable[Fault] = ()) -> None:
        self.faults = tuple(faults)
        super().__init__("\n  ".join([message, *(f"{item.rule} {item.message}" for item in self.faults)]))


def stage(out: Path) -> Path:
    """Make an empty staging folder beside `out`, and `out`'s parents; raises SealError, also when `out` exists in any form."""
    if os.path.lexists(out):
        message = f"{out}: expected a path where nothing is yet, got something: choose another, or `qualify rm` it"
        raise SealError(message)
    staging = aside(out, "staging")
    try:
        staging.parent.mkdir(parents=True, exist_ok=True)
        staging.mkdir(mode=0o755)
    except OSError as error:
        raise SealError(f"{out}: expected a folder that can be made, got {error}: choose another") from error
    return staging


def write_new(folder: Path, path: str, data: bytes) -> None:
    """Create the file `path` (relative, `/`) in `folder`, and its parents; never opens a file that exists.

    Raises SealError for a path that no root may hold, FileExistsError, and OSError; a half-written file is taken away again.
    """
    found = manifest.check_path(path)
    if found is not None:
        raise SealError(f"{folder}: a file that no root may hold", [found])
    _write(folder, path, data)


def seal(staging: Path, out: Path) -> str:
    """Seal `staging`, publish it as `out` and return the root digest (`blake3:<64 hex>`).

    Raises SealError. Unless its message says otherwise `out` was not made and `staging` is left as it is: a leftover, for `qualify doctor`.
    """
    try:
        lines = _hash_all(staging)
        _write(staging, MANIFEST_NAME, lines)
        _write(staging, SEAL_NAME, manifest.render_seal(digest_of(lines)))
        _settle(staging)
    except OSError as error:
        raise SealError(f"{staging}: expected to seal it as {out}, got {error}: nothing was published") from error
    report = verify(staging, expect=digest_of(lines))
    if not report.ok:  # also where a check could not run: what no reader can tell is not published
        got = "faults" if report.faults else report.checks[-1].note
        raise SealError(f"{staging}: expected a root that verifies, got {got}: it was not published", report.faults)
    try:
        rename_new(staging, out)
    except OSError as error:
        raise SealError(f"{staging}: expected to publish it as {out}, got {error}: nothing was published") from error
    try:
        _sync(out.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        message = f"{out}: published and verified, but its name may be lost if the machine stops now ({error.strerror})"
        raise SealError(message) from error
    return digest_of(lines)


def aside(path: Path, why: str) -> Path:
    """A name beside `path` that nobody else has: it says which root, why, and whose process."""
    return path.absolute().with_name(f"{path.absolute().name}.{why}-{os.getpid()}-{secrets.token_hex(4)}")


def rename_new(source: Path, target: Path) -> None:
    """Rename a folder to a name that nobody has; raises FileExistsError rather than replace anything.

    Linux: renameat2(RENAME_NOREPLACE), see renameat2(2). Elsewhere, and on a file system without it: mkdir is what claims the
    name, and rename(2) replaces only that empty folder. A kill between the two leaves an empty folder, which is no root.
    """
    try:
        _rename_noreplace(source, target)
    except OSError as error:
        if error.errno not in {errno.ENOSYS, errno.EINVAL}:
            raise
        target.mkdir()
        try:
            source.rename(target)
        except OSError:
            with suppress(OSError):
                target.rmdir()
            raise


def _rename_noreplace(source: Path, target: Path) -> None:
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if function(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))


def _hash_all(staging: Path) -> bytes:
    """The bytes of the manifest for what is in `staging` now; raises SealError for anything a root may not hold."""
    for place, _, _ in os.walk(staging, topdown=False):
        if not any(Path(place).iterdir()):  # a child that was killed may leave an empty folder: it carries nothing
            Path(place).rmdir()
    with tree.opened(staging, tree.FOLDER) as folder:
        listing = tree.list_files(folder)
        faults = [*listing.faults, *manifest.check_paths(listing.files)]
        digests, unread = tree.hash_files(folder, {} if faults else listing.files)
    if faults or unread:
        message = f"{staging}: expected only what a root may hold: nothing was published"
        raise SealError(message, sorted(faults + unread))
    return manifest.render_digests(digests)


def _write(folder: Path, path: str, data: bytes) -> None:
    parents, _, name = path.rpartition("/")
    with (
        tree.opened(folder, tree.FOLDER) as root,
        tree.opened_folder(root, parents, create=True) as parent,
        tree.opened(name, _NEW, parent, 0o644) as file,
    ):
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(file, rest) :]
        except BaseException:  # also an interrupt: half a file must not be sealed later
            os.unlink(name, dir_fd=parent)
            raise


def _settle(staging: Path) -> None:
    """Make all read-only and force it to the disk: files first, then folders from the bottom up."""
    for place, _, names in os.walk(staging, topdown=False):
        for name in names:
            _sync(Path(place, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444)
        _sync(Path(place), tree.FOLDER, 0o555)


def _sync(path: Path, flags: int, mode: int | None = None) -> None:
    with tree.opened(path, flags) as descriptor:
        if mode is not None:
            os.fchmod(descriptor, mode)
        os.fsync(descriptor)
