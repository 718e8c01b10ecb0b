"""What every encoder of a response does the same way: of a run's events those that the response
tells, one step each, the error and the end. A wire's encoder says what objects tell of a step; how
they are framed stands apart. Sans-I/O."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from dragoman import json_bytes
from dragoman.codec.framing import frame_server_event
from dragoman.codec.native import WireNative
from dragoman.codec.response_state import ResponseState
from dragoman.errors import DragomanError
from dragoman.event import (
    Custom,
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
)
from dragoman.json_bytes import JsonMap
from dragoman.message import MarkPart

__all__ = [
    "NO_OBJECTS",
    "Objects",
    "ResponseEncoder",
    "frame_event",
    "frame_line",
    "frame_typed_event",
]

Objects = Sequence[JsonMap]
"""What tells of a step, in order."""
NO_OBJECTS: Objects = ()
"""Nothing does."""


def frame_event(data: JsonMap) -> bytes:
    """Returns a Server-Sent Event without a name."""
    return frame_server_event(json_bytes.encode(data))


def frame_typed_event(data: JsonMap) -> bytes:
    """Returns a Server-Sent Event that has the name of its type."""
    return frame_server_event(json_bytes.encode(data), data["type"])


def frame_line(data: JsonMap) -> bytes:
    """Returns a line of newline-delimited JSON."""
    return json_bytes.encode(data) + b"\n"


class ResponseEncoder(ABC):
    """Events of the model's messages → the objects of a stream, and their bytes. Several messages
    become one response."""

    DONE: ClassVar[bytes] = b""
    """What stands behind the last object."""
    EMPTY: ClassVar[bool] = False
    """True if there is a stream of no message too."""

    def __init__(self, wire_native: WireNative, envelope: JsonMap) -> None:
        """Starts an encoder of one response. `wire_native`: the wire's; `envelope`: what no event
        holds, such as the response's id."""
        self._envelope = envelope
        self._state = ResponseState(wire_native.response)
        self._over = False
        self.skip = 0
        """So many of the next objects get no bytes: a client that comes back has them."""

    def feed(self, event: Event) -> bytes:
        """Returns the bytes of the response that tell of an event, or `b""`."""
        if isinstance(event, RunFinished) and self._state.accepts(event):
            return self.close()
        objects = self.objects(event)
        if len(objects) == 1 and not self.skip:
            return self.frame(objects[0])
        return self._frame_all(objects)

    def close(self) -> bytes:
        """Ends the encoded response and returns its last bytes."""
        if self._ends():
            return self._frame_all(self._end()) + self.DONE
        return b""

    def objects(self, event: Event) -> Objects:
        """Returns the objects of the response that tell of an event, before they become bytes."""
        state = self._state
        first = not state.started
        if self._over or not state.accepts(event):
            return NO_OBJECTS
        # Nearly all of a stream.
        if isinstance(event, PartDelta):
            return self.delta(event)
        if isinstance(event, PartStarted):
            if isinstance(event.part, MarkPart):
                return NO_OBJECTS
            return self.part_started(event)
        if isinstance(event, PartFinished):
            if isinstance(event.part, MarkPart):
                return NO_OBJECTS
            return self.part_finished(event)
        if isinstance(event, MessageStarted):
            return self.message_started(event, first=first)
        if isinstance(event, MessageFinished):
            return self.message_finished(event)
        if isinstance(event, MessageDropped):
            return self.message_dropped(event)
        if isinstance(event, RunError):
            self._over = True
            return self.error(event.error)
        if isinstance(event, Custom):
            return self.custom(event)
        return self._end()

    @abstractmethod
    def message_started(self, event: MessageStarted, *, first: bool) -> Objects:
        """Returns the objects that begin a message. `first`: it opens the response."""

    @abstractmethod
    def part_started(self, event: PartStarted) -> Objects:
        """Returns the objects that begin a part."""

    @abstractmethod
    def delta(self, event: PartDelta) -> Objects:
        """Returns the objects for a delta of an open part."""

    @abstractmethod
    def part_finished(self, event: PartFinished) -> Objects:
        """Returns the objects that end a part, with what no delta held."""

    def message_finished(self, event: MessageFinished) -> Objects:  # noqa: ARG002 for those that tell of it
        """Returns the objects that end a message. How the response ends is in the state."""
        return NO_OBJECTS

    @abstractmethod
    def message_dropped(self, event: MessageDropped) -> Objects:
        """Returns the objects that end what is open of a retracted message, so that nothing is
        added to it."""

    def custom(self, event: Custom) -> Objects:  # noqa: ARG002 for those that tell of it
        """Returns the objects that show an image before it is finished (`PARTIAL_IMAGE`), or that end
        parts which are taken back (`PARTS_DROPPED`)."""
        return NO_OBJECTS

    @abstractmethod
    def error(self, error: DragomanError) -> Objects:
        """Returns the objects that end the response with an error."""

    @abstractmethod
    def end(self) -> Objects:
        """Returns the objects that end a complete response."""

    def frame(self, data: JsonMap) -> bytes:
        """Returns an object as the bytes of the stream."""
        return frame_event(data)

    def _ends(self) -> bool:
        return (self.EMPTY or self._state.started) and not self._over

    def _end(self) -> Objects:
        """Returns the objects that end the encoded response, once."""
        if not self._ends():
            return NO_OBJECTS
        self._over = True
        return self.end()

    def _frame_all(self, objects: Objects) -> bytes:
        """Frames objects of the encoded response as bytes, without those that are to be skipped."""
        if self.skip:
            remaining = objects[self.skip :]
            self.skip -= len(objects) - len(remaining)
            objects = remaining
        return b"".join([self.frame(data) for data in objects])
