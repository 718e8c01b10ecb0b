"""What every decoder of a run does the same way: the objects of a protocol's stream become the
events of a run.

A protocol's decoder is a subclass that gives a table and a few answers:

- `STEPS`, the table: type of an object → the method that reads it. Write it at the end of the
  class.
- `read_type` says which type an object has, and where its fields are; `admit` whether it may come
  now.
- `run_id` is that of the run, once it is known, and `cut_run` closes what is open when a run breaks
  off.

The parts that are open are in `open`, by the protocol's own key. `start_part`, `add_delta` and
`finish_part` keep them and tell the events. What a step cannot read raises `DecodeError` or
`HistoryError`; the shell makes both the `RunError` that ends the run.

What our own encoder wrote comes back as it was: an object that carries something of its event
(`codec.json_difference`) is read with that.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from dragoman.codec.response_decoder import ResponseDecoder
from dragoman.errors import DecodeError, DragomanError, HistoryError, StreamCutError
from dragoman.event import OpenText, PartDelta, PartFinished, PartStarted, RunError
from dragoman.fold import close_part
from dragoman.json_bytes import Json
from dragoman.message import Content, Origin

__all__ = ["Fields", "DecodedPart", "RunDecoder", "Step"]

Fields = Json
"""An object of the protocol."""
Step = Callable[[Any, Fields], None]
"""Reads one type of object: a method of the decoder, not bound to it."""


class DecodedPart:
    """A part that is open: where it is, what is known of it, and what came of it so far."""

    __slots__ = ("begun", "deltas", "index", "message_id")

    def __init__(self, message_id: str, index: int, begun: Content | OpenText) -> None:
        """Creates an open part of a decoded run. `begun`: the part as `PartStarted` has it."""
        self.message_id = message_id
        self.index = index
        self.begun = begun
        self.deltas: list[str | bytes] = []

    def build_part(self, *, cut: bool = False) -> Content | None:
        """Returns the part with all its deltas, or None if it is an empty text."""
        return close_part(self.begun, self.deltas, cut=cut)


P = TypeVar("P", bound=DecodedPart)


class RunDecoder(ResponseDecoder, Generic[P]):
    """Reads the stream of one run, or of several, one after the other."""

    STEPS: ClassVar[Mapping[str, Step]] = {}
    """Type of an object → what reads it."""
    CUT: ClassVar[str] = "the stream ended before the run did. Send the request again."
    """What is said of a stream that breaks off."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Starts a decoder of one run's stream. See `ResponseDecoder`."""
        super().__init__(origin, new_id)
        self.open: dict[Hashable, P] = {}
        """Parts that are open, by the protocol's key."""

    # what a wire gives

    @abstractmethod
    def read_type(self, event: Fields) -> tuple[str, Fields]:
        """Returns the type of an object of the run's stream, and its fields.

        Raises:
            DragomanError: it is of no type, or tells of an error.
        """

    def admit(self, object_type: str, fields: Fields) -> bool:  # noqa: ARG002 for those that look at it
        """Prepares the decoder for an object of the run's stream. Returns False if the object says
        nothing and has no step.

        Raises:
            DragomanError: it may not come now.
        """
        return True

    def run_id(self) -> str | None:
        """Returns the id of the run that an error ends, if it is known."""
        return None

    def cut_run(self, error: DragomanError) -> None:
        """Closes what is open, since the run ends with an error."""

    def read_unknown(self, object_type: str, fields: Fields) -> None:
        """Handles an object of a type that the table lacks. Later versions of a protocol add some,
        so it is ignored."""

    # what the shell does

    def read_event(self, event: Fields) -> None:
        """See `ResponseDecoder.read_event`."""
        object_type, fields = self.read_type(event)
        self.read_object(object_type, fields)

    def read_object(self, object_type: str, fields: Fields) -> None:
        """Reads one object of the protocol's stream, by its type.

        Raises:
            DragomanError: it cannot be read.
        """
        if not self.admit(object_type, fields):
            return
        step = self.STEPS.get(object_type)
        try:
            if step is None:
                self.read_unknown(object_type, fields)
            else:
                step(self, fields)
        # loaders of messages raise these; a stream ends with an error of its own
        except HistoryError as error:
            raise DecodeError(error.message) from error

    def end(self) -> None:
        """See `ResponseDecoder.end`."""
        self.fail(StreamCutError(self.CUT))

    def fail(self, error: DragomanError) -> None:
        """Ends the decoded run with an error. See `ResponseDecoder.fail`."""
        self._over = True
        self.cut_run(error)
        self._events.append(RunError(error, self.run_id()))

    # what a wire's steps use

    def start_part(self, key: Hashable, part: P) -> None:
        """Opens a part and adds its event."""
        self.open[key] = part
        self._events.append(PartStarted(part.message_id, part.index, part.begun))

    def add_delta(self, part: P, delta: str) -> None:
        """Adds a delta to an open part of the decoded run. An empty one does nothing."""
        if delta:
            part.deltas.append(delta)
            self._events.append(PartDelta(part.message_id, part.index, delta))

    def finish_part(self, part: P, whole: Content | None) -> None:
        """Adds the event that closes a part. `whole`: the part; None if nothing came of it."""
        if whole is not None:
            self._events.append(PartFinished(part.message_id, part.index, whole))
