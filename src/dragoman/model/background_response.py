"""The response to a request whose answer the provider makes in the background.

It is read as any other: whole answers are asked for until they are finished, and a stream that
breaks is opened again behind the last whole event. Whoever closes it before its end ends the answer
at the provider, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from time import monotonic

import anyio
import msgspec

from dragoman import json_bytes
from dragoman.codec.background import UNFINISHED, BackgroundForm
from dragoman.codec.json_values import if_object, if_text
from dragoman.errors import DragomanError, ProviderConnectionError, ProviderTimeoutError
from dragoman.event import BACKGROUND_STATUS, Custom
from dragoman.json_bytes import JsonMap
from dragoman.request import HttpRequest
from dragoman.transport.base import Response, read_all

__all__ = ["BackgroundResponse"]

_FIRST_WAIT, _LONGEST_WAIT = 1.0, 10.0
"""Seconds between two requests for an answer: at first, and at most."""
_MOST_SECONDS = 86_400.0
"""An answer that is not finished by then is given up."""
_MOST_FAILURES = 5
"""Requests in a row that may fail, and openings of a stream that may bring nothing new."""
_MARKS = (b"\n\n", b"\r\n\r\n")
"""How an event of a stream ends; the longer one last."""
_STOP_SECONDS = 2.0
"""Seconds that a call which is left waits at most until the provider is told so."""


class _State(msgspec.Struct, frozen=True, gc=False):
    id: str = ""
    status: str = ""


class _Frame(msgspec.Struct, frozen=True, gc=False):
    type: str | None = None
    event_type: str | None = None
    sequence_number: int | None = None
    event_id: str | None = None
    response: _State | None = None
    interaction: _State | None = None


_decode_frame = msgspec.json.Decoder(_Frame).decode


class BackgroundResponse:
    """A `Response` that waits for an answer in the background."""

    def __init__(
        self,
        first: Response,
        form: BackgroundForm,
        send: Callable[[HttpRequest], Awaitable[Response]],
        *,
        streams: bool,
    ) -> None:
        """Creates the response. `first`: to the request for the answer. `send`: sends a further
        request to the provider. `streams`: the answer comes as a stream."""
        self._response, self._form, self._send, self._streams = first, form, send, streams
        self._deadline = monotonic() + _MOST_SECONDS
        self._state = _State()
        self._position: int | str | None = None
        self._is_over = False
        # It may go on at the provider, where it can be asked for by its id.
        self._is_lost = False
        self._half_frame = bytearray()
        self._failures = 0
        self._reports: list[Custom] = []

    @property
    def status(self) -> int:
        """Returns the HTTP status."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Returns the headers, with names in lower case."""
        return self._response.headers

    def take_reports(self) -> list[Custom]:
        """Returns what is to be told of the background answer since the last call."""
        reports, self._reports = self._reports, []
        return reports

    async def read(self) -> bytes:
        """Returns the next bytes of the background answer; see `Response.read`."""
        try:
            if self._streams:
                return await self._read_stream()
            return await self._read_whole()
        except DragomanError:
            self._is_lost = True
            raise

    async def close(self) -> None:
        """Ends the response, and the background answer if it is left unfinished."""
        await self._response.close()
        if not self._state.id or self._is_over or self._is_lost:
            return
        self._is_over = True
        with anyio.move_on_after(_STOP_SECONDS, shield=True), suppress(DragomanError):
            stopped = await self._send(self._form.dump_stop(self._state.id))
            await stopped.close()

    async def _read_whole(self) -> bytes:
        """Asks for the background answer until its state is another one. Returns the event that
        tells of it, or the finished answer."""
        wait = _FIRST_WAIT
        while not self._is_over:
            is_first = not self._state.id
            body = await (read_all(self._response) if is_first else self._poll(wait))
            wait = min(wait * 1.5, _LONGEST_WAIT)
            answer = _read_object(body)
            before = self._state.status
            self._note_state(_State(if_text(answer.get("id")), if_text(answer.get("status"))))
            if self._is_over:
                return body if is_first else _frame(answer)
            if self._state.status != before:
                return _frame(self._form.begin(answer))
        return b""

    async def _poll(self, wait: float) -> bytes:
        """Asks for the background answer once more. `wait`: seconds until then."""
        while True:
            self._check_time()
            await anyio.sleep(wait)
            try:
                response = await self._send(self._form.dump_poll(self._state.id))
                try:
                    body = await read_all(response)
                finally:
                    await response.close()
            except (ProviderConnectionError, ProviderTimeoutError):
                self._failures += 1
                if self._failures > _MOST_FAILURES:
                    raise
            else:
                self._failures = 0
                return body

    async def _read_stream(self) -> bytes:
        """Returns the next whole events of the background answer's stream."""
        while True:
            error: DragomanError | None = None
            try:
                data = await self._response.read()
            except (ProviderConnectionError, ProviderTimeoutError) as lost:
                data, error = b"", lost
            if data:
                if frames := self._cut_frames(data):
                    return frames
            elif self._can_resume():
                await self._resume()
            elif error is not None:
                raise error
            else:
                self._is_lost = True
                last_bytes, self._half_frame = bytes(self._half_frame), bytearray()
                return last_bytes

    def _can_resume(self) -> bool:
        """True if the background answer's stream ended too early and may be opened again."""
        is_known = bool(self._state.id) and self._position is not None
        return is_known and not self._is_over and self._failures < _MOST_FAILURES

    async def _resume(self) -> None:
        """Opens the stream of the background answer behind the last whole event."""
        self._check_time()
        self._failures += 1
        await self._response.close()
        self._half_frame.clear()
        await anyio.sleep(self._failures * _FIRST_WAIT)
        assert self._position is not None
        with suppress(ProviderConnectionError, ProviderTimeoutError):
            resume = self._form.dump_resume(self._state.id, self._position)
            self._response = await self._send(resume)

    def _cut_frames(self, data: bytes) -> bytes:
        """Returns the whole events of the background answer that this data ends. What is left
        counts only once it is whole."""
        buffer, begun = self._half_frame, max(len(self._half_frame) - 3, 0)
        buffer += data
        end = max([buffer.rfind(mark, begun) + len(mark) for mark in _MARKS])
        # The longer mark, where neither is there.
        if end < len(_MARKS[1]):
            return b""
        frames = bytes(buffer[:end])
        del buffer[:end]
        for line in frames.splitlines():
            if line.startswith(b"data:"):
                self._note_frame(line[5:])
        return frames

    def _note_frame(self, payload: bytes) -> None:
        """Notes from an event of the stream how far the background answer is."""
        try:
            frame = _decode_frame(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        position: int | str | None = frame.sequence_number
        if position is None:
            position = frame.event_id
        if position is not None:
            self._position, self._failures = position, 0
        state = frame.response or frame.interaction
        if state is not None:
            self._note_state(state)
        elif "error" in (frame.type, frame.event_type):
            self._is_over = True

    def _note_state(self, state: _State) -> None:
        """Notes the state of the background answer, and tells of it if it is unfinished and
        new."""
        self._is_over = not state.id or state.status not in UNFINISHED
        if not self._is_over and state.status != self._state.status:
            self._reports.append(
                Custom(BACKGROUND_STATUS, {"id": state.id, "status": state.status})
            )
        if state.id:
            self._state = state

    def _check_time(self) -> None:
        if monotonic() > self._deadline:
            raise ProviderTimeoutError(
                f"the answer {self._state.id!r:.100} is still {self._state.status} after a day; "
                "it is not waited for any longer, and goes on at the provider"
            )


def _read_object(body: bytes) -> JsonMap:
    """Returns the JSON object in the body of a background answer, or an empty one."""
    try:
        return if_object(json_bytes.decode(body))
    except ValueError:
        return {}


def _frame(event: JsonMap) -> bytes:
    """Returns an event of a background answer as the bytes of a stream."""
    return b"data: " + json_bytes.encode(event) + b"\n\n"
