"""The proxy's answers: from a recording, or from the provider, whose answer is then recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, NamedTuple, cast

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from dragoman import json_bytes, wires
from dragoman.errors import (
    DecodeError,
    DragomanError,
    InvalidRequestError,
    ModelNotFoundError,
    RequestTooLargeError,
    StreamCutError,
)
from dragoman.proxy.forward import Forwarder, ProviderAnswer, RawHeaders, decompress
from dragoman.proxy.recordings import Nearest, Recording, RecordingIndex, path_key
from dragoman.proxy.upstreams import Upstream
from dragoman.proxy.wire_of import find_wire
from dragoman.request import HttpRequest
from dragoman.transport.exchange import Exchange, request_body
from dragoman.transport.exchange_file import format_exchange
from dragoman.transport.redaction import public_url

__all__ = ["Mode", "RecordingProxy"]

Mode = Literal["record", "record-new", "replay"]
"""`record`: asks the provider and records; `record-new`: only for what is not recorded; `replay`:
never."""

_MOST_BODY = 2**26
"""Bytes of a request, and of an answer that is recorded."""
_ID = b"dragoman-exchange"
"""Header of an answer with the id of its recording."""
_NEAREST = b"dragoman-nearest"
"""Header of an answer to a request that differs from the recorded one: in how many lines."""
_NO_RETRY = (b"x-should-retry", b"false")


class _Incoming(NamedTuple):
    """A request, as it came and as it is recorded."""

    method: str
    url: str
    headers: RawHeaders
    body: bytes

    @property
    def recorded(self) -> HttpRequest:
        """Returns the request as its recording has it: its body without compression."""
        headers = _join_headers(self.headers)
        body = self.body
        # What cannot be read is recorded, and compared, as it came.
        with suppress(DecodeError):
            body = decompress(body, headers.get("content-encoding", ""), _MOST_BODY)
        return HttpRequest(self.url, headers, body or None, cast("Any", self.method))


class RecordingProxy:
    """An ASGI application that answers `/NAME/PATH` as the host of that name does.

    Args:
        recordings: answer requests, and get new ones.
        upstreams: hosts by their names.
        mode: when a provider is asked.
        is_nearest: a request that is not recorded gets the answer to the one that is most like it.
        tell: gets a line for people about what went wrong, or otherwise than was asked.
        log: gets a line for each request.

    Attributes:
        recordings: as given.
        counts: how many requests were `replayed`, `nearest`, `recorded`, `passed` without a
            recording, `failed` and `unknown`.
    """

    def __init__(
        self,
        recordings: RecordingIndex,
        upstreams: Mapping[str, Upstream],
        *,
        mode: Mode,
        is_nearest: bool = False,
        tell: Callable[[str], object],
        log: Callable[[str], object] | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.recordings = recordings
        self._upstreams = upstreams
        self._mode: Mode = mode
        self._is_nearest = is_nearest
        self._tell = tell
        self._log = log
        self._forwarder = Forwarder()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Holds the connections to providers open within the block."""
        async with self._forwarder.running():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        client = _Client(receive, send)
        incoming = _Incoming(scope["method"], "", scope["headers"], b"")
        try:
            incoming = incoming._replace(url=self._find_url(scope))
            incoming = incoming._replace(body=await client.read_body())
            await self._answer(incoming, client)
        except ClientDisconnect:
            return
        except StreamCutError:
            # What was begun is left without an end, by which the client sees that it was cut.
            self.counts["failed"] += 1
        except DragomanError as error:
            self.counts["failed"] += 1
            self._tell(f"{incoming.method} {public_url(incoming.url)}: {error}")
            if not client.is_begun:
                await _refuse(incoming, client, error)

    def _find_url(self, scope: Scope) -> str:
        """Returns the URL at the provider. Raises `ModelNotFoundError` if no host has that name."""
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        name, _, host_path = path[1:].partition("/")
        upstream = self._upstreams.get(name)
        if upstream is None:
            raise ModelNotFoundError(
                f"no upstream is named {name!r:.80}; there are {', '.join(self._upstreams)}, and --upstream NAME=URL adds one"
            )
        return f"{upstream.origin}/{host_path}{'?' if query else ''}{query}"

    async def _answer(self, incoming: _Incoming, client: _Client) -> None:
        """Answers a request as the mode says."""
        if self._mode != "record":
            key = path_key(incoming.method, incoming.url, request_body(incoming.recorded))
            answering = self.recordings.find(key, only_final=self._mode == "record-new")
            if answering is not None:
                self._count("replayed", incoming, answering[0])
                await client.replay(*answering)
                return
            if self._mode == "replay":
                await self._answer_unknown(incoming, self.recordings.find_nearest(key), client)
                return
        await self._forward(incoming, client)

    async def _answer_unknown(
        self, incoming: _Incoming, nearest: Nearest | None, client: _Client
    ) -> None:
        """Answers a request that is not recorded: by the nearest recording, or by an error."""
        what = f"{incoming.method} {public_url(incoming.url)}"
        if nearest is None:
            difference = ["nothing is recorded of that method and path"]
        else:
            difference = [f"the nearest recording is {nearest.recording.id}", *nearest.difference]
        if nearest is None or not self._is_nearest:
            self.counts["unknown"] += 1
            self._tell("\n  ".join([f"{what} is not recorded:", *difference]))
            raise _UnknownRequestError(
                f"{what} is not recorded in {self.recordings.folder.path}: {difference[0]}; record it with --mode record-new"
            )
        self._count("nearest", incoming, nearest.recording)
        self._tell("\n  ".join([f"{what} is answered as another request:", *difference]))
        changed = sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in difference)
        note = (_NEAREST, f"{changed} lines differ".encode())
        await client.replay(nearest.recording, nearest.exchange, note)

    async def _forward(self, incoming: _Incoming, client: _Client) -> None:
        """Lets the provider answer, and records the exchange."""
        async with self._forwarder.send(
            incoming.method, incoming.url, incoming.headers, incoming.body
        ) as answer:
            arrived, failure = await client.relay(answer)
        recording = None
        if arrived is not None:
            # Also when the server is asked to end: the provider was paid for it.
            with anyio.CancelScope(shield=True):
                is_cut = failure is not None or client.is_gone
                recording = await self._record(incoming, answer, arrived, is_cut=is_cut)
        self._count("passed" if recording is None else "recorded", incoming, recording)
        if failure is not None:
            raise failure
        # Only now, so that the client's next request finds the recording.
        await client.end()

    def _count(self, outcome: str, incoming: _Incoming, recording: Recording | None) -> None:
        """Counts an answer, and logs it."""
        self.counts[outcome] += 1
        if self._log is not None:
            name = "" if recording is None else f" {recording.id}"
            self._log(f"{outcome}{name} {incoming.method} {public_url(incoming.url)}")

    async def _record(
        self, incoming: _Incoming, answer: ProviderAnswer, arrived: bytes, *, is_cut: bool
    ) -> Recording | None:
        """Records an exchange. One that cannot be recorded is told of; the client has its
        answer."""
        headers = _join_headers(answer.headers)

        def write() -> Recording:
            encoding = headers.get("content-encoding", "").strip().lower()
            body = decompress(arrived, encoding, _MOST_BODY)
            text = format_exchange(incoming.recorded, answer.status, headers, body, cut=is_cut)
            return self.recordings.add(text)

        try:
            return await anyio.to_thread.run_sync(write)
        except (DragomanError, OSError) as error:
            self._tell(f"{incoming.method} {public_url(incoming.url)} is not recorded: {error}")
            return None


