"""A model call's events → chunks whose output is a message: the form in which the seeds' orchestrators read a model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from dragoman.event import Event, MessageFinished, PartDelta, PartFinished, PartStarted, RunError
from dragoman.fold import MessageBuilder
from dragoman.message import Content, FinishReason, Message, TextPart
from dragoman.result import ChatResult

__all__ = ["answer_chunks"]


async def answer_chunks(
    batches: AsyncGenerator[list[Event], None],
) -> AsyncGenerator[ChatResult[Message], None]:
    """Text as it comes, every other part when it is whole; the last chunk has finish reason, usage and origin.

    `MessageAccumulator.accumulate` over all outputs, then `consolidate`, is the message.

    Raises:
        DragomanError: the call failed.
    """
    chunks = _Chunks()
    async with aclosing(batches):
        async for events in batches:
            for event in events:
                if isinstance(event, RunError):
                    raise event.error
                if (chunk := chunks.feed(event)) is not None:
                    yield chunk


class _Chunks:
    """The chunks of one message, the first of candidate 0."""

    def __init__(self) -> None:
        self._builder = MessageBuilder()
        self._texts: dict[int, list[str]] = {}

    def feed(self, event: Event) -> ChatResult[Message] | None:
        """What one event adds; `None`: nothing that a chunk could hold."""
        self._builder.add(event)
        start = self._builder.start
        if start is None:  # none yet, or it was dropped
            void = "".join([text for texts in self._texts.values() for text in texts])
            self._texts.clear()
            return ChatResult(Message.model(), retracted=void) if void else None
        if getattr(event, "message_id", None) != start.message_id:
            return None
        if isinstance(event, MessageFinished):
            return self._last(event)
        part: Content | None = None
        if isinstance(event, PartStarted) and isinstance(event.part, TextPart):
            self._texts[event.index] = []
        elif (
            isinstance(event, PartDelta)
            and (texts := self._texts.get(event.index)) is not None
            and event.delta
        ):
            texts.append(str(event.delta))
            part = TextPart(str(event.delta))
        elif isinstance(event, PartFinished) and not self._texts.get(event.index):
            part = event.part
        if part is None:
            return None
        message = Message(start.role, (part,), id=start.message_id, created_at=start.created_at)
        return ChatResult(message, thinking=message.thinking, id=start.message_id)

    def _last(self, finish: MessageFinished) -> ChatResult[Message]:
        whole = self._builder.message().replace(content=())
        return ChatResult(
            whole,
            finish_reason=finish.finish_reason or FinishReason.unspecified,
            usage=finish.usage,
            metadata=whole.own_metadata,
            id=finish.message_id,
        )
