"""What every encoder of a run does the same way: the events of a run become the objects of a
protocol's stream, and their bytes.

A protocol's encoder is a subclass that gives a table and a few answers:

- `STEPS`, the table: type of an event → the method that writes its objects with `write`. Write it
  at the end of the class.
- `admit` looks at an event before its step: it opens a run that nobody opened, writes what waits,
  or keeps an event out.
- `end_stream` writes what ends a run that no event ended.
- `open` has the parts that are open. A wire enters an `OpenPart` (or a subclass) when it writes a
  start, and takes it out
  at the end; `take_part` and `take_parts` do both for it.

Nearly all of a stream are deltas of an open part, so these have a short way: the bytes around a
delta are made once for each part (`OpenPart.frame`), and `feed` puts the delta's JSON between them.
A wire that must write something else first overrides `delta_bytes`, or leaves `frame` empty: then
the delta takes its step in the table.

A stream that our own decoder reads gives back the very events by one rule: an object that would be
read as another event than the one it was written for carries what would be read otherwise
(`codec.json_difference`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from dragoman import json_bytes
from dragoman.codec.framing import frame_server_event
from dragoman.codec.opening import hide_opening
from dragoman.codec.response_encoder import NO_OBJECTS, Objects
from dragoman.event import Event, MessageStarted, OpenText, PartDelta, ToolStarted
from dragoman.json_bytes import JsonMap
from dragoman.message import Content

__all__ = ["Key", "EncodedPart", "RunEncoder", "Step", "split_frame"]

Key = tuple[str, int]
"""Id of a message, and the index of a part in it."""
Step = Callable[[Any, Any], None]
"""Writes the objects of one type of event: a method of the encoder, not bound to it."""
_encode = json_bytes.encode


class EncodedPart:
    """A part that is open: what is known of it, and what came of it so far."""

    __slots__ = ("begun", "deltas", "frame")

    def __init__(self, begun: Content | OpenText) -> None:
        """Creates an open part of an encoded run. `begun`: the part as `PartStarted` has it."""
        self.begun = begun
        self.deltas: list[str | bytes] = []
        self.frame: tuple[bytes, bytes] | None = None
        """Bytes before and behind its next delta; `None`: a delta has no short way."""


P = TypeVar("P", bound=EncodedPart)


def split_frame(data: bytes) -> tuple[bytes, bytes]:
    """Splits the bytes of an object around its last empty text, where a delta will stand."""
    before, _, behind = data.rpartition(b'""')
    return before, behind


class RunEncoder(ABC, Generic[P]):
    """Events → objects and bytes. Whatever comes, in whatever order, nothing is raised."""

    STEPS: ClassVar[Mapping[type, Step]] = {}
    """Type of an event → what writes its objects; other types write none."""
    DONE: ClassVar[bytes] = b""
    """What stands behind the last object."""

    def __init__(self) -> None:
        """Starts the encoder of a run's stream, without open parts. Subclasses take what they need
        of the run's request."""
        self.open: dict[Key, P] = {}
        """Parts that are open."""
        self.pending: list[Any] = []
        """What must be written before anything else; while there is some, no delta takes the short
        way."""
        self.over = False
        """Whether the run ended; what follows writes nothing."""
        self._written: list[JsonMap] = []
        self._closed = False

    # what a wire gives

    def admit(self, event: Event) -> bool:  # noqa: ARG002 for those that look at it
        """Prepares for an event. Returns False if the event has no step."""
        return not self.over

    @abstractmethod
    def end_stream(self) -> None:
        """Writes the end of a run that no event ended."""

    def frame(self, data: JsonMap) -> bytes:
        """Returns an object as bytes."""
        return frame_server_event(_encode(data))

    def delta_bytes(self, event: PartDelta) -> bytes | None:
        """Returns the encoded bytes of a run's delta by the short way, or None if it must take its
        step in the table."""
        part = self.open.get((event.message_id, event.index))
        if part is None or part.frame is None or self.pending:
            return None
        delta = event.delta
        # an empty delta says nothing, and bytes have no place in a text
        if not delta or not isinstance(delta, str):
            return None
        part.deltas.append(delta)
        before, behind = part.frame
        return before + _encode(delta) + behind

    # what a caller asks

    def feed(self, event: Event) -> bytes:
        """Returns the bytes of the run's stream that tell of an event."""
        if type(event) is PartDelta and (data := self.delta_bytes(event)) is not None:
            return data
        return self._frame_all(self.objects(event))

    def objects(self, event: Event) -> Objects:
        """Returns the objects of the run's stream that tell of an event, before they become
        bytes."""
        # No protocol has a place for it.
        if type(event) is ToolStarted:
            return NO_OBJECTS
        if event.at is not None:
            event = msgspec.structs.replace(event, at=None)
        if type(event) is MessageStarted and event.native:
            event = msgspec.structs.replace(event, native=hide_opening(event.native))
        if self.admit(event) and (step := self.STEPS.get(type(event))) is not None:
            step(self, event)
        return self._take_objects()

    def close(self) -> bytes:
        """Ends the run's stream and returns its last bytes."""
        if self._closed:
            return b""
        self._closed = True
        return self._frame_all(self.close_objects()) + self.DONE

    def close_objects(self) -> Objects:
        """Returns the objects that end the run, if no event did."""
        if not self.over:
            self.end_stream()
            self.over = True
        return self._take_objects()

    # what a wire's steps use

    def write(self, *objects: JsonMap) -> None:
        """Adds objects to the stream."""
        self._written.extend(objects)

    def take_part(self, key: Key) -> P | None:
        """Removes the open part with this key and returns it."""
        return self.open.pop(key, None)

    def take_parts(self, message_ids: Collection[str] | None = None) -> list[tuple[Key, P]]:
        """Removes the open parts of these messages, or of all, and returns them."""
        keys = [key for key in self.open if message_ids is None or key[0] in message_ids]
        return [(key, self.open.pop(key)) for key in keys]

    def _take_objects(self) -> Objects:
        """Returns the objects of the run's stream written so far, and empties the list."""
        if not self._written:
            return NO_OBJECTS
        objects, self._written = self._written, []
        return objects

    def _frame_all(self, objects: Sequence[JsonMap]) -> bytes:
        return b"".join([self.frame(data) for data in objects])
