"""What the server kept of a conversation, put into the copy of a client that speaks the API of the provider.

The client's copy counts. Two things alone are done to a message that is otherwise as the server gave it: what another provider
thought is marked as that one's, and what the API's libraries have no field for comes back where a vendor demands it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.message import Content, Message, Native, Origin, Role, ThinkingPart, ToolCallPart
from dragoman.model.middleware import Destination
from dragoman.wires.serving import Serving

__all__ = ["settle_messages"]


def settle_messages(
    sent: Sequence[Message], stored: Sequence[Message], destination: Destination, served: Serving
) -> tuple[Message, ...]:
    """The client's messages for this provider; the very same where nothing is done to them."""
    answers = [
        message for message in stored if message.role is Role.MODEL and message.origin is not None
    ]
    if not answers:
        return tuple(sent)
    demands = served.request_fields.restores
    restores = demands is not None and demands(destination.quirks)
    told = [_said(answer) for answer in answers]
    out: list[Message] = []
    start = 0
    for message in sent:
        if message.role is not Role.MODEL or message.origin is not None:
            out.append(message)
            continue
        said = _said(message)
        match = next((at for at in range(start, len(answers)) if told[at] == said), None)
        if match is None:
            out.append(message)
            continue
        start = match + 1
        out.append(_settle(message, answers[match], destination, restores=restores))
    changed = any(one is not other for one, other in zip(out, sent, strict=True))
    return tuple(out) if changed or not isinstance(sent, tuple) else sent


def _settle(
    message: Message, answer: Message, destination: Destination, *, restores: bool
) -> Message:
    origin = answer.origin
    thinks = any(isinstance(piece, ThinkingPart) for piece in message.content)
    if origin is None or origin.provider != destination.provider:
        return message.replace(origin=origin) if thinks else message
    if not restores:
        return message
    thinking = (
        () if thinks else [piece for piece in answer.content if isinstance(piece, ThinkingPart)]
    )
    calls = iter(answer.tool_calls)
    pieces = [
        _with_native(piece, next(calls)) if isinstance(piece, ToolCallPart) else piece
        for piece in message.content
    ]
    if not thinking and all(
        one is other for one, other in zip(pieces, message.content, strict=True)
    ):
        return message
    whose = Origin(
        origin.provider, origin.endpoint, origin.model
    )  # whatever became of what stands before
    return message.replace(content=(*thinking, *pieces), origin=whose)


def _with_native(call: ToolCallPart, kept: ToolCallPart) -> Content:
    """A call with those fields of the API that the client's copy has not."""
    native: dict[str, Any] = {**(call.native or {})}
    for name, fields in (kept.native or {}).items():
        native[name] = {**fields, **native.get(name, {})}
    same: Native = call.native or {}
    return call if native == same else msgspec.structs.replace(call, native=native)


def _said(message: Message) -> tuple[Any, ...]:
    """What a message says: its text, and its calls by their ids."""
    return message.text, [
        (call.id, call.name, call.arguments, call.raw) for call in message.tool_calls
    ]
