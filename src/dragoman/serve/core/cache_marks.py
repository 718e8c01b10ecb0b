"""A client's marks for a provider's cache, on their way to an agent.

A client moves its marks along with its conversation, of which an agent has its own copy, with messages that the client never saw: there
they would stay in their old places, one more each turn, and providers take few. The agent's requests ask for the cache as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any, TypeVar

import msgspec

from dragoman.message import Content, Message, Native, ToolResultPart
from dragoman.request import ModelRequest, ServerTool, ToolSpec
from dragoman.serve.core.turn import Turn

__all__ = ["without_cache_marks"]

T = TypeVar("T", bound=Message | Content | ToolSpec | ServerTool)

_MARK = "cache_control"


def without_cache_marks(turn: Turn) -> Turn:
    """The conversation without a client's marks. Where there were some, and no setting says it, the request asks for the cache."""
    request = turn.asked
    messages = [_unmark_message(message) for message in request.messages]
    tools = [_unmark(tool) for tool in request.tools]
    if all(map(is_, messages, request.messages)) and all(map(is_, tools, request.tools)):
        return turn
    by_id = {
        id(message): unmarked for message, unmarked in zip(request.messages, messages, strict=True)
    }
    new = [by_id.get(id(message)) or _unmark_message(message) for message in turn.new]
    request = request.replace(messages=tuple(messages), tools=tuple(tools))
    return turn.replace(request=_with_cache(request), new=tuple(new))


def _with_cache(request: ModelRequest) -> ModelRequest:
    if request.settings.cache is not None:
        return request
    return request.replace(settings=msgspec.structs.replace(request.settings, cache="short"))


def _unmark_message(message: Message) -> Message:
    content = [_unmark_piece(piece) for piece in message.content]
    if not all(map(is_, content, message.content)):
        message = message.replace(content=tuple(content))
    return _unmark(message)


def _unmark_piece(piece: Content) -> Content:
    if isinstance(piece, ToolResultPart) and piece.is_content:
        result: Sequence[Any] = [_unmark(inner) for inner in piece.result]
        if not all(map(is_, result, piece.result)):
            piece = msgspec.structs.replace(piece, result=tuple(result))
    return _unmark(piece)


def _unmark(bearer: T) -> T:
    native = bearer.native
    if not native or not any(
        _MARK in fields for fields in native.values() if isinstance(fields, dict)
    ):
        return bearer
    left: dict[str, Any] = {}
    for name, fields in native.items():
        kept = {field: value for field, value in fields.items() if field != _MARK}
        if kept:
            left[name] = kept
    unmarked: Native = left or None
    return msgspec.structs.replace(bearer, native=unmarked)
