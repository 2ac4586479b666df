"""A repository of a hub at one commit, through the hub's own client: never another branch, and one sentence for each failure.

The client honours ``HF_ENDPOINT``, ``HF_HOME``, ``HF_HUB_OFFLINE`` and ``HF_TOKEN``; nothing is read from or written to them here.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from harness.errors import CandidateError, LadderError, QualifyError, Unavailable

CONNECT_TIMEOUT_S = 5.0
COMMIT = re.compile("[0-9a-f]{40}")


def fetch(
    repository: str,
    revision: str | None,
    patterns: tuple[str, ...],
    kind: Literal["model", "dataset"] = "model",
) -> Path:
    """The folder in the client's cache that holds the files of ``repository`` at the commit ``revision`` that match ``patterns``.

    Raises ``CandidateError`` when the request is wrong (no commit, no such repository or commit) and ``Unavailable`` when the
    hub does not give what it may have (unreachable, gated, limited, the client is not installed).
    """
    revision = _commit(repository, revision, kind)
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        do = "install it with: pip install '.[run]'"
        raise Unavailable(f"{kind} {repository}: expected the package huggingface_hub, got none; {do}") from error
    unreachable = _unreachable()
    try:
        with _quiet():
            if unreachable is None:
                _refuse_moved(repository, revision, kind)
            found = snapshot_download(
                repository,
                repo_type=kind,
                revision=revision,
                allow_patterns=list(patterns),
                max_workers=4,
                local_files_only=unreachable is not None,
            )
    except QualifyError:
        raise
    except Exception as error:
        if unreachable is not None:
            raise _no_hub(f"{kind} {repository} at revision {revision}", unreachable) from error
        raise explained(error, f"{kind} {repository}", revision) from error
    folder = Path(found)
    if folder.name != revision:
        raise _wrong(kind)(f"{kind} {repository}: expected the commit {revision}, got {folder.name}; report this")
    return folder


def pin(repository: str, revision: str | None, kind: Literal["model", "dataset"]) -> str:
    """Ask the hub for the repository at that commit, before anything of it is read; returns the commit.

    Raises as ``fetch`` does; also when the hub knows the repository under another name now. Offline, or when no hub can be reached,
    nothing is asked: the cache decides then, and it is kept by commit.
    """
    revision = _commit(repository, revision, kind)
    from huggingface_hub import HfApi

    if is_out_of_reach():
        return revision
    try:
        found = HfApi().repo_info(repository, repo_type=kind, revision=revision)
    except Exception as error:
        raise explained(error, f"{kind} {repository}", revision) from error
    if found.id != repository:
        raise _moved(f"{kind} {repository} at revision {revision}", found.id, kind)
    if found.sha != revision:
        raise _wrong(kind)(f"{kind} {repository}: expected the commit {revision}, got {found.sha}; report this")
    return revision


def is_out_of_reach() -> bool:
    """Whether no hub can be asked: the client is offline, or no connection can be opened. The cache decides then."""
    from huggingface_hub import is_offline_mode

    return is_offline_mode() or _unreachable() is not None


def dataset_place(repository: str, revision: str | None) -> str:
    """What ``datasets`` can load the pinned dataset from: the repository's name, or its folder in the cache when there is no hub.

    Raises as ``pin`` does, and ``Unavailable`` when there is neither hub nor copy.
    """
    revision = pin(repository, revision, "dataset")
    if is_out_of_reach():
        return str(fetch(repository, revision, ("*",), "dataset"))
    return repository


def _commit(repository: str, revision: str | None, kind: str) -> str:
    if revision is None or COMMIT.fullmatch(revision) is None:
        got = "nothing" if revision is None else repr(revision)
        do = "a branch or tag can move, so give the commit in full"
        raise _wrong(kind)(f"{kind} {repository}: expected a revision of 40 hex digits, got {got}; {do}")
    return revision


def _refuse_moved(repository: str, revision: str, kind: Literal["model", "dataset"]) -> None:
    """A repository that was renamed answers under its old name too, but what a record names must be what is there."""
    from huggingface_hub import HfApi

    try:
        found = HfApi().repo_info(repository, repo_type=kind, revision=revision)
    except Exception:  # noqa: BLE001 - what else is wrong is said by the download itself, or is no matter with a copy in the cache
        return
    if found.id != repository:
        raise _moved(f"{kind} {repository} at revision {revision}", found.id, kind)


def _moved(at: str, name: str, kind: str) -> QualifyError:
    return _wrong(kind)(f"{at}: expected a repository of that name, got one that moved to {name}; name that one")


def _wrong(kind: str) -> type[CandidateError | LadderError]:
    """The class of a wrong request: a model is the candidate, a dataset is named by the ladder alone."""
    return CandidateError if kind == "model" else LadderError


@contextmanager
def _quiet() -> Iterator[None]:
    """The client without progress bars and with errors alone in its log; as it was afterwards."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars, logging

    quiet_before, level = are_progress_bars_disabled(), logging.get_verbosity()
    disable_progress_bars()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if not quiet_before:
            enable_progress_bars()


