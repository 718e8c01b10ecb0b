"""Arguments that a copy of a call has lost: they are those of the call that it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.history.flat import laid_flat
from dragoman.history.rows import Rows
from dragoman.message import Message, ToolCallPart, ToolResultPart

__all__ = ["filled"]

_MOST = 512
"""Messages before it in which the call is looked for."""


def filled(rows: Rows, messages: Sequence[Message]) -> Sequence[Message]:
    """New messages, of whose calls those that come answered and without arguments have the ones of an open call of their id."""
    if not len(rows) or not lacks_arguments(messages):
        return messages
    answered = {
        piece.id
        for message in messages
        for piece in message.content
        if isinstance(piece, ToolResultPart)
    }
    return [_filled(rows, message, answered) for message in messages]


def lacks_arguments(messages: Sequence[Message]) -> bool:
    """Whether a whole call has none."""
    return any(_is_empty(piece) for message in messages for piece in message.content)


def _is_empty(piece: object) -> bool:
    return isinstance(piece, ToolCallPart) and not piece.arguments and piece.state == "complete"


def _filled(rows: Rows, message: Message, answered: set[str]) -> Message:
    found = {
        place: arguments
        for place, piece in enumerate(message.content)
        if isinstance(piece, ToolCallPart)
        and _is_empty(piece)
        and piece.id in answered
        and (arguments := _of_open(rows, piece))
    }
    if not found:
        return message
    content = [
        replace(piece, arguments=found[place], raw=None)
        if isinstance(piece, ToolCallPart) and place in found
        else piece
        for place, piece in enumerate(message.content)
    ]
    return message.replace(content=tuple(content))


def _of_open(rows: Rows, call: ToolCallPart) -> dict[str, Any] | None:
    """The arguments of the newest call of that id and tool which has some, where that is still open."""
    newest = rows.call(call.id)
    if newest is None:
        return None
    for position in range(newest, max(-1, newest - _MOST), -1):
        for piece in rows[position].message.content:
            if (
                isinstance(piece, ToolCallPart)
                and (piece.id, piece.name) == (call.id, call.name)
                and piece.arguments
            ):
                unit = [row.message for row in rows.between(*rows.unit(position))]
                is_open = any(
                    item.piece is piece and item.answer is None for item in laid_flat(unit).items
                )
                return piece.arguments if is_open else None
    return None
