"""What of a run is shown: its output piece by piece, what of it is void again, and what it all
joins to."""

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
from dragoman.orchestration.iteration import WRITTEN_PARTS, provider_metadata, text_of
from dragoman.result import ChatResult

__all__ = ["ShownOutput", "is_text"]


_GIVEN = -1
"""Index under which output stands that was given without events: no part has it."""


def is_text(event: PartStarted) -> bool:
    """Whether a part is text: what a run shows where its orchestrator says nothing else."""
    return isinstance(event.part, TextPart)


class _Message:
    """The shown parts of one model message."""

    __slots__ = ("finished", "given", "parts", "prefix", "thinking")

    def __init__(self, *, is_given: bool = False) -> None:
        self.prefix: str | None = None
        self.parts: dict[int, list[str]] = {}
        self.thinking: set[int] = set()
        self.given = is_given
        self.finished = False

    def text(self) -> str:
        return "".join(
            [self.prefix or "", *[text for texts in self.parts.values() for text in texts]]
        )


_NOBODY = _Message()


class ShownOutput:
    """Reads a run's events. What it gives, joined without what it takes back, is always `text()`.

    One newline stands between the outputs of two messages with tools between them. Of a typed run
    only the last message counts: all before it is void once the model is called again.
    """

    def __init__(self, *, typed: bool, state: Callable[[], Any] = lambda: None) -> None:
        """`state`: gives the state that client and agent share, as it is now."""
        self._typed = typed
        self._state = state
        self._messages: list[_Message] = []
        self._latest: dict[str, _Message] = {}
        self._finished: set[str] = set()
        self._given: _Message | None = None
        self._after_tools = False
        self._before: str | None = None
        self.message_id = ""
        """Id of the model's latest message."""

    def text(self) -> str:
        """The output so far: what counts of it."""
        return "".join([message.text() for message in self._messages])

    def has_finished(self, message_id: str | None) -> bool:
        """Whether the events told that message to its end."""
        return message_id in self._finished

    def is_open(self, message_id: str | None) -> bool:
        """Whether the events began to tell that message of the model's, and did not end it."""
        message = self._latest.get(message_id or "")
        return message is not None and not message.given and message_id not in self._finished

    def value(self) -> Any:
        """The output as JSON: the text, or the value of a typed run; `None`: there is none."""
        text = self.text() or None
        if text is None or not self._typed:
            return text
        try:
            return json_bytes.decode(text)
        except ValueError:
            return None

    def retract_open(self) -> list[Event]:
        """What retracts the model's messages that the events began and did not end."""
        began = [message_id for message_id in self._latest if self.is_open(message_id)]
        return [MessageDropped(message_id, "the run ended in its middle") for message_id in began]

    def open_text(self) -> str:
        """The text of a message that has not come to its end."""
        last = self._messages[-1] if self._messages else None
        return "" if last is None or last.finished else last.text().removeprefix(last.prefix or "")

    def has_begun(self) -> bool:
        """Whether anything of the model's latest message is shown."""
        message = self._latest.get(self.message_id, _NOBODY)
        return message.given or message.prefix is not None or self._given is not None

    def give(self, output: str) -> list[ChatResult[str]]:
        """Output that an orchestrator gives as it is, without events: all that is shown of the
        message that it tells next."""
        if self._given is None:
            self._given = _Message(is_given=True)
            self._messages.append(self._given)
        self._given.parts.setdefault(_GIVEN, []).append(output)
        return [ChatResult(output, id=self.message_id)]

    def feed(
        self,
        events: Sequence[Event],
        is_output: Callable[[PartStarted], bool] = is_text,
        *,
        chunks: bool = True,
    ) -> list[ChatResult[str]]:
        """The run's next events → what of them is shown. `is_output`: which parts are. Without
        `chunks` what the deltas of the events show is kept alone."""
        # Nearly every event of a stream is a delta of the part that was shown last: that way has no
        # call in it.
        pieces: list[ChatResult[str]] = []
        show, message_id = pieces.append, self.message_id
        message = self._latest.get(message_id, _NOBODY)
        parts, goes_on = message.parts, message.prefix is not None
        last = next(reversed(parts), None) if chunks else None
        for event in events:
            if type(event) is not PartDelta:
                self._take(event, is_output, pieces)
                message_id = self.message_id
                message = self._latest.get(message_id, _NOBODY)
                parts, goes_on = message.parts, message.prefix is not None and self._before is None
                last = next(reversed(parts), None) if chunks else None
            elif event.message_id != message_id:
                pass
            elif (texts := parts.get(event.index)) is not None:
                if chunks and event.index != last:
                    self._rewrite()
                    goes_on = False
                if not goes_on:
                    self._add(message, texts, str(event.delta), pieces)
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

    def _add(
        self, message: _Message, texts: list[str], text: str, pieces: list[ChatResult[str]]
    ) -> None:
        if not text:
            return
        texts.append(text)
        text = self._prefix(message) + text
        if self._before is None:
            pieces.append(ChatResult(text, id=self.message_id))

    def _prefix(self, message: _Message) -> str:
        """What stands before the next output of a message."""
        if message.prefix is not None:
            return ""
        has_others = any(
            other.given or other.prefix is not None
            for other in self._messages
            if other is not message
        )
        message.prefix = "\n" if self._after_tools and has_others else ""
        return message.prefix

    def _take(
        self, event: Event, is_output: Callable[[PartStarted], bool], pieces: list[ChatResult[str]]
    ) -> None:
        """An event that is no delta."""
        if isinstance(event, MessageStarted):
            if event.role is Role.MODEL and event.candidate == 0 and event.run_id is None:
                self._begin(event.message_id)
        elif isinstance(event, MessageFinished):
            self._finished.add(event.message_id)
            if (message := self._latest.get(event.message_id)) is not None:
                message.finished = True
        elif isinstance(event, StepStarted):
            if self._typed and self._messages and event.run_id is None:
                self._rewrite()
                self._messages.clear()
        elif isinstance(event, PartStarted) and isinstance(event.part, ToolResultPart):
            self._after_tools = self._after_tools or event.part.run_by != "provider"
        else:
            message = self._latest.get(getattr(event, "message_id", ""))
            # What is shown of a message whose output was given as it is, its events do not change.
            if message is None or message.given:
                self._take_other(event, pieces)
            else:
                self._take_part(message, event, is_output, pieces)

    def _take_other(self, event: Event, pieces: list[ChatResult[str]]) -> None:
        """An event that is of no message: what tools emitted, and the state. Of runs in tools
        nothing is shown."""
        if getattr(event, "run_id", None) is not None:
            return
        if isinstance(event, Custom):
            pieces.append(ChatResult("", custom={event.name: event.value}, id=self.message_id))
        elif isinstance(event, (StateSnapshot, StateDelta)):
            pieces.append(ChatResult("", state=self._state(), id=self.message_id))

    def _take_part(
        self,
        message: _Message,
        event: Event,
        is_output: Callable[[PartStarted], bool],
        pieces: list[ChatResult[str]],
    ) -> None:
        """The beginning or the end of a part of a model's message, or that the message is
        retracted."""
        if isinstance(event, PartStarted):
            if isinstance(event.part, WRITTEN_PARTS) and is_output(event):
                message.parts[event.index] = []
            elif isinstance(event.part, ThinkingPart):
                message.thinking.add(event.index)
        elif isinstance(event, PartFinished):
            self._settle(message, event, pieces)
            if metadata := provider_metadata(event.part):
                pieces.append(ChatResult("", metadata=metadata, id=event.message_id))
        elif isinstance(event, MessageDropped):
            self._finished.discard(event.message_id)
            self._rewrite()
            self._messages = [other for other in self._messages if other is not message]
            del self._latest[event.message_id]

    def _begin(self, message_id: str) -> None:
        """A message of the model's; output that was given before belongs to it."""
        message, self._given = self._given, None
        if message is None:
            message = _Message()
            self._messages.append(message)
        self._finished.discard(message_id)
        self.message_id = message_id
        self._latest[message_id] = message

    def _settle(
        self, message: _Message, event: PartFinished, pieces: list[ChatResult[str]]
    ) -> None:
        """A part is whole: where its deltas said otherwise, it is right."""
        texts = message.parts.get(event.index)
        if texts is None:
            return
        text, so_far = text_of(event.part), "".join(texts)
        if text == so_far:
            return
        last = self._messages[-1] is message and next(reversed(message.parts)) == event.index
        if last and text.startswith(so_far):
            self._add(message, texts, text[len(so_far) :], pieces)
        else:
            self._rewrite()
            self._prefix(message)
            texts[:] = [text]

    def _rewrite(self) -> None:
        """From here to the end of these events what is shown is the difference."""
        if self._before is None:
            self._before = self.text()
