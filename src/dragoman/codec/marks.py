"""Marks are for people: what is sent to a model, and what a digest counts, is the conversation without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter

from dragoman.message import Content, MarkPart, Message

__all__ = [
    "INTERRUPT",
    "Places",
    "kinds",
    "only_waits",
    "unmarked",
    "unmarked_all",
    "without_waits",
]

_CONTENT = attrgetter("content")
Places = Mapping[int, tuple[int, ...]]
"""Position of a message that had marks → for each piece that is left of its content, the place where it stood."""


INTERRUPT = "interrupt"
"""Kind of the mark of what a call waits for."""


def kinds(messages: Iterable[Message]) -> set[type[Content]]:
    """The types of all pieces, seen at once also of a long conversation: most need no more to be known."""
    return set(map(type, chain.from_iterable(map(_CONTENT, messages))))


def only_waits(message: Message) -> bool:
    """Whether a message stands there for marks of this kind alone: it is no part of the conversation."""
    content = message.content
    return bool(content) and all(
        isinstance(piece, MarkPart) and piece.kind == INTERRUPT for piece in content
    )


def without_waits(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages without those that stand there for such marks alone."""
    if MarkPart not in kinds(messages):
        return messages
    return tuple([message for message in messages if not only_waits(message)])


def unmarked(message: Message) -> Message:
    """The message without its marks: itself where it has none."""
    if any(isinstance(piece, MarkPart) for piece in message.content):
        return message.replace(
            content=tuple([piece for piece in message.content if not isinstance(piece, MarkPart)])
        )
    return message


def unmarked_all(messages: Iterable[Message]) -> tuple[tuple[Message, ...], Places]:
    """The messages without marks, and where what is left stood."""
    given = tuple(messages)
    if MarkPart not in kinds(given):
        return given, {}
    marked = {
        at for at, one in enumerate(given) for piece in one.content if isinstance(piece, MarkPart)
    }
    places = {
        position: tuple(
            [
                place
                for place, piece in enumerate(given[position].content)
                if not isinstance(piece, MarkPart)
            ]
        )
        for position in sorted(marked)
    }
    return tuple([unmarked(message) for message in given]), places
