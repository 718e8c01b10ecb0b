"""The seeds' accumulator: a builder of one message, which a user may replace."""

from __future__ import annotations

from functools import reduce
from typing import Any

from dragoman.event import Event, MessageStarted, PartDelta, PartFinished
from dragoman.fold import MessageBuilder
from dragoman.message import Content, Message, TextPart, ToolCallPart

__all__ = ["MessageAccumulator"]


class MessageAccumulator(MessageBuilder):
    """Builds the message of one model call from its events: `add` each, then `message()`. Linear.

    `accumulate` and `consolidate` are the seeds' way, on messages. A subclass that overrides one of them has it called: the
    first with each piece of text as it comes and with every other part when it is whole, the second at the end. What they
    make is the message's content and metadata; the rest of it is the provider's.
    """

    provider_hint = "default"
    """For whom it is made."""
    _overridden = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        ours = MessageAccumulator
        cls._overridden = (
            cls.accumulate is not ours.accumulate or cls.consolidate is not ours.consolidate
        )

    def _begin(self, start: MessageStarted | None) -> None:
        super()._begin(start)
        self._chunks: list[Message] = []
        self._accumulated: Message | None = None
        self._streamed: set[int] = set()

    def add(self, event: Event) -> None:
        """Takes the next event."""
        super().add(event)
        if self._overridden and (part := self._piece(event)) is not None:
            chunk = Message.model(part)
            self._chunks.append(chunk)
            self._accumulated = self.accumulate(self._accumulated or Message.model(), chunk)

    def _piece(self, event: Event) -> Content | None:
        """What an event adds: more of a text, or a part that is whole."""
        if not isinstance(event, PartDelta | PartFinished) or event.message_id != self._id:
            return None
        if isinstance(event, PartFinished):
            streamed = isinstance(event.part, TextPart) and event.index in self._streamed
            return None if streamed else event.part
        if (
            not event.delta
            or event.index not in self._deltas
            or not isinstance(self._parts[event.index], TextPart)
        ):
            return None
        self._streamed.add(event.index)
        return TextPart(str(event.delta))

    def message(self) -> Message:
        """The message so far."""
        built = super().message()
        if self._accumulated is None:
            return built
        plain = MessageAccumulator()
        made = self.consolidate(self._accumulated)
        if made == plain.consolidate(reduce(plain.accumulate, self._chunks)):
            return (
                built  # with all that no chunk has: what the provider signed, where one text ends
            )
        signed = {
            part.text: part for part in built.content if isinstance(part, TextPart) and part.native
        }
        content = [
            signed.get(part.text, part) if isinstance(part, TextPart) else part
            for part in made.content
        ]
        return built.replace(
            content=tuple(content), metadata={**built.own_metadata, **made.own_metadata}
        )

    def accumulate(self, existing: Message | None, chunk: Message) -> Message:
        """A message and more of it → both as one.

        With nothing before, the chunk is the message. A call whose id is there already is merged, new name and arguments
        winning where they are not empty. Other parts are appended, metadata is merged, the role stays.
        """
        if existing is None or not existing.content:
            return chunk
        known: dict[str, Any] = {"metadata": {**existing.metadata, **chunk.metadata}}
        for name in ("id", "created_at", "origin", "finish_reason", "usage", "native"):
            known[name] = getattr(chunk, name) or getattr(existing, name)
        if not any(isinstance(part, ToolCallPart) for part in chunk.content):
            return existing.replace(content=existing.content + chunk.content, **known)
        content: list[Content] = list(existing.content)
        place = {
            part.id: index
            for index, part in enumerate(content)
            if isinstance(part, ToolCallPart) and part.id
        }
        for part in chunk.content:
            if isinstance(part, ToolCallPart) and part.id in place:
                old = content[place[part.id]]
                assert isinstance(old, ToolCallPart)
                content[place[part.id]] = ToolCallPart(
                    part.id,
                    part.name or old.name,
                    part.arguments or old.arguments,
                    part.raw if part.arguments else old.raw,
                    part.state if part.arguments else old.state,
                    old.run_by,
                    part.native or old.native,
                )
            else:
                if isinstance(part, ToolCallPart) and part.id:
                    place[part.id] = len(content)
                content.append(part)
        return existing.replace(content=tuple(content), **known)

    def consolidate(self, message: Message) -> Message:
        """Joins neighbouring texts that carry nothing native; every other piece stays where it is."""
        content: list[Content] = []
        texts: list[str] = []

        def flush() -> None:
            if texts:
                content.append(TextPart("".join(texts)))
                texts.clear()

        for part in message.content:
            if isinstance(part, TextPart) and not part.native:
                texts.append(part.text)
            else:
                flush()
                content.append(part)
        flush()
        return message.replace(content=tuple(content))
