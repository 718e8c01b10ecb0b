"""The seeds' accumulator: a builder of one message, which a user may replace."""

from __future__ import annotations

from dragoman.fold import MessageBuilder
from dragoman.message import Content, Message, TextPart, ToolCallPart

__all__ = ["MessageAccumulator"]


class MessageAccumulator(MessageBuilder):
    """Builds the message of one model call from its events: `add` each, then `message()`. Linear.

    `accumulate` and `consolidate` are the seeds' way (D-33…D-36), on values: order is kept (decision 2).
    """

    def accumulate(self, existing: Message | None, chunk: Message) -> Message:
        """A message and more of it → both as one.

        With nothing before, the chunk is the message (D-33). A call whose id is there already is merged, new name and
        arguments winning where they are not empty (D-34). Other parts are appended, metadata is merged, the role stays
        (D-35).
        """
        if existing is None or not existing.content:
            return chunk
        content: list[Content] = list(existing.content)
        place = {part.id: index for index, part in enumerate(content) if isinstance(part, ToolCallPart) and part.id}
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
        return existing.replace(content=tuple(content), metadata={**existing.metadata, **chunk.metadata})

    def consolidate(self, message: Message) -> Message:
        """Joins neighbouring texts that carry nothing native; every other piece stays where it is (D-36 by decision 2)."""
        content: list[Content] = []
        for part in message.content:
            last = content[-1] if content else None
            if isinstance(part, TextPart) and isinstance(last, TextPart) and not part.native and not last.native:
                content[-1] = TextPart(last.text + part.text)
            else:
                content.append(part)
        return message.replace(content=tuple(content))
