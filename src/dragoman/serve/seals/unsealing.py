"""A client's conversation, with what was sealed in it (`sealing`) as its providers made it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.loss import Loss, Lost
from dragoman.message import Content, Message, Role, ToolCallPart, ToolResultPart
from dragoman.serve.seals.marks import is_sealed, split_id
from dragoman.serve.seals.sealed_message import restored, restored_calls, unpack
from dragoman.wires.serving import serving
from dragoman.wires.wire import Wire

if TYPE_CHECKING:
    from dragoman.serve.seals.sealer import Sealer

__all__ = ["open_messages"]

_WHY = "what was sealed for it does not open, or the message was changed"


def open_messages(
    messages: Sequence[Message], wire: Wire, sealer: Sealer | None, owner: str = ""
) -> tuple[tuple[Message, ...], list[Loss]]:
    """A client's conversation with what was sealed in it, as the providers made it, and what does not open. No token is left in it, nor what
    is left of one, so that none goes to a provider. Without a `sealer` none opens. Where a message has a token and its calls have too, the
    message's counts, which holds all."""
    out: list[Message] = []
    losses: list[Loss] = []
    for position, message in enumerate(messages):
        taken = _taken(wire, message)
        if taken is None:
            out.append(message)
            continue
        if message.role is not Role.MODEL:
            out += [taken.message] if taken.message.content else []
            continue
        whole = _opened(taken, sealer, owner)
        if whole is None:
            losses.append(Loss(position, taken.place, Lost.signature, _WHY))
        if whole is not None or taken.message.content:
            out.append(whole or taken.message)
    return tuple(out), losses


class _Taken(msgspec.Struct, frozen=True):
    """A message without its tokens, and they."""

    message: Message
    place: int
    """The piece that the first of them stood in."""
    tokens: Sequence[str]
    """Those of the message."""
    calls: Sequence[str]
    """Those of its calls."""


def _taken(wire: Wire, message: Message) -> _Taken | None:
    """`None`: there is no token in it."""
    form = serving(wire).seal
    load, load_call = form.load, form.load_call
    content: list[Content] = []
    places: list[int] = []
    tokens: list[str] = []
    calls: list[str] = []
    for place, piece in enumerate(message.content):
        left: Content | None = piece
        if isinstance(piece, ToolCallPart | ToolResultPart):
            left, found = _without(load_call, piece)
            calls += found if isinstance(piece, ToolCallPart) else ()
        elif load is not None and isinstance(token := load(piece), str) and is_sealed(token):
            left = None
            tokens.append(token)
        if left is not piece:
            places.append(place)
        if left is not None:
            content.append(left)
    return (
        _Taken(message.replace(content=tuple(content)), places[0], tokens, calls)
        if places
        else None
    )


def _without(load_call: Any, piece: ToolCallPart | ToolResultPart) -> tuple[Content, list[str]]:
    """A call, or its result, without the tokens in it, and these."""
    tokens: list[str] = []
    if isinstance(piece, ToolCallPart) and load_call is not None:
        found = load_call(piece)
        if found is not None and is_sealed(found[0]):
            tokens.append(found[0])
            piece = found[1]
    if split := split_id(piece.id):
        tokens.append(split[1])
        piece = msgspec.structs.replace(piece, id=split[0])
    return piece, tokens


def _opened(taken: _Taken, sealer: Sealer | None, owner: str) -> Message | None:
    """The message as its provider made it; `None`: no token of it opens."""
    if sealer is None:
        return None
    for token in reversed(taken.tokens):  # the last is of the gateway that is next to the client
        sealed = _unsealed(sealer, token, owner)
        if sealed is not None and (whole := restored(taken.message, sealed)) is not None:
            return whole
    if taken.tokens:
        return None  # somebody changed what the calls' tokens do not know of
    parts = [_unsealed(sealer, token, owner) for token in taken.calls]
    known = [each for each in parts if each is not None]
    return restored_calls(taken.message, known) if known and len(known) == len(parts) else None


def _unsealed(sealer: Sealer, token: str, owner: str) -> Any:
    content = sealer.open(token, owner)
    return None if content is None else unpack(content)
