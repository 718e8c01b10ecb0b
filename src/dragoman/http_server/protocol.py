"""Limits what a connection costs the server: time and bytes until a request is complete, and time to
read the rest of an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

__all__ = ["BoundedProtocol"]

_FRAMING_BYTES = 16
"""Bytes of framing per byte of body that are allowed, because a chunk may hold a single byte."""
_REFUSAL = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


_UPGRADE_HEADERS = (b"upgrade", b"http2-settings")
"""Headers, and options of `Connection`, with which a client offers another protocol."""


class _TooLargeError(Exception):
    """The first line and headers of a request are too large."""


class _Parser:
    """Parser of httptools that stays with HTTP/1.1 if a client offers another protocol (RFC 9110,
    section 7.8).

    The original parser stops after the headers of such a request and skips its body. So a new parser
    reads the headers a second time, without the offer, and then the body.
    """

    def __init__(self, protocol: BoundedProtocol) -> None:
        self._protocol = protocol
        self._parser = self._new_parser()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    def feed_data(self, data: bytes) -> None:
        """Feeds received bytes to the HTTP parser of httptools, and counts them."""
        while True:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                if not self._protocol.declines:
                    raise
                data = self._protocol.plain_head() + data[upgrade.args[0] :]
                self._parser = self._new_parser()
            else:
                return

    def _new_parser(self) -> Any:
        parser: Any = httptools.HttpRequestParser(self._protocol)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it
        return parser


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with more limits: for the time until the headers are complete, for their
    bytes, and for a client that does not read its answer.

    It ignores offers of other protocols, such as `Upgrade: h2c` of Java's client. It tells every
    request of a connection that its client is gone, not only the last one.
    """

    header_bytes = 64 * 1024
    """Most bytes of the first line and the headers, and of the framing of a body."""
    header_seconds = 20.0
    """Most seconds until the headers are complete, and most seconds in which a client may read
    nothing of the rest of an answer."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins the bounds of a new HTTP connection. See `asyncio.Protocol`."""
        super().connection_made(transport)  # pyright: ignore[reportArgumentType] - it is a `Transport`
        self.parser: Any = _Parser(self)
        self.declines = False
        """True if the request offers another protocol, so that its headers are read again."""
        self._overhead = self._body = self._head = 0
        self._is_too_large = False
        self._unread = 0
        self._cycles: list[RequestResponseCycle] = []
        self._deadline = self.loop.call_later(self.header_seconds, self._close_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the bounds of an HTTP connection. See `asyncio.Protocol`."""
        self._deadline.cancel()
        for cycle in self._cycles:
            if not cycle.response_complete:
                cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Takes bytes of an HTTP connection within the bounds. See `asyncio.Protocol`."""
        # Counted before parsing: a request that never becomes whole must count too.
        self._overhead += len(data)
        super().data_received(data)
        if (
            self._overhead > self.header_bytes + _FRAMING_BYTES * self._body
            and not self.transport.is_closing()
        ):
            # While an answer is being sent a refusal would end up in the middle of it.
            if not self._cycles:
                self.transport.write(_REFUSAL)
            self.transport.close()

    def on_message_begin(self) -> None:
        """Begins to count the bytes of a request's head, which the protocol bounds."""
        self._overhead = self._body = self._head = 0
        self.declines = False
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Takes a piece of the request's address."""
        self._count_header_bytes(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Takes one of the request's headers."""
        self._count_header_bytes(len(name) + len(value) + len(": \r\n"))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Starts the request, unless it offers another protocol and is read again without the
        offer."""
        # `CONNECT` always upgrades; there is no plain request within it.
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            self.declines = True
            return
        super().on_headers_complete()

    def plain_head(self) -> bytes:
        """Returns the request's first line and headers without the offer of another protocol."""
        lines = [
            b"%b %b HTTP/%b"
            % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        ]
        for name, value in self.headers:
            if name == b"connection":
                options = [option.strip() for option in value.split(b",")]
                value = b", ".join(
                    [word for word in options if word.lower() not in _UPGRADE_HEADERS]
                )
            if name not in _UPGRADE_HEADERS:
                lines.append(name + b": " + value)
        return b"\r\n".join([*lines, b"", b""])

    def send_400_response(self, msg: str) -> None:
        """Answers a malformed or too large request. Closes the connection if it is too large."""
        if not self._is_too_large:
            super().send_400_response(msg)
            return
        if not self._cycles:
            self.transport.write(_REFUSAL)
        self.transport.close()

    def _count_header_bytes(self, size: int) -> None:
        """Counts bytes of the first line and the headers, which the protocol bounds. Those that
        arrived together with the first byte of the request are in no other count."""
        self._head += size
        if self._head > self.header_bytes:
            self._is_too_large = True
            raise _TooLargeError

    def on_body(self, body: bytes) -> None:
        """Takes a piece of the request's body."""
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Ends the protocol's count for a request, which is complete."""
        self._overhead = 0
        if self.declines:
            return
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Starts the task of one of the protocol's requests, and the deadline again once no request
        runs."""
        self._deadline.cancel()
        # uvicorn tells only its latest request that the client is gone, so all are kept here.
        self._cycles.append(cycle)

        async def run(scope: Any, receive: Any, send: Any) -> None:
            """Runs the application for one request of the protocol."""
            try:
                await app(scope, receive, send)
            finally:
                self._cycles.remove(cycle)
                if not self._cycles:
                    self._start_deadline()

        super()._start_asgi_task(cycle, run)

    def _start_deadline(self) -> None:
        """Starts the protocol's deadline: limits the time until the next request, and until the
        client has read the rest of this answer."""
        self._deadline.cancel()
        if self.parser is None:  # pyright: ignore[reportUnnecessaryComparison] - so uvicorn has it when the connection is lost
            return
        self._unread = self.transport.get_write_buffer_size()
        self._deadline = self.loop.call_later(
            self.timeout_keep_alive + self.header_seconds, self._close_idle
        )

    def _close_idle(self) -> None:
        """Closes the protocol's connection, unless its client is still reading."""
        unread = self.transport.get_write_buffer_size()
        if unread and unread < self._unread:  # it is being read
            self._start_deadline()
        elif unread:
            self.transport.abort()
        else:
            self.transport.close()
