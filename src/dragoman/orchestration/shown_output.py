"""Follows the visible output of a run: its pieces, what is retracted, and the text that results.

`ShownOutput.feed` takes batches of events and returns chunks. A delta of the part that was shown
last is passed on at once. Everything else may change text that is already shown: a part that
ends with other text, a delta of an earlier part, a dropped message. Then `_begin_rewrite`
remembers the old text. At the end of the batch the old and the new text are compared, and the
chunks retract the end that differs and show the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dragoman import json_bytes
from dragoman.event import (
    Custom,
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    StateDelta,
    StateSnapshot,
    StepStarted,
)
from dragoman.message import Role, TextPart, ThinkingPart, ToolResultPart
from dragoman.orchestration.iteration import WRITTEN_PARTS, provider_metadata, read_text
from dragoman.result import ChatResult

__all__ = ["ShownOutput", "is_text"]


_PLAIN_INDEX = -1
"""Index of output that came without events. No part has it."""


def is_text(event: PartStarted) -> bool:
    """True if a part is text, which is the output by default."""
    return isinstance(event.part, TextPart)


class _ShownMessage:
    """The visible parts of one model message."""

    __slots__ = ("finished", "given", "parts", "prefix", "thinking")

    def __init__(self, *, is_given: bool = False) -> None:
        """Starts a message whose output is shown."""
        self.prefix: str | None = None
        self.parts: dict[int, list[str]] = {}
        self.thinking: set[int] = set()
        self.given = is_given
        self.finished = False

    def text(self) -> str:
        """Returns the visible text with its prefix."""
        return "".join(
            [self.prefix or "", *[text for texts in self.parts.values() for text in texts]]
        )


_NO_MESSAGE = _ShownMessage()


class ShownOutput:
    """Reads a run's events and returns its visible output. Its pieces, joined and without the
    retracted ones, always equal `text()`.

    One newline stands between the outputs of two messages with tools between them. Of a typed run
    only the last message counts: all before it is void once the model is called again.
    """

    def __init__(
        self,
        *,
        typed: bool,
        has_schema: bool | None = None,
        state: Callable[[], Any] = lambda: None,
    ) -> None:
        """Creates the output that a run shows. `typed`: it has a type or is checked, so that only
        the last message counts. `has_schema`: it is JSON; by default if it is typed. `state`:
        returns the present shared state."""
        self._typed = typed
        self._has_schema = typed if has_schema is None else has_schema
        self._state = state
        self._messages: list[_ShownMessage] = []
        self._latest: dict[str, _ShownMessage] = {}
        self._finished: set[str] = set()
        self._given: _ShownMessage | None = None
        self._after_tools = False
        self._before: str | None = None
        self.message_id = ""
        """Id of the model's latest message."""

    def text(self) -> str:
        """Returns the output so far."""
        return "".join([message.text() for message in self._messages])

    def has_finished(self, message_id: str | None) -> bool:
        """True if the events ended that message."""
        return message_id in self._finished

    def is_open(self, message_id: str | None) -> bool:
        """True if the events began that message of the model and did not end it."""
        message = self._latest.get(message_id or "")
        return message is not None and not message.given and message_id not in self._finished

    def value(self) -> Any:
        """Returns the output as a JSON value: the text, or the value of a typed run; None without
        output."""
        text = self.text() or None
        if text is None or not self._has_schema:
            return text
        try:
            return json_bytes.decode(text)
        except ValueError:
            return None

    def retract_open(self) -> list[Event]:
        """Returns the events that retract unfinished messages of the model."""
        began = [message_id for message_id in self._latest if self.is_open(message_id)]
        return [MessageDropped(message_id, "the run ended in its middle") for message_id in began]

    def open_text(self) -> str:
        """Returns the shown text of the unfinished message."""
        if not self._messages or (last := self._messages[-1]).finished:
            return ""
        return last.text().removeprefix(last.prefix or "")

    def has_begun(self) -> bool:
        """True if some of the model's latest message is visible."""
        message = self._latest.get(self.message_id, _NO_MESSAGE)
        return message.given or message.prefix is not None or self._given is not None

    def add_plain(self, output: str) -> list[ChatResult[str]]:
        """Adds output that an orchestrator gives without events. It replaces the text of the next
        message's events."""
        if self._given is None:
            self._given = _ShownMessage(is_given=True)
            self._messages.append(self._given)
        self._given.parts.setdefault(_PLAIN_INDEX, []).append(output)
        return [ChatResult(output, id=self.message_id)]

    def feed(
        self,
        events: Sequence[Event],
        is_output: Callable[[PartStarted], bool] = is_text,
        *,
        chunks: bool = True,
    ) -> list[ChatResult[str]]:
        """Takes the next events and returns their shown output. `is_output`: True for a part that
        is output. With `chunks=False` only the text is tracked."""
        # Nearly every event of a stream is a delta of the part that was shown last: that way has no
        # call in it.
        pieces: list[ChatResult[str]] = []
        show, message_id = pieces.append, self.message_id
        message = self._latest.get(message_id, _NO_MESSAGE)
        parts, goes_on = message.parts, message.prefix is not None
        last = next(reversed(parts), None) if chunks else None
        for event in events:
            if type(event) is not PartDelta:
                self._read_event(event, is_output, pieces)
                message_id = self.message_id
                message = self._latest.get(message_id, _NO_MESSAGE)
                parts, goes_on = message.parts, message.prefix is not None and self._before is None
                last = next(reversed(parts), None) if chunks else None
            elif event.message_id != message_id:
                pass
            elif (texts := parts.get(event.index)) is not None:
                if chunks and event.index != last:
                    self._begin_rewrite()
                    goes_on = False
                if not goes_on:
                    self._show_text(message, texts, str(event.delta), pieces)
                    goes_on = message.prefix is not None and self._before is None
                elif delta := event.delta:
                    texts.append(delta)  # pyright: ignore[reportArgumentType] - what is shown comes as text
                    if chunks:
                        show(ChatResult(delta, id=message_id))  # pyright: ignore[reportArgumentType] - as above
            elif chunks and event.index in message.thinking:
                thinking = str(event.delta)
                show(
                    ChatResult(
                        "", thinking=thinking, metadata={"thinking": thinking}, id=message_id
                    )
                )
        # Something shown earlier changed: what both texts have in common stays, the rest is taken
        # back and shown anew.
        if self._before is not None:
            before, after, self._before = self._before, self.text(), None
            differ = (
                position
                for position, (old, new) in enumerate(zip(before, after, strict=False))
                if old != new
            )
            same = next(differ, min(len(before), len(after)))
            if before[same:]:
                pieces.append(ChatResult("", retracted=before[same:], id=self.message_id))
            if after[same:]:
                pieces.append(ChatResult(after[same:], id=self.message_id))
        return pieces

    def _show_text(
        self, message: _ShownMessage, texts: list[str], text: str, pieces: list[ChatResult[str]]
    ) -> None:
        """Adds text to a part and shows it, unless the output is being rewritten."""
        if not text:
            return
        texts.append(text)
        text = self._set_prefix(message) + text
        if self._before is None:
            pieces.append(ChatResult(text, id=self.message_id))

    def _set_prefix(self, message: _ShownMessage) -> str:
        """Returns the newline that is shown before a message's first output if one is due, and
        remembers it."""
        if message.prefix is not None:
            return ""
        has_others = any(
            other.given or other.prefix is not None
            for other in self._messages
            if other is not message
        )
        message.prefix = "\n" if self._after_tools and has_others else ""
        return message.prefix

    def _read_event(
        self, event: Event, is_output: Callable[[PartStarted], bool], pieces: list[ChatResult[str]]
    ) -> None:
        """Takes an event other than a delta into the shown output."""
        if isinstance(event, MessageStarted):
            if event.role is Role.MODEL and event.candidate == 0 and event.run_id is None:
                self._begin_message(event.message_id)
        elif isinstance(event, MessageFinished):
            self._finished.add(event.message_id)
            if (message := self._latest.get(event.message_id)) is not None:
                message.finished = True
        elif isinstance(event, StepStarted):
            # The model was called again: what a typed run showed before was no valid output.
            if self._typed and self._messages and event.run_id is None:
                self._begin_rewrite()
                self._messages.clear()
        elif isinstance(event, PartStarted) and isinstance(event.part, ToolResultPart):
            self._after_tools = self._after_tools or event.part.run_by != "provider"
        else:
            message = self._latest.get(getattr(event, "message_id", ""))
            # What is shown of a message whose output was given as it is, its events do not change.
            if message is None or message.given:
                self._read_other(event, pieces)
            else:
                self._read_part(message, event, is_output, pieces)

    def _read_other(self, event: Event, pieces: list[ChatResult[str]]) -> None:
        """Takes an event outside of messages into the shown output: custom events and state. Those
        of runs inside tools stay hidden."""
        if getattr(event, "run_id", None) is not None:
            return
        if isinstance(event, Custom):
            pieces.append(ChatResult("", custom={event.name: event.value}, id=self.message_id))
        elif isinstance(event, (StateSnapshot, StateDelta)):
            pieces.append(ChatResult("", state=self._state(), id=self.message_id))

    def _read_part(
        self,
        message: _ShownMessage,
        event: Event,
        is_output: Callable[[PartStarted], bool],
        pieces: list[ChatResult[str]],
    ) -> None:
        """Takes the start or end of a part, or the retraction of a message, into the shown
        output."""
        if isinstance(event, PartStarted):
            if isinstance(event.part, WRITTEN_PARTS) and is_output(event):
                message.parts[event.index] = []
            elif isinstance(event.part, ThinkingPart):
                message.thinking.add(event.index)
        elif isinstance(event, PartFinished):
            self._finish_part(message, event, pieces)
            if metadata := provider_metadata(event.part):
                pieces.append(ChatResult("", metadata=metadata, id=event.message_id))
        elif isinstance(event, MessageDropped):
            self._finished.discard(event.message_id)
            self._begin_rewrite()
            self._messages = [other for other in self._messages if other is not message]
            del self._latest[event.message_id]

    def _begin_message(self, message_id: str) -> None:
        """Begins a message of the model in the shown output. Plain output that came before belongs
        to it."""
        message, self._given = self._given, None
        if message is None:
            message = _ShownMessage()
            self._messages.append(message)
        self._finished.discard(message_id)
        self.message_id = message_id
        self._latest[message_id] = message

    def _finish_part(
        self, message: _ShownMessage, event: PartFinished, pieces: list[ChatResult[str]]
    ) -> None:
        """Takes a finished part into the shown output. If its deltas said something else, the part
        wins."""
        texts = message.parts.get(event.index)
        if texts is None:
            return
        text, so_far = read_text(event.part), "".join(texts)
        if text == so_far:
            return
        last = self._messages[-1] is message and next(reversed(message.parts)) == event.index
        if last and text.startswith(so_far):
            self._show_text(message, texts, text[len(so_far) :], pieces)
        else:
            self._begin_rewrite()
            self._set_prefix(message)
            texts[:] = [text]

    def _begin_rewrite(self) -> None:
        """Begins a rewrite of the shown output: from here to the end of these events, only the
        difference of the output is shown."""
        if self._before is None:
            self._before = self.text()
