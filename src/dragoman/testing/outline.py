"""Messages as lines to read and to compare: one for each thing that was said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from dragoman.message import Content, Message, TextPart, ThinkingPart, ToolCallPart, ToolResultPart

__all__ = ["outline"]


def outline(messages: Iterable[Message]) -> list[str]:
    """What messages say, line by line, without ids, times and counts: `user: How is it in Oslo?`,
    `model calls get_weather {"city":"Oslo"}`, `get_weather gives "rain"`."""
    names: dict[str, str] = {}
    return [line for message in messages for piece in message.content for line in _lines(message, piece, names)]


def _lines(message: Message, piece: Content, names: dict[str, str]) -> Iterator[str]:
    """What a piece says. `names`: id of a call → its tool, for results that a format gives without."""
    who = message.role.value
    match piece:
        case TextPart():
            yield f"{who}: {piece.text}"
        case ThinkingPart():
            yield f"{who} thinks: {piece.text}"
        case ToolCallPart():
            names[piece.id] = piece.name
            arguments = msgspec.json.encode(piece.arguments, order="sorted").decode()
            yield f"{who} calls {piece.name} {arguments if piece.state == 'complete' else piece.raw}"
        case ToolResultPart():
            result = piece.text if piece.is_content else msgspec.json.encode(piece.result, order="sorted").decode()
            yield f"{piece.name or names.get(piece.id, '')} {'fails' if piece.is_error else 'gives'} {result}"
        case _:
            yield f"{who}: {piece!r:.100}"
