"""What every decoder of a response does the same way: frames → JSON → the wire's own step → events,
errors and the end. Sans-I/O.

A wire's decoder says what one JSON object of its stream means (`read_event`), and what the end of the
bytes does (`end`). It may read the chunks that nearly all of a stream consists of in a shorter way
(`read_fast`). Nothing that a provider sends is raised: it becomes a `RunError`, which ends the
answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

from dragoman import json_bytes
from dragoman.codec.emitter import Emitter
from dragoman.codec.framing import EventStream, Framing, is_cut, is_json
from dragoman.codec.json_values import body_bytes, need_object
from dragoman.errors import DecodeError, DragomanError, StreamCutError
from dragoman.event import Event
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Origin

__all__ = ["MessageDecoder", "ResponseDecoder"]

_DONE = b"[DONE]"
_SHOWN = 200


class ResponseDecoder(ABC):
    """Reads one response. What comes after an error, or after the end, is ignored."""

    FRAMES: ClassVar[type[Framing]] = EventStream
    """What the stream consists of."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Starts a decoder of one response. `new_id` makes the message's id, and ids for calls that
        come without one."""
        self._frames = self.FRAMES()
        self._events: list[Event] = []
        self._over = False
        self._origin = origin or Origin("")
        self._new_id = new_id

    @classmethod
    def create(
        cls, *, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> Self:
        """Returns a decoder of one response. Wires export it as `decoder`."""
        return cls(origin, new_id)

    @classmethod
    def load_response(
        cls,
        body: bytes | JsonMap,
        *,
        origin: Origin | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> list[Event]:
        """Returns the events of a whole response, as its stream would have given them. The body of
        an error gives a `RunError`."""
        return cls(origin, new_id).read_response(body)

    @abstractmethod
    def read_event(self, event: Json) -> None:
        """Reads one JSON object of the response's stream, or a whole response.

        Raises:
            DragomanError: what it tells of, or that it is not of this format; it ends the answer.
        """

    @abstractmethod
    def fail(self, error: DragomanError) -> None:
        """Ends the answer with an error that carries the partial message. Later bytes are
        ignored."""

    def read_fast(self, payload: bytes) -> bool:  # noqa: ARG002 for those that have a short way
        """Reads a payload of the most frequent type without decoding all of it. Returns False, and
        reads nothing, if it has another type."""
        return False

    def read_done(self) -> None:
        """Handles the mark `[DONE]`, with which the streams of some formats end."""
        return

    def end(self) -> None:
        """Handles the end of the bytes before the end of the answer: the answer was cut."""
        self.fail(StreamCutError("the stream ended before the answer did. Send the request again."))

    def read_body(self, body: bytes) -> None:
        """Decodes a body that came in place of a stream: a whole response or an error. Half a body
        is a cut response."""
        if is_cut(body):
            self.end()
        else:
            self.read_payload(body)

    def feed(self, data: bytes) -> list[Event]:
        """Decodes more bytes of the response, cut anywhere, and returns the events that they
        complete."""
        for payload in self._frames.feed(data):
            if not (self._over or self.read_fast(payload)):
                self.read_payload(payload)
        return self._take_events()

    def close(self) -> list[Event]:
        """Ends the response's stream and returns the last events. An answer that has not ended was
        cut."""
        for payload in self._frames.close():
            # Else it is the first half of a chunk, which a cut connection leaves.
            if payload.strip() == _DONE or is_json(payload):
                self.read_payload(payload)
        if (body := self._frames.body) is not None and not self._over:
            self.read_body(body)
        if not self._over:
            self.end()
        return self._take_events()

    def read_response(self, body: bytes | JsonMap) -> list[Event]:
        """Decodes a whole response, given as bytes or JSON, or the bytes of a recorded stream, and
        returns all its events."""
        try:
            data = body_bytes(body)
        except DecodeError as error:
            self.fail(error)
            return self._take_events()
        return [*self.feed(data), *self.close()]

    def read_payload(self, payload: bytes) -> None:
        """Decodes the payload of one frame of the response, all of its JSON."""
        stripped = payload.strip()
        if self._over or not stripped:
            return
        if stripped == _DONE:
            self.read_done()
            return
        try:
            self.read_event(need_object(json_bytes.decode(payload), "an event"))
        except DragomanError as error:
            self.fail(error.at(body=payload))
        except ValueError as error:
            excerpt = payload[:_SHOWN].decode(errors="replace")
            self.fail(
                DecodeError(f"a piece of the answer is not JSON ({error}): {excerpt}", body=payload)
            )

    def _take_events(self) -> list[Event]:
        events = self._events[:]
        self._events.clear()
        return events


class MessageDecoder(ResponseDecoder):
    """Reads a response that is one message."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Starts a decoder of a response that is one message. See `ResponseDecoder`."""
        super().__init__(origin, new_id)
        self._out = Emitter(new_id, origin=origin, events=self._events)

    def fail(self, error: DragomanError) -> None:
        """See `ResponseDecoder.fail`."""
        self._over = True
        self._out.fail(error)
