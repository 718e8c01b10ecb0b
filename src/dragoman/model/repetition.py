"""Middleware that ends an answer which repeats itself, for models too small to find their end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from dragoman.event import Event, MessageFinished, OpenText, PartDelta, PartFinished, PartStarted
from dragoman.message import FinishReason, TextPart
from dragoman.model.middleware import Next
from dragoman.request import ModelRequest

__all__ = ["is_repeating", "end_repetition"]

_MAX_PERIOD = 200
"""Characters of the longest piece whose repetition is searched for."""
_MIN_REPEATS = 4
_MIN_CHARACTERS = 240
"""Fewest characters of a repetition. A line of dashes has fewer."""
_CHECK_INTERVAL = 40
"""Characters after which a text is checked again."""


async def end_repetition(request: ModelRequest, following: Next) -> AsyncIterator[Event]:
    """Ends an answer with `length` once its text only repeats one piece, and abandons the request.
    A middleware. The repeated text stays, because it was shown already."""
    text, checked_length = "", 0
    open_part: tuple[str, int] | None = None
    async with aclosing(cast(Any, following(request))) as events:
        async for event in events:
            yield event
            match event:
                case PartStarted(part=OpenText()):
                    open_part, text, checked_length = (event.message_id, event.index), "", 0
                case PartDelta(delta=str(delta)) if (event.message_id, event.index) == open_part:
                    text += delta
                    if len(text) - checked_length < _CHECK_INTERVAL:
                        continue
                    checked_length = len(text)
                    if is_repeating(text):
                        yield PartFinished(event.message_id, event.index, TextPart(text))
                        yield MessageFinished(event.message_id, FinishReason.length)
                        return
                case _:
                    pass


def is_repeating(text: str) -> bool:
    """True if a text ends with a piece of up to 200 characters at least four times, over at least
    240 characters."""
    for period in range(1, _MAX_PERIOD + 1):
        span = max(_MIN_REPEATS * period, _MIN_CHARACTERS)
        if len(text) < span:
            return False
        if text[-span:-period] == text[period - span :]:
            return True
    return False
