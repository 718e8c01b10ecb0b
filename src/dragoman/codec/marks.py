"""Marks are for people: what is sent to a model, and what a digest counts, is the conversation without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dragoman.message import MarkPart, Message

__all__ = ["Places", "unmarked", "unmarked_all"]

Places = Mapping[int, tuple[int, ...]]
"""Position of a message that had marks → for each piece that is left of its content, the place where it stood."""


def unmarked(message: Message) -> Message:
    """The message without its marks: itself where it has none."""
    if any(isinstance(piece, MarkPart) for piece in message.content):
        return message.replace(content=tuple([piece for piece in message.content if not isinstance(piece, MarkPart)]))
    return message


def unmarked_all(messages: Iterable[Message]) -> tuple[tuple[Message, ...], Places]:
    """The messages without marks, and where what is left stood."""
    given = tuple(messages)
    left = tuple([unmarked(message) for message in given])
    places = {
        position: tuple([place for place, piece in enumerate(one.content) if not isinstance(piece, MarkPart)])
        for position, (one, other) in enumerate(zip(given, left, strict=True))
        if one is not other
    }
    return left, places
