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
from dragoman.codec.response import ResponseState
from dragoman.errors import DragomanError
from dragoman.event import (
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
    """A Server-Sent Event without a name."""
    return frame_server_event(json_bytes.encode(data))


def frame_typed_event(data: JsonMap) -> bytes:
    """A Server-Sent Event that has the name of its type."""
    return frame_server_event(json_bytes.encode(data), data["type"])


def frame_line(data: JsonMap) -> bytes:
    """A line of newline-delimited JSON."""
    return json_bytes.encode(data) + b"\n"


class ResponseEncoder(ABC):
    """Events of the model's messages → the objects of a stream, and their bytes. Several messages
    become one response."""

    DONE: ClassVar[bytes] = b""
    """What stands behind the last object."""
    EMPTY: ClassVar[bool] = False
    """Whether there is a stream of no message too."""

    def __init__(self, own: WireNative, envelope: JsonMap) -> None:
        """`own`: the wire's; `envelope`: what no event holds, such as the response's id."""
        self._envelope = envelope
        self._state = ResponseState(own.response)
        self._over = False
        self.skip = 0
        """So many of the next objects get no bytes: a client that comes back has them."""

    def feed(self, event: Event) -> bytes:
        """One event → the bytes that tell of it (`b""`: none)."""
        if isinstance(event, RunFinished) and self._state.accepts(event):
            return self.close()
        objects = self.objects(event)
        return (
            self.frame(objects[0]) if len(objects) == 1 and not self.skip else self._framed(objects)
        )

    def close(self) -> bytes:
        """The end of the events → the end of the response."""
        return self._framed(self._end()) + self.DONE if self._ends() else b""

    def objects(self, event: Event) -> Objects:
        """One event → the objects that tell of it, before they are framed."""
        state = self._state
        first = not state.started
        if self._over or not state.accepts(event):
            return NO_OBJECTS
        if isinstance(event, PartDelta):  # nearly all of a stream
            return self.delta(event)
        if isinstance(event, PartStarted):
            return NO_OBJECTS if isinstance(event.part, MarkPart) else self.part_started(event)
        if isinstance(event, PartFinished):
            return NO_OBJECTS if isinstance(event.part, MarkPart) else self.part_finished(event)
        if isinstance(event, MessageStarted):
            return self.message_started(event, first=first)
        if isinstance(event, MessageFinished):
            return self.message_finished(event)
        if isinstance(event, MessageDropped):
            return self.message_dropped(event)
        if isinstance(event, RunError):
            self._over = True
            return self.error(event.error)
        return self._end()

    @abstractmethod
    def message_started(self, event: MessageStarted, *, first: bool) -> Objects:
        """A message of the response. `first`: it opens the response."""

    @abstractmethod
    def part_started(self, event: PartStarted) -> Objects:
        """The start of a part."""

    @abstractmethod
    def delta(self, event: PartDelta) -> Objects:
        """More of an open part."""

    @abstractmethod
    def part_finished(self, event: PartFinished) -> Objects:
        """The end of a part, and what no delta told of it."""

    def message_finished(self, event: MessageFinished) -> Objects:  # noqa: ARG002 for those that tell of it
        """The end of a message; how the response ends is known to the state."""
        return NO_OBJECTS

    @abstractmethod
    def message_dropped(self, event: MessageDropped) -> Objects:
        """A message is retracted: what is open of it ends, so that nothing that follows is added to
        it."""

    @abstractmethod
    def error(self, error: DragomanError) -> Objects:
        """The response ends with an error."""

    @abstractmethod
    def end(self) -> Objects:
        """What ends a response that is complete."""

    def frame(self, data: JsonMap) -> bytes:
        """An object as bytes."""
        return frame_event(data)

    def _ends(self) -> bool:
        return (self.EMPTY or self._state.started) and not self._over

    def _end(self) -> Objects:
        if not self._ends():
            return NO_OBJECTS
        self._over = True
        return self.end()

    def _framed(self, objects: Objects) -> bytes:
        if self.skip:
            left = objects[self.skip :]
            self.skip -= len(objects) - len(left)
            objects = left
        return b"".join([self.frame(each) for each in objects])
