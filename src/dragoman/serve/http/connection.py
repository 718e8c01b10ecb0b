"""Writes the answer to one request (`Connection`), and limits how many calls run (`ConcurrencyGate`).

A connection sends pings during long silences, and ends its call if the client leaves or does not
read. The gate counts calls per key and in all, and refuses new ones beyond the limits.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import anyio
from starlette.types import Message, Receive, Send

from dragoman.errors import DragomanError, OverloadedError, ProviderTimeoutError, RateLimitError
from dragoman.logs import logger
from dragoman.serve.http.callers import Caller
from dragoman.serve.http.limits import ServerLimits

__all__ = ["Connection", "ConcurrencyGate"]

_LOG = logger("serve")
_NEVER = float("inf")
_UNBUFFERED = {"cache-control": "no-cache", "x-accel-buffering": "no"}
"""Headers of a stream, so that no proxy keeps or collects it."""

_NO_SNIFFING = (b"x-content-type-options", b"nosniff")
_RETRY_SECONDS = 1.0


class Connection:
    """Sends the answer to one request. Use it in `async with`: if the client leaves, or reads nothing
    for too long, the block is cancelled without an error.

    One more task waits for the client to leave, and one timer watches the silences. A write needs
    neither. Unread data is bounded: a write waits until the server's buffer has room.
    """

    def __init__(
        self,
        receive: Receive,
        send: Send,
        limits: ServerLimits,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Creates the connection. `receive`: its body was read already. `headers`: sent with every
        answer."""
        self._headers = [*_encode_headers(headers or {}), _NO_SNIFFING]
        self._receive = receive
        self._send = send
        self._limits = limits
        self._scope = anyio.CancelScope()
        self._leaving: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._writing_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pinging: asyncio.Task[None] | None = None
        self._start: Message | None = None
        self._ping = b""
        self._error_bytes: Callable[[DragomanError], bytes] | None = None
        self._work: anyio.CancelScope | None = None
        self._interruption: DragomanError | None = None
        self._is_gone = False
        self.started = False
        """True once the status was sent."""
        self.ended = False
        """True once everything was sent."""
        self.first: float | None = None
        """When the first piece of a stream went out, on the loop's clock."""

    async def __aenter__(self) -> Self:
        self._scope.__enter__()
        self._leaving = self._loop.create_task(self._watch_client(), name="dragoman-leaving")
        self._timer = self._loop.call_later(self._limits.ping_seconds, self._check_silence)
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        if self._timer is not None:
            self._timer.cancel()
        # A cancel scope that ends its tasks costs more: it words a reason with the task's whole
        # stack.
        helpers = [task for task in (self._leaving, self._pinging) if task is not None]
        for task in helpers:
            task.cancel()
        is_suppressed = self._scope.__exit__(error_type, error, trace)
        # Behind the scope, which would interrupt this too: the helpers end in this turn of the
        # loop.
        await asyncio.wait(helpers)
        return is_suppressed

    async def run(self, work: Callable[[], Awaitable[None]]) -> Exception | None:
        """Runs `work` under the request's deadline. Returns the exception that ended it early, or
        None."""
        seconds = self._limits.run_seconds
        if seconds is None:
            deadline = _NEVER
        else:
            deadline = self._loop.time() + seconds
        self._work = anyio.CancelScope(deadline=deadline)
        # The server may have been told to end before this call began its work.
        if self._interruption is not None:
            return self._interruption
        try:
            with self._work:
                await work()
        except Exception as error:  # noqa: BLE001 - in a task group it would become a group
            return error
        if not self._work.cancelled_caught:
            return None
        return self._interruption or ProviderTimeoutError(
            f"the answer took longer than {seconds:g} seconds, which is the most that this server takes"
        )

    @property
    def is_interrupted(self) -> bool:
        """True if the server ends the call, not its client."""
        return self._interruption is not None

    def interrupt(self, error: DragomanError) -> None:
        """Ends the work of `run`, which returns this error."""
        self._interruption = error
        if self._work is not None:
            self._work.cancel()

    def stream(
        self,
        headers: Mapping[str, str],
        ping: bytes,
        error_bytes: Callable[[DragomanError], bytes] | None,
    ) -> None:
        """Prepares a stream, which begins with the first `write` or after a long silence.

        Args:
            headers: headers of the stream.
            ping: bytes that keep it alive; empty if the format has none.
            error_bytes: makes the bytes that end it with an error. `None`: the format can tell none, and
                the stream is cut.
        """
        self._start, self._ping, self._error_bytes = (
            self._start_message(200, {**headers, **_UNBUFFERED}),
            ping,
            error_bytes,
        )

    def add_headers(self, headers: Mapping[str, str]) -> None:
        """Adds headers to a stream that has not begun; later they are left out."""
        if self._start is not None and headers:
            self._start["headers"] = [*self._start["headers"], *_encode_headers(headers)]

    async def write(self, data: bytes) -> None:
        """Writes the next piece of a stream."""
        if self.first is None:
            self.first = self._loop.time()
        # A sign of life that is going out must not be cut by this piece.
        if self._pinging is not None:
            await asyncio.wait((self._pinging,))
        if not self.started:
            await self._send_start()
        await self._send_message({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """Ends a stream, with its last piece."""
        if self._pinging is not None:
            await asyncio.wait((self._pinging,))
        if not self.started:
            await self._send_start()
        self.ended = True
        await self._send_message({"type": "http.response.body", "body": data, "more_body": False})

    async def end_with(self, error: DragomanError) -> None:
        """Ends a stream that has begun and cannot go on, as its format tells an error."""
        if self.ended:
            return
        if self._error_bytes is not None:
            await self.end(self._error_bytes(error))
            return
        # Without its last piece the client sees that the answer is not whole.
        self.ended = True
        self._scope.cancel()

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Sends a whole HTTP response."""
        self.started = self.ended = True
        await self._send_message(
            self._start_message(status, {**headers, "content-length": str(len(body))})
        )
        await self._send_message({"type": "http.response.body", "body": body, "more_body": False})

    def _start_message(self, status: int, headers: Mapping[str, str]) -> Message:
        """Returns the ASGI message that starts a response."""
        return {
            "type": "http.response.start",
            "status": status,
            "headers": [*_encode_headers(headers), *self._headers],
        }

    async def _send_start(self) -> None:
        assert self._start is not None, "stream() comes before what is streamed"
        self.started = True
        await self._send_message(self._start)

    async def _send_message(self, message: Message) -> None:
        """Sends one ASGI message, unless the client is gone."""
        # The client has left; sending again would raise the same error.
        if self._is_gone:
            return
        self._writing_since = self._loop.time()
        try:
            await self._send(message)
        except OSError:
            # Some servers raise OSError when the client is gone.
            self._is_gone = True
            self._scope.cancel()
        self._last, self._writing_since = self._loop.time(), None

    async def _watch_client(self) -> None:
        """Waits until the client disconnects, then cancels the call."""
        try:
            while (await self._receive())["type"] != "http.disconnect":
                pass
        except Exception:  # noqa: BLE001 - no server that can receive no more can send
            _LOG.info("a call is ended, since its server cannot receive", exc_info=True)
        self._scope.cancel()

    def _check_silence(self) -> None:
        """Ends the call if the client reads nothing, and sends a ping after a silence."""
        now, limits, since = self._loop.time(), self._limits, self._writing_since
        again = now + limits.ping_seconds
        if since is not None:
            if limits.write_seconds is None:
                cut = _NEVER
            else:
                cut = since + limits.write_seconds
            if now >= cut:
                _LOG.warning(
                    "a client read nothing for %g seconds; its call is ended", limits.write_seconds
                )
                self._scope.cancel()
                return
            again = min(again, cut)
        elif now < self._last + limits.ping_seconds:
            again = self._last + limits.ping_seconds
        elif self._start is not None and (self._ping or not self.started):
            self._pinging = self._loop.create_task(self._send_ping())
        self._timer = self._loop.call_at(again, self._check_silence)

    async def _send_ping(self) -> None:
        """Sends a ping to keep the stream open."""
        try:
            if self.ended:
                return
            if not self.started:
                await self._send_start()
            if self._ping:
                await self._send_message(
                    {"type": "http.response.body", "body": self._ping, "more_body": True}
                )
        finally:
            self._pinging = None


def _encode_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Encodes the headers of a connection's response for ASGI, each on one line."""
    return [
        (name.lower().encode("latin-1"), _one_line(value).encode("latin-1", "replace"))
        for name, value in headers.items()
    ]


def _one_line(value: str) -> str:
    """Returns the value of a connection's header with spaces for what it cannot hold."""
    if value.isprintable():
        return value
    return "".join([character if character.isprintable() else " " for character in value])


class ConcurrencyGate:
    """Counts the calls that run, and refuses more than the limits allow."""

    def __init__(
        self, limits: ServerLimits, note_open: Callable[[int], object] = lambda _: None
    ) -> None:
        """Creates the gate that bounds the server's concurrent calls and body bytes. `note_open`
        gets the number of calls that run, each time it changes."""
        self._limits, self._note_open = limits, note_open
        self._by_caller: Counter[str] = Counter()
        self._connections: set[Connection] = set()
        self._idle = asyncio.Event()
        self.open = 0
        """Number of calls that run."""
        self.bytes = 0
        """Bytes of the bodies of these calls."""
        self.closed = False
        """True if new calls are refused."""

    @contextmanager
    def count_call(self, caller: Caller) -> Generator[None]:
        """Counts a call as long as it runs.

        Raises:
            OverloadedError: as many run as may, or the server is about to end.
            RateLimitError: as many run with this key as may.
        """
        limits, open_calls = self._limits, self._by_caller
        if self.closed:
            raise OverloadedError(
                "the server is being restarted; send the request again", retry_after=_RETRY_SECONDS
            )
        if limits.open_calls is not None and self.open >= limits.open_calls:
            raise OverloadedError(
                "the server has as many calls open as it takes; try again",
                retry_after=_RETRY_SECONDS,
            )
        if limits.calls_per_caller is not None and open_calls[caller.id] >= limits.calls_per_caller:
            raise RateLimitError(
                "as many calls are open with this key as may be; try again",
                retry_after=_RETRY_SECONDS,
            )
        self.open += 1
        self._note_open(self.open)
        open_calls[caller.id] += 1
        try:
            yield
        finally:
            self.open -= 1
            self._note_open(self.open)
            open_calls[caller.id] -= 1
            if not open_calls[caller.id]:
                # Callers without open calls are forgotten, or the counter would
                # grow with every key.
                del open_calls[caller.id]
            if not self.open:
                self._idle.set()

    @contextmanager
    def hold_bytes(self) -> Generator[Callable[[int], None]]:
        """Gives a function that counts bytes of a body for as long as the call runs. It raises
        `OverloadedError` if all bodies together are too large."""
        taken = 0

        def take(count: int) -> None:
            nonlocal taken
            most = self._limits.bodies_bytes
            if most is not None and self.bytes + count > most:
                raise OverloadedError(
                    "the server holds as many bytes of requests as it takes; try again",
                    retry_after=_RETRY_SECONDS,
                )
            taken += count
            self.bytes += count

        try:
            yield take
        finally:
            self.bytes -= taken

    @contextmanager
    def track_connection(self, connection: Connection) -> Generator[None]:
        """Registers the connection of a call, so that `interrupt` can end it."""
        self._connections.add(connection)
        try:
            yield
        finally:
            self._connections.discard(connection)

    def interrupt(self, error: DragomanError) -> None:
        """Ends all calls. Each client gets this error in the format of its API."""
        for connection in list(self._connections):
            connection.interrupt(error)

    async def drain(self) -> None:
        """Refuses new calls, and waits until none runs."""
        self.closed = True
        while self.open:
            self._idle.clear()
            await self._idle.wait()
