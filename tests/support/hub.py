"""A small hub on loopback: it speaks the part of the hub's HTTP API that the real client libraries use to read repositories.

Models and datasets alike: info, tree, paths-info, and files by HEAD and GET with ETag, X-Repo-Commit and byte ranges. Faults
are values of a ``Repository`` (gated, private, failing with a status, cutting a file off), so a test states what is wrong.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "1" * 40
API = re.compile(r"/api/(models|datasets)/(.+?)(?:/(revision|tree|paths-info)/([^/]+)(?:/(.*))?)?$")
RESOLVE = re.compile(r"/(datasets/)?(.+?)/resolve/([^/]+)/(.+)$")


@dataclass
class Repository:
    """One repository: ``commits`` maps a commit to its files, ``branches`` a name to a commit.

    ``status`` makes every request fail with that HTTP status; ``gated`` and ``private`` answer as the hub does for a user without
    access; ``cut_after`` sends only so many bytes of each file and closes the connection, ``cuts`` times (always, if negative);
    ``moved`` sends every request on to the repository of that name, as the hub does after a rename; ``gone`` is listed and not there.
    """

    commits: dict[str, dict[str, bytes]]
    kind: Literal["model", "dataset"] = "model"
    branches: dict[str, str] = field(default_factory=dict)
    gated: bool = False
    private: bool = False
    status: int | None = None
    cut_after: int | None = None
    cuts: int = -1
    moved: str | None = None
    gone: str | None = None

    def commit_of(self, revision: str) -> str | None:
        """The commit that a branch or a commit's own name means, or None."""
        commit = self.branches.get(revision, revision)
        return commit if commit in self.commits else None


class Hub:
    """The server. Use it as a context manager; ``endpoint`` is what ``HF_ENDPOINT`` takes.

    ``requests`` is what was asked, ``ranges`` the parts of files, ``tokens`` what users showed, ``served`` bytes sent by file.
    """

    def __init__(self, repositories: dict[str, Repository]) -> None:
        self.repositories = repositories
        self.requests: list[str] = []
        self.ranges: list[str] = []
        self.tokens: set[str] = set()
        self.served: dict[str, int] = {}
        hub = self

        class Handler(_Handler):
            serves = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    serves: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class's name
        """Nothing: a test's output is its own."""

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.serves.requests.append(f"{self.command} {path}")
        self.serves.tokens.add(self.headers.get("Authorization") or "")
        if match := API.fullmatch(path):
            kind, name, what, revision, below = match.groups()
            self._api(kind[:-1], name, what or "revision", revision or "main", below or "", body)
        elif match := RESOLVE.fullmatch(path):
            self._resolve("dataset" if match[1] else "model", match[2], match[3], match[4])
        else:
            self._fail(404, "", "Not found")

    def _find(self, kind: str, name: str, revision: str) -> tuple[Repository, str] | None:
        """The repository and the commit, or None after the refusal was sent."""
        repository = self.serves.repositories.get(name)
        if repository is None or repository.kind != kind or repository.private:
            self._fail(401, "RepoNotFound", "Repository not found")
        elif repository.moved is not None:
            self._redirect(self.path.replace(name, repository.moved))
        elif repository.status is not None:
            self._fail(repository.status, "", "Planted fault")
        elif repository.gated:
            self._fail(401, "GatedRepo", "Access to this resource is restricted")
        elif (commit := repository.commit_of(revision)) is None:
            self._fail(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        else:
            return repository, commit
        return None

    def _api(self, kind: str, name: str, what: str, revision: str, below: str, body: bytes) -> None:
        found = self._find(kind, name, revision)
        if found is None:
            return
        repository, commit = found
        files = repository.commits[commit]
        if what == "revision":
            siblings = [{"rfilename": path} for path in files]
            about = {"_id": "0" * 24, "id": name, "sha": commit, "private": False, "gated": False, "disabled": False}
            self._json(about | {"siblings": siblings, "tags": [], "downloads": 0, "likes": 0})
        elif what == "tree":
            everything = parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[0].lower() in {"true", "1"}
            listed = _tree(files, below) if everything else _children(files, below)
            self._json(listed) if listed or not below else self._fail(404, "EntryNotFound", "Entry not found", commit)
        else:
            asked = json.loads(body)["paths"] if body.startswith(b"{") else _form_values(body)
            entries = {entry["path"]: entry for entry in (*_tree(files, ""), *_folders(files))}
            self._json([entries[path] for path in asked if path in entries])

    def _resolve(self, kind: str, name: str, revision: str, path: str) -> None:
        found = self._find(kind, name, revision)
        if found is None:
            return
        repository, commit = found
        data = repository.commits[commit].get(path)
        if data is None or path == repository.gone:
            self._fail(404, "EntryNotFound", "Entry not found", commit)
            return
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        start, stop = (int(asked[1]), int(asked[2] or len(data) - 1) + 1) if asked else (0, len(data))
        part = data[start:stop]
        self.send_response(206 if asked else 200)
        self.send_header("ETag", f'"{_git_id(data)}"')
        self.send_header("X-Repo-Commit", commit)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(part)))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{start + len(part) - 1}/{len(data)}")
        self.end_headers()
        if self.command != "HEAD":
            self._send(repository, path, part, self.headers.get("Range"))

    def _send(self, repository: Repository, path: str, part: bytes, asked: str | None) -> None:
        if asked:
            self.serves.ranges.append(f"{path} {asked}")
        if repository.cut_after is not None and repository.cuts != 0 and len(part) > repository.cut_after:
            repository.cuts -= 1
            part = part[: repository.cut_after]
            self.close_connection = True
        self.wfile.write(part)
        self.serves.served[path] = self.serves.served.get(path, 0) + len(part)

    def _redirect(self, place: str) -> None:
        self.send_response(307)
        self.send_header("Location", place)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _json(self, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _fail(self, status: int, code: str, message: str, commit: str = "") -> None:
        data = json.dumps({"error": message}).encode()
        self.send_response(status)
        for name, value in {"X-Error-Code": code, "X-Error-Message": message, "X-Repo-Commit": commit}.items():
            if value:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _tree(files: dict[str, bytes], below: str) -> list[dict[str, Any]]:
    return [
        {"type": "file", "path": path, "size": len(data), "oid": _git_id(data)}
        for path, data in files.items()
        if not below or path.startswith(f"{below}/")
    ]


def _children(files: dict[str, bytes], below: str) -> list[dict[str, Any]]:
    """The files and folders directly in a folder."""
    start = f"{below}/" if below else ""
    inside = [*_folders(files), *_tree(files, below)]
    return [
        entry for entry in inside if entry["path"].startswith(start) and "/" not in entry["path"].removeprefix(start)
    ]


def _folders(files: dict[str, bytes]) -> list[dict[str, Any]]:
    names = {path.rpartition("/")[0] for path in files if "/" in path}
    return [{"type": "directory", "path": name, "size": 0, "oid": "0" * 40} for name in sorted(names)]


def _form_values(body: bytes) -> list[str]:
    return [unquote(part.partition("=")[2]) for part in body.decode().split("&") if part.startswith("paths=")]


def _git_id(data: bytes) -> str:
    """The id that git, and so the hub, gives a file's bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
