"""A scripted provider that checks each request as the real one does, and counts what it was sent.

Each API is an `Api`: it reads a request into a `Seen` or raises `Refused`, and writes a `Step` as a
stream. What the APIs have in common is here: the server, ids in pairs, signatures, and how much of a
conversation stood unchanged at the head of the next request.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

__all__ = ["Api", "Call", "Refused", "Report", "Seen", "Step", "Turn", "served", "sign"]

_KEY = b"a key of these tests"


class Refused(Exception):
    """Why a request gets a 400."""


@dataclass
class Call:
    """A call of a tool."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""


@dataclass
class Step:
    """What the model does next: calls, or a text."""

    calls: list[Call] = field(default_factory=list)
    text: str = ""
    stalls: bool = False
    """The stream stops in its middle until the client is gone."""


@dataclass
class Turn:
    """A message, whatever the API."""

    role: str
    """`user`, `model` or `system`."""
    text: str = ""
    calls: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    images: int = 0


@dataclass
class Seen:
    """What a request says, whatever the API."""

    turns: list[Turn]
    tools: dict[str, Any]
    """Name of a function → its schema."""
    pieces: list[Any]
    """What must stand unchanged at the head of the next request: tools, system text, messages."""


@dataclass
class Report:
    """What a provider was sent."""

    bodies: list[Any] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    stable: int = 0
    """Characters that stood unchanged at the head of the next request of a conversation."""
    expected: int = 0
    """Characters that could have."""
    images: int = 0
    """Most images of a request."""
    stalled: int = 0
    """Answers that stopped in their middle."""
    gone: int = 0
    """Clients that were gone before their answer ended."""
    largest: int = 0
    """Bytes of the largest request."""


class Api(Protocol):
    """One API of a provider."""

    def read(self, body: Any, headers: Mapping[str, str], path: str) -> Seen:
        """Checks a request. Raises `Refused`."""
        ...

    def write(self, step: Step, number: int, body: Any) -> Iterator[bytes]:
        """The pieces of a streamed answer."""
        ...

    def error(self, words: str) -> Any:
        """The body of a 400."""
        ...

    def count(self, path: str, size: int) -> Any:
        """The answer to a request for a count of tokens, or None if it is another."""
        ...


def sign(*signed: object) -> str:
    """A signature of this provider."""
    return hmac.new(_KEY, json.dumps(signed).encode(), hashlib.sha256).hexdigest()


def check_pairs(turns: list[Turn]) -> None:
    """Each call has one result, before the model goes on; no id is there twice."""
    waiting: set[str] = set()
    known: set[str] = set()
    for turn in turns:
        for name in turn.results:
            if name not in waiting:
                raise Refused(f"a result for {name}, which was not called")
            waiting.discard(name)
        if waiting and (turn.calls or turn.role == "model" or turn.text):
            raise Refused(f"no result for {sorted(waiting)} before a turn of {turn.role}")
        if len(set(turn.calls)) != len(turn.calls) or known & set(turn.calls):
            raise Refused(f"an id is there twice: {turn.calls}")
        known |= set(turn.calls)
        waiting |= set(turn.calls)
    if waiting:
        raise Refused(f"no result for {sorted(waiting)}")


def event(content: Any, name: str = "") -> bytes:
    """A server-sent event."""
    head = f"event: {name}\n" if name else ""
    return (
        f"{head}data: {content if isinstance(content, str) else json.dumps(content)}\n\n".encode()
    )


class _Prefixes:
    """Of which conversation a request is, and how much of it stood there before."""

    def __init__(self) -> None:
        self._last: dict[str, list[tuple[bytes, int]]] = {}

    def measure(self, name: str, pieces: list[Any], report: Report) -> None:
        sizes = []
        for piece in pieces:
            text = json.dumps(piece, sort_keys=True)
            sizes.append((hashlib.sha256(text.encode()).digest(), len(text)))
        before = self._last.get(name)
        if before is not None:
            same = itertools.takewhile(
                lambda pair: pair[0] == pair[1], zip(before, sizes, strict=False)
            )
            report.stable += sum(size for (_, size), _ in same)
            report.expected += sum(size for _, size in before)
        self._last[name] = sizes


@contextmanager
def served(
    api: Api, play: Callable[[Seen], Step], name_of: Callable[[Seen], str | None]
) -> Iterator[tuple[str, Report]]:
    """Serves a provider → its address and its report. `play`: what its model does. `name_of`: the
    conversation of a request; None: one beside the task."""
    report, prefixes = Report(), _Prefixes()
    lock, numbers = threading.Lock(), itertools.count(1)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def give(self, status: int, content: Any) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.give(404, api.error("Not Found"))

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
            if (counted := api.count(self.path, len(data))) is not None:
                self.give(200, counted)
                return
            with lock:
                report.largest = max(report.largest, len(data))
                body = json.loads(data)
                report.bodies.append(body)
                try:
                    seen = api.read(body, self.headers, self.path)
                    check_pairs(seen.turns)
                except Refused as refused:
                    report.refused.append(str(refused))
                    self.give(400, api.error(str(refused)))
                    return
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    report.refused.append(f"malformed: {error!r}")
                    self.give(400, api.error(f"malformed: {error!r}"))
                    return
                report.images = max(report.images, sum(turn.images for turn in seen.turns))
                if (name := name_of(seen)) is not None:
                    prefixes.measure(name, seen.pieces, report)
                step, number = play(seen), next(numbers)
            self.stream(step, number, body)

        def stream(self, step: Step, number: int, body: Any) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            pieces = list(api.write(step, number, body))
            if step.stalls:
                pieces = pieces[: max(2, len(pieces) // 2)]
            for piece in pieces:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            if step.stalls:
                self.wfile.flush()
                report.stalled += 1
                self.connection.settimeout(30)
                # Until the client closes the connection.
                if self.connection.recv(1) == b"":
                    report.gone += 1
                self.close_connection = True
                return
            self.wfile.write(b"0\r\n\r\n")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", report
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
