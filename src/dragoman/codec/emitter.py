"""What every decoder does the same way: open a message, open parts in order, add deltas, close all.
Sans-I/O.

A wire tells an `Emitter` what it read; the emitter says it in events. Parts are known by the wire's
own key (a block's index, `("call", 3)`, `"text"` …) and numbered in the order in which they first
appear. Every part that is started is finished.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import cast

from msgspec.structs import replace

from dragoman.codec.citations import place_citations
from dragoman.errors import DragomanError
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
)
from dragoman.fold import MessageBuilder, close_part, part_events
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import (
    Citation,
    Content,
    FinishReason,
    Message,
    Native,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)

__all__ = ["Emitter", "OpenPart"]


class OpenPart:
    """A part that is still open. `native`, where the wire fills it, is added when the part is
    closed."""

    __slots__ = ("deltas", "index", "key", "native", "part", "started")

    def __init__(self, index: int, key: Hashable, part: Content) -> None:
        """Opens a part of a streamed message for further deltas."""
        self.index = index
        self.key = key
        self.part = part
        self.deltas: list[str | bytes] = []
        self.native: Json = {}
        self.started = False


class Emitter:
    """Events of one answer (one candidate of it). `events` fills up; the decoder takes them with
    `take`."""

    def __init__(
        self,
        new_id: Callable[[], str] | None,
        *,
        candidate: int = 0,
        origin: Origin | None = None,
        events: list[Event] | None = None,
    ) -> None:
        """Starts the emitter of one answer's events. `events`: the list to append to, if a decoder
        shares one among several answers."""
        if new_id:
            self.message_id = new_id()
        else:
            self.message_id = f"message-{candidate}"
        self.new_id = new_id
        self.candidate = candidate
        self.origin = origin
        self.events: list[Event] = [] if events is None else events
        self.started = False
        self.finished = False
        self._closed: dict[int, Content] = {}
        self._start: MessageStarted | None = None
        self._finish: MessageFinished | None = None
        self._open: dict[Hashable, OpenPart] = {}
        self._next = 0

    def take(self) -> list[Event]:
        """Returns the events since the last call."""
        events, self.events = self.events, []
        return events

    def start(self, *, native: Native = None, metadata: JsonMap | None = None) -> None:
        """Emits the start of the message, if it is not open yet."""
        if not self.started:
            self.begin(
                MessageStarted(
                    self.message_id, Role.MODEL, self.candidate, self.origin, metadata or {}, native
                )
            )

    def begin(self, event: MessageStarted) -> None:
        """Emits a start event of the message that exists already."""
        self.started = True
        self.message_id, self.origin = event.message_id, event.origin
        self._start = event
        self.events.append(event)

    def ensure_part(self, key: Hashable, part: Content | None = None) -> OpenPart:
        """Returns the emitter's open part with this key, and opens `part` (a text by default) if
        there is none.

        A text is started by its first delta, through `add`; none may ever come.
        """
        open_part = self._open.get(key)
        if open_part is None:
            self.start()
            open_part = self._open[key] = OpenPart(self._next, key, part or OpenText())
            self._next += 1
            if not isinstance(open_part.part, OpenText):
                self._start_part(open_part)
        return open_part

    def find(self, key: Hashable) -> OpenPart | None:
        """Returns the open part with this key, or None."""
        return self._open.get(key)

    def add(self, open_part: OpenPart, delta: str | bytes) -> None:
        """Emits a delta of an open part. An empty delta does nothing."""
        if delta:
            if not open_part.started:
                self._start_part(open_part)
            open_part.deltas.append(delta)
            self.events.append(PartDelta(self.message_id, open_part.index, delta))

    def add_text(self, key: Hashable, delta: str) -> None:
        """Adds a delta to the text part with this key, and opens it if necessary."""
        if delta:
            self.add(self.ensure_part(key), delta)

    def add_thinking(self, key: Hashable, delta: str) -> None:
        """Adds a delta to the thinking part with this key, and opens it if necessary."""
        if delta:
            self.add(self.ensure_part(key, ThinkingPart()), delta)

    def add_whole_part(self, part: Content) -> None:
        """Adds a part that came in one piece, with the events of a part that was streamed in one
        delta."""
        self.start()
        self.events += part_events(self.message_id, self._next, part)
        self._closed[self._next] = part
        self._next += 1

    def cite(self, citations: Iterable[Citation]) -> None:
        """Adds sources to the emitter's open texts. Their places count from the beginning of all
        texts joined; a source of a text that is closed already goes to the last one as a whole."""
        open_texts = {
            part.index: part for part in self._open.values() if isinstance(part.part, TextPart)
        }
        if not open_texts:
            return
        lengths = {
            index: len(part.text)
            for index, part in self._closed.items()
            if isinstance(part, TextPart)
        }
        lengths |= {index: sum(map(len, part.deltas)) for index, part in open_texts.items()}
        for index, placed in place_citations(citations, lengths, open_texts).items():
            open_part = open_texts[index]
            open_part.part = replace(
                open_part.part, citations=(*cast("TextPart", open_part.part).citations, *placed)
            )

    def read_text(self) -> str:
        """Returns all text that the emitter has so far, of closed and of open parts."""
        texts = {
            index: part.text for index, part in self._closed.items() if isinstance(part, TextPart)
        }
        for part in self._open.values():
            if isinstance(part.part, TextPart):
                texts[part.index] = "".join(map(str, part.deltas))
        return "".join([texts[index] for index in sorted(texts)])

    def close(self, open_part: OpenPart, *, cut: bool = False) -> Content | None:
        """Closes a part and emits its end. A text that never came leaves nothing behind."""
        self._open.pop(open_part.key, None)
        part = close_part(open_part.part, open_part.deltas, cut=cut, native=open_part.native)
        if part is not None:
            if not open_part.started:
                self._start_part(open_part)
            self.amend(open_part, part)
        return part

    def end(self, open_part: OpenPart, part: Content) -> None:
        """Closes a part and emits it as the provider says that it is."""
        self._open.pop(open_part.key, None)
        if not open_part.started:
            self._start_part(open_part)
        self.amend(open_part, part)

    def amend(self, closed_part: OpenPart, part: Content) -> None:
        """Replaces a part that the emitter has closed already, for providers that correct at the
        end what they signed."""
        self._closed[closed_part.index] = part
        self.events.append(PartFinished(self.message_id, closed_part.index, part))

    def close_all(self, *, cut: bool = False) -> None:
        """Closes every part that is open."""
        for open_part in list(self._open.values()):
            self.close(open_part, cut=cut)

    def finish(
        self,
        reason: FinishReason,
        usage: Usage | None = None,
        *,
        origin: Origin | None = None,
        metadata: JsonMap | None = None,
        native: Native = None,
        cut: bool = False,
        losses: tuple[Loss, ...] = (),
    ) -> None:
        """Closes the message and what is open in it, and emits their ends."""
        self.start()
        self.close_all(cut=cut)
        self.finished = True
        self.origin = origin or self.origin
        self._finish = MessageFinished(
            self.message_id, reason, usage, origin, metadata or {}, native, losses=losses
        )
        self.events.append(self._finish)

    def fail(
        self,
        error: DragomanError,
        usage: Usage | None = None,
        *,
        origin: Origin | None = None,
        native: Native = None,
    ) -> None:
        """Ends the answer and emits an error. Open parts are closed as cut, and the error carries
        the message so far with its usage."""
        if (self.started or usage is not None) and not self.finished:
            self.finish(FinishReason.error, usage, origin=origin, native=native, cut=True)
            error.at(partial=self.build_partial_message())
        self.events.append(RunError(error))

    def build_partial_message(self) -> Message:
        """Returns the emitter's message so far, from the parts that are closed."""
        builder = MessageBuilder(self._start)
        for index, part in self._closed.items():
            builder.add(PartFinished(self.message_id, index, part))
        if self._finish is not None:
            builder.add(self._finish)
        return builder.message()

    def calls(self) -> tuple[ToolCallPart, ...]:
        """Returns the calls that the emitter has closed and that the caller must answer, not those
        that the provider ran."""
        closed = [self._closed[index] for index in sorted(self._closed)]
        return tuple(
            [
                part
                for part in closed
                if isinstance(part, ToolCallPart) and part.run_by != "provider"
            ]
        )

    def _start_part(self, open_part: OpenPart) -> None:
        open_part.started = True
        self.events.append(PartStarted(self.message_id, open_part.index, open_part.part))