class _UnknownRequestError(InvalidRequestError):
    """A request is not recorded, and the provider may not be asked."""


class _Client:
    """The client of one request."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self.is_begun = False
        """True once the status was sent."""
        self.is_gone = False
        """True once the client has left before the end."""

    async def read_body(self) -> bytes:
        """Returns the request's body. Raises `ClientDisconnect` if the client leaves, and
        `RequestTooLargeError`."""
        body = bytearray()
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += message.get("body", b"")
            if len(body) > _MOST_BODY:
                raise RequestTooLargeError(
                    f"a body of more than {_MOST_BODY} bytes is not passed on"
                )
            if not message.get("more_body", False):
                return bytes(body)

    async def begin(self, status: int, headers: RawHeaders) -> None:
        """Sends status and headers."""
        self.is_begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def end(self, body: bytes = b"") -> None:
        """Sends the last bytes of the body."""
        await self._send({"type": "http.response.body", "body": body})

    async def relay(self, answer: ProviderAnswer) -> tuple[bytes | None, DragomanError | None]:
        """Sends a provider's answer on as it arrives, but not its end. Returns its bytes, or None if
        there are too many to record, and what broke it."""
        arrived: list[bytes] = []
        size, failure = 0, None
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, group.cancel_scope)
            await self.begin(answer.status, answer.headers)
            try:
                async for piece in answer.pieces:
                    message = {"type": "http.response.body", "body": piece, "more_body": True}
                    await self._send(message)
                    size += len(piece)
                    if size <= _MOST_BODY:
                        arrived.append(piece)
            except DragomanError as error:
                failure = error
            # Ends the watch.
            group.cancel_scope.cancel()
        return (b"".join(arrived) if size <= _MOST_BODY else None), failure

    async def replay(
        self, recording: Recording, exchange: Exchange, *notes: tuple[bytes, bytes]
    ) -> None:
        """Sends a recorded answer.

        Raises:
            StreamCutError: it was cut, and so this one must be.
        """
        headers = [(name.encode(), text.encode()) for name, text in exchange.headers.items()]
        headers += [(_ID, recording.id.encode()), *notes]
        if not recording.is_final:
            # The client that was recorded did not try again, or else the next attempt is recorded.
            headers.append(_NO_RETRY)
        if exchange.cut_after is None:
            headers.append((b"content-length", str(len(exchange.body)).encode()))
        await self.begin(exchange.status, headers)
        if exchange.cut_after is not None:
            message = {"type": "http.response.body", "body": exchange.body, "more_body": True}
            await self._send(message)
            raise StreamCutError("the recorded connection was cut here")
        await self.end(exchange.body)

    async def _watch(self, work: anyio.CancelScope) -> None:
        """Cancels the work when the client leaves."""
        while (await self._receive())["type"] != "http.disconnect":
            continue
        self.is_gone = True
        work.cancel()


async def _refuse(incoming: _Incoming, client: _Client, error: DragomanError) -> None:
    """Answers with an error in the shape of the API that was asked."""
    route = find_wire(incoming.method, incoming.url)
    refusal = wires.get(route.wire if route else "openai_chat").dump_error(error)
    body = json_bytes.encode(refusal.body)
    headers = {**refusal.headers, "content-type": "application/json"}
    await client.begin(
        refusal.status,
        [
            *((name.encode(), text.encode()) for name, text in headers.items()),
            (b"content-length", str(len(body)).encode()),
            _NO_RETRY,
        ],
    )
    await client.end(body)


def _join_headers(headers: RawHeaders) -> dict[str, str]:
    """Returns headers as a mapping; of several of one name the last one."""
    return {name.decode("latin-1").lower(): text.decode("latin-1") for name, text in headers}
