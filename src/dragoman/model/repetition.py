"""Ends an answer that goes round in circles: a middleware for models that are too small to find
their end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from dragoman.event import Event, MessageFinished, OpenText, PartDelta, PartFinished, PartStarted
from dragoman.message import FinishReason, TextPart
from dragoman.model.middleware import Next
from dragoman.request import ModelRequest

__all__ = ["circles", "end_repetition"]

_LONGEST = 200
"""Characters of the longest piece whose repetition is looked for."""
_TIMES = 4
_LEAST = 240
"""Characters that a repetition has at least: a line of dashes is none."""
_EVERY = 40
"""Characters after which a text is looked at again."""


async def end_repetition(request: ModelRequest, following: Next) -> AsyncIterator[Event]:
    """Middleware: where the end of a text is one piece over and over, the message ends there, with
    `length`, and the request is given up. What was repeated stays: it was shown already."""
    text, looked_at = "", 0
    watched: tuple[str, int] | None = None
    async with aclosing(cast(Any, following(request))) as events:
        async for event in events:
            yield event
            match event:
                case PartStarted(part=OpenText()):
                    watched, text, looked_at = (event.message_id, event.index), "", 0
                case PartDelta(delta=str(delta)) if (event.message_id, event.index) == watched:
                    text += delta
                    if len(text) - looked_at < _EVERY:
                        continue
                    looked_at = len(text)
                    if circles(text):
                        yield PartFinished(event.message_id, event.index, TextPart(text))
                        yield MessageFinished(event.message_id, FinishReason.length)
                        return
                case _:
                    pass


def circles(text: str) -> bool:
    """Whether a text ends with one piece, of up to 200 characters, at least four times and for at
    least 240 characters."""
    for period in range(1, _LONGEST + 1):
        span = max(_TIMES * period, _LEAST)
        if len(text) < span:
            return False
        if text[-span:-period] == text[period - span :]:
            return True
    return False