def explained(error: Exception, what: str, revision: str) -> QualifyError:
    """The client's error as one of ours, ``what`` being kind and name. Order matters: the client's classes inherit from one another."""
    from huggingface_hub import errors

    at = f"{what} at revision {revision}"
    wrong = _wrong(what.partition(" ")[0])
    cause = root_cause(error)
    if isinstance(error, errors.GatedRepoError):
        return Unavailable(
            f"{at}: expected access, got a gated repository; accept its terms on the hub and set HF_TOKEN"
        )
    if isinstance(error, errors.DisabledRepoError):
        return Unavailable(f"{at}: expected access, got a repository that the hub has disabled; use another")
    if isinstance(error, errors.RepositoryNotFoundError):
        do = "correct the name, or set HF_TOKEN if it is private"
        return wrong(f"{at}: expected a repository of that name, got none that is open to this user; {do}")
    if isinstance(error, errors.RevisionNotFoundError):
        return wrong(f"{at}: expected that commit, got none in the repository; no other is taken, so correct it")
    if isinstance(error, errors.OfflineModeIsEnabled) or isinstance(cause, errors.OfflineModeIsEnabled):
        return Unavailable(
            f"{at}: expected it in the cache, since the client is offline, got no copy; unset HF_HUB_OFFLINE"
        )
    status = getattr(getattr(cause, "response", None), "status_code", None)
    if status is not None:
        do = {
            404: "the repository names a file at that commit that the hub does not hold; pin another commit",
            429: "the hub limits the rate; wait, or set HF_TOKEN",
        }.get(status, "try again later")
        return Unavailable(f"{at}: expected an answer, got HTTP status {status} and no copy in the cache; {do}")
    do = "check the network and HF_ENDPOINT, then run again: what was fetched is kept"
    return Unavailable(f"{at}: expected a complete download, got {type(cause).__name__}; {do}")


def _no_hub(at: str, cause: BaseException) -> Unavailable:
    got = f"{type(cause).__name__} and no complete copy in the cache"
    do = "check the network and HF_ENDPOINT, then run again"
    return Unavailable(f"{at}: expected a reachable hub, got {got}; {do}")


def _unreachable() -> OSError | None:
    """Why no connection to the hub can be opened, or None. The client itself would try for most of a minute before it says so.

    With a proxy, or offline, the client decides: a direct connection says nothing.
    """
    from huggingface_hub import constants, is_offline_mode

    url = urlsplit(constants.ENDPOINT)
    if is_offline_mode() or url.hostname is None or (url.scheme in getproxies() and not proxy_bypass(url.hostname)):
        return None
    try:
        port = url.port or (80 if url.scheme == "http" else 443)
        socket.create_connection((url.hostname, port), timeout=CONNECT_TIMEOUT_S).close()
    except OSError as error:
        return error
    return None


def root_cause(error: BaseException) -> BaseException:
    """The error that the client wrapped. Only explicit causes: an error's context can be an unrelated one."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def of_network(error: BaseException) -> bool:
    """Whether the client or the network failed, rather than what was read."""
    libraries = {"httpx", "httpx2", "httpcore", "httpcore2", "huggingface_hub"}
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, OSError) or type(found).__module__.partition(".")[0] in libraries:
            return True
        found = found.__cause__
    return False
