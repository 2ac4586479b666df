"""The part of GitHub's API that a comment needs, on loopback: issue comments of one pull request, in pages, with authors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

BOT = "github-actions[bot]"


class Api:
    """What the server holds and saw: comments, requests (method and path), and whether writing is allowed."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.tokens: set[str] = set()
        self.may_write = True
        self.url = ""

    def add(self, body: str, author: str = BOT) -> dict[str, Any]:
        """A comment, as GitHub would store it."""
        number = 1000 + len(self.comments)
        made = {"id": number, "body": body, "user": {"login": author}, "html_url": f"https://github.com/c/{number}"}
        self.comments.append(made)
        return made


@contextmanager
def served() -> Iterator[Api]:
    """A server for one test."""
    api = Api()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self, code: int, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _seen(self) -> str:
            path = urlsplit(self.path).path
            api.requests.append(f"{self.command} {path}")
            api.tokens.add(self.headers.get("Authorization", ""))
            return path

        def _body(self) -> dict[str, Any]:
            found: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            return found

        def do_GET(self) -> None:
            assert self._seen() == "/repos/owner/models/issues/7/comments"
            query = parse_qs(urlsplit(self.path).query)
            size, page = int(query["per_page"][0]), int(query["page"][0])
            self._answer(200, api.comments[size * (page - 1) : size * page])

        def do_POST(self) -> None:
            assert self._seen() == "/repos/owner/models/issues/7/comments"
            body = self._body()["body"]
            if api.may_write:
                self._answer(201, api.add(body))
            else:
                self._answer(403, {"message": "Resource not accessible by integration"})

        def do_PATCH(self) -> None:
            number = int(self._seen().rpartition("/")[2])
            found = next(comment for comment in api.comments if comment["id"] == number)
            found["body"] = self._body()["body"]
            self._answer(200, found)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
