"""What a connection may take of a server beside its requests: time and bytes before one is whole, and time to read the rest of an answer."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

__all__ = ["BoundedProtocol"]

_FRAMING = 16
"""Bytes around each byte of a body that are no attack: a chunk may be that small."""
_REFUSAL = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's, with bounds that it has not: for the time until a request's headers are whole, for their bytes, and for a client that
    leaves an answer unread. It also tells every request of a connection that its client is gone, not only the last one."""

    header_bytes = 64 * 1024
    """Most bytes of the first line and the headers; of what frames a body, beside the body."""
    header_seconds = 20.0
    """Most seconds that they may take to come, and that nothing may be read of what is left of an answer."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(transport)  # pyright: ignore[reportArgumentType] - it is a `Transport`
        self._overhead = self._body = 0
        self._unread = 0
        self._cycles: list[RequestResponseCycle] = []
        self._deadline = self.loop.call_later(self.header_seconds, self._end)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._deadline.cancel()
        for cycle in self._cycles:
            if not cycle.response_complete:
                cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._overhead += len(data)
        super().data_received(data)
        if self._overhead > self.header_bytes + _FRAMING * self._body and not self.transport.is_closing():
            if not self._cycles:
                self.transport.write(_REFUSAL)
            self.transport.close()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._overhead = self._body = 0
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        """A piece of its body."""
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """It is whole."""
        self._overhead = 0
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._deadline.cancel()
        self._cycles.append(cycle)

        async def run(scope: Any, receive: Any, send: Any) -> None:
            try:
                await app(scope, receive, send)
            finally:
                self._cycles.remove(cycle)
                if not self._cycles:
                    self._begin_waiting()

        super()._start_asgi_task(cycle, run)

    def _begin_waiting(self) -> None:
        """No request is worked at: the next one must come in time, and what is left of this answer must be read."""
        self._deadline.cancel()
        if self.parser is None:  # pyright: ignore[reportUnnecessaryComparison] - so uvicorn has it when the connection is lost
            return
        self._unread = self.transport.get_write_buffer_size()
        self._deadline = self.loop.call_later(self.timeout_keep_alive + self.header_seconds, self._end)

    def _end(self) -> None:
        unread = self.transport.get_write_buffer_size()
        if unread and unread < self._unread:  # it is being read
            self._begin_waiting()
        elif unread:
            self.transport.abort()
        else:
            self.transport.close()
